"""Streams that are saved and taken up again continue with the same bits; streams side by side are single ones."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import echolearn
import exported
from echolearn import ESNRegressor, FrameWise
from echolearn.exceptions import ModelFileError
from echolearn.readout import LMS, RLS
from echolearn.runtime import load
from toys import grouped

BEFORE, AFTER = exported.X[1][:11], exported.X[2]


def fitted(**settings):
    """Return a network with all that a stream may carry along: feedback, gaps, and leaks."""
    options = {
        **exported.FIXED,
        "feedback": True,
        "missing": "carry",
        "leak": (0.2, 1.0),
        "readout": "ridge",
        **settings,
    }
    return echolearn.ESNClassifier(15, **grouped(options)).fit(exported.X, exported.LABELS)


@pytest.mark.parametrize("online", [None, LMS(rate=0.3), RLS(ridge=1.0)])
def test_a_stream_continues_with_the_same_bits(tmp_path, online):
    esn, path = fitted(), tmp_path / "stream.safetensors"
    stream = esn.stream(online=online)
    stream.predict(BEFORE) if online is None else stream.learn(BEFORE, exported.LABELS[1][:11])
    gap = np.where(np.arange(90).reshape(30, 3) == 0, np.nan, AFTER)  # the first value is carried over from before
    stream.save(path)
    expected = stream.predict_proba(gap)
    other = esn.stream(online=online).resume(path)
    assert other.steps == 11
    assert (other.predict_proba(gap) == expected).all()
    assert (esn.stream(online=online).predict_proba(gap) != expected).any()


def test_the_stream_of_a_pipeline(tmp_path):
    def model(scaler):
        network = ESNRegressor(10, **grouped(exported.FIXED))
        return make_pipeline(FrameWise(scaler), network).fit(exported.X, exported.VALUES)

    pipeline, path = model(StandardScaler()), tmp_path / "s"
    stream = echolearn.stream(pipeline)
    stream.predict(BEFORE)
    stream.save(path)
    assert (echolearn.stream(pipeline).resume(path).predict(AFTER) == stream.predict(AFTER)).all()
    with pytest.raises(ModelFileError, match="another model"):
        echolearn.stream(model(MaxAbsScaler())).resume(path)


def test_another_model_is_refused_and_nothing_has_moved(tmp_path):
    esn, path = fitted(), tmp_path / "s"
    esn.stream().save(path)
    for other in (fitted(random_state=1), fitted(ridge=0.2), fitted(missing="mean"), fitted(dtype="float64")):
        stream = other.stream()
        stream.predict(BEFORE)
        with pytest.raises(ModelFileError, match="another model"):
            stream.resume(path)
        assert stream.steps == 11
    with pytest.raises(ModelFileError, match="online="):
        esn.stream(online=LMS()).resume(path)
    esn.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="echolearn-stream"):
        esn.stream().resume(tmp_path / "model")
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ModelFileError, match="checksum"):
        esn.stream().resume(path)


@pytest.mark.parametrize("settings", [{}, {"readout": "softmax"}, {"feedback": False, "connections": 2}])
def test_streams_side_by_side_are_single_streams(settings):
    esn = fitted(dtype="float64", **settings)
    X = np.stack(exported.X, axis=1)
    singles, together = [esn.stream() for _ in exported.X], esn.streams(len(exported.X))
    for frames in X:
        expected = [stream.predict_proba(frame) for stream, frame in zip(singles, frames, strict=True)]
        np.testing.assert_allclose(together.step(frames), expected, rtol=1e-9, atol=1e-12)


def test_snapshots_of_streams_side_by_side(tmp_path):
    esn, X = fitted(), np.stack(exported.X, axis=1)
    together = esn.streams(6)
    for frames in X[:9]:
        together.step(frames)
    together.reset([2]).save(tmp_path / "s")
    other = esn.streams(6).resume(tmp_path / "s")
    assert other.steps.tolist() == [9, 9, 0, 9, 9, 9]
    for frames in X[9:]:
        assert (other.step(frames) == together.step(frames)).all()
    with pytest.raises(ModelFileError, match="number of devices"):
        esn.streams(5).resume(tmp_path / "s")
    esn.save(tmp_path / "model")
    assert load(tmp_path / "model").streams(6).resume(tmp_path / "s").steps[0] == 9
    single = load(tmp_path / "model").stream()
    single.step(X[0, 0])
    single.save(tmp_path / "one")
    assert (load(tmp_path / "model").stream().resume(tmp_path / "one").step(X[1, 0]) == single.step(X[1, 0])).all()
