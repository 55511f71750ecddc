"""Deterministic chaos in few dimensions: flows, of which two are devices, a map and an equation with a delay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import ArrayLike, NDArray

from echolearn.datasets._solver import (
    DIVERGED_VALUE,
    MAX_SOLVER_STEPS,
    NODES_PER_STEP,
    Response,
    Series,
    Slope,
    integrate,
    lagrange,
)
from echolearn.validation import Array, check_integer, check_number, check_positive, finite_array


class TrueChaos(NamedTuple):
    """Known facts about a series that its generator makes with default parameters.

    exponent: the largest Lyapunov exponent, per unit of time. lyapunov_times: how long the series is true, from any of
    its samples on.
    """

    exponent: float
    lyapunov_times: float


TRUE_CHAOS = {
    "lorenz": TrueChaos(0.906, 25.0),
    "rossler": TrueChaos(0.071, 24.0),
    "double_scroll": TrueChaos(0.096, 30.0),
    "laser": TrueChaos(0.18, 20.0),
    "henon": TrueChaos(0.419, 23.0),
    "mackey_glass": TrueChaos(0.0058, 25.0),
    "kuramoto_sivashinsky": TrueChaos(0.048, 30.0),
    "lorenz_96": TrueChaos(1.7, 26.0),
}


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
            f"{name} diverged after {int(np.isfinite(series).all(axis=-1).argmin())} steps: start nearer to "
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

    Steps of the solver are exact up to rounding errors: within each, the slopes are a polynomial through 16 Gauss
    nodes. Rounding errors grow like all others, so that from any sample on the series is true for a limited time, here
    for 25 Lyapunov times. From 20 starts it stayed within 1 % of its standard deviation for at least 1 Lyapunov time
    more, in comparison with steps of half the length and 22 nodes; four of them were compared with a Taylor series of
    order 40 in decimal numbers of 45 digits, too. `valid_time` knows it and refuses to compare for longer.

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
    return flow(slope, start, "lorenz", steps=steps, discard=discard, dt=dt, step=0.04)


def _lorenz_slope(sigma: float, rho: float, beta: float) -> Slope:
    def slope(X: Array) -> Array:
        x, y, z = X
        return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])

    return slope


def rossler(
    steps: int,
    *,
    dt: float = 0.1,
    a: float = 0.2,
    b: float = 0.2,
    c: float = 5.7,
    start: ArrayLike = (1.0, 1.0, 1.0),
    discard: int = 1000,
) -> Series:
    """Generate the Rössler flow, a chaotic oscillation whose frequency is nearly constant.

    The equations are dx/dt = -y - z, dy/dt = x + a y, dz/dt = b + z (x - c).

    Parameters
    ----------
    steps, dt, start, discard
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
    The series is true for 24 Lyapunov times, checked as that of `lorenz`.

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

    def slope(X: Array) -> Array:
        x, y, z = X
        return np.array([-y - z, x + a * y, b + z * (x - c)])

    return flow(slope, start, "rossler", steps=steps, discard=discard, dt=dt, step=0.2)


def flow(slope: Slope, start: ArrayLike, name: str, *, steps: int, discard: int, dt: float, step: float) -> Series:
    """Integrate a flow of three dimensions; step: the longest of the solver."""
    x = np.array(check_start(start, 3))
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    series = integrate(slope, x, steps=discard + steps, dt=check_positive("dt", dt), step=step)
    return np.ascontiguousarray(check_bounded(series, name)[discard:])


def double_scroll(
    steps: int, *, dt: float = 0.25, start: ArrayLike = (0.37926545, 0.058339, -0.08167691), discard: int = 400
) -> Series:
    """Generate the double scroll of an electronic circuit with two diodes.

    The equations, in volts, are dV1/dt = V1 / R1 - g, dV2/dt = g - I, dI/dt = V2 - R4 I, with the current through the
    diodes g = (V1 - V2) / R2 + 2 Ir sinh(beta (V1 - V2)), R1 = 1.2, R2 = 3.44, R4 = 0.193, beta = 11.6, Ir = 2.25e-5.

    Parameters
    ----------
    steps, dt, start, discard
        As in `lorenz`.

    Returns
    -------
    array of shape (steps, 3)
        The samples V1, V2, I.

    Notes
    -----
    The largest Lyapunov exponent is about 0.1 per unit of time: 0.096 over 1500 units (the paper gives 0.128). One
    Lyapunov time is about 40 steps of 0.25. The series is true for 30 Lyapunov times, checked as that of `lorenz`
    without decimal numbers.

    References
    ----------
    Gauthier, Bollt, Griffith and Barbosa, Next generation reservoir computing, Nature Communications 12 (2021).

    Examples
    --------
    >>> from echolearn.datasets import double_scroll
    >>> double_scroll(500).shape
    (500, 3)
    """

    def slope(X: Array) -> Array:
        v1, v2, i = X
        g = (v1 - v2) / 3.44 + 2 * 2.25e-5 * np.sinh(11.6 * (v1 - v2))
        return np.array([v1 / 1.2 - g, g - i, v2 - 0.193 * i])

    return flow(slope, start, "double_scroll", steps=steps, discard=discard, dt=dt, step=0.125)


