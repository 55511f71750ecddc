"""A recogniser from a network and a corpus: what is learned and tuned on which part."""

from dataclasses import replace

import numpy as np
import pytest

import toyspeech
from echolearn import ESNClassifier
from echolearn.speech._phone_set import split_state
from echolearn.speech.recognition import Lexicon, Recognizer, _learner, estimate, learn_recognizer
from echolearn.speech.recognition._decoder import PHONE_WEIGHTS, WORD_WEIGHTS, Decoder, DecodingWeights
from echolearn.speech.recognition._learner import network_states, valid_part
from echolearn.speech.recognition._phone_models import spoken_phones
from echolearn.speech.recognition._tuning import evaluate_phones


def test_states_are_matched_by_their_names():
    """The network's classes are in another order than the corpus's states, and lack one of them."""
    own, network = toyspeech.corpus(), toyspeech.network()
    states = network_states(network, own.state_names)
    assert states != own.state_names[: len(states)]
    assert set(states) < set(own.state_names)
    recognizer = learn_recognizer(network, own)
    for phone in recognizer.phones.phones:
        assert {split_state(states[label])[0] for label in phone.labels} == {phone.name}
    counts = dict.fromkeys(states, 1)
    for k in own.which("train"):
        for label in own.labels[k]:
            counts[own.state_names[label]] += 1
    total = sum(counts.values())
    np.testing.assert_allclose(recognizer.phones.priors, [counts[name] / total for name in states])


def test_classes_may_be_indices_of_states():
    own = toyspeech.corpus()
    X, y = own.part("train")
    network = ESNClassifier(30, learn="none", readout="ridge", random_state=0).fit(X, y)
    found = learn_recognizer(network, own)
    assert found.phones.states == network_states(network, own.state_names) != toyspeech.recognizer().phones.states
    _, samples, labels = toyspeech.speech(seed=1, utterances=10)[0]
    assert [t.name for t in found.recognize(samples, rate=toyspeech.RATE).phones] == spoken_phones(
        labels, toyspeech.STATE_NAMES
    )


def test_train_is_learned_from_valid_is_tuned_on_and_test_is_not_touched():
    own = toyspeech.corpus()

    class Guarded(list):
        def __getitem__(self, k):
            if not isinstance(k, slice) and own.split[k] == "test":
                raise AssertionError("the test part was read")
            return super().__getitem__(k)

    guarded = replace(own, labels=Guarded(own.labels))
    object.__setattr__(guarded, "said", Guarded(own.said))
    bounds = Guarded(guarded.features.bounds)
    guarded.features.bounds, old = bounds, guarded.features.bounds
    try:
        found = learn_recognizer(toyspeech.network(), guarded, lexicon=toyspeech.LEXICON)
    finally:
        guarded.features.bounds = old
    part = valid_part(own)
    inputs = {own.utterances[k]: own.features[k] for k in own.which("valid")}

    def error(recognizer):
        recognised = recognizer.recognize_all(inputs, words=False)
        return evaluate_phones(part.phones, {n: h.phones for n, h in recognised.items()}).total.error_rate

    untuned = replace(found.phones, weights=DecodingWeights())
    assert error(found) <= error(Recognizer(found.model, untuned, None, found.features))
    assert len(part.phones) == 6
    train = [spoken_phones(own.labels[k], own.state_names) for k in own.which("train")]
    assert found.phones.language_model == estimate(train, order=2)
    said = estimate([own.said[k] for k in own.which("train")], order=2, vocabulary=toyspeech.LEXICON.words)
    assert found.words.language_model == said


def test_searches_begin_with_weights_for_phones_and_for_words(monkeypatch):
    begun = []

    def recorded(decoder, *_, **__):
        begun.append(decoder.weights)
        return decoder, 0.0

    monkeypatch.setattr(_learner, "tune_phones", recorded)
    monkeypatch.setattr(_learner, "tune_words", recorded)
    learn_recognizer(toyspeech.network(), toyspeech.corpus(), lexicon=toyspeech.LEXICON)
    assert begun == [PHONE_WEIGHTS, WORD_WEIGHTS]


def test_a_network_of_another_corpus_is_refused():
    own = toyspeech.corpus()
    other = replace(own, state_names=tuple(f"x{name}" for name in own.state_names))
    with pytest.raises(ValueError, match=r"does not know 18 states .* such as xeh_s2"):
        learn_recognizer(toyspeech.network(), other)


class Killed(Exception):
    """Ends a search in the middle."""


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("level", ["phones", "words"])
def test_a_search_that_was_killed_resumes_with_the_same_result(tmp_path, monkeypatch, level, deep):
    own, network = toyspeech.corpus(), toyspeech.deep_network() if deep else toyspeech.network()
    decode, decoded = Decoder.decode, []

    def counted(self, P, **how):
        decoded.append(self.weights)
        return decode(self, P, **how)

    def kill(what, done, total):
        if what.startswith(level) and done == 20:
            raise Killed

    monkeypatch.setattr(Decoder, "decode", counted)
    expected, whole = learn_recognizer(network, own, lexicon=toyspeech.LEXICON), len(decoded)
    decoded.clear()
    with pytest.raises(Killed):
        learn_recognizer(network, own, lexicon=toyspeech.LEXICON, progress=kill, checkpoint=tmp_path)
    before = len(decoded)
    assert before >= 15 * len(own.which("valid"))
    decoded.clear()
    found = learn_recognizer(network, own, lexicon=toyspeech.LEXICON, checkpoint=tmp_path)
    assert (found.phones.weights, found.words.weights) == (expected.phones.weights, expected.words.weights)
    assert len(decoded) == whole - before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["decoder-phones.json", "decoder-words.json"]


def test_other_words_do_not_start_the_search_for_phones_again(tmp_path, monkeypatch):
    """But the one for words: an error belongs to the graph that it was measured with."""
    own, lexicon = toyspeech.corpus(), Lexicon({**toyspeech.LEXICON.pronunciations, "SON": (("s", "ow", "n"),)})
    expected = learn_recognizer(toyspeech.network(), own, lexicon=lexicon)
    learn_recognizer(toyspeech.network(), own, lexicon=toyspeech.LEXICON, checkpoint=tmp_path)
    kept = (tmp_path / "decoder-phones.json").stat().st_mtime_ns
    found = learn_recognizer(toyspeech.network(), own, lexicon=lexicon, checkpoint=tmp_path)
    assert found.words.weights == expected.words.weights
    assert (tmp_path / "decoder-phones.json").stat().st_mtime_ns == kept
