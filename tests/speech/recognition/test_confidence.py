"""Measures of confidences by hand, and the choice of their scale."""

import math

import numpy as np
import pytest

from echolearn.speech.recognition._confidence import SCALES, calibrate, confidence_quality
from echolearn.speech.recognition._search import Token
from speech.recognition.test_decoder import LEXICON, NAMES, labels_of, word_decoder


def tokens(*pairs):
    return [Token(name, k, k + 1, value) for k, (name, value) in enumerate(pairs)]


def test_the_measures_of_a_case_worked_out_by_hand():
    heard = {"u": tokens(("a", 0.8), ("x", 0.8), ("c", 0.6)), "v": tokens(("sil", 0.1), ("b", 0.9), ("c", 0.2))}
    found = confidence_quality({"u": ["a", "b", "c"], "v": ["b", "sil"]}, heard)
    # right 0.8, 0.6, 0.9; wrong 0.8 and the insertion 0.2: of 6 pairs, 4 in order and one equal
    assert found[:3] == (3, 2, 4.5 / 6)
    entropy = -3 * math.log2(0.6) - 2 * math.log2(0.4)
    bits = math.log2(0.8) + math.log2(0.6) + math.log2(0.9) + math.log2(0.2) + math.log2(0.8)
    assert found.cross_entropy == pytest.approx((entropy + bits) / entropy)


def test_confidences_equal_to_the_share_of_right_tokens_say_nothing():
    found = confidence_quality({"u": ["a", "b"]}, {"u": tokens(("a", 0.5), ("x", 0.5))})
    assert found.roc_area == 0.5
    assert found.cross_entropy == pytest.approx(0.0)


def test_sure_and_wrong_is_bad_but_finite():
    found = confidence_quality({"u": ["a", "b"]}, {"u": tokens(("a", 0.0), ("x", 1.0))})
    assert -10 < found.cross_entropy < -5


def test_without_errors_there_is_nothing_to_measure():
    found = confidence_quality({"u": ["a"]}, {"u": tokens(("a", 0.5))})
    assert math.isnan(found.roc_area)
    assert math.isnan(found.cross_entropy)


def test_tokens_without_confidence_are_reported():
    with pytest.raises(ValueError, match="confidences=True"):
        confidence_quality({"u": ["a"]}, {"u": [Token("a", 0, 1)]})


def noisy(rng, words):
    labels = np.concatenate([labels_of(LEXICON.pronunciations[word][0]) for word in words])
    scores = rng.normal(size=(len(labels), len(NAMES))) * 1.5
    scores[np.arange(len(labels)), labels] += 1.5
    P = np.exp(scores)
    return P / P.sum(axis=1, keepdims=True)


def test_the_scale_of_the_largest_cross_entropy_is_chosen():
    rng = np.random.default_rng(0)
    spoken = {str(k): [str(word) for word in rng.choice(list(LEXICON.words), size=4)] for k in range(15)}
    probabilities = {name: noisy(rng, words) for name, words in spoken.items()}
    decoder = word_decoder(1)
    chosen, quality = calibrate(decoder, spoken, probabilities)
    found = {}
    lattices = {name: decoder.lattice(P) for name, P in probabilities.items()}
    for scale in (*SCALES, decoder.weights.confidence_scale):
        heard = {name: lattice.confidences(lattice.best(), scale) for name, lattice in lattices.items()}
        found[scale] = confidence_quality(spoken, heard)
    best = max(found, key=lambda scale: found[scale].cross_entropy)
    assert quality == found[best]
    assert chosen.weights.confidence_scale == best
    assert quality.wrong >= 5
    assert quality.roc_area > 0.6
    again = {name: chosen.decode(P, confidences=True) for name, P in probabilities.items()}
    assert confidence_quality(spoken, again) == quality


def test_a_scale_needs_utterances_with_references():
    with pytest.raises(ValueError, match="no utterance"):
        calibrate(word_decoder(1), {}, {})
    with pytest.raises(ValueError, match="no reference: u"):
        calibrate(word_decoder(1), {}, {"u": np.zeros((1, len(NAMES)))})
