from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.speech.alignment import align, boundary_errors, boundary_time, first_frame, phone_names, train_aligner
from echolearn.speech.audio import read_audio
from echolearn.speech.errors import CorpusError
from echolearn.speech.features import mfcc, normalised, with_differences
from echolearn.speech.labels import Segment, read_phn
from echolearn.speech.mixtures import Mixtures
from echolearn.speech.phones import ENGLISH
from echolearn.speech.viterbi import best_path


def slow_best_path(
    emission: np.ndarray, chain: np.ndarray, stay: np.ndarray, go: np.ndarray, skip: float
) -> tuple[tuple[int, ...], float]:
    """Every path there is, scored one by one."""
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
def test_viterbi_against_every_path(T: int, phones: int, seed: int) -> None:
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
def test_no_phone_is_ever_left_out(phones: int, spare: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    C, T = 3 * phones, phones + spare
    emission = rng.normal(0, 50, size=(T, C)).astype(np.float32)
    half = np.full(C, np.log(0.5))
    path, _ = best_path(emission, np.arange(C), half, half, -20.0)
    assert set(path // 3) == set(range(phones))


def test_mixture_densities_against_scipy() -> None:
    from scipy.special import logsumexp
    from scipy.stats import norm

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
    np.testing.assert_allclose(mix.densities(X, np.arange(S)), logsumexp(each, axis=2), rtol=1e-4)


def test_reestimation_is_the_mean_and_variance_and_never_less_likely() -> None:
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(-2, 1, (200, 3)), rng.normal(3, 0.5, (100, 3))]).astype(np.float32)
    labels = np.zeros(300, dtype=np.int64)
    flat = Mixtures.flat(2, np.zeros(3), np.ones(3))
    one = flat.reestimated(X, labels)
    np.testing.assert_allclose(one.means[0, 0], X.mean(axis=0), rtol=1e-4)
    np.testing.assert_allclose(one.variances[0, 0], X.var(axis=0), rtol=1e-3)
    np.testing.assert_array_equal(one.means[1], flat.means[1])  # a state without frames stays
    model, last = one.grown(2, np.array([300, 0])), -np.inf
    for _ in range(8):
        model = model.reestimated(X, labels)
        now = float(model.densities(X, np.array([0])).sum())
        assert now >= last - 1e-2
        last = now
    np.testing.assert_allclose(sorted(model.means[0, :, 0]), [-2, 3], atol=0.3)
    assert model.log_weights[1, 1] == -np.inf  # never fed, never split


def test_variances_have_a_floor() -> None:
    X = np.ones((50, 2), dtype=np.float32)
    mix = Mixtures.flat(1, np.zeros(2), np.full(2, 4.0)).reestimated(X, np.zeros(50, dtype=np.int64))
    np.testing.assert_allclose(mix.variances, 0.04)


def test_frames_and_times() -> None:
    assert [first_frame(t) for t in (0.0, 0.0125, 0.0126, 0.0225)] == [0, 0, 1, 1]
    assert boundary_time(3) == pytest.approx(0.0375)


def toy(seed: int, count: int = 30) -> tuple[list[np.ndarray], list[list[Segment]]]:
    """Phones a, b, c as three far points in random order; the third is one or two frames long."""
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


def test_toy_phones_are_found_to_the_frame_even_short_ones() -> None:
    features, transcripts = toy(0)
    seen: list[tuple[int, int]] = []
    found = align(features, transcripts, "abc", mixtures=2, progress=lambda t, d, n: seen.append((d, n)))
    for one, transcript in zip(found, transcripts, strict=True):
        names = phone_names(transcript)
        same = [k for k in range(1, 6) if names[k] == names[k - 1]]  # no boundary to be seen there
        truth = [first_frame(s.start) if s.start else 0 for s in transcript]
        np.testing.assert_array_equal(np.delete(one.starts, same), np.delete(truth, same))
        assert phone_names(one.segments(names)) == names
        states = one.segments(names, states=True)
        assert states[0].name.startswith(f"{names[0]}_s")
        assert all(x.end == y.start for x, y in pairwise(states))
    assert seen[-1][0] == seen[-1][1]


def test_toy_phones_are_found_from_a_flat_start() -> None:
    features, transcripts = toy(0)
    found = align(features, transcripts, "abc", mixtures=2, flat=True)
    off = [
        one.starts[k] - first_frame(t[k].start)
        for one, t in zip(found, transcripts, strict=True)
        for k in range(1, 6)
        if t[k].name != t[k - 1].name
    ]
    assert np.mean(np.abs(off) <= 1) > 0.9


def test_names_alone_make_a_flat_start() -> None:
    features, transcripts = toy(1)
    names = [phone_names(t) for t in transcripts]
    by_names = align(features, names, "abc", mixtures=1)
    by_flag = align(features, transcripts, "abc", mixtures=1, flat=True)
    assert all(np.array_equal(a.labels, b.labels) for a, b in zip(by_names, by_flag, strict=True))


def test_utterances_with_fewer_frames_than_phones_are_all_named() -> None:
    features, transcripts = toy(2, 3)
    with pytest.raises(CorpusError) as caught:
        train_aligner([features[0], features[1][:4], features[2][:2]], transcripts, "abc")
    assert [p.file for p in caught.value.problems] == ["utterance 1", "utterance 2"]
    with pytest.raises(CorpusError, match="unknown phone 'c'"):
        align(features, transcripts, "ab")


@pytest.mark.parametrize("flat", [False, True])
def test_true_boundaries_of_synthetic_speech(small_tree: Path, flat: bool) -> None:
    """A small corpus, so a little below what the full one reaches (docs/speech.md)."""
    wavs = sorted(small_tree.rglob("*.WAV"))
    features = [normalised(with_differences(mfcc(read_audio(w)))) for w in wavs]
    truth = [read_phn(w.with_suffix(".PHN")) for w in wavs]
    found = align(features, truth, ENGLISH, mixtures=2, flat=flat)
    assert np.mean(np.abs(boundary_errors(found, truth)) <= 0.02) > 0.82
