"""The most probable path is found, and it leaves out no phone."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from echolearn.speech.viterbi import best_path


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
