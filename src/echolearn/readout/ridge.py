"""The ridge readout U from its statistics (eq. 9), and the choice of the ridge mu from one eigendecomposition."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from scipy import linalg

from echolearn.exceptions import ReadoutWarning
from echolearn.readout import _cholesky
from echolearn.readout.statistics import WIDE, Statistics, column_squares
from echolearn.validation import Array, user_stacklevel

RIDGES = 10.0 ** np.arange(-8, 2)  # the default path, in units of the mean diagonal of the Gram matrix
LEAST = 1e-12  # a ridge that hides the rounding errors of a difference of Gram matrices, in the same units


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
        if len(G) > WIDE:
            _cholesky.factor(G)
            factor = G
            U = _cholesky.solve(factor, Q)
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


def solve_without(s: Statistics, part: Statistics, mu: float) -> Array | None:
    """Return the U (M, n_out) of all data but a part, with an intercept; None where rounding errors do not allow it."""
    rest = Statistics(s.G - part.G, s.Q - part.Q, s.tt - part.tt, s.n - part.n)
    if not (rest.n > 0 and mu > LEAST * s.mean_diagonal):
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
    warnings.warn(
        f"ridge={mu:g} is too small for these states: G + ridge I is not positive definite in float64 (largest "
        f"eigenvalue {values[-1]:.3g}). Solved on the {keep.sum()} of {len(values)} directions that carry "
        f"numbers; a ridge of {1e-12 * values[-1]:.1g} or more would avoid this.",
        ReadoutWarning,
        stacklevel=user_stacklevel(),
    )
    V, values = V[:, keep], values[keep]
    return np.asarray(V @ ((V.T @ Q) / (values + mu)[:, None]))


def refuse_infinite(G: Array) -> None:
    """Raise FloatingPointError if sums over the states are not finite."""
    if not np.isfinite(G).all():
        raise FloatingPointError(
            "the states hold NaN or infinity. Lower spectral_radius or step_size, or scale the inputs to about 1."
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
        warnings.warn(
            f"ridge={mu:g} is larger than the sums of squares of {drowned.sum()} of {len(squares)} columns of states "
            f"and inputs (half of them are below {np.median(squares):.2g}), which hardly count beside it. Use a "
            "smaller ridge, ridge='auto', or a larger input_scaling.",
            ReadoutWarning,
            stacklevel=user_stacklevel(),
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
    if held_out is not None and len(s.G) > WIDE and min(path) > 0:
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


def choose_ridge_by_folds(
    parts: Sequence[Statistics], path: Sequence[float] | Array, *, intercept: bool
) -> tuple[float, Array]:
    """Return the best mu of `path` by cross-validation, and the score of every mu.

    parts: the statistics of each fold. The score is the squared error per target of every fold at the U of the others.
    """
    total = Statistics.zeros(*parts[0].Q.shape)
    for part in parts:
        total += part
    scores = np.zeros(len(path))
    for part in parts:
        others = Statistics(total.G - part.G, total.Q - part.Q, total.tt - part.tt, total.n - part.n)
        scores += choose_ridge(others, path, intercept=intercept, held_out=part)[1] * (part.n / total.n)
    return float(path[int(np.argmin(scores))]), scores


def gram_eigenvalues(s: Statistics) -> Array:
    """Return the eigenvalues (M - 1,) of G about the mean, that is, beside an intercept."""
    return np.asarray(np.maximum(np.linalg.eigvalsh(_centred(s)[0]), 0))


def degrees_of_freedom(values: Array, mu: float) -> float:
    """Return the degrees of freedom of a readout with intercept: 1 + Σ_i λ_i / (λ_i + mu)."""
    values = values[values > 0]
    return 1 + float((values / (values + mu)).sum())
