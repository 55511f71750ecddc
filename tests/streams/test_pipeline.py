"""Streams of pipelines: frames pass through the transformers, then the network."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

import echolearn
import toys
from echolearn import DeepESNRegressor, ESNClassifier, ESNRegressor, FrameWise, SeriesClassifier
from echolearn.readout import RLS
from toys import grouped

X, LABELS = toys.labels(sequences=6)
X = [40 + 7 * x for x in X]
VALUES = toys.echoes(sequences=6)[1]
SMALL = {**toys.FAST, "hidden_units": 4, "connections": 2, "epochs": 1}
STANDARD = FrameWise(StandardScaler())
PIPELINES = {
    "labels": lambda: make_pipeline(STANDARD, ESNClassifier(**grouped(SMALL))).fit(X, LABELS),
    "values": lambda: make_pipeline(FrameWise(MinMaxScaler()), ESNRegressor(**grouped(SMALL))).fit(X, VALUES),
    "three steps": lambda: make_pipeline(
        STANDARD, FrameWise(PolynomialFeatures(2)), FrameWise(PCA(3, whiten=True)), ESNClassifier(**grouped(SMALL))
    ).fit(X, LABELS),
    "one series, a plain scaler": lambda: make_pipeline(StandardScaler(), ESNRegressor(**grouped(SMALL))).fit(
        X[0], VALUES[0]
    ),
    "several layers": lambda: make_pipeline(STANDARD, DeepESNRegressor(4, 2, epochs=1)).fit(X, VALUES),
    "own names": lambda: Pipeline(
        [("a", STANDARD), ("off", "passthrough"), ("net", ESNClassifier(**grouped(SMALL)))]
    ).fit(X, LABELS),
    "no steps": lambda: make_pipeline(ESNClassifier(**grouped(SMALL))).fit([x / 50 for x in X], LABELS),
}


@pytest.mark.parametrize("kind", PIPELINES)
@pytest.mark.filterwarnings("ignore::echolearn.exceptions.InputWarning")
def test_a_stream_is_that_of_the_network_on_transformed_frames(kind):
    model = PIPELINES[kind]()
    frames = X[0]
    seen = frames
    for _, step in model.steps[:-1]:
        if step != "passthrough":
            seen = np.concatenate([np.asarray(step.transform(x[None])) for x in seen])
    expected = model[-1].stream().predict(seen)
    running = echolearn.stream(model)
    np.testing.assert_array_equal(running.copy().predict(frames), expected)
    alone = [running.predict(x) for x in frames]
    chunks = [running.reset().predict(frames[:5]), running.predict(frames[5:])]
    if kind == "several layers":  # products of fewer rows may be rounded differently
        np.testing.assert_allclose(alone, expected, atol=1e-6)
        np.testing.assert_allclose(np.concatenate(chunks), expected, atol=1e-6)
    else:
        np.testing.assert_array_equal(alone, expected)
        np.testing.assert_array_equal(np.concatenate(chunks), model[-1].stream().reset().predict(seen))
    assert running.network.steps == len(frames)
    if hasattr(model, "predict_proba"):
        P = running.reset().predict_proba(frames)
        np.testing.assert_allclose(P, model.predict_proba(frames), atol=1e-5)
    else:
        assert not hasattr(running, "predict_proba")
        cold = echolearn.stream(model, warm_up="cold").predict(frames)
        np.testing.assert_allclose(cold, model.predict(frames), atol=1e-4)
        warm = echolearn.stream(model, warm_up=frames[:10]).predict(frames[10:])
        np.testing.assert_allclose(warm, cold[10:], atol=1e-5)
    assert len(running.predict(frames[:0])) == 0


@pytest.mark.parametrize("alone", [True, False])
def test_whole_series_have_no_stream(alone):
    model = SeriesClassifier(4) if alone else make_pipeline(STANDARD, SeriesClassifier(4))
    with pytest.raises(TypeError, match="SeriesClassifier has no stream: a network with one target per step streams"):
        echolearn.stream(model.fit(X, ["up", "down"] * 3))


def test_a_stream_learns():
    model = make_pipeline(STANDARD, ESNRegressor(**grouped(SMALL))).fit(X, VALUES)
    running, alone = echolearn.stream(model, online=RLS()), model[-1].stream(online=RLS())
    for x, y in zip(X[0], VALUES[0], strict=True):
        np.testing.assert_array_equal(running.learn(x, y), alone.learn(standardised(model, x), y))
    np.testing.assert_array_equal(running.network.readout_weights, alone.readout_weights)


def standardised(model, x):
    return model[0].transform(x[None])[0]


def test_frames_of_a_wrong_shape_do_not_move_the_stream():
    running = echolearn.stream(PIPELINES["labels"]())
    for frame in ([1.0], [1.0, 2.0, 3.0], [["a", "b"]], np.ones((2, 2, 2)), [[1.0], [1.0, 2.0]], 3.0):
        with pytest.raises(ValueError, match=r"a frame has shape|a frame holds"):
            running.predict(frame)
    with pytest.raises(ValueError, match="NaN or infinity; the stream has not moved"):
        running.predict([np.nan, 1.0])
    assert running.network.steps == 0
