"""Whole sequences as one row each: statistics of their states over time.

A mean of the states distinguishes sequences that differ in level. Sequences of one level that differ in rhythm, in the
order of events, or in a short pattern somewhere, differ in the distribution of the states: how far they spread, how
often a unit exceeds a threshold, which extremes it reaches, and where it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from echolearn.modelfile.schema import MOMENTS_PER_UNIT, SETS_OF_UNITS, THRESHOLD_WIDTH
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import LANES, group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.states._kernels import Units, aligned_zeros, compressed, lanes_for, summarize
from echolearn.validation import Array

MAX_FRAMES_PER_GROUP = 8192  # that one thread works on at once, if these are at least LANES sequences
DISTINCT_DIFFERENCE = 1e-3  # states that differ by less are no place for a threshold: rounding of states would decide


@dataclass(frozen=True, eq=False)
class Summary:
    """The row of a whole sequence that the readout sees.

    Of every unit the mean, the standard deviation, the maximum, the minimum and the last state, then the share of the
    steps at which it exceeds each of its thresholds: one row (M,) per sequence, statistic after statistic, with
    M = (5 + Q) N. A state within `THRESHOLD_WIDTH` / 2 of a threshold counts in part, in proportion: a share has no
    jumps that rounding could decide.
    """

    # (D,): the units see x_{t-d} and x_{t-d} - x_{t-d-1} for each of these d: W has the rows of the first delay, then
    # those of the second, ... Before the first step there is the first frame
    delays: Array
    thresholds: Array  # (Q, N): ascending values of each unit, in float64
    # how much each of `SETS_OF_UNITS` counts in the outputs, the mean of those of its own readout; (1,) of one set
    shares: Array = field(default_factory=lambda: np.ones(1))

    def __str__(self) -> str:
        parts = [f"{name} {100 * share:.0f} %" for name, share in zip(SETS_OF_UNITS, self.shares, strict=True)]
        return f"mean of the readouts of {', '.join(parts)}"

    @property
    def statistics(self) -> int:
        """The number of statistics per unit."""
        return MOMENTS_PER_UNIT + len(self.thresholds)

    def inputs(self, x: Array) -> Array:
        """Return what the units see of a sequence x (steps, n), at every step: (steps, 2 n D)."""
        return delayed(both(x), self.delays)

    def sets(self, reservoir: Reservoir) -> list[tuple[Reservoir, Summary]]:
        """Return the sets of units, which are not connected with each other, each with its own summary."""
        found = []
        for k in np.split(np.arange(reservoir.N), len(self.shares)):
            units = slice(k[0], k[-1] + 1)
            bias = None if reservoir.bias is None else reservoir.bias[units]
            W, W_rec, leak = reservoir.W[:, units], reservoir.W_rec[units, units], reservoir.leak[units]
            one = replace(reservoir, W=W, W_rec=W_rec, leak=leak, bias=bias)
            found.append((one, Summary(self.delays, self.thresholds[:, units])))
        return found

    def rows(self, reservoir: Reservoir, X: Sequence[Array], washout: int, dtype: DTypeLike) -> Array:
        """Return one row (M,) per sequence X (steps, n) that the units read with delays, in float64.

        The first `washout` steps do not count. States are not kept: of up to `LANES` sequences at once, those of a few
        steps exist at a time. The row of a sequence does not depend on the others.
        """
        lengths = np.array([len(x) for x in X])
        order = np.argsort(-lengths, kind="stable")
        slope = 1 / THRESHOLD_WIDTH
        units = self._laid_out(reservoir, X[0].shape[1], np.dtype(dtype))
        offsets = (0.5 - self.thresholds * slope).astype(dtype, order="C")
        rows = np.empty((len(X), self.statistics * reservoir.N))
        for which in np.array_split(order, range(LANES, len(X), LANES)):
            tiles = self._tiles([X[i] for i in which], dtype)
            now = lengths[which]
            (total, squares), extremes, above, (last,) = summarize(
                units, tiles, lengths=now, washout=washout, slope=slope, offsets=offsets
            )
            count = (now - washout)[:, None]
            mean = total / count
            deviation = np.sqrt(np.maximum(squares / count - mean**2, 0))
            rows[which] = np.hstack([mean, deviation, *extremes, last, *(above / count)])
        return rows

    def _laid_out(self, reservoir: Reservoir, n: int, dtype: np.dtype) -> Units:
        """Return the weights for `summarize`; the places of inputs are counted from the oldest frame seen on."""
        W = sparse.csr_array(reservoir.W.T)
        delay, channel = np.divmod(W.indices, n)
        W.indices = (self.delays[-1] - self.delays[delay]) * n + channel
        bias = np.zeros(reservoir.N) if reservoir.bias is None else reservoir.bias
        weights = compressed(W, dtype), bias.astype(dtype), compressed(reservoir.W_rec, dtype)
        return *weights, reservoir.leak.astype(dtype)

    def _tiles(self, X: Sequence[Array], dtype: DTypeLike) -> Array:
        """Return sequences side by side (rows, n, L), before each its first frame as often as the longest delay."""
        before = int(self.delays[-1])
        tiles = aligned_zeros((before + len(X[0]), X[0].shape[1], lanes_for(len(X))), dtype)
        for b, x in enumerate(X):
            tiles[:before, :, b] = x[0]
            tiles[before : before + len(x), :, b] = x
        return tiles


def rows_of(
    data: Dataset,
    summary: Summary,
    reservoir: Reservoir,
    washout: int,
    seen: Callable[[Array], Array],
    *,
    U: Array | None = None,
) -> Array:
    """Return the rows R (n, M) of sequences, or their products R U (n, n_out) with weights U (M, n_out).

    seen: the function from a sequence to what the units read with delays.
    """
    sets = summary.sets(reservoir)  # one after another, because the states of all need more than a processor's cache
    M = summary.statistics * reservoir.N
    found = np.empty((len(data.X), M if U is None else U.shape[1]))
    groups = list(group_sequences(data.lengths, max(MAX_FRAMES_PER_GROUP, LANES * int(data.lengths.max(initial=0)))))

    def rows_of_group(data: Dataset, which: Array) -> Array:
        X = [seen(data.X[i]) for i in which]
        parts = [own.rows(one, X, washout, data.dtype) for one, own in sets]
        R = np.concatenate([part.reshape(len(X), summary.statistics, -1) for part in parts], axis=2).reshape(-1, M)
        return R if U is None else R @ U

    for which, some in zip(groups, data.map(rows_of_group, groups), strict=True):
        found[which] = some
    return found


def both(x: Array) -> Array:
    """Return a series beside its first differences (steps, 2 n)."""
    return np.hstack([x, differences(x)])


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
