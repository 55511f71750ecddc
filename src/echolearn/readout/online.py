"""Readouts that learn frame by frame: recursive least squares (RLS) and least mean squares (LMS).

Both change the readout U according to its error at the newest frame. With phi = [h x 1] (M,), what the readout sees of
the frame, and E = U'phi - t (n_out,), its error, a step turns U and a memory P into new ones. FORCE learning (Sussillo
and Abbott, Neuron 63, 2009) is either rule in a stream whose reservoir has feedback weights W_fb: the outputs are
inputs of the reservoir while they are still being learned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import linalg

from echolearn.execution.compilation import cached_njit
from echolearn.validation import Array, is_number

MIN_RIDGE = 1e-300  # a larger ridge has a finite inverse


@cached_njit(nogil=True)
def _downdate(P: Array, half: Array, scale: float) -> None:
    """Set P = (P - half half') scale, in one pass over P; it stays symmetric to the bit."""
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            P[i, j] = (P[i, j] - half[i] * half[j]) * scale


@dataclass(frozen=True)
class RLS:
    """Recursive least squares: the readout with the smallest squared error over all frames so far.

    At every step t, U minimises

        Σ_s forgetting^(t-s) ||U'phi_s - t_s||² + forgetting^t ||U - U_0||²_A,

    where U_0 is the readout that the stream starts with. A frame costs M² operations.

    Parameters
    ----------
    forgetting : float, default=1.0
        In (0, 1]. The weight of a frame, relative to the frame after it. With 1 all frames count the same; with 0.99
        about the last 100 frames count. Lower it if the relation between inputs and targets changes over time. With a
        low value and inputs that hardly vary, P grows until it overflows.
    ridge : float, default=None
        The penalty of the distance between U and U_0. None: A is the Gram matrix of the fit plus its ridge, G + mu I,
        so that learning continues as if the frames had been part of the fit. A number: A = ridge I. Pass a number for
        an untrained stream, or for a model that was saved without its statistics. With a smaller ridge U changes
        faster.

    See Also
    --------
    LMS : A rule that costs less per frame and needs more frames.
    echolearn.ESNRegressor.stream : A stream that learns by such a rule.
    echolearn.monitoring.GuardedStream : A learning stream that returns to an earlier readout if its error grows.

    Notes
    -----
    The memory is P (M, M), the inverse of the penalised Gram matrix of all frames so far. With g = P phi and
    d = forgetting + phi'g, a step is U <- U - g E'/d and P <- (P - g g'/d) / forgetting.

    References
    ----------
    S. Haykin, Adaptive Filter Theory, 4th ed., Prentice Hall, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNRegressor
    >>> from echolearn.readout import RLS
    >>> x = np.random.default_rng(0).normal(size=300)
    >>> X, y = x[:, None], np.roll(x, 1)[:, None]  # the input before
    >>> stream = ESNRegressor(20, learn="none").fit(X, y).stream(online=RLS(forgetting=0.98))
    >>> errors = [abs(stream.learn(frame, -target) + target).item() for frame, target in zip(X, y)]  # its negative
    >>> bool(np.mean(errors[-20:]) < 0.1 * np.mean(errors[:20]))
    True
    """

    forgetting: float = 1.0
    ridge: float | None = None

    def __post_init__(self) -> None:
        if not is_number(self.forgetting) or not 0 < self.forgetting <= 1:
            raise ValueError(f"forgetting={self.forgetting!r:.80}; expected a number in (0, 1] (1: never forget).")
        if self.ridge is not None and not (is_number(self.ridge) and self.ridge > MIN_RIDGE):
            raise ValueError(
                f"ridge={self.ridge!r:.80}; expected a number > {MIN_RIDGE:g}, or None to continue from the statistics "
                "of the fit."
            )

    squared_error_only: ClassVar[bool] = True  # and so no softmax readout

    @property
    def continues_from_gram(self) -> bool:
        """Whether the rule continues from the Gram matrix of a fit: unless it has a ridge of its own."""
        return self.ridge is None

    def start(self, M: int, A: Array | None) -> Array:
        """Return the memory to start with, P = A^-1.

        Parameters
        ----------
        M : int
            The number of rows of U.
        A : array of shape (M, M) or None
            The Gram matrix of the fit plus its ridge, if it is known; not used if a ridge was given.

        Returns
        -------
        P : array of shape (M, M)
            The memory for the first `step`.

        Raises
        ------
        ValueError
            If no ridge was given, and A is None or singular in float64.
        """
        if self.ridge is not None:
            return np.eye(M) / self.ridge
        if A is None:
            raise ValueError(
                "RLS() continues from the statistics of a fit, and there are none (an untrained stream, or a model "
                "that was saved without them). Give a ridge, for example RLS(ridge=1.0)."
            )
        try:
            P = linalg.cho_solve(linalg.cho_factor(A, lower=True), np.eye(M))
        except linalg.LinAlgError:
            raise ValueError(
                "the fit's Gram matrix plus its ridge is singular in float64, so RLS() cannot continue from it. Give "
                "a ridge, for example RLS(ridge=1.0), or fit with a larger one."
            ) from None
        return np.asarray(0.5 * (P + P.T))

    def step(self, P: Array, U: Array, phi: Array, E: Array) -> tuple[Array, Array]:
        """Return the memory and the readout after one more frame.

        Parameters
        ----------
        P : array of shape (M, M)
            The memory, from `start` or the step before. It is overwritten.
        U : array of shape (M, n_out)
            The readout.
        phi : array of shape (M,)
            The inputs of the readout at the frame: states, inputs and the 1 of the intercept (0 without one).
        E : array of shape (n_out,)
            The error of the readout at the frame, U'phi - t.

        Returns
        -------
        P : array of shape (M, M)
            The new memory.
        U : array of shape (M, n_out)
            The new readout.
        """
        g = P @ phi
        d = self.forgetting + phi @ g
        _downdate(P, g / np.sqrt(d), 1 / self.forgetting)
        return P, U - np.multiply.outer(g / d, E)


@dataclass(frozen=True)
class LMS:
    """Normalised least mean squares: each frame moves the readout towards one without error at that frame.

    The new U is the share `rate` of the way to the nearest U that makes no error at the frame. A frame costs M
    operations, where RLS costs M², but LMS needs many more frames.

    Parameters
    ----------
    rate : float, default=0.5
        In (0, 2). 1 removes the whole error at the newest frame. Lower it if the targets are noisy, so that U averages
        over more frames; at 2 and above LMS diverges.

    See Also
    --------
    RLS : A rule that needs fewer frames and costs more per frame.

    Notes
    -----
    A step is U <- U - rate phi E' / phi'phi. The only memory is U itself.

    References
    ----------
    S. Haykin, Adaptive Filter Theory, 4th ed., Prentice Hall, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.readout import LMS
    >>> rule, U, phi, target = LMS(rate=0.5), np.zeros((3, 1)), np.array([0.5, -1.0, 1.0]), np.array([2.0])
    >>> P = rule.start(3, None)
    >>> for _ in range(3):
    ...     P, U = rule.step(P, U, phi, phi @ U - target)
    ...     print(phi @ U)
    [1.]
    [1.5]
    [1.75]
    """

    rate: float = 0.5

    def __post_init__(self) -> None:
        if not is_number(self.rate) or not 0 < self.rate < 2:
            raise ValueError(f"rate={self.rate!r:.80}; expected a number in (0, 2): at 2 and above LMS diverges.")

    continues_from_gram: ClassVar[bool] = False
    squared_error_only: ClassVar[bool] = False

    def start(self, M: int, A: Array | None) -> Array:
        """Return the memory to start with, which is empty.

        Parameters
        ----------
        M : int
            The number of rows of U. Not used.
        A : array of shape (M, M) or None
            The Gram matrix of the fit plus its ridge. Not used.

        Returns
        -------
        P : array of shape (0,)
            The memory for the first `step`.
        """
        return np.empty(0)

    def step(self, P: Array, U: Array, phi: Array, E: Array) -> tuple[Array, Array]:
        """Return the memory and the readout after one more frame.

        Parameters
        ----------
        P : array of shape (0,)
            The memory, which stays empty.
        U : array of shape (M, n_out)
            The readout.
        phi : array of shape (M,)
            The inputs of the readout at the frame: states, inputs and the 1 of the intercept (0 without one).
        E : array of shape (n_out,)
            The error of the readout at the frame, U'phi - t.

        Returns
        -------
        P : array of shape (0,)
            The memory, unchanged.
        U : array of shape (M, n_out)
            The new readout.
        """
        squared = max(float(phi @ phi), np.finfo(float).tiny)  # without an intercept phi may be 0
        return P, U - np.multiply.outer(self.rate / squared * phi, E)


OnlineRule = RLS | LMS
