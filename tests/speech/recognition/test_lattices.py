"""Lattices against the enumeration of all paths on small random graphs."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from echolearn.speech.recognition._decoder import Decoder, DecodingWeights
from echolearn.speech.recognition._lattices import build_lattice
from echolearn.speech.recognition._search import Search, Token
from reference.lattices import all_paths, arc_posteriors, best_by_tokens
from speech.recognition.test_decoder import sure, word_decoder
from speech.recognition.test_search import random_graph


def random_case(seed):
    """Return a search, frames, and every path."""
    rng = np.random.default_rng(seed)
    graph = random_graph(rng)
    weights = graph.weights(duration_weight=0.7, language_weight=1.3, penalty=0.2)
    frames = rng.normal(size=(rng.integers(1, 6), 4)).astype(np.float32)
    return Search(graph, weights, 1.3), frames, all_paths(graph, weights, 1.3, frames)


@pytest.mark.parametrize("seed", range(40))
def test_the_best_hypotheses_are_those_of_all_paths(seed):
    search, frames, paths = random_case(seed)
    expected = best_by_tokens(search.graph, paths)
    lattice = build_lattice(search, frames, penalty=0.2, beam=np.inf)
    found = lattice.nbest(1000)
    assert len(found) == len(expected)
    assert sorted(h.tokens for h in found) == sorted(tokens for tokens, _ in expected)
    np.testing.assert_allclose([h.score for h in found], [score for _, score in expected], atol=1e-4)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert lattice.nbest(2) == found[:2]
    assert list(lattice.best) == search.best()[0]
    assert not found or found[0].tokens == tuple(token.name for token in lattice.best)


@pytest.mark.parametrize("seed", range(40))
def test_a_beam_keeps_the_paths_within_it_and_their_scores(seed):
    search, frames, paths = random_case(seed)
    expected = best_by_tokens(search.graph, paths)
    lattice = build_lattice(search, frames, penalty=0.2, beam=2.0)
    within = [(tokens, score) for tokens, score in expected if score >= expected[0][1] - 2.0]
    found = lattice.nbest(1000)
    assert {h.tokens for h in found} == {tokens for tokens, _ in within}
    np.testing.assert_allclose([h.score for h in found], [score for _, score in within], atol=1e-4)


@pytest.mark.parametrize("seed", range(40))
def test_posteriors_are_shares_of_all_paths(seed):
    search, frames, paths = random_case(seed)
    lattice = build_lattice(search, frames, penalty=0.2, beam=np.inf)
    if not paths:
        assert len(lattice.start) == 0
        assert list(lattice.best) == lattice.nbest(3) == []
        return
    for scale in (0.3, 1.0):
        found = defaultdict(float)
        for arc, posterior in enumerate(lattice.posteriors(scale)):
            if lattice.token[arc] >= 0:
                bounds = lattice.frame[lattice.start[arc]], lattice.frame[lattice.end[arc]]
                found[lattice.tokens[lattice.token[arc]], *map(int, bounds)] += posterior
        expected = arc_posteriors(search.graph, paths, scale)
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            assert found[key] == pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_a_confidence_is_the_mean_probability_of_the_token_at_its_frames(seed):
    search, frames, paths = random_case(seed)
    lattice = build_lattice(search, frames, penalty=0.2, beam=np.inf)
    best = list(lattice.best)
    found = lattice.confidences(best, 0.5)
    assert [token[:3] for token in found] == [token[:3] for token in best]
    arcs = arc_posteriors(search.graph, paths, 0.5) if paths else {}
    for token in found:
        at = [
            sum(p for (name, start, end), p in arcs.items() if name == token.name and start <= frame < end)
            for frame in range(token.start, token.end)
        ]
        assert token.confidence == pytest.approx(np.mean(at), abs=1e-4)
        assert 0 <= token.confidence <= 1
    assert lattice.confidences([Token("not there", 0, 1)])[0].confidence == 0.0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_lattice_of_words_agrees_with_the_decoder(seed, order):
    rng = np.random.default_rng(seed)
    decoder = word_decoder(order, penalty=0.7)
    P = rng.dirichlet(np.full(len(decoder.priors), 0.2), size=50)
    lattice = decoder.lattice(P, beam=6.0)
    best = decoder.decode(P)
    assert list(lattice.best) == best
    first, *others = lattice.nbest(20)
    search = decoder.search()
    search.advance(decoder.emissions(P))
    assert first.tokens == tuple(token.name for token in best)
    assert first.score == pytest.approx(search.best()[1], abs=1e-3)
    assert all(first.score - 6.0 <= h.score <= first.score for h in others)
    confident = decoder.decode(P, confidences=True)
    assert [token[:3] for token in confident] == [token[:3] for token in best]


def test_a_sure_network_has_sure_tokens_and_an_undecided_one_has_not():
    decoder = word_decoder(2)
    P = sure(["y", "eh", "s", "n", "ow"])
    assert [token.confidence > 0.99 for token in decoder.decode(P, confidences=True)] == [True, True]
    P[24:] = 1 / P.shape[1]  # the last phone
    yes, no = decoder.decode(P, confidences=True)
    assert yes.confidence > 0.99 > no.confidence


def test_a_beam_that_loses_every_end_is_widened():
    P = sure(["n", "ow", "sil"])
    P[-1] = 0.0
    P[-1, 0] = 1.0
    narrow, wide = word_decoder(beam=3.0), word_decoder(beam=np.inf)
    assert list(narrow.lattice(P).best) == list(wide.lattice(P).best) == wide.decode(P) != []


def test_a_pruned_lattice_is_that_of_the_smaller_beam():
    search, frames, _ = random_case(3)
    wide = build_lattice(search, frames, penalty=0.2, beam=np.inf)
    search, frames, _ = random_case(3)
    narrow = build_lattice(search, frames, penalty=0.2, beam=1.5)
    assert len(wide.start) > len(narrow.start) > 0
    assert wide.pruned(1.5).nbest(100) == narrow.nbest(100)


def test_language_and_acoustic_scores_can_be_weighted_again():
    decoder = word_decoder(2, language_weight=3.0, penalty=0.5, prior_exponent=0.0)
    P = np.random.default_rng(0).dirichlet(np.full(len(decoder.priors), 0.2), size=30)
    lattice = decoder.lattice(P, beam=30.0)
    path = lattice.nbest(1)[0]
    other = Decoder(decoder.graph, decoder.priors, DecodingWeights(language_weight=2.0, prior_exponent=0.0))
    again = {h.tokens: h.score for h in replace(lattice, language_weight=2.0, penalty=0.0, beam=30.0).nbest(50)}
    expected = {h.tokens: h.score for h in other.lattice(P, beam=30.0).nbest(50)}
    assert again[path.tokens] == pytest.approx(expected[path.tokens], abs=1e-3)
