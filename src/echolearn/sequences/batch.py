"""The door: what a user hands in, checked, and packed into ragged batches.

Inside, frames are rows: every matrix over time is the transpose of the paper's. A batch of sequences is
packed step by step, longest first, so that one matrix product serves all its frames and no frame is padding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from echolearn.execution.threads import HERE

Array = NDArray[Any]
Pooling = str | int  # "mean", "last", or the number of parts of time that are averaged each on its own

LANES = 16  # sequences that the compiled loops of `states` run side by side
LARGEST = 1e290  # of the numbers that are standardised: forecasts and sums of them stay finite


def scaling(table: Array, name: str) -> tuple[Array, Array]:
    """Mean and standard deviation of each column; a constant column keeps its scale.

    Squares of 1e200 are infinite and those of 1e-200 zero, so numbers are brought near 1 by a power of two first.
    """
    table = table.astype(np.float64)
    peak = np.abs(table).max(axis=0)
    if (peak > LARGEST).any():
        raise ValueError(f"{name} holds {peak.max():.3g}, so large that float64 has no room for sums; scale it first.")
    power = np.frexp(peak)[1]
    near_one = np.ldexp(table, -power)
    mean, scale = near_one.mean(axis=0), near_one.std(axis=0)
    return np.ldexp(mean, power), np.where(scale > 1e-12 * np.abs(mean), np.ldexp(scale, power), 1.0)


@dataclass(frozen=True, eq=False)
class Batch:
    """Sequences packed together.

    X (K, n_in) and, where there are targets, T in the packed order: (K, n_out), or (B, n_out) for one target a
    sequence, or class numbers (K,) or (B,); order (B,): which of the caller's sequences each one is;
    lengths (B,), falling; active (steps,): how many still run at step t; offsets (steps,): the first row of step t.
    """

    X: Array
    order: Array
    lengths: Array
    active: Array
    offsets: Array
    T: Array | None = None

    @property
    def frames(self) -> int:
        return int(self.X.shape[0])

    def rows(self, s: int) -> Array:
        """The rows of the packed matrices that hold sequence s (in packed order), in time order."""
        return np.asarray(self.offsets[: self.lengths[s]] + s)

    def turned(self) -> Array:
        """For each row, the one of the same sequence as far from its end as this one is from its start: M[turned()] is
        M with every sequence turned around in time, and turning twice changes nothing."""
        steps = np.repeat(np.arange(len(self.active)), self.active)
        sequence = np.arange(self.frames) - self.offsets[steps]
        return np.asarray(self.offsets[self.lengths[sequence] - 1 - steps] + sequence)

    def stretch(self, begin: int, end: int) -> Batch:
        """The steps begin ... end as a batch of their own, its X and T (a row a step) views."""
        active, offsets = self.active[begin:end], self.offsets[begin:end]
        first, rows = offsets[0], slice(offsets[0], offsets[-1] + active[-1])
        lengths = np.minimum(self.lengths[: active[0]] - begin, len(active))
        T = None if self.T is None else self.T[rows]
        return Batch(self.X[rows], self.order[: active[0]], lengths, active, offsets - first, T)

    def before(self, M: Array) -> Array:
        """M one step earlier: row r holds what stood at the same sequence's step before, zero at its start."""
        steps = np.repeat(np.arange(len(self.active)), self.active)
        rows = np.arange(self.frames)
        earlier = rows - self.active[np.maximum(steps - 1, 0)]
        out = M[np.maximum(earlier, 0)]
        out[: self.active[0]] = 0
        return out


def pack(X: Sequence[Array], dtype: Any, T: Sequence[Array] | None = None, per_step: bool = True) -> Batch:
    """Sequences of (steps, n_in) into one batch; T alike (whole numbers are classes), or one row a sequence."""
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
    if not per_step:
        packed = np.stack([T[which] for which in order]).astype(kind)
    else:
        packed = np.empty((batch.frames, *T[0].shape[1:]), kind)
        for s, which in enumerate(order):
            packed[batch.rows(s)] = T[which]
    return Batch(batch.X, order, lengths, active, offsets, packed)


