"""Learning on whole utterances: its gradient against differences, and what it does to a network."""

import numpy as np
import pytest

from echolearn import ESNClassifier
from echolearn.readout.observation import Task
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import pack
from echolearn.speech.recognition.learning import evaluate_phones, phone_decoder, spoken_phones
from echolearn.speech.recognition.sequence_training import SequenceGradient, all_phone_paths, learn_sequences

NAMES = ["a_s2", "a_s3", "b_s2", "sil"]


def utterance(rng, noise):
    labels = np.repeat([3, *rng.choice([[0, 1], [2, 2]], 4).ravel(), 3], rng.integers(2, 5, 10)).astype(np.int64)
    return np.eye(4)[labels] + noise * rng.normal(size=(len(labels), 4)), labels


@pytest.fixture
def speech():
    rng = np.random.default_rng(0)
    X, y = zip(*[utterance(rng, 1.2) for _ in range(30)], strict=True)
    return list(X), list(y)


@pytest.mark.parametrize("share", [0.0, 0.8, 1.0])
def test_the_gradient_is_that_of_the_loss(speech, share):
    X, y = speech
    rng = np.random.default_rng(1)
    reservoir = Reservoir.random(4, 6, connections=3, random_state=rng)
    V = rng.normal(size=(11, 4))
    batch = pack(X[:3], np.float64, y[:3])
    gradient = SequenceGradient(all_phone_paths(y, NAMES), share)
    task = Task()

    def loss(reservoir=reservoir, V=V):
        return gradient(reservoir, task, V, batch).loss

    found = gradient(reservoir, task, V, batch)
    assert found.n == sum(map(len, y[:3]))
    for i, j in ((0, 0), (5, 2), (10, 3)):
        step = np.zeros_like(V)
        step[i, j] = 1e-5
        assert (loss(V=V + step) - loss(V=V - step)) / 2e-5 == pytest.approx(found.dE_dV[i, j], rel=1e-5, abs=1e-6)
    for i, j in ((0, 0), (3, 5)):
        step = np.zeros_like(reservoir.W)
        step[i, j] = 1e-5
        up, down = (loss(reservoir.with_weights(W=reservoir.W + sign * step)) for sign in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(found.gradients.W[i, j], rel=1e-5, abs=1e-6)


def test_more_epochs_on_utterances_give_fewer_wrong_phones(speech):
    X, y = speech
    labels = [np.array(NAMES)[one] for one in y]
    esn = ESNClassifier(30, epochs=1, refine_epochs=0, random_state=0).fit(X, labels)
    before = esn.predict_proba(X)
    reports = []
    learned = learn_sequences(esn, X, labels, epochs=8, progress=lambda *report: reports.append(report))
    for a, b in zip(before, esn.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b, err_msg="the given network is not changed")
    assert reports[-1] == ("learning on whole utterances", 8, 8)
    names = esn.classes_.tolist()
    codes = [np.array([names.index(name) for name in one]) for one in labels]
    decoder = phone_decoder(codes, names)
    references = {str(k): spoken_phones(one, names) for k, one in enumerate(codes)}

    def error(model):
        found = {str(k): decoder.decode(P) for k, P in enumerate(model.predict_proba(X))}
        return evaluate_phones(references, found).total.error_rate

    gradient = SequenceGradient(all_phone_paths(codes, names), 1.0)

    def loss(model):
        return sum(gradient.of_utterance(P, one)[0] for P, one in zip(model.predict_proba(X), codes, strict=True))

    assert loss(learned) < loss(esn)
    assert error(learned) < error(esn)


def test_what_cannot_be_learned_is_refused(speech):
    X, y = speech
    labels = [np.array(NAMES)[one] for one in y]
    esn = ESNClassifier(10, learn="none", random_state=0).fit(X, labels)
    with pytest.raises(ValueError, match="share is 2, expected a number from 0 to 1"):
        learn_sequences(esn, X, labels, share=2)
    with pytest.raises(ValueError, match="does not know: z"):
        learn_sequences(esn, X, [np.full(len(x), "z") for x in X])
    with pytest.raises(ValueError, match="no softmax readout"):
        learn_sequences(ESNClassifier(10, learn="none", readout="ridge").fit(X, labels), X, labels)
    with pytest.raises(ValueError, match="a washout of 3 frames"):
        learn_sequences(ESNClassifier(10, learn="none", washout=3).fit(X, labels), X, labels)
