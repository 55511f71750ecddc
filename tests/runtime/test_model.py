"""Saved models in the runtime answer as their estimators do, in every form of X."""

import re

import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

import echolearn
import exported
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, FrameWise, StackedClassifier
from echolearn.exceptions import ExportError, ModelFileError
from echolearn.modelfile.layout import MODEL
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.writer import write_tensors
from echolearn.runtime import load

DOUBLE = {**exported.FIXED, "dtype": "float64"}
LIMIT = {"rtol": 1e-9, "atol": 1e-9}


@pytest.fixture
def through_file(tmp_path):
    """Return a function from a fitted model to the runtime's model of its file."""

    def load_saved(model):
        echolearn.save(model, tmp_path / "model.safetensors")
        return load(tmp_path / "model.safetensors")

    return load_saved


def assert_same(found, expected):
    """Compare answers in any form: the form too."""
    assert isinstance(found, list) == isinstance(expected, list)
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        return
    assert found.shape == expected.shape
    if expected.dtype.kind in "US":
        assert (found == expected).all()
    else:
        np.testing.assert_allclose(found, expected, **LIMIT)


@pytest.mark.parametrize("X", [exported.X[0], exported.X[:3], np.stack(exported.X[:3]), exported.X[0].tolist()])
def test_labels_and_probabilities_in_the_form_of_x(through_file, X):
    esn = ESNClassifier(20, **DOUBLE).fit(exported.X, exported.LABELS)
    model = through_file(esn)
    assert_same(model.predict(X), esn.predict(X))
    assert_same(model.predict_proba(X), esn.predict_proba(X))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3


def test_numbers_as_labels_stay_numbers(through_file):
    esn = ESNClassifier(20, **DOUBLE).fit(exported.X, [np.arange(30) % 3 * 10 for _ in exported.X])
    found = through_file(esn).predict(exported.X[0])
    assert found.dtype == np.int64
    assert (found == esn.predict(exported.X[0])).all()


@pytest.mark.parametrize("pooling", ["mean", "last", 3, "summary"])
def test_one_answer_per_sequence(through_file, pooling):
    esn = ESNClassifier(
        20, pooling=pooling, washout=2, **({"dtype": "float64"} if pooling == "summary" else DOUBLE)
    ).fit(exported.X, ["up", "down"] * 3)
    model = through_file(esn)
    for X in (exported.X[0], exported.X, np.stack(exported.X)):
        assert_same(model.predict(X), esn.predict(X))
        assert_same(model.predict_proba(X), esn.predict_proba(X))
    with pytest.raises(ValueError, match="washout=2"):
        model.predict(exported.X[0][:2])


def test_rows_of_labels(through_file):
    y = [np.stack([x[:, 0] > 100, x[:, 1] > 100], axis=1).astype(int) for x in exported.X]
    esn = ESNClassifier(20, **DOUBLE).fit(exported.X, y)
    model = through_file(esn)
    assert_same(model.predict(exported.X), esn.predict(exported.X))
    assert_same(model.predict_proba(exported.X), esn.predict_proba(exported.X))


@pytest.mark.parametrize("rows", [False, True])
def test_values_are_numbers_or_rows_as_the_estimator_has_them(through_file, rows):
    y = [x[:, :1] if rows else x[:, 0] for x in exported.X]
    esn = ESNRegressor(20, **DOUBLE).fit(exported.X, y)
    assert_same(through_file(esn).predict(exported.X), esn.predict(exported.X))


def test_other_layouts(through_file):
    turned = [x.T for x in exported.X]
    esn = ESNClassifier(20, layout="channels_first", **DOUBLE).fit(turned, ["up", "down"] * 3)
    assert_same(through_file(esn).predict(turned), esn.predict(turned))
    rows = np.stack([x[:, 0] for x in exported.X])
    esn = ESNClassifier(20, layout="rows", **DOUBLE).fit(rows, ["up", "down"] * 3)
    model = through_file(esn)
    assert_same(model.predict(rows), esn.predict(rows))
    assert_same(model.predict(list(rows)), esn.predict(list(rows)))


