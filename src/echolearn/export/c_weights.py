"""The layout of recurrent weights in C: groups of four units, so that a processor adds four products at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echolearn.runtime.plan import Sparse
from echolearn.validation import Array

GROUP = 4  # units; what 16 bytes of float hold


@dataclass(frozen=True, eq=False)
class Groups:
    """Compressed rows in groups of four, each as wide as the widest of its rows.

    start (groups + 1,): the first column of each group; order (columns, 4): which entry of the compressed rows stands
    in a place, or -1 where a row has fewer entries than its neighbours.
    """

    start: Array
    order: Array

    def arrange(self, entries: Array) -> Array:
        """Return entries of the compressed rows in their new places, with zeros in between."""
        return np.where(self.order < 0, 0, np.append(entries, 0)[self.order])


def padded(count: int) -> int:
    """Return the number of units in full groups."""
    return -(-count // GROUP) * GROUP


def in_groups(matrix: Sparse) -> Groups:
    """Return where the entries of a matrix in compressed rows are placed."""
    N = len(matrix.indptr) - 1
    first = np.append(matrix.indptr[:-1], np.zeros(padded(N) - N, int))
    counts = np.append(np.diff(matrix.indptr), np.zeros(padded(N) - N, int))
    widths = counts.reshape(-1, GROUP).max(axis=1)
    columns = [
        np.where(np.arange(width)[:, None] < own, begin + np.arange(width)[:, None], -1)
        for width, own, begin in zip(widths, counts.reshape(-1, GROUP), first.reshape(-1, GROUP), strict=True)
    ]
    return Groups(np.append(0, np.cumsum(widths)), np.concatenate(columns))


def is_rather_dense(matrix: Sparse) -> bool:
    """Return whether more than half of a matrix is filled: then its places would take more than the zeros do."""
    N = len(matrix.indptr) - 1
    return 2 * len(matrix.data) > N * N


def dense(matrix: Sparse) -> Array:
    """Return the matrix (N, N) itself."""
    N = len(matrix.indptr) - 1
    full = np.zeros((N, N))
    np.add.at(full, (np.repeat(np.arange(N), np.diff(matrix.indptr)), matrix.indices), matrix.data)
    return full
