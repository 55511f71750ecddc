"""When a stream of numbers has risen: the test of Page and Hinkley, with its threshold from a rate of false alarms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq

from echolearn.validation.array_types import Array
from echolearn.validation.values import is_number

OVERSHOOT = 1.166  # by how much a sum of normal numbers passes a threshold on average (Siegmund, 1985)


@dataclass(frozen=True)
class PageHinkley:
    """The test of Page and Hinkley: numbers that are standard normal at first, and higher after a change.

    The sum of what each number is above `allowance` never falls below 0; an alarm is raised when it passes the
    threshold. Single high numbers move it little, lasting ones without end.

    Parameters
    ----------
    allowance : float, default=0.25
        By how many standard deviations the mean may rise without counting. About half of the smallest change that
        matters: smaller values find smaller changes, but all of them later.
    false_alarms : float, default=1e-5
        How many alarms there may be per step while nothing changes; 1e-5 is one in 100,000 steps. The threshold
        follows from it, for independent numbers.

    Notes
    -----
    With k = allowance and b = threshold + 1.166, independent normal numbers pass the threshold once in
    (exp(2kb) - 2kb - 1) / 2k² steps on average (Siegmund's approximation). Numbers that are correlated in time by the
    factor `correlation`, the variance of their mean over that of as many independent ones, are like sums of
    variance `correlation`, for which the threshold is as many times larger.

    References
    ----------
    E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954. D. Siegmund, Sequential Analysis, Springer, 1985.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.diagnostics import PageHinkley
    >>> test = PageHinkley(allowance=0.5, false_alarms=1e-4)
    >>> round(test.threshold(), 2)
    7.35
    >>> z = np.random.default_rng(0).standard_normal(400)
    >>> z[200:] += 1.5
    >>> sums, alarm = test.run(z)
    >>> bool(200 < alarm < 215)
    True
    """

    allowance: float = 0.25
    false_alarms: float = 1e-5

    def __post_init__(self) -> None:
        if not is_number(self.allowance) or not self.allowance > 0:
            raise ValueError(f"allowance={self.allowance!r:.80}; expected a number above 0, for example 0.25.")
        if not is_number(self.false_alarms) or not 0 < self.false_alarms < 0.1:
            raise ValueError(f"false_alarms={self.false_alarms!r:.80}; expected alarms per step in (0, 0.1).")

    def threshold(self, correlation: float = 1.0) -> float:
        """Return the sum at which an alarm is raised.

        Parameters
        ----------
        correlation : float, default=1.0
            How many times larger the variance of a mean is than for independent numbers.

        Returns
        -------
        float
            The threshold.
        """
        k = self.allowance

        def excess(h: float) -> float:
            b = 2 * k * (h + OVERSHOOT)
            return float(np.log(np.expm1(b) - b) - np.log(2 * k**2 / self.false_alarms))

        return max(1.0, correlation) * float(brentq(excess, 1e-3, 700 / (2 * k)))

    def run(self, z: Array, start: float = 0.0, correlation: float = 1.0) -> tuple[Array, int | None]:
        """Return the sum after each number, up to the first alarm, and the position of that alarm.

        Parameters
        ----------
        z : array of shape (n_steps,)
            The numbers. NaN leaves the sum as it is.
        start : float, default=0.0
            The sum before the first number.
        correlation : float, default=1.0
            As in `threshold`.

        Returns
        -------
        sums : array of shape (n_steps,)
            The sums, those after an alarm not computed (NaN).
        alarm : int or None
            Where the sum passes the threshold; None if it does not.
        """
        limit, total = self.threshold(correlation), start
        sums = np.full(len(z), np.nan)
        for i, step in enumerate(np.where(np.isnan(z), 0.0, z - self.allowance)):
            total = max(0.0, total + float(step))
            sums[i] = total
            if total > limit:
                return sums, i
        return sums, None
