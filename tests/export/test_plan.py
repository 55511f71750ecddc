"""What a plan holds, what it means, and what is refused."""

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, PolynomialFeatures

import exported
from echolearn import (
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    FrameWise,
    ReservoirFeatures,
    SeriesClassifier,
    SeriesRegressor,
)
from echolearn.exceptions import ExportError
from echolearn.export import plan_of
from echolearn.export.plan import check_runs_forward
from reference.plans import evaluate, forecast
from toys import grouped


def test_a_plan_means_what_the_model_answers():
    for model in (
        exported.classifier(),
        exported.classifier(bidirectional=True, readout="ridge"),
        exported.classifier(feedback=True, direct=False, activation="sigmoid"),
        exported.regressor(dtype="float64"),
        SeriesClassifier(20, washout=4).fit(exported.X, ["up", "down"] * 3),
        SeriesRegressor(20, dtype="float64").fit(exported.X, [v.mean(axis=0) for v in exported.VALUES]),
        exported.deep_classifier(6, 3, ensemble=2, bidirectional=True),
        exported.deep_regressor(leak=(0.0003, 0.01)),
        exported.deep_classifier(labels=["up", "down"] * 3, dtype="float64"),
    ):
        drawn = exported.drawn(model)
        np.testing.assert_allclose(evaluate(drawn.plan, drawn.x), drawn.expected, rtol=2e-6, atol=2e-6)


def test_a_plan_of_a_forecaster_continues_its_series_or_another():
    esn = exported.forecaster()
    plan = plan_of(esn)
    np.testing.assert_allclose(forecast(plan, np.empty((0, 1)), 6)[:, 0], esn.predict(6), atol=1e-12)
    other = exported.SERIES[20:120]
    np.testing.assert_allclose(forecast(plan, other[:, None], 6)[:, 0], esn.predict(6, warm_up=other), atol=1e-12)


def test_a_plan_cannot_be_written_to():
    plan = plan_of(exported.classifier())
    with pytest.raises(ValueError, match="read-only"):
        plan.layer.W[0, 0] = 1
    with pytest.raises(AttributeError):
        plan.precision = "float64"


def test_an_ensemble_is_one_layer_with_the_units_of_all():
    assert plan_of(exported.classifier(ensemble=2)).layer.units == 20


def test_names_and_feature_names():
    pd = pytest.importorskip("pandas")
    frames = pd.DataFrame(exported.X[0], columns=["u", "v", "w"])
    plan = plan_of(ESNClassifier(5, **grouped(exported.FIXED)).fit(frames, exported.LABELS[0]))
    assert plan.answer.names == ("a", "b", "c")
    assert plan.feature_names == ("u", "v", "w")


def test_pipelines():
    X = [np.where(np.random.default_rng(3).random(x.shape) < 0.1, np.nan, x) for x in exported.X]
    network = ESNRegressor(10, **grouped(exported.FIXED))
    model = make_pipeline(FrameWise(SimpleImputer()), FrameWise(MaxAbsScaler()), network).fit(X, exported.VALUES)
    np.testing.assert_allclose(evaluate(plan_of(model), X[0]), model.predict(X[0]), rtol=1e-5)


def fitted_pipeline(step, network):
    return make_pipeline(step, network).fit(exported.X, exported.VALUES)


def series_pipeline():
    return make_pipeline(FrameWise(MaxAbsScaler()), ESNForecaster(5, learn="none", washout=5)).fit(
        exported.SERIES[:, None]
    )


def carrying_pipeline():
    return fitted_pipeline(FrameWise(MaxAbsScaler()), ESNRegressor(5, missing="carry", **grouped(exported.FIXED)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ReservoirFeatures().fit(exported.X), "ReservoirFeatures cannot be exported"),
        (lambda: LogisticRegression(), "LogisticRegression cannot be exported"),
        (
            lambda: fitted_pipeline(FrameWise(PolynomialFeatures()), ESNRegressor(5, **grouped(exported.FIXED))),
            "PolynomialFeatures",
        ),
        (series_pipeline, "a pipeline that ends in ESNForecaster"),
        (carrying_pipeline, "missing='carry'"),
        (
            lambda: fitted_pipeline(
                FrameWise(SimpleImputer(missing_values=7.0)), ESNRegressor(5, **grouped(exported.FIXED))
            ),
            "missing_values=7.0",
        ),
        (
            lambda: fitted_pipeline(
                FrameWise(SimpleImputer(add_indicator=True)), ESNRegressor(5, **grouped(exported.FIXED))
            ),
            "add_indicator",
        ),
    ],
)
def test_what_has_no_plan_is_refused_by_name(make, message):
    with pytest.raises(ExportError, match=message):
        plan_of(make())


def test_what_needs_the_end_of_a_sequence_is_refused_by_name():
    for model, message in (
        (exported.classifier(bidirectional=True), "bidirectional=True"),
        (exported.deep_classifier(bidirectional=True), "bidirectional=True"),
        (exported.deep_classifier(labels=["up", "down"] * 3), "DeepESNClassifier cannot .* sees whole series"),
    ):
        with pytest.raises(ExportError, match=message):
            check_runs_forward(plan_of(model), "a step graph of ONNX")
    check_runs_forward(plan_of(SeriesRegressor(5).fit(exported.X, range(6))), "C")
