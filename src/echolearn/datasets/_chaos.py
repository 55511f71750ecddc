"""Deterministic chaos in few dimensions: flows, of which two are devices, a map and an equation with a delay."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echolearn.validation import check_integer, check_number, check_positive, finite_array

Series = NDArray[np.float64]
Point = tuple[float, float, float]
Slope = Callable[[float, float, float], Point]

DIVERGED_VALUE = 1e6  # none of the systems here returns from so far away
MAX_SUBSTEPS = 10**8  # of one series


def check_start(value: ArrayLike, dimensions: int) -> tuple[float, ...]:
    """Return a starting point of so many finite numbers."""
    x = finite_array("start", value)
    if x.shape != (dimensions,):
        raise ValueError(f"start={value!r:.80}; expected {dimensions} finite numbers.")
    return tuple(x.tolist())


def check_bounded(series: Series, name: str) -> Series:
    """Return the series (steps, dimensions), or raise ValueError unless it stayed finite."""
    if not np.isfinite(series).all():
        raise ValueError(
            f"{name} ran off to infinity after {int(np.isfinite(series).all(axis=-1).argmin())} steps: start nearer to "
            "its attractor, use a smaller dt, or the default parameters."
        )
    return series


def lorenz(
    steps: int,
    *,
    dt: float = 0.02,
    sigma: float = 10.0,
    rho: float = 28.0,
    beta: float = 8 / 3,
    start: ArrayLike = (1.0, 1.0, 1.0),
    discard: int = 1000,
    substeps: int = 4,
) -> Series:
    """Generate the Lorenz flow, a model of convection in the atmosphere.

    The equations are dx/dt = sigma (y - x), dy/dt = x (rho - z) - y, dz/dt = x y - beta z.

    Parameters
    ----------
    steps : int
        Number of samples to return.
    dt : float, default 0.02
        Time between samples. A larger value makes the series harder to forecast one step ahead.
    sigma, rho, beta : float, default 10.0, 28.0, 8/3
        The constants of the equations.
    start : array of 3 numbers, default (1.0, 1.0, 1.0)
        The point at time 0.
    discard : int, default 1000
        Number of first samples that are not returned, in which the flow approaches its attractor. Use 0 to see the
        approach as well.
    substeps : int, default 4
        Number of solver steps (fourth-order Runge-Kutta) per sample. Use more for higher accuracy, or with a larger
        `dt`.

    Returns
    -------
    array of shape (steps, 3)
        The samples x, y, z.

    See Also
    --------
    echolearn.metrics.valid_time : How long a forecast of a chaotic series is valid.

    Notes
    -----
    The largest Lyapunov exponent is 0.906, so that one Lyapunov time is 1.104 units of time, or 55 steps of 0.02.

    References
    ----------
    Lorenz, Deterministic nonperiodic flow, Journal of the Atmospheric Sciences 20 (1963).

    Examples
    --------
    >>> from echolearn.datasets import lorenz
    >>> lorenz(2, start=(1, 1, 1), discard=0).round(3)
    array([[1.049, 1.524, 0.973],
           [1.187, 2.089, 0.962]])
    """
    slope = _lorenz_slope(*(check_number(n, v) for n, v in (("sigma", sigma), ("rho", rho), ("beta", beta))))
    return flow(slope, start, "lorenz", steps=steps, discard=discard, dt=dt, substeps=substeps)


def _lorenz_slope(sigma: float, rho: float, beta: float) -> Slope:
    return lambda x, y, z: (sigma * (y - x), x * (rho - z) - y, x * y - beta * z)


def rossler(
    steps: int,
    *,
    dt: float = 0.1,
    a: float = 0.2,
    b: float = 0.2,
    c: float = 5.7,
    start: ArrayLike = (1.0, 1.0, 1.0),
    discard: int = 1000,
    substeps: int = 4,
) -> Series:
    """Generate the Rössler flow, a chaotic oscillation whose frequency is nearly constant.

    The equations are dx/dt = -y - z, dy/dt = x + a y, dz/dt = b + z (x - c).

    Parameters
    ----------
    steps, dt, start, discard, substeps
        As in `lorenz`.
    a, b, c : float, default 0.2, 0.2, 5.7
        The constants of the equations.

    Returns
    -------
    array of shape (steps, 3)
        The samples x, y, z.

    Notes
    -----
    The largest Lyapunov exponent is 0.071 per unit of time, so that one Lyapunov time is 14 units, or 140 steps of 0.1.

    References
    ----------
    Rössler, An equation for continuous chaos, Physics Letters A 57 (1976).

    Examples
    --------
    >>> from echolearn.datasets import rossler
    >>> rossler(500).shape
    (500, 3)
    """
    a, b, c = (check_number(n, v) for n, v in (("a", a), ("b", b), ("c", c)))

    def slope(x: float, y: float, z: float) -> Point:
        return -y - z, x + a * y, b + z * (x - c)

    return flow(slope, start, "rossler", steps=steps, discard=discard, dt=dt, substeps=substeps)


def flow(slope: Slope, start: ArrayLike, name: str, *, steps: int, discard: int, dt: float, substeps: int) -> Series:
    """Integrate by RK4, in plain numbers (three are too few for NumPy to be faster)."""
    x, y, z = check_start(start, 3)
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    substeps = check_integer("substeps", substeps, 1)
    h = check_positive("dt", dt) / substeps
    series = np.full((discard + steps, 3), np.nan)
    for t in range(len(series)):
        for _ in range(substeps):
            k1 = slope(x, y, z)
            k2 = slope(x + h / 2 * k1[0], y + h / 2 * k1[1], z + h / 2 * k1[2])
            k3 = slope(x + h / 2 * k2[0], y + h / 2 * k2[1], z + h / 2 * k2[2])
            k4 = slope(x + h * k3[0], y + h * k3[1], z + h * k3[2])
            x += h / 6 * (k1[0] + 2 * k2[0] + 2 * k3[0] + k4[0])
            y += h / 6 * (k1[1] + 2 * k2[1] + 2 * k3[1] + k4[1])
            z += h / 6 * (k1[2] + 2 * k2[2] + 2 * k3[2] + k4[2])
        if not abs(x) + abs(y) + abs(z) < DIVERGED_VALUE:
            break
        series[t] = x, y, z
    return check_bounded(series, name)[discard:]


def double_scroll(
    steps: int,
    *,
    dt: float = 0.25,
    start: ArrayLike = (0.37926545, 0.058339, -0.08167691),
    discard: int = 400,
    substeps: int = 10,
) -> Series:
    """Generate the double scroll of an electronic circuit with two diodes.

    The equations, in volts, are dV1/dt = V1 / R1 - g, dV2/dt = g - I, dI/dt = V2 - R4 I, with the current through the
    diodes g = (V1 - V2) / R2 + 2 Ir sinh(beta (V1 - V2)), R1 = 1.2, R2 = 3.44, R4 = 0.193, beta = 11.6, Ir = 2.25e-5.

    Parameters
    ----------
    steps, dt, start, discard, substeps
        As in `lorenz`.

    Returns
    -------
    array of shape (steps, 3)
        The samples V1, V2, I.

    Notes
    -----
    The largest Lyapunov exponent is about 0.1 per unit of time: 0.096 over 1500 units (the paper gives 0.128). One
    Lyapunov time is about 40 steps of 0.25.

    References
    ----------
    Gauthier, Bollt, Griffith and Barbosa, Next generation reservoir computing, Nature Communications 12 (2021).

    Examples
    --------
    >>> from echolearn.datasets import double_scroll
    >>> double_scroll(500).shape
    (500, 3)
    """

    def slope(v1: float, v2: float, i: float) -> Point:
        g = (v1 - v2) / 3.44 + 2 * 2.25e-5 * math.sinh(max(-700.0, min(700.0, 11.6 * (v1 - v2))))
        return v1 / 1.2 - g, g - i, v2 - 0.193 * i

    return flow(slope, start, "double_scroll", steps=steps, discard=discard, dt=dt, substeps=substeps)


def laser(
    steps: int, *, dt: float = 0.5, start: ArrayLike = (1.0, 1.0, 1.0), discard: int = 1000, substeps: int = 20
) -> Series:
    """Generate the intensity of a far-infrared laser, as in data set A of the Santa Fe competition.

    The recorded laser follows the Lorenz-Haken equations of a single-mode laser closely; they are the Lorenz equations
    with sigma = 2, rho = 15 (the pump) and beta = 0.25, where x is the field. The intensity is x²: pulses that grow
    until they collapse.

    Parameters
    ----------
    steps, start, discard, substeps
        As in `lorenz`.
    dt : float, default 0.5
        Time between samples; with the default there are about seven per pulse, as in the recording.

    Returns
    -------
    array of shape (steps, 1)
        The intensity.

    Notes
    -----
    The largest Lyapunov exponent is about 0.18 per unit of time.

    References
    ----------
    Haken, Analogy between higher instabilities in fluids and lasers, Physics Letters A 53 (1975). Hübner, Abraham and
    Weiss, Dimensions and entropies of chaotic intensity pulsations in a single-mode far-infrared NH3 laser, Physical
    Review A 40 (1989).

    Examples
    --------
    >>> from echolearn.datasets import laser
    >>> laser(1000).shape
    (1000, 1)
    """
    slope = _lorenz_slope(2.0, 15.0, 0.25)
    field = flow(slope, start, "laser", steps=steps, discard=discard, dt=dt, substeps=substeps)
    return np.asarray(field[:, :1] ** 2)


def henon(steps: int, *, a: float = 1.4, b: float = 0.3, start: ArrayLike = (0.0, 0.0), discard: int = 100) -> Series:
    """Generate the Hénon map, a chaotic system of two dimensions in discrete time.

    The equations are x_{t+1} = 1 - a x_t² + y_t, y_{t+1} = b x_t.

    Parameters
    ----------
    steps, discard
        As in `lorenz`.
    a, b : float, default 1.4, 0.3
        The constants of the equations.
    start : array of 2 numbers, default (0.0, 0.0)
        The point before the first one.

    Returns
    -------
    array of shape (steps, 2)
        The points x, y.

    Notes
    -----
    The largest Lyapunov exponent is 0.419 per step.

    References
    ----------
    Hénon, A two-dimensional mapping with a strange attractor, Communications in Mathematical Physics 50 (1976).

    Examples
    --------
    >>> from echolearn.datasets import henon
    >>> henon(3, discard=0).round(3)
    array([[ 1.   ,  0.   ],
           [-0.4  ,  0.3  ],
           [ 1.076, -0.12 ]])
    """
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    a, b = check_number("a", a), check_number("b", b)
    x, y = check_start(start, 2)
    series = np.full((discard + steps, 2), np.nan)
    for t in range(len(series)):
        x, y = 1 - a * x * x + y, b * x
        if not abs(x) < DIVERGED_VALUE:
            break
        series[t] = x, y
    return check_bounded(series, "henon")[discard:]


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
) -> Series:
    """Generate the Mackey-Glass series, a model of the production of blood cells.

    The equation is dx/dt = beta x(t - tau) / (1 + x(t - tau)^power) - gamma x(t), sampled at every unit of time.

    Parameters
    ----------
    steps, discard
        As in `lorenz`.
    tau : float, default 17.0
        The delay, which is rounded to a multiple of 1 / substeps. The series is chaotic for tau > 16.8. The usual
        choices are 17 and 30; with 30 the series is harder to forecast.
    beta, gamma, power : float, default 0.2, 0.1, 10.0
        The constants of the equation.
    start : float, default 1.2
        The constant value of the series before time 0.
    substeps : int, default 10
        Number of solver steps per unit of time. Use more for higher accuracy.

    Returns
    -------
    array of shape (steps, 1)
        The samples.

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