def unpack(batch: Batch, M: Array) -> list[Array]:
    """Packed rows back to one array a sequence, in the caller's order."""
    if len(batch.order) == 1:
        return [M]
    out: list[Array] = [M[:0]] * len(batch.order)
    for s, which in enumerate(batch.order):
        out[which] = M[batch.rows(s)]
    return out


class Selection:
    """Which frames carry a target: all, some of them, or one pooled row a sequence.

    `take` maps packed rows (K, .) to rows with targets; `put` is its transpose. Pooling over `parts` parts of time
    sets their means side by side: (K, M) becomes (B, parts M). The last state of `backward` columns is at step 0.
    """

    def __init__(self, batch: Batch, *, washout: int, targets: str, lookback: int | None, pooling: Pooling | None):
        self._P: Any = None
        self._rows: Array | None = None
        self.parts = parts_of(pooling)
        self._last = pooling == "last"
        if pooling == "mean" or isinstance(pooling, Integral):
            spans = [(s, *span) for s, n in enumerate(batch.lengths) for span in spans_of(n, washout, self.parts)]
            columns = np.concatenate([batch.rows(s)[start:stop] for s, start, stop in spans])
            counts = np.array([stop - start for _, start, stop in spans])
            values = np.repeat(1.0 / counts, counts).astype(batch.X.dtype)
            owner = np.repeat(np.arange(len(counts)), counts)
            self._P = sparse.csr_array((values, (owner, columns)), shape=(len(counts), batch.frames))
        elif pooling == "last":
            self._rows = batch.offsets[batch.lengths - 1] + np.arange(len(batch.lengths))
        elif targets == "last":
            self._rows = np.sort(
                np.concatenate([batch.rows(s)[ends(n, washout, lookback)] for s, n in enumerate(batch.lengths)])
            )
        elif washout:
            steps = np.repeat(np.arange(len(batch.active)), batch.active)
            self._rows = np.flatnonzero(steps >= washout)
        self._frames = batch.frames

    def take(self, M: Array, backward: Array | None = None) -> Array:
        if self._P is not None:
            return np.asarray(self._P @ M).reshape(-1, self.parts * M.shape[1])
        if self._rows is None:
            return M
        taken = M[self._rows]
        if self._last and backward is not None:
            taken[:, backward] = M[: len(taken), backward]
        return np.asarray(taken)

    def put(self, D: Array, backward: Array | None = None) -> Array:
        if self._P is not None:
            return np.asarray(self._P.T @ D.reshape(self._P.shape[0], -1))
        if self._rows is None:
            return D
        out = np.zeros((self._frames, D.shape[1]), D.dtype)
        out[self._rows] = D
        if self._last and backward is not None:
            out[:, backward] = 0
            out[: len(D), backward] = D[:, backward]
        return out


def parts_of(pooling: Pooling | None) -> int:
    """How many means of time stand side by side."""
    return int(pooling) if isinstance(pooling, Integral) else 1


