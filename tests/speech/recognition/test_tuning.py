"""A phone decoder from state labels."""

import numpy as np
import pytest

from echolearn.speech.folding import timit_map
from echolearn.speech.recognition._search import Token
from echolearn.speech.recognition._tuning import evaluate_phones, phone_decoder, spoken_phones, tune_phones

NAMES = ["sil_s2", "k_s2", "k_s3", "ae_s2", "ae_s3", "t_s2"]


def utterance(rng, phones=("sil", "k", "ae", "t", "sil")):
    states = {"sil": [0], "k": [1, 2], "ae": [3, 4], "t": [5]}
    return np.repeat([s for p in phones for s in states[p]], 3 + rng.integers(0, 3)).astype(np.int64)


@pytest.fixture
def speech():
    rng = np.random.default_rng(0)
    train = [utterance(rng, ("sil", *rng.permutation(["k", "ae", "t"]), "sil")) for _ in range(40)]
    valid = {f"u{k}": utterance(rng, ("sil", *rng.permutation(["k", "ae", "t"]), "sil")) for k in range(6)}
    noisy = {}
    for name, y in valid.items():
        scores = 2.0 * np.eye(len(NAMES))[y] + rng.normal(size=(len(y), len(NAMES)))
        noisy[name] = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return train, valid, noisy


def test_phones_are_found_in_clean_probabilities(speech):
    train, valid, _ = speech
    decoder = phone_decoder(train, NAMES)
    for y in valid.values():
        tokens = decoder.decode(np.maximum(np.eye(len(NAMES))[y], 1e-4))
        assert [t.name for t in tokens] == spoken_phones(y, NAMES)


def test_priors_and_durations_come_from_the_training_labels(speech):
    train, _, _ = speech
    decoder = phone_decoder(train, NAMES)
    counts = np.bincount(np.concatenate(train), minlength=len(NAMES)) + 1
    np.testing.assert_allclose(decoder.priors, counts / counts.sum())
    assert decoder.graph.tokens == ("sil", "k", "ae", "t")


def test_tuned_weights_are_no_worse_than_those_it_began_with(speech):
    train, valid, noisy = speech
    references = {name: spoken_phones(y, NAMES) for name, y in valid.items()}
    decoder = phone_decoder(train, NAMES)

    def error(d):
        return evaluate_phones(references, {n: d.decode(P) for n, P in noisy.items()}).total.error_rate

    tuned, found = tune_phones(decoder, references, noisy)
    assert found == error(tuned) <= error(decoder)


def test_silences_do_not_count_and_classes_are_folded_before_they_are_compared():
    recognised = {"u": [Token("h#", 0, 3), Token("ix", 3, 6), Token("zh", 6, 9)]}
    spoken = {"u": ["ih", "sh", "h#"]}
    assert evaluate_phones(spoken, recognised).total.errors == 2
    assert evaluate_phones(spoken, recognised, phone_map=timit_map(39)).total.errors == 0
