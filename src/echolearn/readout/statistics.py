"""States -> sums -> U   (eq. 4-9), and the choice of mu from one eigendecomposition."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from echolearn.execution.threads import each
from echolearn.readout import _cholesky as cholesky

Array = NDArray[Any]

TILE = 1280  # columns of H_c that one task multiplies with as many others
DROWNED = 3e-6  # of G's mean diagonal: a larger mu hides the rounding errors of float32 products
WIDE = 2048  # columns from which all cores work on one G, rather than each on one of its own


class ReadoutWarning(UserWarning):
    """The readout's equations are badly conditioned, or most of its weights are held near zero."""


@dataclass(eq=False)
class Sums:
    """All the readout needs of the data: G = H_c'H_c (M, M), Q = H_c'T (M, n_out), tt = ||T||², n frames.

    Additive over batches. In float64, whatever the states are: at mu / λ_max = 1e-8 a float32 Gram breaks.
    """

    G: Array
    Q: Array
    tt: float
    n: float

    @classmethod
    def zeros(cls, M: int, n_out: int) -> Sums:
        return cls(np.zeros((M, M)), np.zeros((M, n_out)), 0.0, 0.0)

    def __iadd__(self, other: Sums) -> Sums:
        self.G += other.G
        self.Q += other.Q
        self.tt += other.tt
        self.n += other.n
        return self

    def scale(self, factor: float) -> Sums:
        self.G *= factor
        self.Q *= factor
        self.tt *= factor
        self.n *= factor
        return self


def stack(H: Array, X: Array, *, direct: bool, intercept: bool) -> Array:
    """H_c = [H X] (eq. 7), with a last column of ones for an intercept."""
    parts = [H, *([X] if direct else []), *([np.ones((len(H), 1), H.dtype)] if intercept else [])]
    return np.hstack(parts) if len(parts) > 1 else H


def outputs(H: Array, X: Array, U: Array) -> Array:
    """H_c U = [H X 1] U, without putting H_c together; X has no columns where the readout does not see it."""
    Y = H @ U[: H.shape[1]]
    if X.shape[1]:
        Y += X @ U[H.shape[1] : -1]
    Y += U[-1]
    return np.asarray(Y)


def sums(H_c: Array, T: Array, n_out: int, product: Any = np.float64) -> Sums:
    """H_c (K, M); T (K, n_out), or class numbers (K,) that stand for rows with a single 1.

    product: the precision of products within these K frames (the result is float64 in any case).
    """
    H_c = H_c.astype(product, copy=False)
    G, Q = H_c.T @ H_c, _with_targets(H_c, T, n_out)
    return Sums(G.astype(np.float64, copy=False), Q.astype(np.float64, copy=False), _squares(T), float(len(H_c)))


def _with_targets(H_c: Array, T: Array, n_out: int) -> Array:
    """H_c'T (M, n_out)."""
    if T.ndim == 2:
        return np.asarray(H_c.T @ T.astype(H_c.dtype, copy=False))
    one_hot = sparse.csr_array((np.ones(len(T), H_c.dtype), (T, np.arange(len(T)))), shape=(n_out, len(T)))
    return np.asarray((one_hot @ H_c).T)


def _squares(T: Array) -> float:
    T = T.astype(np.float64, copy=False)
    return float(len(T)) if T.ndim == 1 else float(np.vdot(T, T))


def add(s: Sums, H_c: Array, T: Array, product: Any = np.float64) -> None:
    """s += sums(H_c, T) in place, on all cores; of G only tiles on and below the diagonal (`mirror` ends it).

    Each task adds to a tile of its own, so there is a single G, the same however many threads work on it.
    """
    M, n_out = s.Q.shape
    columns = cholesky.parts(M, TILE)
    blocks = list(each(lambda c: H_c[:, c].astype(product, copy=False), columns))

    def tile(place: tuple[int, int]) -> None:
        i, j = place
        s.G[columns[i], columns[j]] += blocks[i].T @ blocks[j]
        if i == j:
            s.Q[columns[i]] += _with_targets(blocks[i], T, n_out)

    for _ in each(tile, [(i, j) for j in range(len(columns)) for i in range(j, len(columns))]):
        pass
    s.tt += _squares(T)
    s.n += len(H_c)


def mirror(G: Array) -> None:
    """The upper half of G becomes the transpose of the lower one, in place."""
    for start in range(0, len(G), TILE):
        rows = slice(start, start + TILE)
        G[rows, start + TILE :] = G[start + TILE :, rows].T
        G[rows, rows] = np.tril(G[rows, rows]) + np.tril(G[rows, rows], -1).T


def product_precision(s: Sums, mu: float, dtype: Any) -> Any:
    """The states' own precision where mu drowns its rounding errors (relative 1e-7), float64 otherwise."""
    return dtype if mu > DROWNED * float(np.trace(s.G)) / len(s.G) else np.float64


def sample_precision(H_c: Array, n: int, mu: float) -> Any:
    """`product_precision` from some of the frames: n of them all in all, at most."""
    mean_square = float(np.vdot(H_c, H_c)) / max(1, H_c.size)
    return H_c.dtype if mu > DROWNED * n * mean_square else np.float64


