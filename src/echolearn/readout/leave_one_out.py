"""Ridge regression on standardised columns, its penalty chosen by the exact leave-one-out error.

For n rows and M columns with n < M, the n x n matrix of inner products is cheaper than G. Let Z be the standardised
rows, each times the root of its weight, K = Z Z' / M, and T the centred targets, times the same roots. With
C = (K + m I)^-1 T the readout is Z' C / M. Had row i not been fitted to, its residual would be C_i / D_i: D is the
diagonal of that inverse without the direction of the intercept: the roots of the weights, an eigenvector of K of value
0, since the columns are centred. One eigendecomposition serves all penalties. (The means and deviations of the columns
are those of all rows.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from echolearn.validation import Array

CONSTANT = 1e-6  # a column whose deviation is this share of its largest value varies by rounding only


@dataclass(frozen=True, eq=False)
class Columns:
    """The mean and the scale (M,) of columns; scale 0: the column is constant and does not count."""

    mean: Array
    scale: Array

    @classmethod
    def of(cls, R: Array, w: Array) -> Columns:
        """Return the weighted mean and the inverse of the weighted deviation of the columns of R (n, M)."""
        share = w / w.sum()
        mean = share @ R
        deviation = np.sqrt(share @ (R - mean) ** 2)
        varies = deviation > CONSTANT * np.abs(R).max(axis=0)
        return cls(mean, np.where(varies, 1 / np.where(varies, deviation, 1), 0.0))

    @property
    def count(self) -> int:
        """The number of columns that vary, at least 1."""
        return max(1, int((self.scale > 0).sum()))

    def standardize(self, R: Array) -> Array:
        """Return rows with columns of mean 0 and deviation 1."""
        return np.asarray((R - self.mean) * self.scale)

    def unfold(self, V: Array, mean: Array) -> Array:
        """Return the readout U (M + 1, n_out) of rows as they are, from V (M, n_out) of standardised rows."""
        U = V * self.scale[:, None]
        return np.vstack([U, mean - self.mean @ U])


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A ridge regression in its dual form.

    ridge: the penalty chosen, of the readout of standardised columns. error: the weighted mean squared error of rows
    left out. outputs (n, n_out): what each row is given by the readout of all others. C (n, n_out) and mean (n_out,):
    the solution, for `readout`.
    """

    ridge: float
    error: float
    outputs: Array
    C: Array
    mean: Array


def solve_dual(K: Array, T: Array, w: Array, ridges: Sequence[float]) -> LeftOut:
    """Return the ridge regression of targets T (n, n_out) with the penalty whose leave-one-out error is smallest.

    K (n, n): the inner products of standardised rows. w (n,): the weights of the rows, > 0.
    """
    root = np.sqrt(w)
    mean = w @ T / w.sum()
    values, Q = np.linalg.eigh(root[:, None] * K * root)
    values = np.maximum(values, 0)
    rotated = Q.T @ (root[:, None] * (T - mean))
    best: LeftOut | None = None
    for ridge in ridges:
        shrunk = 1 / (values + ridge)
        C = Q @ (shrunk[:, None] * rotated)
        diagonal = np.maximum(Q**2 @ shrunk - w / w.sum() / ridge, np.finfo(float).tiny)
        residuals = C / diagonal[:, None] / root[:, None]
        error = float(w @ (residuals**2).sum(axis=1) / w.sum())
        if best is None or error < best.error:
            best = LeftOut(float(ridge), error, T - residuals, root[:, None] * C, mean)
    assert best is not None
    return best


def temperature(Y: Array, labels: Array, w: Array) -> float:
    """Return the factor by which outputs Y (n, n_classes) become logits: the one with the smallest cross entropy.

    The true class has a little less than probability 1, by the rule of succession: outputs that are all right must not
    become infinitely sure.
    """
    n, classes = Y.shape
    target = np.full(Y.shape, 1 / (n + classes))
    target[np.arange(n), labels] += n / (n + classes)
    low, high = np.log(1e-2), np.log(1e3)

    def slope(log_factor: float) -> float:
        logits = np.exp(log_factor) * Y
        P = np.exp(logits - logits.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        return float(w @ ((P - target) * Y).sum(axis=1))

    for _ in range(60):  # the cross entropy is convex in the factor, so its slope has one zero
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return float(np.exp((low + high) / 2))