def spans_of(length: int, washout: int, parts: int) -> list[tuple[int, int]]:
    """[start, stop) of equal parts of the time after the washout; none is empty, short ones may share a step."""
    n = int(length) - washout
    return [(washout + i * n // parts, washout - (-(i + 1) * n // parts)) for i in range(parts)]


def ends(length: int, washout: int, lookback: int | None) -> Array:
    """The last step of every block of `lookback` steps after the washout; a shorter last block counts too."""
    if lookback is None:
        return np.array([length - 1])
    last = np.arange(washout + lookback - 1, length, lookback)
    return last if len(last) and last[-1] == length - 1 else np.append(last, length - 1)


def block_starts(steps: int, washout: int, lookback: int | None) -> NDArray[np.bool_]:
    """cut[t]: a block starts at step t, so that no error passes from t to t - 1."""
    t = np.arange(steps)
    if lookback is None:
        return np.zeros(steps, bool)
    return np.asarray((t >= washout) & ((t - washout) % lookback == 0))


def groups(lengths: Array, frames: int, order: Array | None = None) -> Iterator[Array]:
    """Indices of sequences in groups of at most `frames` frames (at least one sequence), for one pass.

    Sorted by length unless an order is given, so that sequences of a group end together. Where more than LANES fit,
    their number is a multiple of it: that many run side by side, and a few left over would take as long as all.
    """
    order = np.argsort(-lengths, kind="stable") if order is None else order
    start = 0
    while start < len(order):
        total = np.cumsum(lengths[order[start:]])
        fit = max(1, int(np.searchsorted(total, frames, side="right")))
        stop = start + (fit if fit < LANES else fit - fit % LANES)
        yield order[start:stop]
        start = stop


@dataclass(frozen=True, eq=False)
class Data:
    """Checked sequences with their targets, to be taken in batches.

    X: one (steps, n_in) array a sequence. y: one array a sequence, of class numbers (steps,) or values
    (steps, n_out); for one target a sequence, a number or (n_out,) each. classes: how many, or None for values.

    Both may be on a cluster (`cluster.Far`): then passes over the data are made there.
    """

    X: Sequence[Array]
    y: Sequence[Any]
    classes: int | None
    per_step: bool
    dtype: Any

    @property
    def lengths(self) -> Array:
        return np.array([len(x) for x in self.X])

    @property
    def n_out(self) -> int:
        return self.classes or int(np.shape(self.y[0])[-1])

    @property
    def where(self) -> Any:
        """Who makes passes over these data: this process, or the cluster that holds them."""
        return getattr(self.X[0], "cluster", HERE)

    def each(self, function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        """function(data, which) for every item, in order. It gets the data as an argument and must not hold them."""
        result: Iterator[Any] = self.where.each(self, function, items)
        return result

    def total(self, function: Callable[..., Any], items: Iterable[Any]) -> Any:
        """Σ function(data, which), in the tree of `engine.added`."""
        return self.where.total(self, function, items)

    def batch(self, which: Sequence[int] | Array, steps: slice = slice(None)) -> Batch:
        y = [self.y[i][steps] if self.per_step else self.y[i] for i in which]
        return pack([self.X[i][steps] for i in which], self.dtype, y, self.per_step)

    def joined(self, more: Data) -> Data:
        return Data([*self.X, *more.X], [*self.y, *more.y], self.classes, self.per_step, self.dtype)

    def subset(self, which: Sequence[int] | Array) -> Data:
        return Data([self.X[i] for i in which], [self.y[i] for i in which], self.classes, self.per_step, self.dtype)


def one_hot(labels: Array, classes: int, dtype: Any) -> Array:
    """Class numbers (K,) to target rows (K, classes)."""
    out = np.zeros((len(labels), classes), dtype)
    out[np.arange(len(labels)), labels] = 1
    return out


def as_classes(values: list[Array]) -> list[Any]:
    """Target rows to class numbers where each row is a single 1 (products with those are sums), else as they are."""
    for rows in values:
        if np.count_nonzero(rows) != rows[..., 0].size or not (rows.max(axis=-1) == 1).all():
            return values
    return [rows.argmax(axis=-1) for rows in values]


def shuffled(lengths: Array, size: int, rng: np.random.Generator) -> list[Array]:
    """Mini-batches of `size` sequences of similar length, who is with whom and in which order by chance.

    Sequences that run side by side and end together waste no work.
    """
    order = np.argsort(lengths * rng.uniform(0.9, 1.1, len(lengths)))
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def dealt(which: Array, lengths: Array, parts: int) -> list[Array]:
    """A batch's sequences in `parts` piles of about equal work, sorted by length."""
    by_length = which[np.argsort(-lengths[which], kind="stable")]
    return [by_length[i::parts] for i in range(min(parts, len(which)))]
