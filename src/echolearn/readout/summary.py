"""Whole sequences as one row each: statistics of their states over time.

A mean of the states distinguishes sequences that differ in level. Sequences of one level that differ in rhythm, in the
order of events, or in a short pattern somewhere, differ in the distribution of the states: how far they spread, how
often a unit exceeds a threshold, which extremes it reaches, and where it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike

from echolearn.modelfile.schema import MOMENTS_PER_UNIT, SETS_OF_UNITS, THRESHOLD_WIDTH
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import Batch, pack
from echolearn.states._loops import summarize
from echolearn.states.run import run
from echolearn.validation import Array

DISTINCT_DIFFERENCE = 1e-5  # states that differ by less may be one state, computed in another order


@dataclass(frozen=True, eq=False)
class Summary:
    """The row of a whole sequence that the readout sees.

    Of every unit the mean, the standard deviation, the maximum, the minimum and the last state (of units that run
    backward, the state at the first step), then the share of the steps at which it exceeds each of its thresholds: one
    row (M,) per sequence, statistic after statistic, with M = (5 + Q) N. A state within `THRESHOLD_WIDTH` / 2 of a
    threshold counts in part, in proportion: a share has no jumps that rounding could decide.
    """

    # (D,): the units see x_{t-d} and x_{t-d} - x_{t-d-1} for each of these d: W has the rows of the first delay, then
    # those of the second, ... Before the first step there is the first frame
    delays: Array
    thresholds: Array  # (Q, N): ascending values of each unit, in float64
    # (4,): how much each of `SETS_OF_UNITS` counts in the outputs, the weighted mean of those of its own readout
    shares: Array = field(default_factory=lambda: np.full(len(SETS_OF_UNITS), 0.25))

    def __str__(self) -> str:
        parts = [f"{name} {100 * share:.0f} %" for name, share in zip(SETS_OF_UNITS, self.shares, strict=True)]
        return f"mean of the readouts of {', '.join(parts)}"

    @property
    def statistics(self) -> int:
        """The number of statistics per unit."""
        return MOMENTS_PER_UNIT + len(self.thresholds)

    def inputs(self, x: Array) -> Array:
        """Return what the units see of a sequence x (steps, n), at every step: (steps, 2 n D)."""
        return delayed(np.hstack([x, differences(x)]), self.delays)

    def rows(self, reservoir: Reservoir, inputs: Sequence[Array], washout: int, dtype: DTypeLike) -> Array:
        """Return one row (M,) per sequence of inputs, in float64; the first `washout` steps do not count."""
        batch = pack(inputs, dtype)
        H = run(reservoir, batch, keep_F=False).H
        return self.pool(batch, H, washout, reservoir.backward)[np.argsort(batch.order)]

    def pool(self, batch: Batch, H: Array, washout: int, backward: Array | None) -> Array:
        """Return the rows (B, M) of states H (K, N) of a packed batch, in packed order.

        Every sequence is summed on its own, step after step: its row does not depend on the others in the batch.
        """
        B, N = len(batch.lengths), H.shape[1]
        total, squares = np.zeros((B, N)), np.zeros((B, N))
        above = np.zeros((B, len(self.thresholds), N), H.dtype)
        highest, lowest = np.full((B, N), -np.inf, H.dtype), np.full((B, N), np.inf, H.dtype)
        limits = self.thresholds.astype(H.dtype)
        sums = (total, squares, highest, lowest, above)
        summarize(H, batch.active, batch.offsets, washout, limits, 1 / THRESHOLD_WIDTH, *sums)
        count = (batch.lengths - washout)[:, None]
        mean = total / count
        deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
        last = H[batch.offsets[batch.lengths - 1] + np.arange(B)]
        if backward is not None:
            last[:, backward] = H[:B, backward]
        return np.hstack([mean, deviation, highest, lowest, last, above.reshape(B, -1) / count])


def differences(x: Array) -> Array:
    """Return x_t - x_{t-1} (steps, n); 0 at the first step."""
    return np.diff(x, axis=0, prepend=x[:1])


def delayed(x: Array, delays: Array) -> Array:
    """Return [x_{t-d} for d in delays] (steps, D n_in); before the first step there is the first frame."""
    if len(delays) == 1 and delays[0] == 0:
        return x
    steps = np.maximum(np.arange(len(x))[:, None] - delays, 0)
    return np.asarray(x[steps].reshape(len(x), -1))


def thresholds_of(H: Array, count: int) -> Array:
    """Return the values (count, N) that cut the states H (K, N) of each unit into equal shares.

    Each is halfway between a state and the next larger one: a threshold that equals a state, such as that of a unit at
    rest, would be exceeded or not by rounding.
    """
    places = np.arange(1, count + 1) * (len(H) - 1) // (count + 1)
    found = np.empty((count, H.shape[1]))
    for unit, states in enumerate(np.sort(H.T, axis=1).astype(np.float64)):
        low = states[places]
        after = np.searchsorted(states, low + DISTINCT_DIFFERENCE)
        high = np.where(after < len(H), states[np.minimum(after, len(H) - 1)], low + DISTINCT_DIFFERENCE)
        found[:, unit] = (low + high) / 2
    return found