def series_model(make, **settings):
    """Return a model of one series, and what follows the series."""
    x = np.random.default_rng(2).normal(size=(140, 2))
    y = np.roll(x[:, 0], 2)
    return make(ESNRegressor(20, washout=5, **DOUBLE, **settings)).fit(x[:100], y[:100]), x[:100], x[100:]


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
    pooled = through_file(ESNClassifier(10, pooling="mean", **DOUBLE).fit(exported.X, ["up", "down"] * 3))
    with pytest.raises(ValueError, match="whole sequences"):
        pooled.predict(exported.X[0], warm_up=exported.X[1])


@pytest.mark.parametrize("missing", ["carry", "mean"])
def test_gaps(through_file, missing):
    x = np.where(
        np.random.default_rng(4).random((100, 2)) < 0.2, np.nan, exported.X[0][:1, :2] + np.arange(200).reshape(100, 2)
    )
    esn = ESNRegressor(15, missing=missing, **DOUBLE).fit(x[:80], np.arange(80.0))
    model = through_file(esn)
    for part in (x[80:], x[:80], [x[5:40], x[40:]]):
        assert_same(model.predict(part), esn.predict(part))
    imputed = make_pipeline(FrameWise(SimpleImputer()), ESNRegressor(15, **DOUBLE)).fit([x], [np.arange(100.0)])
    assert_same(through_file(imputed).predict([x]), imputed.predict([x]))


def test_a_pipeline_is_one_model(through_file):
    model = make_pipeline(FrameWise(StandardScaler()), ESNClassifier(20, **DOUBLE)).fit(exported.X, exported.LABELS)
    assert_same(through_file(model).predict_proba(exported.X), model.predict_proba(exported.X))


def test_stacks(through_file):
    layer = ESNClassifier(12, epochs=1, dtype="float64")
    stack = StackedClassifier([layer, layer], joint_epochs=0, sees="output+hidden").fit(exported.X, exported.LABELS)
    model = through_file(stack)
    assert_same(model.predict_proba(exported.X), stack.predict_proba(exported.X))
    stream = model.stream()
    answers = np.array([stream.step(frame) for frame in exported.X[0]])
    np.testing.assert_allclose(answers, stack.predict_proba(exported.X[0]), **LIMIT)


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
    monkeypatch.setattr("echolearn.runtime._forecast.MAX_FORECAST_DEVIATIONS", 0.5)
    with pytest.warns(UserWarning, match="runs away: after 1 steps"):
        model.forecast(20)


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
    model = through_file(ESNClassifier(10, activation="identity", **exported.FIXED).fit(exported.X, exported.LABELS))
    with pytest.raises((ValueError, TypeError), match=message):
        model.predict(X)


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


def test_long_sequences_are_run_in_chunks(through_file, monkeypatch):
    esn = ESNRegressor(20, feedback=True, **DOUBLE).fit(exported.X, exported.VALUES)
    model = through_file(esn)
    monkeypatch.setattr("echolearn.runtime._running.MAX_STATES_PER_CHUNK", 100)
    assert_same(model.predict(exported.X), esn.predict(exported.X))


def test_options_that_cannot_run_are_refused_by_name(through_file, tmp_path):
    polynomial = make_pipeline(FrameWise(PolynomialFeatures()), ESNRegressor(5, **exported.FIXED))
    with pytest.raises(ExportError, match=r"model\.safetensors: PolynomialFeatures"):
        through_file(polynomial.fit(exported.X, exported.VALUES))
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "other")
    (tmp_path / "other").write_bytes(b"12345678{}")
    with pytest.raises(ModelFileError):
        load(tmp_path / "other")


def test_a_damaged_file_is_refused(through_file, tmp_path):
    through_file(exported.classifier())
    path = tmp_path / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ModelFileError, match="checksum"):
        load(path)