def laser(steps: int, *, dt: float = 0.5, start: ArrayLike = (1.0, 1.0, 1.0), discard: int = 1000) -> Series:
    """Generate the intensity of a far-infrared laser, as in data set A of the Santa Fe competition.

    The recorded laser follows the Lorenz-Haken equations of a single-mode laser closely; they are the Lorenz equations
    with sigma = 2, rho = 15 (the pump) and beta = 0.25, where x is the field. The intensity is x²: pulses that grow
    until they collapse.

    Parameters
    ----------
    steps, start, discard
        As in `lorenz`.
    dt : float, default 0.5
        Time between samples; with the default there are about seven per pulse, as in the recording.

    Returns
    -------
    array of shape (steps, 1)
        The intensity.

    Notes
    -----
    The largest Lyapunov exponent is about 0.18 per unit of time. The series is true for 20 Lyapunov times, checked as
    that of `lorenz`.

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
    field = flow(slope, start, "laser", steps=steps, discard=discard, dt=dt, step=0.25)
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
    The largest Lyapunov exponent is 0.419 per step. The series is true for 23 Lyapunov times. From 20 starts it
    stayed with decimal numbers of 60 digits for at least 2 Lyapunov times more.

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
) -> Series:
    """Generate the Mackey-Glass series, a model of the production of blood cells.

    The equation is dx/dt = beta x(t - tau) / (1 + x(t - tau)^power) - gamma x(t), sampled at every unit of time.

    Parameters
    ----------
    steps, discard
        As in `lorenz`.
    tau : float, default 17.0
        The delay. The series is chaotic for tau > 16.8. The usual choices are 17 and 30; with 30 the series is harder
        to forecast.
    beta, gamma, power : float, default 0.2, 0.1, 10.0
        The constants of the equation.
    start : float, default 1.2
        The constant value of the series before time 0.

    Returns
    -------
    array of shape (steps, 1)
        The samples.

    Notes
    -----
    The largest Lyapunov exponent for tau=17 is about 0.0058 per step. Over one delay after another the delayed values
    are known, and each step of the solver is exact up to rounding errors, as in `lorenz`. The series is true for
    25 Lyapunov times, checked from 20 starts as that of `double_scroll`.

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
    tau, x = check_positive("tau", tau), check_number("start", start)
    beta, gamma, power = (check_number(n, v) for n, v in (("beta", beta), ("gamma", gamma), ("power", power)))
    per_delay, samples = np.ceil(tau / 0.5), np.arange(1, discard + steps + 1)
    if per_delay * max(1.0, len(samples) / tau) > MAX_SOLVER_STEPS:
        raise ValueError(f"tau={tau!r} and {steps} steps take more than {MAX_SOLVER_STEPS:,} steps of the solver.")
    return check_bounded(solve_delayed(x, tau, int(per_delay), samples, (beta, gamma, power)), "mackey_glass")[discard:]


def solve_delayed(
    x: float,
    tau: float,
    per_delay: int,
    samples: NDArray[np.int64],
    constants: tuple[float, float, float],
    *,
    nodes: int = NODES_PER_STEP,
) -> Series:
    """Return the Mackey-Glass series (samples, 1): over one delay after another, whose delayed values are known.

    The steps of the solver divide the delay, so that the delayed value of a node is that of a node, and the jumps of
    the derivatives, which start from time 0, are at ends of steps.
    """
    beta, gamma, power = constants
    step, at = tau / per_delay, (leggauss(nodes)[0] + 1) / 2
    response = Response.of(np.array([-gamma]), step, 1, nodes)
    X = np.full((per_delay, nodes), x)
    values = []
    with np.errstate(all="ignore"):
        for _ in range(int(samples[-1] / tau) + 1):
            F = beta * X / (1 + np.abs(X) ** power)
            added, begins = (F @ response.sample_weights[0])[:, 0], [x]
            for more in added:
                begins.append(begins[-1] * response.sample_decay[0, 0] + more)
            X = np.multiply.outer(begins[:-1], response.node_decay[0]) + F @ response.node_weights[0]
            values.append(np.column_stack([begins[:-1], X, begins[1:]]))
            x = begins[-1]
        which, rest = np.divmod(samples / step, 1.0)
        between = lagrange(rest, np.concatenate([[0.0], at, [1.0]]))
        found = (np.concatenate(values)[which.astype(int)] * between).sum(axis=1)
    return np.asarray(found[:, None])
