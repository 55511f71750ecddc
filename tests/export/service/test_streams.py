"""The websocket: an answer per frame, in order; what is wrong with a message; when a stream ends."""

import re
import time
from dataclasses import replace

import numpy as np
import pytest
from starlette.websockets import WebSocketDisconnect

import services
from echolearn.export.service import streams
from services import MODELS, X

FRAMES = X[0].astype("<f4")


@pytest.fixture(scope="module")
def esn():
    return MODELS["classifier"]()


@pytest.fixture(scope="module", params=["light", "library"])
def model(request, esn, tmp_path_factory):
    return services.both(esn, tmp_path_factory.mktemp("model"))[request.param]


def closed(stream):
    """Return the code and reason with which a stream is closed."""
    with pytest.raises(WebSocketDisconnect) as ended:
        stream.receive_json()
    return ended.value.code, ended.value.reason


@pytest.mark.parametrize("threads", [False, True])
def test_every_frame_has_its_answer_in_order(esn, model, threads, monkeypatch):
    if threads:
        monkeypatch.setattr("echolearn.export.service.threads.AT_ONCE_SECONDS", -1.0)
    service, client = services.client(model)
    own = esn.stream().predict_proba(FRAMES)
    with client.websocket_connect("/stream") as stream:
        for k, frame in enumerate(FRAMES):
            if k % 2:
                stream.send_bytes(frame.tobytes())
            else:
                stream.send_json(frame.tolist())
        for k, expected in enumerate(own):
            answer = stream.receive_json()
            assert answer["step"] == k
            np.testing.assert_allclose(answer["probabilities"], expected, atol=2e-6)
            assert answer["label"] == esn.classes_[expected.argmax()]
        assert service.workshop.open_streams == 1
        stream.send_json({"command": "end"})
        assert stream.receive_json() == {"end": True, "steps": len(FRAMES)}
        assert closed(stream)[0] == 1000
    text = client.get("/metrics").text
    assert f"echolearn_stream_frames_total {len(FRAMES)}.0" in text
    assert "echolearn_open_streams 0.0" in text


def test_a_chunk_has_one_answer_with_all_of_them(esn, model):
    _, client = services.client(model)
    own = esn.stream().predict_proba(FRAMES)
    with client.websocket_connect("/stream") as stream:
        stream.send_bytes(FRAMES[:5].tobytes())
        stream.send_json(FRAMES[5:8].tolist())
        first, second = stream.receive_json(), stream.receive_json()
    assert (first["step"], second["step"]) == (0, 5)
    np.testing.assert_allclose(first["probabilities"] + second["probabilities"], own[:8], atol=2e-6)
    assert len(first["labels"]) == 5


def test_streams_have_their_own_state_and_a_reset(esn, model):
    _, client = services.client(model)
    own = esn.stream().predict_proba(FRAMES)
    with client.websocket_connect("/stream") as one, client.websocket_connect("/stream") as other:
        one.send_bytes(FRAMES[:6].tobytes())
        one.receive_json()
        other.send_bytes(FRAMES[0].tobytes())
        np.testing.assert_allclose(other.receive_json()["probabilities"], own[0], atol=2e-6)
        one.send_json({"command": "reset"})
        assert one.receive_json() == {"reset": True}
        one.send_bytes(FRAMES[0].tobytes())
        answer = one.receive_json()
        assert answer["step"] == 0
        np.testing.assert_allclose(answer["probabilities"], own[0], atol=2e-6)


