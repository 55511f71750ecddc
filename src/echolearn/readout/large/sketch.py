"""A sketch of the Gram matrix of a large network, from a sample of its frames (Nyström's method).

The variance of the states falls off steeply from direction to direction, and the leading directions of a few thousand
frames are those of a million.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from echolearn.readout.ridge import choose_ridge, refuse_infinite
from echolearn.readout.statistics import Statistics, residual, statistics_of, weighted
from echolearn.readout.view import MAX_FRAMES_PER_PASS, ReadoutView, observe
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array

Operator = Callable[[Array], Array]  # a linear map of (M, n_out) to (M, n_out)
Rows = tuple[Array, Array, Array | None]  # H_c (k, M), T, and the weights (k,) of the targets; None: all are 1

SAMPLE_FRAMES = 3000  # frames from which a sketch is made
SKETCH_RANK = 750  # directions that it keeps
CORRECTED_DIRECTIONS = 100  # in which a U of other weights is corrected; a sample has 30 frames for each
TAIL_VARIANCE = 0.6  # variance in all other directions, in units of the weakest direction kept


@dataclass(frozen=True, eq=False)
class Sketch:
    """An approximation of G of n frames: [H X] has the mean `mean`, and about it a Gram matrix of low rank plus a tail,

    V diag(values) V' + tail (I - VV').
    """

    V: Array  # (M - 1, r): the leading directions, orthonormal
    values: Array  # (r,): their eigenvalues, from large to small
    tail: float  # the eigenvalue of all other directions
    mean: Array  # (M - 1,): the mean of the columns of H_c, without that of the intercept
    n: float  # the number of frames that the sketch stands for
    square: float  # the mean diagonal of the Gram matrix about the mean, from the sampled rows

    def correct(self, U: Array, rows: Rows) -> Array:
        """Return U, corrected in the leading directions so that its error on some rows is the least.

        A U of other weights is wrong above all there: its error may be larger than that of no readout at all.
        """
        H_c, T, w = rows
        V, mean = self.V[:, :CORRECTED_DIRECTIONS], self.mean.astype(H_c.dtype)
        H = np.hstack([(H_c[:, :-1] - mean) @ V, H_c[:, -1:]])
        R = residual(H_c @ U.astype(H_c.dtype), T)
        root = None if w is None else np.sqrt(w)
        C = linalg.lstsq(weighted(H, root), weighted(R, root))[0].astype(np.float64)
        D = V @ C[:-1]
        return np.asarray(U - np.vstack([D, C[-1] - self.mean @ D]))

    def inverse(self, mu: float) -> Operator:
        """Return the function R (M, n_out) -> (G + mu I)^-1 R, with the intercept not penalised.

        About the mean, states and intercept are uncorrelated: with S = [[I, 0], [-mean', 1]] the inverse is
        S diag((V diag(values) V' + tail (I - VV') + mu I)^-1, 1/n) S'.
        """
        V = self.V
        rest = 1 / (self.tail + mu)
        gain = (1 / (self.values + mu) - rest)[:, None].astype(V.dtype)

        def apply(R: Array) -> Array:
            mean = self.mean.astype(R.dtype)
            D = R[:-1] - mean[:, None] * R[-1]
            leading = V @ (gain * (V.T @ D.astype(V.dtype, copy=False)))
            D *= rest
            D += leading
            return np.vstack([D, R[-1] / self.n - mean @ D])

        return apply


def make_sketch(H_c: Array, n: float, rank: int = SKETCH_RANK, *, w: Array | None = None) -> Sketch:
    """Return the sketch of n frames from a sample of rows of H_c (k, M).

    The last column is ones; without an intercept it is zeros, and nothing is centred.
    w (k,): the weights of the targets of the rows, None: all are 1; n is then the sum of the weights of all targets.
    """
    if w is None:
        mean = H_c[:, :-1].mean(axis=0, dtype=np.float64)
    else:
        mean = np.average(H_c[:, :-1].astype(np.float64), axis=0, weights=w)
    mean *= H_c[:, -1].any()
    refuse_infinite(mean)
    H = H_c[:, :-1] - mean.astype(H_c.dtype)
    if w is not None:
        H = weighted(H, np.sqrt(w))
    k, M = H.shape
    # HH' and H'H have the same eigenvalues, and the eigenvectors of one give those of the other: take the smaller one.
    small = (H @ H.T if k < M else H.T @ H).astype(np.float64)
    values, E = linalg.eigh(small, subset_by_index=[max(0, len(small) - rank), len(small) - 1])
    # Weaker directions were lost to rounding in the product; of a constant H none is left.
    keep = values > 10 * np.finfo(H.dtype).eps * max(values[-1], np.finfo(float).tiny)
    values, E = values[keep][::-1], E[:, keep][:, ::-1]
    V = H.T @ (E / np.sqrt(values)).astype(H.dtype) if k < M else np.ascontiguousarray(E, H.dtype)
    scale = n / (k if w is None else float(w.sum()))
    square = scale * float(np.trace(small)) / M
    tail = TAIL_VARIANCE * scale * float(values[-1]) if len(values) else 0.0
    return Sketch(V, scale * values, tail, mean, n, square)


def choose_ridge_by_sample(rows: Rows, path: Sequence[float] | Array, n_out: int, held_out: Rows | None) -> float:
    """Return the best mu of `path` for a sample of rows (H_c, T, w): on held-out rows, or by cross-validation.

    As a prior, mu is the variance of the noise over that of the weights, and does not depend on the number of frames.
    The statistics of the sample are therefore not scaled up; they are taken in the basis of its leading directions.
    """
    H_c, _, w = rows
    base = make_sketch(H_c, len(H_c) if w is None else float(w.sum()), w=w)

    def in_base(rows: Rows) -> Statistics:
        H_c, T, w = rows
        centred = H_c[:, :-1] - base.mean.astype(H_c.dtype)
        return statistics_of(np.hstack([centred @ base.V, H_c[:, -1:]]), T, n_out, w=w)

    held = None if held_out is None else in_base(held_out)
    return choose_ridge(in_base(rows), path, intercept=True, held_out=held)[0]


def sample_rows(
    reservoir: Reservoir, data: Dataset, view: ReadoutView, rng: np.random.Generator, frames: int | None = None
) -> Rows:
    """Return about `frames` rows of H_c with their targets: a quarter of the rows of random sequences, at most all."""
    frames = SAMPLE_FRAMES if frames is None else frames
    order, count = rng.permutation(len(data.X)), view.targets_per_sequence(data)
    counts = np.cumsum(count[order])
    chosen = order[: 1 + int(np.searchsorted(counts, 4 * frames))]
    share = min(1.0, frames / counts[len(chosen) - 1])

    def pick_rows(data: Dataset, which: Array, pick: Array) -> tuple[Array, Array, Array]:
        seen = observe(reservoir, view, data.batch(which))
        w = np.ones(len(seen.T)) if seen.w is None else seen.w
        return seen.H_c[pick], seen.T[pick], w[pick]

    items = []
    for which in group_sequences(data.lengths[chosen], MAX_FRAMES_PER_PASS):
        k = int(count[chosen[which]].sum())
        items.append((chosen[which], rng.permutation(k)[: int(np.ceil(share * k))]))
    H_c, T, w = zip(*data.map(pick_rows, items), strict=True)
    return np.vstack(H_c), np.concatenate(T), None if data.weights is None else np.concatenate(w)


def sample_sequences(data: Dataset, view: ReadoutView, frames: int, rng: np.random.Generator) -> Dataset:
    """Return random sequences with about `frames` targets, at most all sequences."""
    order = rng.permutation(len(data.X))
    counts = np.cumsum(view.targets_per_sequence(data)[order])
    return data.subset(np.sort(order[: 1 + int(np.searchsorted(counts, frames))]))
