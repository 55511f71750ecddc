"""Sequences packed together into one batch, without padding.

Frames are rows: every matrix over time is the transpose of the paper's. A batch is packed step by step, longest
sequence first, so that one matrix product serves all its frames and no frame is padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import DTypeLike

from echolearn.display.facts import brief
from echolearn.validation import Array


@dataclass(frozen=True)
class StateNoise:
    """Noise of a standard deviation, from one seed per sequence in packed order and the step at which they begin."""

    deviation: float
    seeds: tuple[int, ...]
    begin: int = 0

    def later(self, steps: int) -> StateNoise:
        """Return the noise of sequences that begin so many steps later; some may have ended before."""
        return StateNoise(self.deviation, self.seeds, self.begin + steps)

    def rows(self, batch: Batch, units: int) -> Array:
        """Return the noise (K, units) of a batch: the same numbers for the same sequence, in any batch."""
        out = np.empty((batch.frames, units), batch.X.dtype)
        for s, n in enumerate(batch.lengths):
            rng = np.random.default_rng((self.seeds[s], self.begin))
            out[batch.rows(s)] = self.deviation * rng.standard_normal((n, units), dtype=np.float32)
        return out


@dataclass(frozen=True, eq=False)
class Batch:
    """B sequences with K frames in all, packed step by step.

    X (K, n_in): the inputs in packed order. T: the targets in packed order, (K, n_out), or (B, n_out) for one target
    per sequence; class numbers are (K,) or (B,). w: the weight of each target, (K,) or (B,); None: all are 1, and 0
    means that there is no target. order (B,): the caller's index of each sequence. lengths (B,): in descending order.
    active (steps,): how many sequences have a step t. offsets (steps,): the first row of step t. noise: what is added
    to the input of every unit while fitting, if anything.
    """

    X: Array
    order: Array
    lengths: Array
    active: Array
    offsets: Array
    T: Array | None = None
    w: Array | None = None
    noise: StateNoise | None = None

    def __repr__(self) -> str:
        return brief(self)

    @property
    def frames(self) -> int:
        """The number of frames of all sequences."""
        return int(self.X.shape[0])

    def rows(self, s: int) -> Array:
        """Return the rows of the packed matrices that hold sequence s (in packed order), in time order."""
        return np.asarray(self.offsets[: self.lengths[s]] + s)

    def reversed_rows(self) -> Array:
        """Return the rows r for which M[r] is M with every sequence reversed in time; twice, nothing has changed."""
        steps = np.repeat(np.arange(len(self.active)), self.active)
        sequence = np.arange(self.frames) - self.offsets[steps]
        return np.asarray(self.offsets[self.lengths[sequence] - 1 - steps] + sequence)

    def steps(self, begin: int, end: int) -> Batch:
        """Return the steps from begin to before end as a batch; its X, T and w (one target per step) are views."""
        active, offsets = self.active[begin:end], self.offsets[begin:end]
        first, rows = offsets[0], slice(offsets[0], offsets[-1] + active[-1])
        lengths = np.minimum(self.lengths[: active[0]] - begin, len(active))
        T, w = (None if M is None else M[rows] for M in (self.T, self.w))
        noise = None if self.noise is None else self.noise.later(begin)
        return Batch(self.X[rows], self.order[: active[0]], lengths, active, offsets - first, T, w, noise)

    def before(self, M: Array) -> Array:
        """Return M one step earlier: each row of the result is the previous step of its sequence, or zero at step 0."""
        steps = np.repeat(np.arange(len(self.active)), self.active)
        rows = np.arange(self.frames)
        earlier = rows - self.active[np.maximum(steps - 1, 0)]
        out = M[np.maximum(earlier, 0)]
        out[: self.active[0]] = 0
        return out


def pack(
    X: Sequence[Array],
    dtype: DTypeLike,
    T: Sequence[Array] | None = None,
    per_step: bool = True,
    *,
    w: Sequence[Array] | None = None,
    noise: float = 0.0,
) -> Batch:
    """Pack sequences (steps, n_in) into one batch.

    T: the targets of each sequence, one row per step, or a single row unless `per_step`; integers are class numbers.
    w: the weights of the targets, likewise. noise: the deviation of the noise of the units, from seeds that only depend
    on the sequence.
    """
    lengths = np.array([len(x) for x in X])
    order = np.argsort(-lengths, kind="stable")
    lengths = lengths[order]
    active = np.searchsorted(-lengths, -np.arange(lengths[0]), side="left")
    offsets = np.concatenate([[0], np.cumsum(active)[:-1]])
    batch = Batch(np.empty((int(lengths.sum()), X[0].shape[1]), dtype), order, lengths, active, offsets)
    for s, which in enumerate(order):
        batch.X[batch.rows(s)] = X[which]
    if T is None:
        return batch
    kind = np.int64 if np.asarray(T[0]).dtype.kind in "iu" else dtype
    packed = _packed(batch, T, per_step, kind)
    weights = None if w is None else _packed(batch, w, per_step, np.float64)
    seeds = tuple(crc32(np.ascontiguousarray(X[which]).tobytes()) for which in order) if noise else ()
    return Batch(batch.X, order, lengths, active, offsets, packed, weights, StateNoise(noise, seeds) if noise else None)


def _packed(batch: Batch, values: Sequence[Array], per_step: bool, kind: DTypeLike) -> Array:
    """Return one row per step, or one per sequence, in packed order."""
    if not per_step:
        return np.stack([values[which] for which in batch.order]).astype(kind)
    packed = np.empty((batch.frames, *values[0].shape[1:]), kind)
    for s, which in enumerate(batch.order):
        packed[batch.rows(s)] = values[which]
    return packed


def unpack(batch: Batch, M: Array) -> list[Array]:
    """Return packed rows as one array per sequence, in the caller's order."""
    if len(batch.order) == 1:
        return [M]
    out: list[Array] = [M[:0]] * len(batch.order)
    for s, which in enumerate(batch.order):
        out[which] = M[batch.rows(s)]
    return out