@pytest.mark.parametrize("units", [30, 400])
def test_streams_answer_as_predict_does(through_file, units):
    esn = ESNClassifier(units, pooling="mean", washout=3, connections=3, **DOUBLE).fit(exported.X, ["up", "down"] * 3)
    model = through_file(esn)
    stream, many = model.stream(), model.streams(6)
    for frame in exported.X[0]:
        last, label = stream.step(frame), stream.copy().predict(frame)
    assert label in ("up", "down")
    np.testing.assert_allclose(last, esn.predict_proba(exported.X[0])[0], **LIMIT)
    for frames in np.stack(exported.X, axis=1):
        last = many.step(frames)
    np.testing.assert_allclose(last, esn.predict_proba(exported.X), **LIMIT)


def test_streams_can_be_reset_one_by_one(through_file):
    model = through_file(ESNRegressor(10, feedback=True, missing="carry", **DOUBLE).fit(exported.X, exported.VALUES))
    many, frames = model.streams(3), np.stack(exported.X[:3], axis=1)
    first = [many.step(f) for f in frames[:4]]
    many.reset([1])
    assert many.steps.tolist() == [4, 0, 4]
    again = many.step(frames[0])
    np.testing.assert_allclose(again[1], first[0][1], **LIMIT)
    assert np.abs(again[0] - first[0][0]).max() > 1e-6
    many.reset()
    np.testing.assert_allclose(many.step(frames[0]), first[0], **LIMIT)


def test_a_refused_frame_leaves_the_stream_where_it_is(through_file):
    model = through_file(
        ESNRegressor(10, activation="identity", standardize=False, input_scaling=9.0, **DOUBLE).fit(
            exported.X, exported.VALUES
        )
    )
    stream = model.stream(warm_up=exported.X[0][:5])
    before = stream.states[0]
    for bad, message in (([np.nan] * 3, "NaN"), ([1.0], "shape"), (["a"] * 3, "numbers"), ([[1], [2, 3]], "numbers")):
        with pytest.raises(ValueError, match=message):
            stream.step(bad)
    with pytest.raises(FloatingPointError, match="not moved"):
        stream.step([1.7e308, -1.7e308, 1.7e308])
    assert (stream.states[0] == before).all()
    assert stream.steps == 5
    expected = model.predict(exported.X[0], warm_up="cold")[5]
    np.testing.assert_allclose(stream.step(exported.X[0][5]), expected, **LIMIT)


def test_what_needs_the_end_of_a_sequence_has_no_stream(through_file):
    for esn, message in (
        (exported.classifier(bidirectional=True), "bidirectional=True"),
        (exported.classifier(labels=["up", "down"] * 3, pooling=3), "pooling=3"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            through_file(esn).stream()


def test_contents_that_contradict_one_another_are_refused(through_file, tmp_path):
    """A forged file has the right checksum: every array is compared with the others."""
    through_file(ESNClassifier(10, missing="carry", **DOUBLE).fit(exported.X[0], exported.LABELS[0]))
    tensors, facts = read_tensors(tmp_path / "model.safetensors", MODEL)
    facts = {name: value for name, value in facts.items() if not name.startswith("format")}
    read = [name for name in sorted(tensors) if "history" not in name]
    assert len(read) > 12
    for name in read:
        for forged in (np.zeros((2, 2), tensors[name].dtype), tensors[name][:-1], None):
            changed = {key: value for key, value in tensors.items() if key != name or forged is not None}
            if forged is not None:
                changed[name] = forged
            if name == "opening" and forged is not None and forged.shape[1:] == tensors[name].shape[1:]:
                continue  # it may have any length
            if name in ("bias", "end_state", "input_mean") and forged is None:
                continue  # which there need not be
            write_tensors(tmp_path / "forged", changed, facts, MODEL)
            with pytest.raises((ModelFileError, ExportError)):
                raise AssertionError(f"{name} was taken: {load(tmp_path / 'forged')}")
    for name, value in (("settings", 3), ("per_step", None), ("layout", "no"), ("estimator", "os.system")):
        write_tensors(tmp_path / "forged", tensors, {**facts, name: value}, MODEL)
        with pytest.raises((ModelFileError, ExportError)):
            load(tmp_path / "forged")
