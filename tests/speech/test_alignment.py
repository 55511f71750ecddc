"""Alignments that a trained model finds, from segments and from a flat start."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import norm

from echolearn.exceptions import CorpusError
from echolearn.speech import (
    ENGLISH,
    Segment,
    align,
    boundary_errors,
    mfcc,
    normalised,
    read_audio,
    read_phn,
    with_differences,
)
from echolearn.speech._alignment import Aligner, Alignment, Mixtures, best_path, state_chain, train_aligner
from echolearn.speech._features import boundary_time, first_frame
from echolearn.speech._transcripts import phone_names


def three_phones(seed: int, count: int = 30) -> tuple[list[np.ndarray], list[list[Segment]]]:
    """Return utterances of the phones a, b, c, three distant points, in random order.

    The third phone of each utterance is only one or two frames long.
    """
    rng = np.random.default_rng(seed)
    centre = {"a": (0.0, 0.0), "b": (8.0, 0.0), "c": (0.0, 8.0)}
    features, transcripts = [], []
    for k in range(count):
        names = [*rng.permutation(list("abc")), *rng.permutation(list("abc"))]
        lengths = rng.integers(3, 9, size=6)
        lengths[2] = 1 + k % 2
        rows = np.repeat([centre[n] for n in names], lengths, axis=0)
        features.append((rows + rng.normal(0, 0.4, rows.shape)).astype(np.float32))
        times = [0.0, *(boundary_time(int(e)) for e in np.cumsum(lengths))]
        transcripts.append([Segment(a, b, str(n)) for a, b, n in zip(times, times[1:], names, strict=False)])
    return features, transcripts


def test_distant_phones_are_found_to_the_frame_even_short_ones() -> None:
    features, transcripts = three_phones(0)
    seen: list[tuple[int, int]] = []
    found = align(features, transcripts, "abc", mixtures=2, progress=lambda t, d, n: seen.append((d, n)))
    for one, transcript in zip(found, transcripts, strict=True):
        names = phone_names(transcript)
        same = [k for k in range(1, 6) if names[k] == names[k - 1]]  # such a boundary cannot be seen
        truth = [first_frame(s.start) if s.start else 0 for s in transcript]
        np.testing.assert_array_equal(np.delete(one.starts, same), np.delete(truth, same))
        assert phone_names(one.segments(names)) == names
        states = one.segments(names, states=True)
        assert states[0].name.startswith(f"{names[0]}_s")
        assert all(x.end == y.start for x, y in pairwise(states))
    assert seen[-1][0] == seen[-1][1]


def test_distant_phones_are_found_from_a_flat_start() -> None:
    features, transcripts = three_phones(0)
    found = align(features, transcripts, "abc", mixtures=2, flat=True)
    off = [
        one.starts[k] - first_frame(t[k].start)
        for one, t in zip(found, transcripts, strict=True)
        for k in range(1, 6)
        if t[k].name != t[k - 1].name
    ]
    assert np.mean(np.abs(off) <= 1) > 0.9


def test_names_without_times_make_a_flat_start() -> None:
    features, transcripts = three_phones(1)
    names = [phone_names(t) for t in transcripts]
    by_names = align(features, names, "abc", mixtures=1)
    by_flag = align(features, transcripts, "abc", mixtures=1, flat=True)
    assert all(np.array_equal(a.labels, b.labels) for a, b in zip(by_names, by_flag, strict=True))


def test_only_the_chosen_utterances_are_trained_on() -> None:
    features, transcripts = three_phones(1, 8)
    other = [*features[:6], features[6] + 100, features[7] + 100]
    chosen = [align(X, transcripts, "abc", mixtures=1, train=range(6))[:6] for X in (features, other)]
    assert all(a.score == b.score for a, b in zip(*chosen, strict=True))


def test_every_utterance_with_fewer_frames_than_phones_is_named() -> None:
    features, transcripts = three_phones(2, 3)
    with pytest.raises(CorpusError) as caught:
        train_aligner([features[0], features[1][:4], features[2][:2]], transcripts, "abc")
    assert [p.file for p in caught.value.problems] == ["utterance 1", "utterance 2"]
    with pytest.raises(CorpusError, match="unknown phone 'c'"):
        align(features, transcripts, "ab")


@pytest.mark.parametrize("flat", [False, True])
def test_true_boundaries_of_synthetic_speech_are_found(small_tree: Path, flat: bool) -> None:
    """The bound is a little below what the full corpus reaches (docs/howto/speech.md), because this one is small."""
    wavs = sorted(small_tree.rglob("*.WAV"))
    features = [normalised(with_differences(mfcc(read_audio(w)))) for w in wavs]
    truth = [read_phn(w.with_suffix(".PHN")) for w in wavs]
    found = align(features, truth, ENGLISH, mixtures=2, flat=flat)
    assert np.mean(np.abs(boundary_errors(found, truth)) <= 0.02) > 0.82


# ---------------- What an aligner returns


def test_chain_holds_three_states_per_phone() -> None:
    assert state_chain(["b", "a", "b"], ["a", "b"]).tolist() == [3, 4, 5, 0, 1, 2, 3, 4, 5]


def test_segments_of_phones_and_of_states() -> None:
    found = Alignment(np.array([3, 3, 4, 5, 0, 2], dtype=np.int16), np.array([0, 4]), -1.0)
    edge = [0.0, *(boundary_time(k) for k in range(1, 7))]
    assert found.segments(["b", "a"]) == [Segment(0.0, edge[4], "b"), Segment(edge[4], edge[6], "a")]
    assert found.segments(["b", "a"], states=True) == [
        Segment(edge[0], edge[2], "b_s2"),
        Segment(edge[2], edge[3], "b_s3"),
        Segment(edge[3], edge[4], "b_s4"),
        Segment(edge[4], edge[5], "a_s2"),
        Segment(edge[5], edge[6], "a_s4"),
    ]


@pytest.fixture
def known_model() -> Aligner:
    """A model of phones a and b whose states lie at 0, 1, ..., 5."""
    mixtures = Mixtures(np.zeros((6, 1)), np.arange(6.0).reshape(6, 1, 1), np.full((6, 1, 1), 0.01), np.full(1, 0.01))
    return Aligner(("a", "b"), mixtures, np.full(6, 0.5))


def test_frames_get_the_states_they_lie_at(known_model: Aligner) -> None:
    X = np.array([[3.0], [4.0], [4.0], [5.0], [0.0], [1.0], [2.0]], dtype=np.float32)
    found = known_model.align(X, ["b", "a"])
    assert found.labels.tolist() == [3, 4, 4, 5, 0, 1, 2]
    assert found.starts.tolist() == [0, 4]


def test_progress_is_reported_at_the_end(known_model: Aligner) -> None:
    seen: list[tuple[str, int, int]] = []
    X = np.array([[0.0], [1.0], [2.0]], dtype=np.float32)
    known_model.align_all([X] * 101, [["a"]] * 101, lambda *report: seen.append(report))
    assert seen == [("labelling frames", 100, 101), ("labelling frames", 101, 101)]


# ---------------- Mixtures of Gaussians


def test_log_densities_are_those_of_scipy() -> None:
    rng = np.random.default_rng(0)
    S, M, D = 3, 2, 4
    mix = Mixtures(
        np.log(np.array([[0.3, 0.7], [0.5, 0.5], [0.9, 0.1]])),
        rng.normal(size=(S, M, D)),
        rng.uniform(0.5, 2, size=(S, M, D)),
        np.full(D, 1e-3),
    )
    X = rng.normal(size=(5, D)).astype(np.float32)
    each = norm.logpdf(X[:, None, None, :], mix.means, np.sqrt(mix.variances)).sum(axis=3) + mix.log_weights
    np.testing.assert_allclose(mix.log_densities(X, np.arange(S)), logsumexp(each, axis=2), rtol=1e-4)


def test_reestimation_gives_mean_and_variance_and_never_lowers_the_likelihood() -> None:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(-2, 1, (200, 3)), rng.normal(3, 0.5, (100, 3))]).astype(np.float32)
    labels = np.zeros(300, dtype=np.int64)
    flat = Mixtures.flat(2, np.zeros(3), np.ones(3))
    one = flat.reestimated(X, labels)
    np.testing.assert_allclose(one.means[0, 0], X.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(one.variances[0, 0], X.var(axis=0), rtol=1e-3)
    np.testing.assert_array_equal(one.means[1], flat.means[1])  # a state without frames keeps its density
    model, last = one.grown(2, np.array([300, 0])), -np.inf
    for _ in range(8):
        model = model.reestimated(X, labels)
        now = float(model.log_densities(X, np.array([0])).sum())
        assert now >= last - 1e-2
        last = now
    np.testing.assert_allclose(sorted(model.means[0, :, 0]), [-2, 3], atol=0.3)
    assert model.log_weights[1, 1] == -np.inf  # a state without frames is not split


def test_variances_have_a_floor() -> None:
    X = np.ones((50, 2), dtype=np.float32)
    mix = Mixtures.flat(1, np.zeros(2), np.full(2, 4.0)).reestimated(X, np.zeros(50, dtype=np.int64))
    np.testing.assert_allclose(mix.variances, 0.04)


# ---------------- The most probable path is found, and it leaves out no phone


def slow_best_path(
    emission: np.ndarray, chain: np.ndarray, stay: np.ndarray, go: np.ndarray, skip: float
) -> tuple[tuple[int, ...], float]:
    """Score every possible path, one by one."""
    T, C = len(emission), len(chain)
    best, winner = -np.inf, ()
    for path in product(range(C), repeat=T):
        steps = np.diff(path)
        if path[0] > 2 or path[-1] < C - 3 or (steps < 0).any() or (steps > 3).any():
            continue
        score = skip * (path[0] + C - 1 - path[-1])
        for t, c in enumerate(path):
            score += emission[t, chain[c]]
            if t:
                before = path[t - 1]
                score += stay[c] if c == before else go[before] + (c - before - 1) * skip
        if score > best:
            best, winner = score, path
    return winner, best


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 2), st.integers(0, 2**32 - 1))
def test_path_is_the_best_of_all(T: int, phones: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    T = max(T, phones)
    C = 3 * phones
    emission = rng.normal(0, 3, size=(T, C)).astype(np.float32)
    chain = rng.permutation(C).astype(np.int64)
    leave = rng.uniform(0.1, 0.9, C)
    slow, score = slow_best_path(emission, chain, np.log1p(-leave), np.log(leave), -2.0)
    fast, total = best_path(emission, chain, np.log1p(-leave), np.log(leave), -2.0)
    assert tuple(fast) == slow
    assert total == pytest.approx(score, rel=1e-5, abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(0, 20), st.integers(0, 999))
def test_no_phone_is_left_out(phones: int, spare: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    C, T = 3 * phones, phones + spare
    emission = rng.normal(0, 50, size=(T, C)).astype(np.float32)
    half = np.full(C, np.log(0.5))
    path, _ = best_path(emission, np.arange(C), half, half, -20.0)
    assert set(path // 3) == set(range(phones))
