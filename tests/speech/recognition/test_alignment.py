"""Forced alignment against every pronunciation and every silence, one by one."""

import numpy as np
import pytest

from echolearn.speech.recognition.alignment import align_phones, align_words, realigned_labels
from echolearn.speech.recognition.decoder import Decoder, DecodingWeights
from echolearn.speech.recognition.lexicon import Lexicon
from reference.alignment import aligned
from speech.recognition.test_decoder import LEXICON, NAMES, labels_of, models, sure

PRIORS = np.random.default_rng(9).dirichlet(np.full(len(NAMES), 5.0))
WEIGHTS = DecodingWeights(prior_exponent=0.4, duration_weight=0.8)


@pytest.mark.parametrize("silence", ["sil", None])
@pytest.mark.parametrize("seed", range(8))
def test_words_are_aligned_as_by_trying_everything(seed, silence):
    rng = np.random.default_rng(seed)
    words = [str(word) for word in rng.choice(["NO", "YES"], size=rng.integers(1, 3))]
    P = rng.dirichlet(np.full(len(NAMES), 0.3), size=rng.integers(8, 14))
    found = align_words(P, models(), LEXICON, words, priors=PRIORS, weights=WEIGHTS, silence=silence)
    emissions = Decoder(None, PRIORS, WEIGHTS).emissions(P)
    variants = [LEXICON.pronunciations[word] for word in words]
    score, in_words, phones, labels = aligned(emissions, models(), variants, silence, 0.8)
    assert found.score == pytest.approx(score, abs=1e-3)
    assert [token[:3] for token in found.words] == [(words[k], start, end) for k, start, end in in_words]
    assert [token[:3] for token in found.phones] == phones
    assert found.labels.tolist() == labels


@pytest.mark.parametrize("seed", range(8))
def test_phones_and_their_states_are_aligned_as_by_a_slow_search(seed):
    rng = np.random.default_rng(seed)
    phones = [str(phone) for phone in rng.choice(["n", "ow", "sil"], size=4)]
    P = rng.dirichlet(np.full(len(NAMES), 0.3), size=15)
    emissions = Decoder(None, PRIORS, WEIGHTS).emissions(P)
    _, _, expected, labels = aligned(emissions, models(), [[(phone,)] for phone in phones], None, 0.8)
    found = align_phones(P, models(), phones, priors=PRIORS, weights=WEIGHTS)
    assert [token[:3] for token in found] == expected
    assert realigned_labels(P, models(), phones, priors=PRIORS, weights=WEIGHTS).tolist() == labels


def test_the_spoken_pronunciation_and_pauses_are_found():
    spoken = ["sil", "y", "eh", "n", "ow", "sil", "n", "ow"]
    found = align_words(sure(spoken), models(), LEXICON, ["YES", "NO", "NO"], priors=PRIORS, silence="sil")
    assert [token[:3] for token in found.words] == [("YES", 6, 18), ("NO", 18, 30), ("NO", 36, 48)]
    assert [token.name for token in found.phones] == spoken
    np.testing.assert_array_equal(found.labels, labels_of(spoken))


def test_the_states_of_sure_probabilities_are_their_labels():
    phones = ["sil", "n", "ow", "n", "n", "sil"]
    np.testing.assert_array_equal(realigned_labels(sure(phones), models(), phones, priors=PRIORS), labels_of(phones))


def test_a_narrow_beam_that_loses_the_only_way_is_given_up():
    P = sure(["n", "ow", "y"])  # the words say otherwise
    narrow = align_phones(P, models(), ["y", "n", "ow"], priors=PRIORS, weights=DecodingWeights(beam=0.5))
    wide = align_phones(P, models(), ["y", "n", "ow"], priors=PRIORS, weights=DecodingWeights(beam=np.inf))
    assert [token.name for token in narrow] == [token.name for token in wide] == ["y", "n", "ow"]


def test_silence_alone():
    found = align_words(sure(["sil", "sil"]), models(), LEXICON, [], priors=PRIORS, silence="sil")
    assert found.words == []
    assert [token[:3] for token in found.phones] == [("sil", 0, 12)]


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["YES", "KNOWN", "NO"], r"6 frames are too few for 3 words \(YES KNOWN NO\) of at least 7 phones"),
        (["YES", "MAYBE"], "the lexicon lacks 1 of 2 words: MAYBE"),
        ([], "nothing to align"),
    ],
)
def test_what_cannot_be_aligned_is_refused(words, what):
    with pytest.raises(ValueError, match=what):
        align_words(sure(["n"]), models(), LEXICON, words, priors=PRIORS)


def test_phones_without_a_model_are_named():
    with pytest.raises(ValueError, match="no model of the phones zz; expected n, ow"):
        align_words(sure(["n"]), models(), Lexicon({"A": (("zz",),)}), ["A"], priors=PRIORS)
    with pytest.raises(ValueError, match="no model of the phones pau"):
        align_words(sure(["n"]), models(), LEXICON, ["NO"], priors=PRIORS, silence="pau")
    with pytest.raises(ValueError, match=r"6 frames are too few for 9 phones \(n n n n n n n n \.\.\.\)"):
        align_phones(sure(["n"]), models(), ["n"] * 9, priors=PRIORS)
