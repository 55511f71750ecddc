"""Readouts that learn frame by frame: recursive least squares (RLS) and least mean squares (LMS).

Both move U by what the newest frame got wrong. With phi = [h x 1] (M,), the readout's inputs, and E = U'phi - t
(n_out,), its error, a step gives a new memory and a new U. FORCE learning is either of them in a stream whose
reservoir hears the stream's own outputs (W_fb), wrong as they still are (Sussillo and Abbott, Neuron 63, 2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import linalg

from echolearn.validation.values import is_number

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def _downdate(P: Any, half: Any, scale: float) -> None:
    """P = (P - half half') scale, in one pass over P; it stays symmetric to the bit."""
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            P[i, j] = (P[i, j] - half[i] * half[j]) * scale


TINIEST = 1e-300  # 1 / ridge is finite


@dataclass(frozen=True)
class RLS:
    """U minimises, at every step t,  Σ_s forgetting^(t-s) ||U'phi_s - t_s||² + forgetting^t ||U - U_0||²_A.

    U_0 is the readout that the stream starts with. A is what the fit has seen, G + mu I, so that learning goes on
    from there; or, with a number for `ridge`, ridge I: trust U_0 just so far. forgetting=0.99 looks back about 100
    frames, and on frames that say little it forgets until P overflows; 1 never forgets.
    """

    forgetting: float = 1.0
    ridge: float | None = None

    def __post_init__(self) -> None:
        if not is_number(self.forgetting) or not 0 < self.forgetting <= 1:
            raise ValueError(f"forgetting={self.forgetting!r:.80}; expected a number in (0, 1] (1: never forget).")
        if self.ridge is not None and not (is_number(self.ridge) and self.ridge > TINIEST):
            raise ValueError(
                f"ridge={self.ridge!r:.80}; expected a number > {TINIEST:g}, or None to go on from the fit's sums."
            )

    def start(self, M: int, A: Array | None) -> Array:
        """P = A^-1 (M, M)."""
        if self.ridge is not None:
            return np.eye(M) / self.ridge
        if A is None:
            raise ValueError(
                "RLS() goes on from the sums of a fit, and here are none (an untrained stream, or a model that was "
                "saved without them). Give a ridge, for example RLS(ridge=1.0)."
            )
        try:
            P = linalg.cho_solve(linalg.cho_factor(A, lower=True), np.eye(M))
        except linalg.LinAlgError:
            raise ValueError(
                "the fit's Gram matrix plus its ridge is singular in float64, so RLS() cannot go on from it. Give "
                "a ridge, for example RLS(ridge=1.0), or fit with a larger one."
            ) from None
        return np.asarray(0.5 * (P + P.T))

    def step(self, P: Array, U: Array, phi: Array, E: Array) -> tuple[Array, Array]:
        """g = P phi,  d = forgetting + phi'g,  U - g E'/d,  (P - g g'/d) / forgetting, in place of P."""
        g = P @ phi
        d = self.forgetting + phi @ g
        _downdate(P, g / np.sqrt(d), 1 / self.forgetting)
        return P, U - np.multiply.outer(g / d, E)


@dataclass(frozen=True)
class LMS:
    """Normalised least mean squares: the new U is the share `rate` of the way to the nearest that makes no error at
    this frame. Costs M operations a frame where RLS costs M², and needs many more frames."""

    rate: float = 0.5

    def __post_init__(self) -> None:
        if not is_number(self.rate) or not 0 < self.rate < 2:
            raise ValueError(f"rate={self.rate!r:.80}; expected a number in (0, 2): at 2 and above LMS diverges.")

    def start(self, M: int, A: Array | None) -> Array:
        return np.empty(0)  # it has no memory but U

    def step(self, P: Array, U: Array, phi: Array, E: Array) -> tuple[Array, Array]:
        """U - rate phi E' / phi'phi; the intercept's 1 in phi keeps phi'phi away from 0."""
        return P, U - np.multiply.outer(self.rate / (phi @ phi) * phi, E)
