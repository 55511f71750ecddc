"""The file of a recogniser: everything comes back, and what is damaged is refused in words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import echolearn
import toyspeech
from echolearn.exceptions import ModelFileError
from echolearn.modelfile.layout import RECOGNIZER
from echolearn.modelfile.reader import file_kind, read_tensors
from echolearn.modelfile.writer import write_tensors
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech.recognition import Recognizer, load_recognizer


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    place = tmp_path_factory.mktemp("recognizer") / "toy.safetensors"
    toyspeech.recognizer().save(place)
    return place


def test_a_recogniser_comes_back_as_it_was_saved(path):
    saved, again = toyspeech.recognizer(), load_recognizer(path)
    samples = toyspeech.speech(seed=1, utterances=10)[0][1]
    assert again.recognize(samples, rate=toyspeech.RATE) == saved.recognize(samples, rate=toyspeech.RATE)
    assert again.phones.states == saved.phones.states
    assert again.phones.language_model == saved.phones.language_model
    assert again.words.language_model == saved.words.language_model
    assert again.words.lexicon == saved.words.lexicon
    assert (again.phones.weights, again.words.weights) == (saved.phones.weights, saved.words.weights)
    for one, other in zip(again.phones.phones, saved.phones.phones, strict=True):
        assert (one.name, one.labels) == (other.name, other.labels)
        for part in ("entry", "leaving", "next"):
            np.testing.assert_array_equal(getattr(one, part), getattr(other, part))
    for name in ("emission", "target", "duration", "language", "token", "final"):
        np.testing.assert_array_equal(getattr(again.word_decoder.graph, name), getattr(saved.word_decoder.graph, name))
    assert again.features.describe() == saved.features.describe()
    np.testing.assert_array_equal(again.features.scale, saved.features.scale)


def test_a_recogniser_of_phones_with_ready_features(tmp_path):
    known = toyspeech.recognizer(words=False)
    ready = Recognizer(toyspeech.network(bidirectional=True), known.phones)
    ready.save(tmp_path / "ready.safetensors")
    again = load_recognizer(tmp_path / "ready.safetensors")
    assert again.words is None
    assert again.features.describe() == FeatureRecipe.ready().describe()
    X = known.inputs(toyspeech.speech()[0][1], rate=toyspeech.RATE)
    assert again.recognize(X) == ready.recognize(X)


def test_load_says_what_to_use_and_a_network_is_no_recogniser(path, tmp_path):
    with pytest.raises(ModelFileError, match=r"load it with .*load_recognizer"):
        echolearn.load(path)
    assert file_kind(path) == RECOGNIZER
    toyspeech.network().save(tmp_path / "net.safetensors")
    with pytest.raises(ModelFileError, match="not an echolearn-recognizer file"):
        load_recognizer(tmp_path / "net.safetensors")
    with pytest.raises(FileNotFoundError):
        load_recognizer(tmp_path / "nothing.safetensors")
    (tmp_path / "text").write_text("no model")
    assert file_kind(tmp_path / "text") is None
    with pytest.raises(ModelFileError, match="is a text file"):
        load_recognizer(tmp_path / "text")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_files_are_refused(path, tmp_path_factory, data):
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del content[at:]
    damaged = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    damaged.write_bytes(content)
    with pytest.raises(ModelFileError):
        load_recognizer(damaged)


def _changed(path, tmp_path, change):
    """Write the file anew with a right checksum after a change of its arrays and facts."""
    tensors, facts = read_tensors(path, RECOGNIZER)
    change(tensors, facts)
    facts = {name: value for name, value in facts.items() if name not in ("format", "format_version")}
    write_tensors(tmp_path / "changed.safetensors", tensors, facts, RECOGNIZER)
    return tmp_path / "changed.safetensors"


def put(name, index, value):
    def change(tensors, facts):
        tensors[name][index] = value

    return change


def say(name, value):
    def change(tensors, facts):
        facts[name] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (put("priors", 0, 2.0), "priors"),
        (put("priors", 0, np.nan), "priors"),
        (put("phones.labels", 0, 99), "an unknown state"),
        (put("phones.labels", 0, -1), "an unknown state"),
        (put("phones.labels", slice(0, 2), [9, 9]), "another phone"),
        (put("phones.leaving", (0, 0), 0.0), "probabilities"),
        (put("phones.next", (0, 0), 0.5), "probabilities"),
        (put("phones.entry", 0, 0.0), "from left to right"),
        (put("phones.ngrams.2", (0, 0), 1000), "an unknown token"),
        (put("phones.ngrams.2", slice(0, 2), [[1, 1], [1, 1]]), "twice"),
        (put("phones.ngrams.1.probability", 2, 0.5), "logarithms"),
        (put("phones.ngrams.1.backoff", 2, np.inf), "logarithms"),
        (put("words.ngrams.1.probability", 2, np.nan), "logarithms"),
        (put("lexicon.phone", 0, 77), "an unknown phone"),
        (put("lexicon.length", 0, 0), "do not fit together"),
        (put("lexicon.word", 0, 2), "no pronunciation"),
        (put("lexicon.words", 0, ord("\n")), "empty or listed twice"),
        (put("recipe.deviation", 0, -1.0), "mean and deviation"),
        (say("states", ["a"]), "priors"),
        (say("states", "abc"), "not a list of words"),
        (say("phones", []), "no phones"),
        (say("phone_order", 3), "ngrams.3"),
        (say("phone_order", 99), "order 99"),
        (say("phone_weights", {"beam": 1.0}), "weights of a decoder"),
        (say("model", 5), "without a network"),
        (say("recipe", {"audio": True}), "differences"),
    ],
)
def test_files_that_contradict_themselves_are_refused(path, tmp_path, change, message):
    changed = _changed(path, tmp_path, change)
    with pytest.raises(ModelFileError, match=message):
        load_recognizer(changed)


def test_arrays_of_other_kinds_are_refused(path, tmp_path):
    def add(tensors, facts):
        tensors["virus"] = np.zeros(3)

    def lose(tensors, facts):
        del tensors["priors"]

    def turn(tensors, facts):
        tensors["priors"] = tensors["priors"].astype(np.float32)

    for change, message in ((add, "no recogniser has: 'virus'"), (lose, "priors"), (turn, "F32; expected F64")):
        with pytest.raises(ModelFileError, match=message):
            load_recognizer(_changed(path, tmp_path, change))
