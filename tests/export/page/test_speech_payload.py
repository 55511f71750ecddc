"""What a page needs of a recogniser."""

import base64
import json
import zlib
from dataclasses import replace

import numpy as np
import pytest

import toyspeech
from echolearn.exceptions import ExportError
from echolearn.export.page.document import open_model, open_models
from echolearn.export.page.speech_payload import (
    example_recording,
    names_states,
    network_payload,
    packed,
    recognizer_payload,
    takes_sound,
)
from echolearn.speech import ENGLISH, TIMIT_61
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._phone_set import state_names
from echolearn.speech.recognition import Recognizer


def unpacked(value):
    planes = np.frombuffer(zlib.decompress(base64.b64decode(value["bytes"])), np.uint8).reshape(4, -1)
    kind = "<f4" if value["type"] == "float" else "<i4"
    found = np.ascontiguousarray(planes.T).view(kind).ravel()
    assert len(found) == value["length"]
    return found


@pytest.mark.parametrize(
    "values", [np.array([0, -1, 2**31 - 1, -(2**31)], np.int32), np.array([0.5, -np.inf, 1e-30], np.float32)]
)
def test_packed_numbers_are_the_same(values):
    np.testing.assert_array_equal(unpacked(packed(values)), values)


@pytest.mark.parametrize("kind", ["phone_decoder", "word_decoder"])
def test_a_graph_is_whole(kind):
    recognizer = toyspeech.recognizer()
    decoder = getattr(recognizer, kind)
    found = recognizer_payload(recognizer)[kind]
    arrays, graph = {name: unpacked(value) for name, value in found["arrays"].items()}, decoder.graph
    np.testing.assert_array_equal(arrays["emission"], graph.emission)
    np.testing.assert_array_equal(np.r_[0, np.cumsum(arrays["arcs"])], graph.first)
    source = np.repeat(np.arange(len(graph.emission)), np.diff(graph.first))
    np.testing.assert_array_equal(source + arrays["step"], graph.target)
    np.testing.assert_array_equal(arrays["weight"], decoder.search().weights)
    np.testing.assert_array_equal(arrays["token"], graph.token)
    np.testing.assert_array_equal(arrays["final"], graph.final[graph.emitting :])
    assert (found["start"], tuple(found["tokens"])) == (graph.start, graph.tokens)


def test_a_payload_is_plain_json_even_without_a_beam():
    own = toyspeech.recognizer()
    wide = replace(own.phones, weights=replace(own.phones.weights, beam=np.inf))
    found = recognizer_payload(Recognizer(own.model, wide, None, own.features))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["phone_decoder"]["beam"] is None
    assert found["word_decoder"] is None


def test_a_recogniser_of_frames_is_refused():
    own = toyspeech.recognizer()
    with pytest.raises(ExportError, match=r"takes frames \(ready features.*cannot listen"):
        recognizer_payload(Recognizer(own.model, own.phones, None, FeatureRecipe.ready()))


@pytest.mark.parametrize("phones", [ENGLISH, TIMIT_61, ("SIL", "AA1", "ZH", "xyz"), toyspeech.PHONES])
def test_every_phone_has_one_place_among_its_kind(phones):
    found = network_payload(state_names(phones), 117)
    places = [k for group in found["groups"] for k in group["phones"]]
    assert sorted(places) == list(range(len(phones)))
    kinds = {found["phones"][k]: group["name"] for group in found["groups"] for k in group["phones"]}
    expected = {"aa": "vowels", "AA1": "vowels", "ZH": "fricatives", "xyz": "others", "SIL": "silence", "n": "nasals"}
    assert {phone: kinds[phone] for phone in expected if phone in kinds}.items() <= expected.items()
    assert [found["phones"][k] for k in found["phone_of_state"]] == [phone for phone in phones for _ in range(3)]


def test_which_networks_hear():
    assert names_states(state_names(["aa", "sil"]))
    assert not names_states(["aa_s2", "cat"])
    assert not names_states([])
    assert [n for n in range(1, 300) if takes_sound(n)] == [39, 117, 195, 273]


def test_a_network_of_states_is_shown_as_speech_and_others_are_not(tmp_path):
    path = tmp_path / "states.safetensors"
    toyspeech.network().save(path)
    found = open_model(path).extra["speech"]
    assert (found["recipe"]["normalise"], found["recipe"]["context"]) == ("utterance", 3)
    assert found["phone_decoder"] is None
    frames = [np.zeros((5, 2)), np.ones((5, 2))]
    from echolearn import ESNClassifier

    ESNClassifier(5, learn="none", random_state=0).fit(frames, [["a"] * 5, ["b"] * 5]).save(path)
    assert "speech" not in open_model(path).extra


def test_an_example_is_a_recording(tmp_path):
    model, sound, other = tmp_path / "toy.safetensors", tmp_path / "a.wav", tmp_path / "a.csv"
    toyspeech.recognizer().save(model)
    sound.write_bytes(b"RIFF1234WAVE")
    other.write_text("1,2\n")
    first, second = open_models(model, model, sound)
    assert first.extra["example"] == example_recording(sound) == {"name": "a.wav", "bytes": "UklGRjEyMzRXQVZF"}
    assert "example" not in second.extra
    with pytest.raises(ExportError, match=r"a\.csv is no recording"):
        open_models(model, None, other)
    with pytest.raises(ExportError, match=r"no recording .*none\.wav; check the path"):
        open_models(model, None, tmp_path / "none.wav")
    sound.write_bytes(b"RIFF" + bytes(1_000_000))
    with pytest.raises(ExportError, match="at most 1,000,000"):
        example_recording(sound)