# ---------------- Which sequences are processed together


MIN_STATES_FOR_TWO_THREADS = (
    2**17
)  # states of a mini-batch (frames times units) below which one thread alone is faster than two
MIN_SEQUENCES_PER_BATCH = (
    3  # sequences; fewer would be a noisy update, and would need loops of their own (`states._kernels.MANY`)
)
MIN_BATCHES_TO_JOIN = 8  # mini-batches; with fewer of them, one update less in each epoch would be missed
LANES = 16  # sequences that the compiled loops of `states` run in parallel, one per element of a vector


def group_sequences(lengths: Array, frames: int, order: Array | None = None) -> Iterator[Array]:
    """Yield the indices of sequences in groups of at most `frames` frames, or of one longer sequence.

    Without an order, the longest come first, so that the sequences of a group end at about the same step. A group of
    more than LANES sequences has a multiple of LANES: a few more would take as long as another LANES.
    """
    order = np.argsort(-lengths, kind="stable") if order is None else order
    start = 0
    while start < len(order):
        total = np.cumsum(lengths[order[start:]])
        fit = max(1, int(np.searchsorted(total, frames, side="right")))
        stop = start + (fit if fit < LANES else fit - fit % LANES)
        yield order[start:stop]
        start = stop


def frames_for_two(lengths: Array, most: int) -> int:
    """Return how many frames a group may have, at most `most`, so that two cores have a share of small data.

    It does not depend on the number of cores that there are: neither do the bits of the sums.
    """
    return int(min(most, max(lengths.max(), np.ceil(lengths.sum() / 2))))


def draw_minibatches(lengths: Array, size: int, rng: np.random.Generator) -> list[Array]:
    """Draw mini-batches of `size` sequences of similar lengths, in random order; a small rest joins the one before."""
    order = np.argsort(lengths * rng.uniform(0.9, 1.1, len(lengths)))
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    if len(batches) > MIN_BATCHES_TO_JOIN and len(batches[-1]) < min(size, MIN_SEQUENCES_PER_BATCH):
        batches[-2:] = [np.concatenate(batches[-2:])]
    return [batches[i] for i in rng.permutation(len(batches))]


def split_minibatch(which: Array, lengths: Array, parts: int, units: int) -> list[Array]:
    """Return the sequences `which` of a mini-batch in `parts` shares for as many threads, or in one if it is small.

    The shares depend on the data alone, so that the bits of a fit do not depend on the number of threads.
    """
    small = lengths[which].sum() * units < MIN_STATES_FOR_TWO_THREADS
    return split_evenly(which, lengths, 1 if small else parts)


def split_evenly(which: Array, lengths: Array, parts: int) -> list[Array]:
    """Return the sequences `which` of a mini-batch in `parts` shares of about equal work, the longest first."""
    by_length = which[np.argsort(-lengths[which], kind="stable")]
    return [by_length[i::parts] for i in range(min(parts, len(which)))]
