"""Saved models in the runtime answer as their estimators do, in every form of X."""

import numpy as np
import pytest

import exported
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, SeriesClassifier, SeriesRegressor
from echolearn.exceptions import ModelFileError
from echolearn.runtime import load
from exported import DOUBLE, assert_same
from toys import grouped


@pytest.mark.parametrize("X", [exported.X[0], exported.X[:3], np.stack(exported.X[:3]), exported.X[0].tolist()])
def test_labels_and_probabilities_in_the_form_of_x(through_file, X):
    esn = ESNClassifier(20, **grouped(DOUBLE)).fit(exported.X, exported.LABELS)
    model = through_file(esn)
    assert_same(model.predict(X), esn.predict(X))
    assert_same(model.predict_proba(X), esn.predict_proba(X))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3


def test_numbers_as_labels_stay_numbers(through_file):
    esn = ESNClassifier(20, **grouped(DOUBLE)).fit(exported.X, [np.arange(30) % 3 * 10 for _ in exported.X])
    found = through_file(esn).predict(exported.X[0])
    assert found.dtype == np.int64
    assert (found == esn.predict(exported.X[0])).all()


@pytest.mark.parametrize("readout", ["softmax", "ridge"])
def test_one_label_per_series(through_file, readout):
    esn = SeriesClassifier(20, readout=readout, washout=2, dtype="float64").fit(exported.X, ["up", "down"] * 3)
    model = through_file(esn)
    for X in (exported.X[0], exported.X, np.stack(exported.X)):
        assert_same(model.predict(X), esn.predict(X))
        assert_same(model.predict_proba(X), esn.predict_proba(X))
    with pytest.raises(ValueError, match="washout=2"):
        model.predict(exported.X[0][:2])
    assert repr(model) == "Model(SeriesClassifier: 80 units, 3 features, 2 classes per sequence, float64)"


@pytest.mark.parametrize("y", [np.arange(6) % 4 / 3, np.arange(12).reshape(6, 2) % 5 / 3], ids=["value", "values"])
def test_values_per_series(through_file, y):
    esn = SeriesRegressor(20, missing="carry", dtype="float64").fit(exported.X, y)
    model = through_file(esn)
    gaps = [np.where(np.arange(90).reshape(30, 3) % 11 == 0, np.nan, x) for x in exported.X]
    for X in (exported.X[0], exported.X, np.stack(exported.X), gaps):
        assert_same(model.predict(X), esn.predict(X))


def test_rows_of_labels_per_series(through_file):
    esn = SeriesClassifier(20, dtype="float64").fit(exported.X, np.arange(12).reshape(6, 2) % 3 % 2)
    model = through_file(esn)
    assert_same(model.predict(exported.X), esn.predict(exported.X))
    assert_same(model.predict_proba(exported.X), esn.predict_proba(exported.X))


def test_rows_of_labels(through_file):
    y = [np.stack([x[:, 0] > 100, x[:, 1] > 100], axis=1).astype(int) for x in exported.X]
    esn = ESNClassifier(20, **grouped(DOUBLE)).fit(exported.X, y)
    model = through_file(esn)
    assert_same(model.predict(exported.X), esn.predict(exported.X))
    assert_same(model.predict_proba(exported.X), esn.predict_proba(exported.X))


@pytest.mark.parametrize("rows", [False, True])
def test_values_are_numbers_or_rows_as_the_estimator_has_them(through_file, rows):
    y = [x[:, :1] if rows else x[:, 0] for x in exported.X]
    esn = ESNRegressor(20, **grouped(DOUBLE)).fit(exported.X, y)
    assert_same(through_file(esn).predict(exported.X), esn.predict(exported.X))


def test_probabilities_are_of_classifiers(through_file):
    model = through_file(exported.regressor())
    assert not hasattr(model, "classes_")
    with pytest.raises(AttributeError, match="values"):
        model.predict_proba(exported.X[0])
    with pytest.raises(TypeError, match="does not continue"):
        model.forecast(3)


def test_a_model_says_what_it_is(through_file):
    assert repr(through_file(exported.classifier())) == (
        "Model(ESNClassifier: 20 units, 3 features, 3 classes per step, float32)"
    )


def test_a_damaged_file_is_refused(through_file, tmp_path):
    through_file(exported.classifier())
    path = tmp_path / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ModelFileError, match="checksum"):
        load(path)


# ---------------- Closed loops of the runtime


def test_forecasts(through_file):
    series = exported.SERIES
    exogenous = np.cos(np.arange(220) / 7)[:, None]
    one = ESNForecaster(20, learn="none", ridge=1e-3).fit(series)
    model = through_file(one)
    assert_same(model.forecast(6), one.predict(6))
    assert_same(model.forecast(6, series[:90]), one.predict(6, warm_up=series[:90]))
    with pytest.raises(TypeError, match="forecast"):
        model.predict(series[:, None])
    many = ESNForecaster(20, learn="none", ridge=1e-3).fit(
        [series, series[::-1].copy()], exogenous=[exogenous[:200]] * 2
    )
    model = through_file(many)
    assert_same(
        model.forecast(6, exogenous=[exogenous[200:206]] * 2), many.predict(6, exogenous=[exogenous[200:206]] * 2)
    )
    given = {"exogenous": exogenous[:106]}
    assert_same(model.forecast(6, series[:100], **given), many.predict(6, warm_up=series[:100], **given))
    for arguments, message in (
        ({}, "exogenous="),
        ({"exogenous": exogenous[:3]}, "one per step to come"),
        ({"exogenous": "no"}, "numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            model.forecast(6, **arguments)


def test_a_forecast_that_runs_away_is_reported(through_file, monkeypatch):
    model = through_file(exported.forecaster())
    model.forecast(20)
    monkeypatch.setattr("echolearn.runtime._model.MAX_FORECAST_DEVIATIONS", 0.5)
    with pytest.warns(UserWarning, match="diverges: after 1 steps"):
        model.forecast(20)