WRONG = {
    "too short": (b"1234", "4 bytes; expected 8"),
    "nothing": (b"", "0 bytes"),
    "a list too long": ("[1, 2, 3]", "3 numbers; expected 2"),
    "no list": ("1", "not a frame"),
    "no JSON": ("[1,", "not JSON"),
    "an unknown command": ('{"command": "explode"}', "reset"),
    "text": ('["a", "b"]', "not numbers"),
    "infinity": (np.array([np.inf, 0], "<f4").tobytes(), "NaN or infinity"),
    "a gap in a chunk": ("[[1, 1], [null, 1]]", "NaN or infinity"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_message_is_answered_and_changes_nothing(esn, model, case):
    message, words = WRONG[case]
    _, client = services.client(model)
    own = esn.stream().predict_proba(FRAMES)
    with client.websocket_connect("/stream") as stream:
        stream.send_bytes(FRAMES[0].tobytes())
        stream.receive_json()
        (stream.send_bytes if isinstance(message, bytes) else stream.send_text)(message)
        assert words in stream.receive_json()["error"]
        stream.send_bytes(FRAMES[1].tobytes())
        answer = stream.receive_json()
        assert answer["step"] == 1
        np.testing.assert_allclose(answer["probabilities"], own[1], atol=2e-6)


def test_many_wrong_messages_in_a_row_end_a_stream(model):
    _, client = services.client(model, stream_errors=3)
    with client.websocket_connect("/stream") as stream:
        for good in (False, False, True, False, False, False):
            stream.send_text("[0, 0]" if good else "[0]")
            assert ("error" in stream.receive_json()) is not good
        assert closed(stream) == (1008, "3 wrong messages in a row")


def test_more_streams_than_allowed_are_refused_with_a_reason(model):
    _, client = services.client(model, streams=1)
    with client.websocket_connect("/stream") as one:
        with client.websocket_connect("/stream") as two:
            assert closed(two) == (1013, "1 streams are open, as many as this service takes")
        one.send_json([0, 0])
        assert one.receive_json()["step"] == 0
    with client.websocket_connect("/stream") as three:  # the place is free again
        three.send_json([0, 0])
        assert three.receive_json()["step"] == 0


def test_an_idle_stream_ends(model):
    _, client = services.client(model, idle_seconds=0.05)
    with client.websocket_connect("/stream") as stream:
        assert closed(stream) == (4408, "no message for 0.05 s")


@pytest.mark.parametrize("way", ["light", "library"])
def test_a_deep_network_streams(way, tmp_path):
    esn = MODELS["deep, values"]()  # which carries known values over gaps
    _, client = services.client(services.both(esn, tmp_path)[way])
    about = client.get("/model").json()
    assert (about["streams"], about["per_step"], about["hidden_units"]) == (True, True, 32)
    gappy = [[None, 0.5], *FRAMES.tolist()]
    own = esn.stream().predict(np.array(gappy, float))
    with client.websocket_connect("/stream") as stream:
        for frame, expected in zip(gappy, own, strict=True):
            stream.send_json(frame)
            np.testing.assert_allclose(stream.receive_json()["values"], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("both directions", "bidirectional"),
        ("deep, both directions", "bidirectional"),
        ("deep, one per series", "series|the end of a sequence"),
    ],
)
def test_a_model_that_needs_the_end_says_so(name, why, tmp_path):
    for model in services.both(MODELS[name](), tmp_path).values():
        _, client = services.client(model)
        assert not client.get("/model").json()["streams"]
        with client.websocket_connect("/stream") as stream:
            code, reason = closed(stream)
            assert code == 4422
            assert re.search(why, reason)


def test_slow_networks_are_for_threads(model):
    class Slow:
        def step(self, frames):
            time.sleep(0.003)
            return np.zeros((len(frames), 2))

        def reset(self):
            pass

    assert streams.frame_seconds(replace(model, open_stream=Slow)) >= 0.003
    assert streams.frame_seconds(replace(model, open_stream=None)) == np.inf


def test_a_failing_stream_closes_without_a_traceback(model, caplog):
    class Broken:
        calls = 0

        def step(self, frames):
            Broken.calls += 1
            if Broken.calls > 10:
                raise RuntimeError("secret")
            return np.zeros((len(frames), 2))

        def reset(self):
            pass

    _, client = services.client(replace(model, open_stream=Broken))
    with client.websocket_connect("/stream") as stream:
        stream.send_json([0, 0])
        code, reason = closed(stream)
        assert code == 1011
        assert "secret" not in reason
    assert "secret" in caplog.text


def test_a_classifier_of_series_answers_for_the_series_so_far(tmp_path):
    esn = MODELS["one per series"]()
    _, client = services.client(services.both(esn, tmp_path)["light"])
    with client.websocket_connect("/stream") as stream:
        stream.send_bytes(np.asarray(X[0][:9], "<f4").tobytes())
        found = stream.receive_json()["probabilities"]
    np.testing.assert_allclose(found, [esn.predict_proba(X[0][:n])[0] for n in range(1, 10)], atol=1e-5)
