"""The ridge readout by orthogonal factors of H_c, for series whose one-step errors are near the precision of float64.

The Gram matrix squares the condition of the states: from G = H_c'H_c, directions of H_c that are weaker than 1e-8 of
the strongest are lost in its rounding errors, and with them what a noiseless series still has to tell. The factors

    H_c - mean = P diag(s) V',        P'P = I, V'V = I

keep them down to 1e-16. With C = P'(T - mean) they give, for every ridge mu,

    U = V diag(s / (s² + mu)) C,      H_c U - T = -(T - mean - P C) - P diag(mu / (s² + mu)) C.

The residual is *not* computed as a difference of H_c U and T: it is orthogonal to the states up to its own rounding
errors, not to those of T. The gradient at this U relies on that (docs/explanation/derivation.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echolearn.readout.ridge import refuse_infinite
from echolearn.validation import Array

ORTHOGONAL_RIDGES = tuple(
    10.0 ** np.arange(-22.0, 1.0, 2.0)
)  # in units of the mean square of the columns' singular values


@dataclass(frozen=True, eq=False)
class OrthogonalFactors:
    """The factors of H_c (K, M) about its mean, its last column of ones left out, and of the targets.

    P (K, M - 1), s (M - 1,), V (M - 1, M - 1); C = P'T (M - 1, n_out); rest (K, n_out): what of T no readout explains.
    """

    P: Array
    s: Array
    V: Array
    C: Array
    rest: Array
    mean_H: Array
    mean_T: Array

    @classmethod
    def of(cls, H_c: Array, T: Array) -> OrthogonalFactors:
        """Factor H_c (K, M), whose last column is ones, for the targets T (K, n_out), in float64."""
        refuse_infinite(H_c)
        mean_H, mean_T = H_c[:, :-1].mean(axis=0), T.mean(axis=0)
        # The ones come first: a weak direction, divided by its singular value, would magnify what its mean is from 0.
        Q, R = np.linalg.qr(np.hstack([H_c[:, -1:], H_c[:, :-1] - mean_H]))
        mean_H = mean_H + R[0, 1:] / R[0, 0]
        W, s, V_T = np.linalg.svd(R[1:, 1:], full_matrices=False)
        P, centred = Q[:, 1:] @ W, T - mean_T
        C = P.T @ centred
        rest = centred - P @ C
        for _ in range(2):  # the rounding errors of the first projection are as large as those of T
            mean, again = rest.mean(axis=0), P.T @ rest
            mean_T, C, rest = mean_T + mean, C + again, rest - mean - P @ again
        return cls(P, s, V_T.T, C, rest, mean_H, mean_T)

    @property
    def n(self) -> int:
        """The number of targets."""
        return len(self.P)

    @property
    def square(self) -> float:
        """The mean of the squared singular values, the unit in which ridges are chosen: G's mean diagonal."""
        return float((self.s**2).mean())

    def readout(self, mu: float) -> Array:
        """Return U (M, n_out), its last row the intercept, which is not penalised (eq. 9)."""
        U = self.V @ (_filter(self.s, mu)[:, None] * self.C)
        return np.vstack([U, self.mean_T - self.mean_H @ U])

    def residual(self, mu: float) -> Array:
        """Return R = H_c U - T (K, n_out) at the readout of this ridge."""
        if mu == 0:
            return -self.rest
        return -self.rest - self.P @ ((mu / (self.s**2 + mu))[:, None] * self.C)

    def loss(self, mu: float) -> float:
        """Return E = ||H_c U - T||² + mu ||U||², the intercept not penalised: Σ mu C² / (s² + mu) + ||rest||²."""
        left = (self.C**2).sum(axis=1)
        ridge = float((mu / (self.s**2 + mu) * left).sum()) if mu else 0.0
        return ridge + float((self.rest**2).sum())

    def adjoint(self, mu: float, dL_dU: Array) -> tuple[Array, Array]:
        """Return Λ (M, n_out) = (H_c'H_c + mu I)^-1 dL/dU, the intercept not penalised, and H_c Λ (K, n_out)."""
        inner = self.V.T @ (dL_dU[:-1] - np.outer(self.mean_H, dL_dU[-1]))
        inverse = 1 / (self.s**2 + mu)
        slopes = self.V @ (inverse[:, None] * inner)
        constant = dL_dU[-1] / self.n
        of_H = self.P @ ((self.s * inverse)[:, None] * inner) + constant
        return np.vstack([slopes, constant - self.mean_H @ slopes]), of_H

    def degrees_of_freedom(self, mu: float) -> float:
        """Return the degrees of freedom of the readout, the intercept included."""
        return 1 + float((self.s * _filter(self.s, mu)).sum())

    def cross_validation(self, mu: float) -> float:
        """Return the generalised cross-validation score of a ridge: n ||R||² / (n - df)²."""
        df = self.degrees_of_freedom(mu)
        return self.n * float((self.residual(mu) ** 2).sum()) / (self.n - df) ** 2 if self.n > df else np.inf


def _filter(s: Array, mu: float) -> Array:
    """Return s / (s² + mu), and 0 where both are 0: a direction that no state has carries nothing."""
    below = s**2 + mu
    return np.divide(s, below, out=np.zeros_like(s), where=below > 0)
