"""Columns with names: wherever data have names, they must be those of the fit, in their order."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import echolearn
from echolearn import DeepESNRegressor, ESNClassifier, ESNForecaster, ESNRegressor, FrameWise
from echolearn.monitoring import GuardedStream, Monitor
from echolearn.readout import RLS

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.normal(size=(120, 2)), columns=["heat", "load"])
Y = np.roll(X["heat"].to_numpy(), 1)
TURNED = X[["load", "heat"]]
REFUSED = r"columns \['load', 'heat'\]; expected those of the fit, in their order: \['heat', 'load'\]"


@pytest.fixture(scope="module")
def esn():
    return ESNRegressor(10, learn="none").fit(X, Y)


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline(FrameWise(StandardScaler()), ESNRegressor(10, learn="none")).fit(X, Y)


def test_a_stream_refuses_columns_in_another_order(esn):
    stream = esn.stream()
    for given in (TURNED, TURNED.iloc[0], X.rename(columns={"heat": "cold"})):
        with pytest.raises(ValueError, match=r"expected those of the fit, in their order: \['heat', 'load'\]"):
            stream.predict(given)
    with pytest.raises(ValueError, match=REFUSED):
        esn.stream(online=RLS()).learn(TURNED, Y)
    with pytest.raises(ValueError, match=f"warm_up has the {REFUSED}"):
        esn.stream(warm_up=TURNED)
    assert stream.steps == 0


def test_a_stream_takes_the_columns_of_the_fit_and_reads_arrays_by_position(esn):
    expected = esn.stream().predict(X.to_numpy())
    np.testing.assert_array_equal(esn.stream().predict(X), expected)
    np.testing.assert_array_equal(esn.stream().predict(X.iloc[0]), expected[0])
    np.testing.assert_array_equal(esn.stream().predict(pd.Series([*X.iloc[0]])), expected[0])  # an index of numbers


def test_labels_a_file_and_the_runtime_keep_the_names(tmp_path):
    esn = ESNClassifier(10, learn="none").fit(X, Y > 0)
    esn.save(tmp_path / "a.safetensors")
    loaded, model = echolearn.load(tmp_path / "a.safetensors"), echolearn.runtime.load(tmp_path / "a.safetensors")
    refusing = (
        loaded.stream().predict_proba,
        model.predict,
        lambda frames: model.stream().step(frames.iloc[0]),
        lambda frames: esn.streams(3).step(frames[:3]),
    )
    for answer in refusing:
        answer(X)
        with pytest.raises(ValueError, match=REFUSED):
            answer(TURNED)


def test_pipelines_check_names_too(pipeline):
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        pipeline.predict(TURNED)
    stream = echolearn.stream(pipeline)
    with pytest.raises(ValueError, match=REFUSED):
        stream.predict(TURNED.iloc[0])
    np.testing.assert_array_equal(stream.predict(X), echolearn.stream(pipeline).predict(X.to_numpy()))
    with pytest.raises(ValueError, match=REFUSED):
        echolearn.stream(make_pipeline(ESNRegressor(10, learn="none")).fit(X, Y)).predict(TURNED)


def test_another_fit_of_frames_forgets_the_names():
    step = FrameWise(StandardScaler()).fit(X)
    assert step.feature_names_in_.tolist() == ["heat", "load"]
    assert not hasattr(step.fit(X.to_numpy()), "feature_names_in_")


def test_deep_networks_check_names_too(tmp_path):
    deep = DeepESNRegressor(4, 2, epochs=1).fit(X, Y, validation=(X, Y))
    deep.save(tmp_path / "a.safetensors")
    for model in (deep, echolearn.load(tmp_path / "a.safetensors")):
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            model.predict(TURNED)
        assert model.feature_names_in_.tolist() == ["heat", "load"]
    unnamed = DeepESNRegressor(4, 2, epochs=1).fit(X.to_numpy(), Y)
    assert not hasattr(unnamed, "feature_names_in_")


def test_lists_of_tables_have_names():
    esn = ESNRegressor(10, learn="none").fit([X[:60], X[60:]], [Y[:60], Y[60:]])
    assert esn.feature_names_in_.tolist() == ["heat", "load"]
    for given in (TURNED, [TURNED]):
        with pytest.raises(ValueError, match="Feature names must be in the same order"):
            esn.predict(given)


def test_forecasters_check_names_too(tmp_path):
    esn = ESNForecaster(10, method="direct").fit(X)
    esn.save(tmp_path / "a.safetensors")
    for model in (esn, echolearn.load(tmp_path / "a.safetensors")):
        for take in (model.update, model.stream().predict, model.score):
            with pytest.raises(ValueError, match=REFUSED):
                take(TURNED)
    for series in (Y, pd.DataFrame({"sold": Y})):  # with and without names of its own
        known = ESNForecaster(10, method="direct").fit(series, exogenous=X)
        assert len(known.predict(2, exogenous=X[:2])) == 2
        with pytest.raises(ValueError, match=f"exogenous has the {REFUSED}"):
            known.predict(2, exogenous=TURNED[:2])


def test_saved_forecasters_check_names_in_the_runtime(tmp_path):
    ESNForecaster(10, method="closed_loop", learn="none").fit(X, exogenous=X).save(tmp_path / "a.safetensors")
    model = echolearn.runtime.load(tmp_path / "a.safetensors")
    ahead = pd.concat([X, X[:2]])
    assert model.forecast(2, X, exogenous=ahead).shape == (2, 2)
    with pytest.raises(ValueError, match=REFUSED):
        model.forecast(2, TURNED, exogenous=ahead)
    with pytest.raises(ValueError, match=f"exogenous has the {REFUSED}"):
        model.forecast(2, X, exogenous=ahead[["load", "heat"]])


def test_what_watches_a_stream_checks_names_too(esn):
    with pytest.raises(ValueError, match=REFUSED):
        GuardedStream(esn.stream(online=RLS())).learn(TURNED, Y)
    for model in (esn, esn.stream(), GuardedStream(esn.stream(online=RLS()))):
        with pytest.raises(ValueError, match=REFUSED):
            Monitor(model).run(TURNED, Y)
        with pytest.raises(ValueError, match=REFUSED):
            Monitor(model).update(TURNED.iloc[0], Y[0])
