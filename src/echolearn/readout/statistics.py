"""The statistics of states and targets from which the readout is solved: G = H_c'H_c and Q = H_c'T (eq. 4-9)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from echolearn.display.facts import counted, one_line
from echolearn.execution.executor import LOCAL
from echolearn.execution.threads import map_in_order
from echolearn.readout.view import ReadoutView, frames_at_once, stream_rows, time_chunks
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import frames_for_two, group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array

MAX_COLUMNS_PER_TILE = 1280  # at most so many columns of H_c are multiplied with as many others in one task
MIN_FLOAT32_RIDGE = 3e-6  # in units of G's mean diagonal: a larger ridge hides the rounding errors of float32 products
MAX_DENSE_CLASSES = 16  # classes up to which a dense product with their indicators is faster than a sparse one
MAX_COLUMNS_PER_THREAD = 2048  # with more columns all cores work on one G, with fewer each works on its own


def equal_slices(M: int, most: int) -> list[slice]:
    """Return slices of about equal length that cover range(M): as few as possible with at most `most` members each."""
    edges = np.linspace(0, M, -(-M // most) + 1).astype(int)
    return [slice(*ends) for ends in pairwise(edges)]


@dataclass(eq=False)
class Statistics:
    """All that the readout needs to know of the data. Additive over batches.

    In float64, whatever the precision of the states: at mu / λ_max = 1e-8 a float32 Gram matrix breaks down.
    Where targets have weights w, these are H_c'diag(w)H_c, H_c'diag(w)T, Σ w ||t||² and Σ w: a target of weight 2
    counts like two targets.
    """

    G: Array  # (M, M): the Gram matrix H_c'H_c
    Q: Array  # (M, n_out): the products with the targets, H_c'T
    tt: float  # the squared norm of the targets, ||T||²
    n: float  # the number of targets

    def __repr__(self) -> str:
        columns, outputs = self.Q.shape
        return one_line(self, (f"{self.n:,.6g} targets", counted(columns, "column"), counted(outputs, "output")))

    @classmethod
    def zeros(cls, M: int, n_out: int) -> Statistics:
        """Return the statistics of no data."""
        return cls(np.zeros((M, M)), np.zeros((M, n_out)), 0.0, 0.0)

    def __iadd__(self, other: Statistics) -> Statistics:
        self.G += other.G
        self.Q += other.Q
        self.tt += other.tt
        self.n += other.n
        return self

    def scale(self, factor: float) -> Statistics:
        """Multiply everything by a factor in place, and return the same object."""
        self.G *= factor
        self.Q *= factor
        self.tt *= factor
        self.n *= factor
        return self

    def stand_for(self, n: float) -> Statistics:
        """Scale the statistics of some targets to those of n, in place; without any target they stay zero."""
        self.scale(n / self.n if self.n else 1.0)
        self.n = n
        return self

    @property
    def has_intercept(self) -> bool:
        """Whether the last column of H_c is ones; without an intercept it is zeros."""
        return bool(self.G[-1, -1] != 0)

    @property
    def mean_diagonal(self) -> float:
        """The mean of G's diagonal, the unit in which ridges are chosen."""
        return float(np.trace(self.G)) / len(self.G)


def statistics_of(
    H_c: Array, T: Array, n_out: int, product: DTypeLike = np.float64, *, w: Array | None = None
) -> Statistics:
    """Return the statistics of H_c (K, M) and T (K, n_out); class numbers (K,) stand for rows of T with a single 1.

    product: the precision of the products within these K frames; the result is in float64 in any case. w (K,): the
    weights of the targets; None: all are 1.
    """
    H_c = weighted(H_c.astype(product, copy=False), _roots(w))
    G, Q = H_c.T @ H_c, _with_targets(H_c, T, n_out, _roots(w))
    n = float(len(H_c)) if w is None else float(w.sum())
    return Statistics(G.astype(np.float64, copy=False), Q.astype(np.float64, copy=False), _squares(T, w), n)


def weighted(M: Array, w: Array | None) -> Array:
    """Return diag(w) M in the precision of M (K, .); M itself if w is None."""
    return M if w is None else np.asarray(M * w.astype(M.dtype)[:, None])


def _roots(w: Array | None) -> Array | None:
    """Return the square roots of weights: with both factors scaled by them, G is symmetric to the bit."""
    return None if w is None else np.sqrt(w)


def _with_targets(H_c: Array, T: Array, n_out: int, scale: Array | None) -> Array:
    """Return H_c'diag(scale)T (M, n_out)."""
    if T.ndim == 2:
        return np.asarray(H_c.T @ weighted(T.astype(H_c.dtype, copy=False), scale))
    if n_out <= MAX_DENSE_CLASSES:
        return np.asarray(H_c.T @ weighted((T[:, None] == np.arange(n_out)).astype(H_c.dtype), scale))
    ones = np.ones(len(T), H_c.dtype) if scale is None else scale.astype(H_c.dtype)
    one_hot = sparse.csr_array((ones, (T, np.arange(len(T)))), shape=(n_out, len(T)))
    return np.asarray((one_hot @ H_c).T)


def _squares(T: Array, w: Array | None) -> float:
    """Return Σ w ||t||²."""
    T = T.astype(np.float64, copy=False)
    if T.ndim == 1:
        return float(len(T)) if w is None else float(w.sum())
    return float(np.vdot(T, weighted(T, w)))


