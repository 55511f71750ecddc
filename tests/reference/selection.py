"""Which steps carry targets, where blocks of the look-back begin, and means over parts of time."""

from __future__ import annotations

import numpy as np


def kept_steps(length, washout, lookback, targets):
    """Return the steps that carry targets: all after the washout, or the last one of each block."""
    steps = list(range(washout, length))
    if targets == "all":
        return steps
    size = lookback or len(steps)
    return [steps[start : start + size][-1] for start in range(0, len(steps), size)]


def block_cuts(length, washout, lookback):
    """Return the first step of each block of the look-back."""
    return () if lookback is None else tuple(range(washout, length, lookback))


def part_means(M, parts):
    """Return the means over equal parts of the columns, stacked; a column on a border belongs to both sides."""
    n = M.shape[1]
    inside = [[k for k in range(n) if (k + 1) * parts > i * n and k * parts < (i + 1) * n] for i in range(parts)]
    return np.vstack([M[:, columns].mean(axis=1, keepdims=True) for columns in inside])
