"""Which frames of a batch carry a target, and how states are pooled into one row per sequence."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from echolearn.sequences.batch import Batch
from echolearn.validation import Array

Pooling = str | int  # "mean", "last", or the number of equal parts of time, each with a mean of its own


class Selection:
    """The frames of a batch that carry a target: all, some of them, or one pooled row per sequence.

    `take` maps packed rows (K, .) to rows with targets; `put` is its transpose. Pooling over `parts` parts of time
    concatenates their means: (K, M) becomes (B, parts M). The last state of the columns in `backward` is at step 0.
    Targets of weight 0 are left out. w: the weights of the others, in the order of the rows; None: all are 1.
    """

    def __init__(self, batch: Batch, *, washout: int, targets: str, lookback: int | None, pooling: Pooling | None):
        self._P: sparse.csr_array | None = None
        self._rows: Array | None = None
        self.parts = pooled_parts(pooling)
        self._last = pooling == "last"
        if pooling == "mean" or isinstance(pooling, Integral):
            spans = [(s, *span) for s, n in enumerate(batch.lengths) for span in part_bounds(n, washout, self.parts)]
            columns = np.concatenate([batch.rows(s)[start:stop] for s, start, stop in spans])
            counts = np.array([stop - start for _, start, stop in spans])
            values = np.repeat(1.0 / counts, counts).astype(batch.X.dtype)
            owner = np.repeat(np.arange(len(counts)), counts)
            self._P = sparse.csr_array((values, (owner, columns)), shape=(len(counts), batch.frames))
        elif pooling == "last":
            self._rows = batch.offsets[batch.lengths - 1] + np.arange(len(batch.lengths))
        elif targets == "last":
            self._rows = np.sort(
                np.concatenate([batch.rows(s)[block_ends(n, washout, lookback)] for s, n in enumerate(batch.lengths)])
            )
        elif washout:
            steps = np.repeat(np.arange(len(batch.active)), batch.active)
            self._rows = np.flatnonzero(steps >= washout)
        self._frames = batch.frames
        self._pooled = pooling is not None
        self._kept: Array | None = None  # of pooled sequences, those with a target; None: all
        self.w: Array | None = None
        if batch.w is not None:
            self._weigh(batch.w)

    def _weigh(self, w: Array) -> None:
        """Leave out the targets of weight 0, and keep the weights of the others."""
        taken = self.targets(w)
        kept = np.flatnonzero(taken > 0)
        if len(kept) < len(taken):
            self._kept = kept if self._pooled else None
            if self._P is not None:
                self._P = self._P[(kept[:, None] * self.parts + np.arange(self.parts)).ravel()]
            else:
                self._rows = kept if self._rows is None else self._rows[kept]
        self.w = None if (taken[kept] == 1).all() else taken[kept]

    def targets(self, T: Array) -> Array:
        """Return the entries of T (packed: one per frame, or one per pooled sequence) that belong to the rows."""
        if not self._pooled:
            return self.take(T)
        return T if self._kept is None else np.asarray(T[self._kept])

    def take(self, M: Array, backward: Array | None = None) -> Array:
        """Return the rows with targets of packed rows M (K, .)."""
        if self._P is not None:
            return np.asarray(self._P @ M).reshape(-1, self.parts * M.shape[1])
        if self._rows is None:
            return M
        taken = M[self._rows]
        if self._last and backward is not None:
            taken[:, backward] = M[self._first_rows(len(taken))][:, backward]
        return np.asarray(taken)

    def put(self, D: Array, backward: Array | None = None) -> Array:
        """Return packed rows (K, .) with D at the rows that carry targets: the transpose of `take`."""
        if self._P is not None:
            return np.asarray(self._P.T @ D.reshape(self._P.shape[0], D.shape[1] // self.parts))
        if self._rows is None:
            return D
        out = np.zeros((self._frames, D.shape[1]), D.dtype)
        out[self._rows] = D
        if self._last and backward is not None:
            out[:, backward] = 0
            first = out[self._first_rows(len(D))]
            first[:, backward] = D[:, backward]
            out[self._first_rows(len(D))] = first
        return out

    def _first_rows(self, count: int) -> Array | slice:
        """Return the rows of step 0 of the sequences with a target."""
        return slice(count) if self._kept is None else self._kept


def pooled_parts(pooling: Pooling | None) -> int:
    """Return how many means over parts of time are concatenated."""
    return int(pooling) if isinstance(pooling, Integral) else 1


def part_bounds(length: int, washout: int, parts: int) -> list[tuple[int, int]]:
    """Return (start, stop) of equal parts of the time after the washout.

    No part is empty: where there are fewer steps than parts, neighbouring parts share a step.
    """
    n = int(length) - washout
    return [(washout + i * n // parts, washout - (-(i + 1) * n // parts)) for i in range(parts)]


def block_ends(length: int, washout: int, lookback: int | None) -> Array:
    """Return the last step of each block of `lookback` steps after the washout (eq. 10); the last may be shorter."""
    if lookback is None:
        return np.array([length - 1])
    last = np.arange(washout + lookback - 1, length, lookback)
    return last if len(last) and last[-1] == length - 1 else np.append(last, length - 1)


def block_starts(steps: int, washout: int, lookback: int | None) -> NDArray[np.bool_]:
    """Return cut (steps,): cut[t] is True where a block starts, so that no error passes from step t to t - 1."""
    t = np.arange(steps)
    if lookback is None:
        return np.zeros(steps, bool)
    return np.asarray((t >= washout) & ((t - washout) % lookback == 0))
