"""The most probable path of an utterance through its chain of states, by the Viterbi algorithm."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_MAX_STEP_POSITIONS = 3


@njit(cache=True)
def _best_path(
    emission: NDArray[np.float32],
    chain: NDArray[np.int64],
    stay: NDArray[np.float64],
    go: NDArray[np.float64],
    skip: float,
) -> tuple[NDArray[np.int64], float]:
    T, C = emission.shape[0], chain.shape[0]
    score = np.full(C, -np.inf)
    fresh = np.empty(C)
    step = np.zeros((T, C), dtype=np.uint8)
    for c in range(min(3, C)):
        score[c] = c * skip + emission[0, chain[c]]
    for t in range(1, T):
        for c in range(C):
            best, taken = score[c] + stay[c], 0
            for k in range(1, min(_MAX_STEP_POSITIONS, c) + 1):
                other = score[c - k] + go[c - k] + (k - 1) * skip
                if other > best:
                    best, taken = other, k
            fresh[c] = best + emission[t, chain[c]]
            step[t, c] = taken
        score, fresh = fresh, score
    last, total = C - 1, -np.inf
    for c in range(max(0, C - 3), C):
        ended = score[c] + (C - 1 - c) * skip
        if ended > total:
            last, total = c, ended
    path = np.empty(T, dtype=np.int64)
    for t in range(T - 1, -1, -1):
        path[t] = last
        last -= step[t, last]
    return path, total


def best_path(
    emission: NDArray[np.float32],
    chain: NDArray[np.int64],
    stay: NDArray[np.float64],
    go: NDArray[np.float64],
    skip: float,
) -> tuple[NDArray[np.int64], float]:
    """Return the position at each frame of the most probable path, and its log probability.

    `chain` has the state at each position, three positions per phone; `stay` and `go` are log probabilities, `skip` the
    log penalty of a position that is left out. From one frame to the next a path moves by 0 to 3 positions. So a phone
    may have a single frame, in one of its three states. No phone can be left out, because a move by three positions
    leads to the same state of the next phone.
    """
    path, total = _best_path(emission, chain, stay, go, skip)
    return path, float(total)
