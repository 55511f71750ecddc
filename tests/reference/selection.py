"""Which steps carry targets, and where blocks of the look-back begin."""

from __future__ import annotations


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
