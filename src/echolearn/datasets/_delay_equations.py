"""Deterministic chaos in one dimension, from a delay."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from echolearn.datasets._bounds import check_bounded
from echolearn.validation import check_integer, check_number, check_positive

MAX_SUBSTEPS = 10**8  # of one series


def mackey_glass(
    steps: int,
    tau: float = 17.0,
    *,
    beta: float = 0.2,
    gamma: float = 0.1,
    power: float = 10.0,
    start: float = 1.2,
    discard: int = 1000,
    substeps: int = 10,
) -> NDArray[np.float64]:
    """Generate the Mackey-Glass series, a model of the production of blood cells.

    The equation is dx/dt = beta x(t - tau) / (1 + x(t - tau)^power) - gamma x(t), sampled at every unit of time.

    Parameters
    ----------
    steps : int
        Number of samples to return.
    tau : float, default 17.0
        The delay, which is rounded to a multiple of 1 / substeps. The series is chaotic for tau > 16.8. The usual
        choices are 17 and 30; with 30 the series is harder to forecast.
    beta, gamma, power : float, default 0.2, 0.1, 10.0
        The constants of the equation.
    start : float, default 1.2
        The constant value of the series before time 0.
    discard : int, default 1000
        Number of first samples that are not returned, in which the series approaches its attractor.
    substeps : int, default 10
        Number of solver steps per unit of time. Use more for higher accuracy.

    Returns
    -------
    array of shape (steps, 1)
        The samples.

    Raises
    ------
    ValueError
        If an argument is out of range, or the series diverges.

    See Also
    --------
    lorenz : A chaotic flow of three dimensions.
    echolearn.ESNForecaster : A network that forecasts such a series.

    Notes
    -----
    The equation is integrated by a fourth-order Runge-Kutta scheme. Between its steps the delayed value is taken from
    the cubic through both ends and slopes, so that the order is kept.

    References
    ----------
    Mackey and Glass, Oscillation and chaos in physiological control systems, Science 197 (1977).

    Examples
    --------
    >>> from echolearn.datasets import mackey_glass
    >>> series = mackey_glass(500, tau=17)
    >>> series.shape
    (500, 1)
    >>> bool(0.2 < series.min() < series.max() < 1.4)
    True
    """
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    per_unit = check_integer("substeps", substeps, 1)
    dt = 1.0 / per_unit
    delay = round(check_positive("tau", tau) * per_unit)
    if (steps + discard) * per_unit + delay > MAX_SUBSTEPS:
        raise ValueError(
            f"tau={tau!r} and {steps + discard} steps take more than {MAX_SUBSTEPS:,} substeps; use fewer."
        )
    if delay < 1:
        raise ValueError(f"tau={tau!r} is less than half a step of {dt:g}; use a larger tau or more substeps.")
    x = start = check_number("start", start)
    beta, gamma, power = (check_number(n, v) for n, v in (("beta", beta), ("gamma", gamma), ("power", power)))

    def slope(now: float, delayed: float) -> float:
        try:
            return beta * delayed / (1.0 + math.pow(abs(delayed), power)) - gamma * now
        except (OverflowError, ValueError, ZeroDivisionError):  # x^power is infinite, or 0^-1
            return math.nan

    values = [x] * (delay + 1)  # values[n + delay] is the value at substep n
    slopes: list[float] = []  # slopes[n] is the slope there; before time 0 there is none
    for n in range((steps + discard) * per_unit):
        old, new = values[n], values[n + 1]
        k1 = slope(x, old)
        slopes.append(k1)
        middle = start if n < delay else (old + new) / 2 + dt / 8 * (slopes[n - delay] - slopes[n - delay + 1])
        k2 = slope(x + dt / 2 * k1, middle)
        k3 = slope(x + dt / 2 * k2, middle)
        k4 = slope(x + dt * k3, new)
        x += dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        values.append(x)
    sampled = np.array(values[delay + per_unit :: per_unit])[discard:, None]
    return check_bounded(sampled, "mackey_glass")
