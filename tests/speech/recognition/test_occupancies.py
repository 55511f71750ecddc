"""Occupancies of states over all paths, against following every path, and against differences of the score."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.speech.recognition.decoder import DecodingWeights
from echolearn.speech.recognition.graph import phone_graph
from echolearn.speech.recognition.ngrams import estimate
from echolearn.speech.recognition.occupancies import AllPaths
from echolearn.speech.recognition.phonemodels import learn_phone_models
from reference import occupancies as slow

NAMES = ["sil", "a_s2", "a_s3", "b_s2"]


def paths_of(seed, positions=1, **weights):
    rng = np.random.default_rng(seed)
    labels = [np.repeat([0, 1, 2, 3, 0, 3, 1, 2], rng.integers(1, 4, 8)) for _ in range(6)]
    phones = learn_phone_models(labels, NAMES, positions=positions)
    model = estimate([["sil", "a", "b"], ["b", "a", "a"]], order=2)
    priors = rng.dirichlet(np.ones(4))
    return AllPaths(phone_graph(phones, model), priors, DecodingWeights(**weights))


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 99), st.integers(1, 4), st.sampled_from([1, 3]), st.sampled_from([0.0, 1.0, 2.5]), st.floats(0, 1)
)
def test_they_are_those_of_all_paths(seed, frames, positions, language_weight, prior_exponent):
    paths = paths_of(
        seed,
        positions,
        language_weight=language_weight,
        prior_exponent=prior_exponent,
        duration_weight=0.7,
        penalty=0.3,
    )
    P = np.random.default_rng(seed).dirichlet(np.ones(4), size=frames)
    emissions = np.log(P) - prior_exponent * np.log(paths.priors)
    arcs = paths.graph.weights(duration_weight=0.7, language_weight=language_weight, penalty=0.3)
    expected, total = slow.occupancies(paths.graph, arcs, language_weight, emissions)
    found, score = paths.occupancies(P)
    assert score == pytest.approx(total, rel=1e-5)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    for frame in range(frames):
        for state in range(4):
            assert found[frame, state] == pytest.approx(expected[frame, state], abs=1e-5)


def test_they_are_the_derivative_of_the_score():
    paths = paths_of(3)
    P = np.random.default_rng(0).dirichlet(np.ones(4), size=40)
    found, _ = paths.occupancies(P)
    for frame, state in ((0, 0), (17, 2), (39, 3)):
        scores = []
        for factor in (np.exp(1e-5), np.exp(-1e-5)):
            changed = P.copy()
            changed[frame, state] *= factor
            scores.append(paths.occupancies(changed)[1])
        assert (scores[0] - scores[1]) / 2e-5 == pytest.approx(found[frame, state], abs=1e-6)


def test_ten_thousand_frames_stay_finite():
    P = np.random.default_rng(0).dirichlet(0.05 * np.ones(4), size=10_000)
    found, score = paths_of(0).occupancies(P)
    assert np.isfinite(score)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_an_utterance_that_no_path_fits_is_refused():
    paths = paths_of(0)
    closed = paths.graph.final.copy()
    closed[:] = -np.inf
    with pytest.raises(ValueError, match="no path through the graph has 5 frames"):
        AllPaths(replace(paths.graph, final=closed), paths.priors).occupancies(np.full((5, 4), 0.25))
