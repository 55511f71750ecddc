"""Sequences in every form, gaps, and where a prediction starts."""

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import exported
from echolearn import ESNClassifier, ESNRegressor, FrameWise, SeriesClassifier
from exported import DOUBLE, assert_same
from toys import grouped


def test_other_layouts(through_file):
    turned = [x.T for x in exported.X]
    esn = ESNClassifier(20, layout="channels_first", **grouped(DOUBLE)).fit(turned, exported.LABELS)
    assert_same(through_file(esn).predict(turned), esn.predict(turned))
    rows = np.stack([x[:, 0] for x in exported.X])
    esn = SeriesClassifier(20, dtype="float64").fit(rows, ["up", "down"] * 3)
    model = through_file(esn)
    assert_same(model.predict(rows), esn.predict(rows))
    assert_same(model.predict(list(rows)), esn.predict(list(rows)))


def series_model(make, **settings):
    """Return a model of one series, and what follows the series."""
    x = np.random.default_rng(2).normal(size=(140, 2))
    y = np.roll(x[:, 0], 2)
    return make(ESNRegressor(20, washout=5, **grouped(DOUBLE, settings))).fit(x[:100], y[:100]), x[:100], x[100:]


@pytest.mark.parametrize("settings", [{}, {"feedback": True}])
@pytest.mark.parametrize("make", [lambda n: n, lambda n: make_pipeline(FrameWise(MinMaxScaler()), n)])
def test_a_model_of_one_series_continues_it(through_file, make, settings):
    esn, training, after = series_model(make, **settings)
    model = through_file(esn)
    for x in (training, after, after[:7]):
        assert_same(model.predict(x), esn.predict(x))
    cold = through_file(esn).predict(after, warm_up="cold")
    assert np.abs(cold - esn.predict(after)).max() > 1e-3


def test_warm_up(through_file):
    esn, training, after = series_model(lambda n: n, feedback=True)
    model = through_file(esn)
    assert_same(model.predict(after, warm_up=training[50:]), esn.predict(after, warm_up=training[50:]))
    assert_same(model.predict([after], warm_up=[training]), esn.predict([after], warm_up=[training]))
    assert_same(model.predict(after, warm_up="cold"), esn.predict(after, warm_up="cold"))
    with pytest.raises(ValueError, match="one each"):
        model.predict([after], warm_up=[training, training])
    whole = through_file(SeriesClassifier(10).fit(exported.X, ["up", "down"] * 3))
    with pytest.raises(ValueError, match="whole sequences"):
        whole.predict(exported.X[0], warm_up=exported.X[1])


@pytest.mark.parametrize("missing", ["carry", "mean"])
def test_gaps(through_file, missing):
    x = np.where(
        np.random.default_rng(4).random((100, 2)) < 0.2, np.nan, exported.X[0][:1, :2] + np.arange(200).reshape(100, 2)
    )
    esn = ESNRegressor(15, missing=missing, **grouped(DOUBLE)).fit(x[:80], np.arange(80.0))
    model = through_file(esn)
    for part in (x[80:], x[:80], [x[5:40], x[40:]]):
        assert_same(model.predict(part), esn.predict(part))
    imputed = make_pipeline(FrameWise(SimpleImputer()), ESNRegressor(15, **grouped(DOUBLE))).fit(
        [x], [np.arange(100.0)]
    )
    assert_same(through_file(imputed).predict([x]), imputed.predict([x]))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (exported.X[0].T, "transpose"),
        (exported.X[0][:, 0], "expected"),
        (np.where(np.arange(90).reshape(30, 3) == 7, np.nan, exported.X[0]), "step 2"),
        ([], "empty"),
        (np.empty((0, 3)), "at least one step"),
        ([exported.X[0], exported.X[0][:, :2]], "sequence 1 of X"),
        ([["a"] * 3] * 4, "numbers"),
        ("frames", "str"),
        (np.full((4, 3), 1e300), "not finite"),
    ],
)
def test_what_is_no_sequence_is_refused(through_file, X, message):
    model = through_file(
        ESNClassifier(10, **grouped(exported.FIXED, activation="identity")).fit(exported.X, exported.LABELS)
    )
    with pytest.raises((ValueError, TypeError), match=message):
        model.predict(X)
