"""Decoding of phones and words from probabilities, and the choice of the decoder's weights."""

import numpy as np
import pytest

from echolearn.speech.recognition import Lexicon, estimate
from echolearn.speech.recognition._decoder import Decoder, DecodingWeights, state_shares
from echolearn.speech.recognition._graph import word_graph
from echolearn.speech.recognition._phone_models import learn_phone_models
from reference.decoding import best_path
from reference.words import scores_of_all

PHONES = ["n", "ow", "y", "eh", "s", "sil"]
NAMES = [f"{phone}_s{state}" for phone in PHONES for state in (2, 3, 4)]
LEXICON = Lexicon({"NO": (("n", "ow"),), "YES": (("y", "eh", "s"), ("y", "eh")), "KNOWN": (("n", "ow", "n"),)})
TEXTS = [["NO"], ["YES", "NO"], ["NO", "NO", "YES"], ["KNOWN"]]


def labels_of(phones, frames=2):
    return np.concatenate(
        [np.repeat([3 * PHONES.index(p), 3 * PHONES.index(p) + 1, 3 * PHONES.index(p) + 2], frames) for p in phones]
    )


def sure(phones, wrong=1e-6):
    labels = labels_of(phones)
    P = np.full((len(labels), len(NAMES)), wrong)
    P[np.arange(len(labels)), labels] = 1
    return P / P.sum(axis=1, keepdims=True)


def models():
    spoken = ["sil n ow sil", "sil y eh s n ow sil", "n ow n sil y eh"]
    return learn_phone_models([labels_of(text.split()) for text in spoken], NAMES)


def word_decoder(order=2, **weights):
    graph = word_graph(models(), LEXICON, estimate(TEXTS, order=order), silence="sil")
    return Decoder(graph, np.full(len(NAMES), 1 / len(NAMES)), DecodingWeights(**weights))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    ("spoken", "words"),
    [
        ("sil n ow sil", [("NO", 6, 18)]),
        ("n ow n", [("KNOWN", 0, 18)]),
        ("y eh s sil sil n ow", [("YES", 0, 18), ("NO", 30, 42)]),
        ("y eh n ow", [("YES", 0, 12), ("NO", 12, 24)]),
        ("sil", []),
    ],
)
def test_words_are_found_with_their_frames(order, spoken, words):
    found = word_decoder(order).decode(sure(spoken.split()))
    assert [token[:3] for token in found] == words


def test_the_tree_of_words_scores_a_path_as_the_language_model_does():
    rng = np.random.default_rng(0)
    decoder = word_decoder(order=2, beam=np.inf, prior_exponent=0.0)
    P = rng.dirichlet(np.ones(len(NAMES)), size=40)
    search = decoder.search()
    search.advance(decoder.emissions(P))
    tokens, score = search.best()
    arcs = decoder.graph.weights(duration_weight=1.0, language_weight=2.0, penalty=0.0)
    expected, expected_score = best_path(decoder.graph, arcs, 2.0, decoder.emissions(P))
    assert [(token.name, token.end) for token in tokens] == expected
    assert score == pytest.approx(expected_score, abs=1e-3)
    # without the language model the same words cost less by twice their log probability
    silent = word_decoder(order=2, beam=np.inf, prior_exponent=0.0, language_weight=0.0)
    assert silent.search().best()[1] == 0.0
    model = estimate(TEXTS, order=2)
    chosen = decoder.decode(sure(["y", "eh", "s", "n", "ow"]))
    with_lm, without = (scored(d, sure(["y", "eh", "s", "n", "ow"])) for d in (decoder, silent))
    assert [t.name for t in chosen] == ["YES", "NO"]
    assert with_lm - without == pytest.approx(2 * model.log_probability(["YES", "NO"]), abs=1e-3)


def scored(decoder, P):
    search = decoder.search()
    search.advance(decoder.emissions(P))
    return search.best()[1]


def test_priors_are_divided_out_as_far_as_the_exponent_says():
    priors = np.array([0.75, 0.25])
    for exponent in (0.0, 0.5, 1.0):
        decoder = Decoder(None, priors, DecodingWeights(prior_exponent=exponent))
        found = decoder.emissions(np.array([[0.75, 0.25]]))
        np.testing.assert_allclose(np.exp(found), [[0.75 / 0.75**exponent, 0.25 / 0.25**exponent]], rtol=1e-6)


def test_a_beam_that_loses_every_end_is_widened():
    P = sure(["n", "ow", "sil"])
    P[-1] = 0.0
    P[-1, 0] = 1.0  # the first state of n, from which no utterance can end soon
    assert word_decoder(beam=3.0).decode(P) == word_decoder(beam=np.inf).decode(P) != []


def test_shares_of_states():
    np.testing.assert_allclose(state_shares([np.array([0, 0, 2]), np.array([2])], 4), [3 / 8, 1 / 8, 3 / 8, 1 / 8])


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_every_sequence_of_words_has_the_score_of_its_language_model_and_its_alignment(seed, order):
    weights = DecodingWeights(prior_exponent=0.0, language_weight=1.7, duration_weight=0.8, penalty=0.4, beam=np.inf)
    model = estimate(TEXTS, order=order)
    decoder = Decoder(word_graph(models(), LEXICON, model), np.full(len(NAMES), 1 / len(NAMES)), weights)
    P = np.random.default_rng(seed).dirichlet(np.full(len(NAMES), 0.3), size=6)
    expected = scores_of_all(decoder.emissions(P), models(), LEXICON, model, weights)
    found = {hypothesis.tokens: hypothesis.score for hypothesis in decoder.lattice(P, beam=np.inf).nbest(1000)}
    assert found.keys() == expected.keys()
    assert len(found) > 10
    for words, score in expected.items():
        assert found[words] == pytest.approx(score, abs=1e-3)
