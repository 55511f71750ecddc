"""Which frames of a batch carry a target."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echolearn.sequences.batch import Batch
from echolearn.validation import Array


class Selection:
    """The frames of a batch that carry a target: all, or some of them.

    `take` maps packed rows (K, .) to rows with targets; `put` is its transpose. Targets of weight 0 are left out. w:
    the weights of the others, in the order of the rows; None: all are 1.
    """

    def __init__(self, batch: Batch, *, washout: int, targets: str, lookback: int | None):
        self._rows: Array | None = None
        if targets == "last":
            self._rows = np.sort(
                np.concatenate([batch.rows(s)[block_ends(n, washout, lookback)] for s, n in enumerate(batch.lengths)])
            )
        elif washout:
            steps = np.repeat(np.arange(len(batch.active)), batch.active)
            self._rows = np.flatnonzero(steps >= washout)
        self._frames = batch.frames
        self.w: Array | None = None
        if batch.w is not None:
            self._weigh(batch.w)

    def _weigh(self, w: Array) -> None:
        """Leave out the targets of weight 0, and keep the weights of the others."""
        taken = self.take(w)
        kept = np.flatnonzero(taken > 0)
        if len(kept) < len(taken):
            self._rows = kept if self._rows is None else self._rows[kept]
        self.w = None if (taken[kept] == 1).all() else taken[kept]

    def take(self, M: Array) -> Array:
        """Return the rows with targets of packed rows M (K, .)."""
        return M if self._rows is None else np.asarray(M[self._rows])

    def put(self, D: Array) -> Array:
        """Return packed rows (K, .) with D at the rows that carry targets: the transpose of `take`."""
        if self._rows is None:
            return D
        out = np.zeros((self._frames, D.shape[1]), D.dtype)
        out[self._rows] = D
        return out


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
