"""A recogniser behind the service."""

import io

import numpy as np
import pytest
import soundfile

import services
import toyspeech
from echolearn.export.service.recognizers import served_recognizer


@pytest.mark.parametrize("deep", [False, True])
def test_recordings_and_streams_give_the_recogniser_s_text(deep):
    recognizer = toyspeech.recognizer(deep=deep)
    samples = toyspeech.speech(utterances=1)[0][1]
    sound = np.round(samples).astype(np.int16)
    file = io.BytesIO()
    soundfile.write(file, sound, 16_000, format="WAV", subtype="PCM_16")
    _, client = services.client(served_recognizer(recognizer))
    answer = client.post("/recognize", content=file.getvalue(), headers={"Content-Type": "audio/wav"}).json()
    whole = recognizer.recognize(sound, rate=16_000)
    assert answer["text"] == whole.text
    assert answer["text"]
    assert [token["name"] for token in answer["words"]] == [token.name for token in whole.words]
    refused = client.post("/recognize", content=b"RIFF and nothing else", headers={"Content-Type": "audio/wav"})
    assert (refused.status_code, refused.json()["reason"]) == (422, "not-acceptable")
    assert client.post("/predict", json={"X": [[0]]}).status_code == 404
    with client.websocket_connect("/stream") as stream:
        names = []
        for piece in np.array_split(sound, 7):
            stream.send_bytes(piece.astype("<i2").tobytes())
            names += [token["name"] for token in stream.receive_json()["final"]]
        stream.send_json({"command": "end"})
        last = stream.receive_json()
        names += [token["name"] for token in last["final"]]
    own = recognizer.stream(rate=16_000)
    expected = [token.name for token in (*own.push(sound).final, *own.finish().final)]
    assert last["end"]
    assert names == expected