def residual(Y: Array, T: Array) -> Array:
    """R = Y - T, in place of Y; T as for `sums`."""
    if T.ndim == 1:
        Y[np.arange(len(T)), T] -= 1
    else:
        Y -= T
    return Y


def _centred(s: Sums) -> tuple[Array, Array]:
    """G and Q without the last column of ones, as seen after its weight (unpenalised) is eliminated."""
    mean = s.G[-1, :-1] / s.G[-1, -1]
    G = np.outer(mean, s.G[-1, :-1])
    np.subtract(s.G[:-1, :-1], G, out=G)
    return G, s.Q[:-1] - np.outer(mean, s.Q[-1])


def _with_intercept(U: Array, s: Sums) -> Array:
    return np.vstack([U, (s.Q[-1] - s.G[-1, :-1] @ U) / s.G[-1, -1]])


def solve(s: Sums, mu: float, *, intercept: bool) -> Array:
    """Eq. 9: U = (G + mu I)^-1 Q (M, n_out). An intercept (last row) is not penalised."""
    G, Q = _centred(s) if intercept else (s.G.copy(), s.Q)
    G.flat[:: len(G) + 1] += mu
    try:
        if len(G) > WIDE:
            cholesky.factor(G)
            factor = G
            U = cholesky.solve(factor, Q)
        else:
            # G.T is G, and in LAPACK's order: no copy is made
            factor, lower = linalg.cho_factor(G.T, lower=True, overwrite_a=True, check_finite=False)
            U = linalg.cho_solve((factor, lower), Q, check_finite=False)
        pivots = np.abs(np.diagonal(factor))
        # LAPACK may pass NaN through without a word, so the pivots are asked for finite numbers too.
        if not np.isfinite(pivots).all() or (mu == 0 and pivots.min() <= 1e-7 * pivots.max()):
            raise linalg.LinAlgError
    except linalg.LinAlgError:
        U = _solve_ill_conditioned(_centred(s)[0] if intercept else s.G, Q, mu)
    return _with_intercept(U, s) if intercept else U


def _solve_ill_conditioned(G: Array, Q: Array, mu: float) -> Array:
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
        stacklevel=4,
    )
    V, values = V[:, keep], values[keep]
    return np.asarray(V @ ((V.T @ Q) / (values + mu)[:, None]))


def refuse_infinite(G: Array) -> None:
    if not np.isfinite(G).all():
        raise FloatingPointError(
            "the states hold NaN or infinity. Lower spectral_radius or step_size, or scale the inputs to about 1."
        )


def loss(s: Sums, U: Array, mu: float, *, intercept: bool) -> float:
    """E = ||H_c U - T||² + mu ||U||², from the sums alone."""
    penalised = U[:-1] if intercept else U
    return squared_error(s, U) + mu * float(np.vdot(penalised, penalised))


def squared_error(s: Sums, U: Array) -> float:
    """||H_c U - T||² = tt - 2 tr(U'Q) + tr(U'GU)."""
    return s.tt + float(np.vdot(U, s.G @ U - 2 * s.Q))


def squares(s: Sums) -> Array:
    """Of H_c's columns but the intercept, about their means, summed."""
    raw, mean = np.diagonal(s.G)[:-1], s.G[-1, :-1] / s.G[-1, -1]
    # what cancels leaves rounding errors of this size
    return np.asarray(np.maximum(raw - mean * s.G[-1, :-1], 1e-14 * raw))


def warn_if_drowned(s: Sums, mu: float, stacklevel: int) -> None:
    """Warns of a mu larger than the sums of squares of most columns of H_c, about their means: U hardly uses those."""
    each = squares(s)
    drowned = each < mu
    if drowned.sum() > len(each) / 2:
        warnings.warn(
            f"ridge={mu:g} is larger than the sums of squares of {drowned.sum()} of {len(each)} columns of states "
            f"and inputs (half of them are below {np.median(each):.2g}), which hardly count beside it. Use a "
            "smaller ridge, ridge='auto', or a larger input_scaling.",
            ReadoutWarning,
            stacklevel=stacklevel,
        )


def choose_ridge(
    s: Sums, path: Sequence[float], *, intercept: bool, held_out: Sums | None = None
) -> tuple[float, Array]:
    """The mu of `path` with the smallest held-out squared error or, without such sums, the smallest
    generalised cross-validation score; and its score for every mu. One eigendecomposition serves the path (of a wide
    G, whose eigenvectors take one core longer than ten solutions take all, only where the scores need eigenvalues).

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
            df = float((values / (values + mu)).sum()) + intercept
            scores.append(s.n * max(rest, 0.0) / (s.n - df) ** 2 if s.n > df else np.inf)
    best = int(np.argmin(scores))
    return float(path[best]), np.asarray(scores)


def spectrum(s: Sums) -> Array:
    """Eigenvalues of G as seen beside an intercept."""
    return np.asarray(np.maximum(np.linalg.eigvalsh(_centred(s)[0]), 0))


def freedom(values: Array, mu: float) -> float:
    """Degrees of freedom of a readout with intercept: 1 + Σ_i λ_i / (λ_i + mu)."""
    values = values[values > 0]
    return 1 + float((values / (values + mu)).sum())
