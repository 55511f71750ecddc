"""The ridge readout U from its statistics (eq. 9), and the choice of the ridge mu from one eigendecomposition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg
from scipy.linalg import LinAlgError, blas, lapack
from scipy.optimize import minimize

from echolearn.exceptions import ReadoutWarning
from echolearn.execution.threads import map_in_order
from echolearn.readout.statistics import MAX_COLUMNS_PER_THREAD, Statistics, column_squares, equal_slices
from echolearn.validation import Array, warn_user

RIDGE_PATH = 10.0 ** np.arange(-8, 2)  # the default path, in units of the mean diagonal of the Gram matrix
MIN_RELATIVE_RIDGE = 1e-12  # a ridge that hides the rounding errors of a difference of Gram matrices, in the same units
ROUNDING_SHARE = 1e-6  # a column whose deviation is this share of its largest value varies by rounding only
MIN_COLUMN_DEVIATION = 0.02  # by which statistics of states between -1 and 1 are divided at least
USUAL_FACTOR = 4.0  # from outputs to logits of two classes, where no data say otherwise
LOG_FACTOR_DEVIATION = 0.5  # how far its logarithm is from the usual one before it has seen data
MIXING_RIDGE = 10.0  # on squares of what outputs add to logits of other classes, in units of the factor
BIAS_RIDGE = 1.0  # on squares of what is added to logits of each class
MAX_CALIBRATION_STEPS = 100
MAX_LAPACK_ROWS = 512  # at most so many rows are factored by LAPACK at once
MAX_ROWS_PER_TILE = 1024  # at most so many rows and columns of a factor are one task


def _centred(s: Statistics) -> tuple[Array, Array]:
    """Return G and Q about the mean: without the last column of ones, whose unpenalised weight has been eliminated.

    Without an intercept that column is zeros, and the rest is returned as it is.
    """
    if not s.has_intercept:
        return s.G[:-1, :-1].copy(), s.Q[:-1]
    mean = s.G[-1, :-1] / s.G[-1, -1]
    G = np.outer(mean, s.G[-1, :-1])
    np.subtract(s.G[:-1, :-1], G, out=G)
    return G, s.Q[:-1] - np.outer(mean, s.Q[-1])


def _with_intercept(U: Array, s: Statistics) -> Array:
    """Return U with the intercept that belongs to it as last row: 0 if there is none."""
    if not s.has_intercept:
        return np.vstack([U, np.zeros_like(s.Q[-1:])])
    return np.vstack([U, (s.Q[-1] - s.G[-1, :-1] @ U) / s.G[-1, -1]])


def solve(s: Statistics, mu: float, *, intercept: bool) -> Array:
    """Return U = (G + mu I)^-1 Q (M, n_out), eq. 9; with mu = 0, eq. 8. An intercept (last row) is not penalised.

    intercept: whether the last column of H_c is that of the intercept, ones or (for none) zeros.

    Raises ValueError if G is singular and mu is 0, FloatingPointError if G is not finite; warns, and solves on the
    leading eigenvectors, if mu is too small for G to be positive definite in float64.
    """
    G, Q = _centred(s) if intercept else (s.G.copy(), s.Q)
    G.flat[:: len(G) + 1] += mu
    try:
        if len(G) > MAX_COLUMNS_PER_THREAD:
            factor_in_place(G)
            factor = G
            U = solve_factored(factor, Q)
        else:
            # G.T equals G and is in the order that LAPACK expects: no copy is made
            factor, lower = linalg.cho_factor(G.T, lower=True, overwrite_a=True, check_finite=False)
            U = linalg.cho_solve((factor, lower), Q, check_finite=False)
        pivots = np.abs(np.diagonal(factor))
        # LAPACK may pass NaN through without an error, so the pivots must be finite too.
        if not np.isfinite(pivots).all() or (mu == 0 and pivots.min() <= 1e-7 * pivots.max()):
            raise linalg.LinAlgError
    except linalg.LinAlgError:
        U = _solve_ill_conditioned(_centred(s)[0] if intercept else s.G, Q, mu)
    return _with_intercept(U, s) if intercept else U


def solve_without(s: Statistics, left_out: Statistics, mu: float) -> Array | None:
    """Return the U (M, n_out) without the data left out, with an intercept; None where rounding errors forbid it."""
    rest = Statistics(s.G - left_out.G, s.Q - left_out.Q, s.tt - left_out.tt, s.n - left_out.n)
    if not (rest.n > 0 and mu > MIN_RELATIVE_RIDGE * s.mean_diagonal):
        return None
    G, Q = _centred(rest)
    G.flat[:: len(G) + 1] += mu
    try:
        factor = linalg.cho_factor(G, lower=True, overwrite_a=True, check_finite=False)
        U = linalg.cho_solve(factor, Q, check_finite=False)
    except linalg.LinAlgError:
        return None
    return _with_intercept(U, rest) if np.isfinite(U).all() else None


def _solve_ill_conditioned(G: Array, Q: Array, mu: float) -> Array:
    """Return U on the leading eigenvectors of G, with a warning; raise an error if that is not possible."""
    refuse_infinite(G)
    if mu == 0:
        raise ValueError(
            "the Gram matrix of the states is singular and ridge=0: some states or inputs are constant, copies of "
            "each other, or there are fewer frames than weights. Give a positive ridge (for example 1e-6)."
        )
    values, V = np.linalg.eigh(G)
    keep = values > 1e-14 * values[-1]
    warn_user(
        f"ridge={mu:g} is too small for these states: G + ridge I is not positive definite in float64 (largest "
        f"eigenvalue {values[-1]:.3g}). Solved on the {keep.sum()} of {len(values)} directions that carry "
        f"numbers; a ridge of {1e-12 * values[-1]:.1g} or more would avoid this.",
        ReadoutWarning,
    )
    V, values = V[:, keep], values[keep]
    return np.asarray(V @ ((V.T @ Q) / (values + mu)[:, None]))


def refuse_infinite(G: Array) -> None:
    """Raise FloatingPointError if sums over the states are not finite."""
    if not np.isfinite(G).all():
        raise FloatingPointError(
            "the states hold NaN or infinity. Scale the inputs to about 1; weights that are learned need smaller "
            "steps, and units without bounds (relu, identity) a smaller spectral radius."
        )


def loss(s: Statistics, U: Array, mu: float, *, intercept: bool) -> float:
    """Return E = ||H_c U - T||² + mu ||U||², from the statistics alone."""
    penalised = U[:-1] if intercept else U
    return squared_error(s, U) + mu * float(np.vdot(penalised, penalised))


def squared_error(s: Statistics, U: Array) -> float:
    """Return ||H_c U - T||² = tt - 2 tr(U'Q) + tr(U'GU)   (eq. 6)."""
    return s.tt + float(np.vdot(U, s.G @ U - 2 * s.Q))


def warn_of_large_ridge(s: Statistics, mu: float) -> None:
    """Warn if mu is larger than the sums of squares of most columns of H_c about their means: U hardly uses those."""
    squares = column_squares(s)
    drowned = squares < mu
    if drowned.sum() > len(squares) / 2:
        warn_user(
            f"ridge={mu:g} is larger than the sums of squares of {drowned.sum()} of {len(squares)} columns of states "
            f"and inputs (half of them are below {np.median(squares):.2g}), which hardly count beside it. Use a "
            "smaller ridge, ridge='auto', or a larger input_scaling.",
            ReadoutWarning,
        )


def choose_ridge(
    s: Statistics, path: Sequence[float] | Array, *, intercept: bool, held_out: Statistics | None = None
) -> tuple[float, Array]:
    """Return the best mu of `path`, and the score of every mu.

    The score is the squared error per target on held-out statistics or, without those, generalised cross-validation.
    One eigendecomposition serves the whole path. For a wide G, eigenvectors take one core longer than ten solutions
    take all cores, so they are computed only if the scores need eigenvalues.

    With G = VΛV', q = V'Q:  U(mu) = V (Λ + mu)^-1 q,
    ||H_c U - T||² = tt - Σ_i |q_i|² (λ_i + 2mu) / (λ_i + mu)²,   df = Σ_i λ_i / (λ_i + mu),
    GCV = n ||H_c U - T||² / (n - df)².
    """
    if held_out is not None and len(s.G) > MAX_COLUMNS_PER_THREAD and min(path) > 0:
        solved = (squared_error(held_out, solve(s, mu, intercept=intercept)) for mu in path)
        scores = [error / held_out.n for error in solved]
        return float(path[int(np.argmin(scores))]), np.asarray(scores)
    G, Q = _centred(s) if intercept else (s.G, s.Q)
    tt = s.tt - (float(np.vdot(s.Q[-1], s.Q[-1])) / s.n if intercept else 0.0)
    refuse_infinite(G)
    values, V = np.linalg.eigh(G)
    values = np.maximum(values, 0)
    q = V.T @ Q
    power = (q * q).sum(axis=1)
    scores = []
    for mu in path:
        if held_out is not None:
            U = V @ (q / (values + mu)[:, None])
            scores.append(squared_error(held_out, _with_intercept(U, s) if intercept else U) / held_out.n)
        else:
            rest = tt - float((power * (values + 2 * mu) / (values + mu) ** 2).sum())
            df = float((values / (values + mu)).sum()) + (intercept and s.has_intercept)
            scores.append(s.n * max(rest, 0.0) / (s.n - df) ** 2 if s.n > df else np.inf)
    best = int(np.argmin(scores))
    return float(path[best]), np.asarray(scores)


def choose_ridge_by_folds(parts: Sequence[Statistics], path: Sequence[float] | Array) -> float:
    """Return the best mu of `path` by the squared errors of each part at the U of the others, with an intercept."""
    total = Statistics.zeros(*parts[0].Q.shape)
    for part in parts:
        total += part
    scores = np.zeros(len(path))
    for part in parts:
        others = Statistics(total.G - part.G, total.Q - part.Q, total.tt - part.tt, total.n - part.n)
        scores += choose_ridge(others, path, intercept=True, held_out=part)[1] * (part.n / total.n)
    return float(path[int(np.argmin(scores))])


def gram_eigenvalues(s: Statistics) -> Array:
    """Return the eigenvalues (M - 1,) of G about the mean, that is, beside an intercept."""
    return np.asarray(np.maximum(np.linalg.eigvalsh(_centred(s)[0]), 0))


def degrees_of_freedom(values: Array, mu: float) -> float:
    """Return the degrees of freedom of a readout with intercept: 1 + Σ_i λ_i / (λ_i + mu)."""
    values = values[values > 0]
    return 1 + float((values / (values + mu)).sum())


# Ridge regression on standardised columns, its penalty chosen by the exact leave-one-out error
#
# For n rows and M columns with n < M, the n x n matrix of inner products is cheaper than G. Let Z be the standardised
# rows, each times the root of its weight, K = Z Z' / M, and T the centred targets, times the same roots. With
# C = (K + m I)^-1 T the readout is Z' C / M. Had row i not been fitted to, its residual would be C_i / D_i: D is the
# diagonal of that inverse without the direction of the intercept: the roots of the weights, an eigenvector of K of
# value 0, since the columns are centred. One eigendecomposition serves all penalties. (The means and deviations of the
# columns are those of all rows.)


@dataclass(frozen=True, eq=False)
class Columns:
    """The mean and the scale (M,) of columns; scale 0: the column is constant and does not count.

    A column that hardly varies counts less than others. Divided by its own deviation, it would carry rounding errors
    of states into the outputs.
    """

    mean: Array
    scale: Array

    @classmethod
    def of(cls, R: Array, w: Array) -> Columns:
        """Return the weighted mean and the inverse of the weighted deviation (or of the least) of columns R (n, M)."""
        share = w / w.sum()
        mean = share @ R
        deviation = np.sqrt(share @ (R - mean) ** 2)
        varies = deviation > ROUNDING_SHARE * np.abs(R).max(axis=0)
        return cls(mean, np.where(varies, 1 / np.maximum(deviation, MIN_COLUMN_DEVIATION), 0.0))

    @property
    def count(self) -> int:
        """The number of columns that vary, at least 1."""
        return max(1, int((self.scale > 0).sum()))

    def standardize(self, R: Array) -> Array:
        """Return rows with columns of mean 0 and deviation 1 (those that hardly vary, less)."""
        return np.asarray((R - self.mean) * self.scale)

    def unfold(self, V: Array, mean: Array) -> Array:
        """Return the readout U (M + 1, n_out) of rows as they are, from V (M, n_out) of standardised rows."""
        U = V * self.scale[:, None]
        return np.vstack([U, mean - self.mean @ U])


@dataclass(frozen=True, eq=False)
class LeftOut:
    """A ridge regression in its dual form.

    ridge: the penalty chosen, of the readout of standardised columns. error: the weighted mean squared error of rows
    left out. outputs (n, n_out): what each row is given by the readout of all others; block_outputs: by that of all
    other blocks of rows. C (n, n_out) and mean (n_out,): the solution, for `readout`.
    """

    ridge: float
    error: float
    outputs: Array
    block_outputs: Array
    C: Array
    mean: Array


def solve_dual(
    K: Array, T: Array, w: Array, ridges: Sequence[float], *, counted: Array, blocks: Sequence[Array] = ()
) -> LeftOut:
    """Return the ridge regression with the smallest leave-one-out error; K (n, n): inner products; w (n,): > 0.

    counted (n,): whether the error of a row counts in the choice; if none does, it is the first ridge. blocks: the
    places of rows that are left out together in `block_outputs`; rows in none are left out one by one.
    """
    root = np.sqrt(w)
    mean = w @ T / w.sum()
    values, Q = np.linalg.eigh(root[:, None] * K * root)
    # rounding errors beside a tiny ridge: the constant has no inner product with centred rows
    values[values < len(values) * np.finfo(float).eps * values[-1]] = 0
    rotated = Q.T @ (root[:, None] * (T - mean))
    best: LeftOut | None = None
    inverses = 1 / (values[:, None] + np.asarray(ridges))
    diagonals = Q**2 @ inverses
    for ridge, shrunk, diagonal in zip(ridges, inverses.T, diagonals.T, strict=True):
        C = Q @ (shrunk[:, None] * rotated)
        diagonal = np.maximum(diagonal - w / w.sum() / ridge, np.finfo(float).tiny)
        residuals = C / diagonal[:, None] / root[:, None]
        error = float(w @ (counted * (residuals**2).sum(axis=1)) / w.sum())
        if best is None or error < best.error:
            best = LeftOut(float(ridge), error, T - residuals, T - residuals, root[:, None] * C, mean)
    assert best is not None
    left_out = best.outputs.copy()
    for places in blocks:
        some, share = Q[places], root[places] / np.sqrt(w.sum())
        inverse = (some / (values + best.ridge)) @ some.T - np.outer(share, share) / best.ridge
        inverse[np.diag_indices_from(inverse)] += 1e-12 * inverse.trace() / len(places) + np.finfo(float).tiny
        C = best.C[places] / root[places, None]
        left_out[places] = T[places] - np.linalg.solve(inverse, C) / root[places, None]
    return replace(best, block_outputs=left_out)


def calibration(Y: Array, labels: Array, w: Array) -> tuple[Array, Array]:
    """Return A (n_classes, n_classes) and b (n_classes,): Y A + b are logits of outputs Y of rows left out.

    A = a (I + D), where a is the factor of `temperature`. D and b have the smallest cross entropy beside a penalty on
    their squares: they even out classes that a regression on 0 and 1 answers too rarely, such as a class between two
    others, and labels that are often mistaken for each other.
    """
    factor = temperature(Y, labels, w)
    some, target, weights = _evidence(Y, labels, w)
    classes = Y.shape[1]

    def loss(mixing: Array) -> tuple[float, Array]:
        D, b = mixing[:-classes].reshape(classes, classes), mixing[-classes:]
        logits = factor * (some + some @ D) + b
        logits -= logits.max(axis=1, keepdims=True)
        logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        dE_dY = weights[:, None] * (np.exp(logs) - target)
        E = -float(weights @ (target * logs).sum(axis=1))
        E += (MIXING_RIDGE * float((D**2).sum()) + BIAS_RIDGE * float((b**2).sum())) / 2
        dE_dD, dE_db = factor * some.T @ dE_dY + MIXING_RIDGE * D, dE_dY.sum(axis=0) + BIAS_RIDGE * b
        return E, np.concatenate([dE_dD.ravel(), dE_db])

    start = np.zeros(classes * (classes + 1))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_CALIBRATION_STEPS}).x
    return factor * (np.eye(classes) + found[:-classes].reshape(classes, classes)), found[-classes:]


def _evidence(Y: Array, labels: Array, w: Array) -> tuple[Array, Array, Array]:
    """Return the outputs that tell something about calibration, their targets (n, n_classes), and what each counts.

    The true class has a little less than probability 1, as if one more row belonged to all classes alike: outputs that
    are all right must not become infinitely sure. The only row of its class tells nothing: nobody has seen that class
    when it is left out.
    """
    n, classes = Y.shape
    target = np.full(Y.shape, 1 / classes / (n + 1))
    target[np.arange(n), labels] += n / (n + 1)
    known = has_others(labels)
    return Y[known], target[known], w[known] / w.mean()


def has_others(labels: Array) -> Array:
    """Return whether each row is not the only one of its class (n,)."""
    return np.asarray(np.bincount(labels)[labels] > 1)


def temperature(Y: Array, labels: Array, w: Array) -> float:
    """Return the factor by which outputs Y (n, n_classes) of rows left out become logits.

    It has the smallest cross entropy beside a normal distribution of its logarithm: outputs of a few rows say little.
    Its mean makes a clean answer (1 and 0) about as sure with any number of classes.
    """
    usual = np.log(USUAL_FACTOR + np.log(Y.shape[1] - 1))
    Y, target, w = _evidence(Y, labels, w)
    low, high = np.log(1e-2), np.log(1e3)

    def slope(log_factor: float) -> float:
        logits = np.exp(log_factor) * Y
        P = np.exp(logits - logits.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        pull = (log_factor - usual) / LOG_FACTOR_DEVIATION**2
        return float(w @ ((P - target) * logits).sum(axis=1) + pull)

    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return float(np.exp((low + high) / 2))


# The Cholesky factor of a large matrix, computed by halves on our own threads
#
# LAPACK by itself uses one core. The threads of BLAS would use more, but they wait for each other by spinning: beside
# other programs on the same machine they have been seen to take twenty times as long.


def factor_in_place(G: Array) -> None:
    """Factor G = L L' (M, M) in place: the lower half becomes L, the upper half is undefined.

    With G = [A .; B C]: A = L L', then B <- B L'^-1, then C <- C - B B', which is factored in turn. Each task writes
    its own rows or its own tile, so the result does not depend on the number of threads.
    """
    if len(G) <= MAX_LAPACK_ROWS:
        L, failed = lapack.dpotrf(G, lower=1)
        if failed:
            raise LinAlgError("the matrix is not positive definite")
        G[:] = L
        return
    half = len(G) // 2
    A, B, C = G[:half, :half], G[half:, :half], G[half:, half:]
    factor_in_place(A)
    L = np.asfortranarray(A)

    def divide(R: slice) -> None:
        B[R] = blas.dtrsm(1.0, L, B[R].T, lower=1).T

    def subtract(tile: tuple[slice, slice]) -> None:
        R, S = tile
        C[R, S] -= B[R] @ B[S].T

    for _ in map_in_order(divide, equal_slices(len(B), MAX_LAPACK_ROWS)):
        pass
    bands = equal_slices(len(C), MAX_ROWS_PER_TILE)
    for _ in map_in_order(subtract, [(R, S) for i, R in enumerate(bands) for S in bands[: i + 1]]):
        pass
    factor_in_place(C)


def solve_factored(L: Array, Q: Array) -> Array:
    """Return (L L')^-1 Q (M, n_out) for L as `factor` leaves it; each task solves for some columns of Q."""
    columns = np.array_split(Q, min(4, Q.shape[1]), axis=1)
    # L.T is in the order that LAPACK expects, as an upper factor: no copy is made
    return np.hstack(list(map_in_order(lambda B: lapack.dpotrs(L.T, B, lower=0)[0], columns)))