def add_in_tiles(
    s: Statistics, H_c: Array, T: Array, product: DTypeLike = np.float64, *, w: Array | None = None
) -> None:
    """Add statistics_of(H_c, T, w=w) to s in place, on all cores.

    Only the tiles of G on and below the diagonal are added to; `mirror` completes it at the end. Each task adds to its
    own tile, so the bits of G do not depend on the number of threads.
    """
    M, n_out = s.Q.shape
    columns = equal_slices(M, MAX_COLUMNS_PER_TILE)
    blocks = list(map_in_order(lambda c: weighted(H_c[:, c].astype(product, copy=False), _roots(w)), columns))

    def add_tile(place: tuple[int, int]) -> None:
        i, j = place
        s.G[columns[i], columns[j]] += blocks[i].T @ blocks[j]
        if i == j:
            s.Q[columns[i]] += _with_targets(blocks[i], T, n_out, _roots(w))

    for _ in map_in_order(add_tile, [(i, j) for j in range(len(columns)) for i in range(j, len(columns))]):
        pass
    s.tt += _squares(T, w)
    s.n += len(H_c) if w is None else float(w.sum())


def mirror(G: Array) -> None:
    """Copy the transposed lower half of G to its upper half, in place."""
    for start in range(0, len(G), MAX_COLUMNS_PER_TILE):
        rows = slice(start, start + MAX_COLUMNS_PER_TILE)
        G[rows, start + MAX_COLUMNS_PER_TILE :] = G[start + MAX_COLUMNS_PER_TILE :, rows].T
        G[rows, rows] = np.tril(G[rows, rows]) + np.tril(G[rows, rows], -1).T


def product_precision(s: Statistics, mu: float, dtype: DTypeLike) -> DTypeLike:
    """Return the precision of the states (dtype) if mu hides its rounding errors (relative 1e-7), otherwise float64."""
    return dtype if mu > MIN_FLOAT32_RIDGE * s.mean_diagonal else np.float64


def sample_precision(H_c: Array, n: int, mu: float, w: Array | None = None) -> DTypeLike:
    """Return `product_precision` as estimated from some of at most n frames, whose targets have weights w (None: 1)."""
    mean_square = float(np.vdot(H_c, weighted(H_c, w))) / max(1, H_c.size)
    return H_c.dtype if mu > MIN_FLOAT32_RIDGE * n * mean_square else np.float64


def residual(Y: Array, T: Array) -> Array:
    """Return R = Y - T, computed in place of Y; T as for `statistics_of`."""
    if T.ndim == 1:
        Y[np.arange(len(T)), T] -= 1
    else:
        Y -= T
    return Y


def column_squares(s: Statistics) -> Array:
    """Return the sum of squares about the mean (about 0 without an intercept) of each column of H_c but the last."""
    raw, mean = np.diagonal(s.G)[:-1], s.G[-1, :-1] / (s.G[-1, -1] or 1.0)
    # The difference cancels, and leaves rounding errors of this size.
    return np.asarray(np.maximum(raw - mean * s.G[-1, :-1], 1e-14 * raw))


# Passes over all the data, the states of one group of sequences after another


def collect(reservoir: Reservoir, data: Dataset, view: ReadoutView, mu: float = 0.0) -> Statistics:
    """Return G and Q over all the data; a large ridge mu permits products in the precision of the states."""
    if view.rows(reservoir) > MAX_COLUMNS_PER_THREAD:
        wide = _collect_wide_here if data.executor is LOCAL else _collect_wide_elsewhere
        result = wide(reservoir, data, view, mu)
        mirror(result.G)
        return result
    n = data.frames

    def statistics_of_group(data: Dataset, which: Array) -> Statistics:
        parts = (
            statistics_of(H_c, T, data.n_out, sample_precision(H_c, n, mu, w), w=w)
            for H_c, T, w in stream_rows(reservoir, data, view, which)
        )
        s = next(parts)
        for more in parts:
            s += more
        return s

    return data.sum(
        statistics_of_group, group_sequences(data.lengths, frames_for_two(data.lengths, frames_at_once(reservoir.N)))
    )


def _collect_wide_here(reservoir: Reservoir, data: Dataset, view: ReadoutView, mu: float) -> Statistics:
    """Return G and Q, collected in this process: there is a single G, to which all cores add."""
    lengths, n = data.lengths, data.frames
    result = Statistics.zeros(view.rows(reservoir), data.n_out)
    order = np.argsort(-lengths, kind="stable")
    long = sum(len(time_chunks(reservoir, view, lengths[[i]])) > 1 for i in order)
    for i in order[:long]:
        for H_c, T, w in stream_rows(reservoir, data, view, np.array([i])):
            add_in_tiles(result, H_c, T, sample_precision(H_c, n, mu, w), w=w)
    groups = group_sequences(lengths, frames_at_once(reservoir.N), order[long:])
    for H_c, T, w in data.map(lambda data, which: next(stream_rows(reservoir, data, view, which)), groups):
        add_in_tiles(result, H_c, T, sample_precision(H_c, n, mu, w), w=w)
    return result


def _collect_wide_elsewhere(reservoir: Reservoir, data: Dataset, view: ReadoutView, mu: float) -> Statistics:
    """Return G and Q, collected where the data are: one G for each group of sequences, then their sum."""
    M, n = view.rows(reservoir), data.frames

    def statistics_of_group(data: Dataset, which: Array) -> Statistics:
        s = Statistics.zeros(M, data.n_out)
        for H_c, T, w in stream_rows(reservoir, data, view, which):
            add_in_tiles(s, H_c, T, sample_precision(H_c, n, mu, w), w=w)
        return s

    return data.sum(statistics_of_group, group_sequences(data.lengths, frames_at_once(reservoir.N)))
