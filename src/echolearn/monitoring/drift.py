"""Changes in a stream of numbers: the test of Page and Hinkley, with a threshold from a rate of false alarms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.optimize import brentq

from echolearn.validation import Array, check_boolean, is_number

MEAN_OVERSHOOT = 1.166  # by how much a sum of normal numbers passes a threshold on average (Siegmund, 1985)
MIN_THRESHOLD = 0.1  # of a threshold


@dataclass(frozen=True)
class PageHinkley:
    """The test of Page and Hinkley for a lasting change in numbers that are standard normal before it.

    The sum of what each number is above `allowance` never falls below 0; an alarm is raised when it passes the
    threshold. Single high numbers hardly move it; a lasting change raises it without bound. A second sum does the same
    for numbers below minus the allowance.

    Parameters
    ----------
    allowance : float, default=0.25
        By how many standard deviations the mean may change without counting. About half of the smallest change that
        matters: smaller values find smaller changes, but all of them later.
    false_alarms : float, default=1e-5
        How many alarms there may be per step while nothing changes; 1e-5 is one in 100,000 steps. The threshold
        follows from it, for independent numbers.
    two_sided : bool, default=True
        Whether numbers that have become lower raise an alarm too, as those of a stuck sensor do.

    Notes
    -----
    With k = allowance and b = threshold + 1.166, the sum of independent normal numbers passes the threshold once in
    (exp(2kb) - 2kb - 1) / 2k² steps on average (Siegmund's approximation); of several sums, each has its share of the
    false alarms. Where numbers are correlated in time, so that the variance of their mean is c times that of
    independent ones, the rate stays the same if the threshold is c times larger, and also if threshold and allowance
    both are √c times larger. The first finds small changes, the second finds large ones early: there are sums for both,
    which are the same sums if c is 1.

    References
    ----------
    E. S. Page, "Continuous inspection schemes", Biometrika 41, 1954. D. Siegmund, Sequential Analysis, Springer, 1985.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.monitoring import PageHinkley
    >>> test = PageHinkley(allowance=0.5, false_alarms=1e-4, two_sided=False)
    >>> z = np.random.default_rng(0).standard_normal(400)
    >>> z[200:] += 1.5
    >>> sums, alarm = test.run(z[:, None])
    >>> bool(200 < alarm < 215)
    True
    """

    allowance: float = 0.25
    false_alarms: float = 1e-5
    two_sided: bool = True

    def __post_init__(self) -> None:
        if not is_number(self.allowance) or not self.allowance > 0:
            raise ValueError(f"allowance={self.allowance!r:.80}; expected a number above 0, for example 0.25.")
        if not is_number(self.false_alarms) or not 0 < self.false_alarms < 0.1:
            raise ValueError(f"false_alarms={self.false_alarms!r:.80}; expected alarms per step in (0, 0.1).")
        check_boolean("two_sided", self.two_sided)

    def threshold(self, series: int = 1) -> float:
        """Return the sum at which an alarm is raised, for independent numbers.

        Parameters
        ----------
        series : int, default=1
            How many series of numbers are tested together.

        Returns
        -------
        float
            The threshold.
        """
        return _threshold(self.allowance, self.false_alarms / (series * (1 + self.two_sided)))

    def run(self, z: Array, start: Array | None = None, correlation: Array | float = 1.0) -> tuple[Array, int | None]:
        """Return the sums after each step, up to the first alarm, and the step of that alarm.

        Parameters
        ----------
        z : array of shape (n_steps, series)
            The numbers. NaN leaves a sum as it is.
        start : array of shape (2 or 4, series), default=None
            The sums before the first step, as shares of their thresholds: of higher numbers, patient and quick, and of
            lower ones if the test is two-sided. None: 0.
        correlation : float or array of shape (series,), default=1.0
            How many times larger the variance of a mean is than for independent numbers.

        Returns
        -------
        sums : array of shape (n_steps or fewer, 2 or 4, series)
            The sums, up to the alarm, as shares of their thresholds.
        alarm : int or None
            The first step at which a sum is above 1; None if there is none.
        """
        root = np.sqrt(np.maximum(1.0, np.broadcast_to(correlation, z.shape[1])))
        sides = [z, -z][: 1 + self.two_sided]
        rises = np.stack([side - k * self.allowance for side in sides for k in (np.ones_like(root), root)], axis=1)
        rises /= self.threshold(z.shape[1]) * np.stack([root**2, root] * len(sides))
        rises[np.isnan(rises)] = 0.0
        total = np.zeros(rises.shape[1:]) if start is None else start
        sums = np.empty(rises.shape)
        for i, rise in enumerate(rises):
            total = np.maximum(total + rise, 0.0)
            sums[i] = total
            if total.max() > 1:
                return sums[: i + 1], i
        return sums, None


@cache
def _threshold(k: float, rate: float) -> float:
    """Return the threshold that sums with allowance k pass at this rate, by Siegmund's approximation."""

    def excess(h: float) -> float:
        b = 2 * k * (h + MEAN_OVERSHOOT)
        return float(np.log(np.expm1(b) - b) - np.log(2 * k**2 / rate))

    if excess(MIN_THRESHOLD) >= 0:
        return MIN_THRESHOLD
    return float(brentq(excess, MIN_THRESHOLD, 700 / (2 * k) - MEAN_OVERSHOOT))
