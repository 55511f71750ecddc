"""Deterministic chaos: one delay equation, two flows, a map, and a partial differential equation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echolearn.validation.values import as_generator, check_integer, check_number, check_positive, finite_array

Array = NDArray[np.float64]
Point = tuple[float, float, float]

MOST = 10**8  # substeps of one series
FAR = 1e6  # none of these systems comes back from there


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
) -> Array:
    """dx/dt = beta x(t - tau) / (1 + x(t - tau)^power) - gamma x(t), sampled every unit of time: (steps, 1).

    Before t = 0 the series stood at `start`; the first `discard` samples are thrown away. Chaotic for tau > 16.8;
    17 and 30 are the usual choices. Integrated by RK4 with `substeps` steps a unit of time; between them the delayed
    value is taken from the cubic through both ends and slopes, so that the order is kept. A tau that does not fall
    on the steps is rounded to the nearest.

    Mackey and Glass, Oscillation and chaos in physiological control systems, Science 197 (1977).
    """
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    per_unit = check_integer("substeps", substeps, 1)
    dt = 1.0 / per_unit
    delay = round(check_positive("tau", tau) * per_unit)
    if (steps + discard) * per_unit + delay > MOST:
        raise ValueError(f"tau={tau!r} and {steps + discard} steps take more than {MOST:,} substeps; use fewer.")
    if delay < 1:
        raise ValueError(f"tau={tau!r} is less than half a step of {dt:g}; use a larger tau or more substeps.")
    x = start = check_number("start", start)
    beta, gamma, power = (check_number(n, v) for n, v in (("beta", beta), ("gamma", gamma), ("power", power)))

    def slope(now: float, delayed: float) -> float:
        try:
            return beta * delayed / (1.0 + math.pow(abs(delayed), power)) - gamma * now
        except (OverflowError, ValueError, ZeroDivisionError):  # x^power is infinite, or 0^-1
            return math.nan

    values = [x] * (delay + 1)  # values[n + delay] is now,
    slopes: list[float] = []  # slopes[n] its slope; before t = 0 there is none
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
    return _check_bounded(sampled, "mackey_glass")


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
) -> Array:
    """dx/dt = sigma (y - x), dy/dt = x (rho - z) - y, dz/dt = x y - beta z, every dt: (steps, 3).

    Its largest Lyapunov exponent is 0.906, so one Lyapunov time is 1.104 units, or 55 steps of 0.02.

    Lorenz, Deterministic nonperiodic flow, Journal of the Atmospheric Sciences 20 (1963).
    """

    sigma, rho, beta = (check_number(n, v) for n, v in (("sigma", sigma), ("rho", rho), ("beta", beta)))

    def slope(x: float, y: float, z: float) -> Point:
        return sigma * (y - x), x * (rho - z) - y, x * y - beta * z

    return _flow(slope, _starting_point(start, 3), steps, discard, dt, substeps, "lorenz")


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
) -> Array:
    """dx/dt = -y - z, dy/dt = x + a y, dz/dt = b + z (x - c), every dt: (steps, 3).

    Its largest Lyapunov exponent is 0.071.

    Rössler, An equation for continuous chaos, Physics Letters A 57 (1976).
    """

    a, b, c = (check_number(n, v) for n, v in (("a", a), ("b", b), ("c", c)))

    def slope(x: float, y: float, z: float) -> Point:
        return -y - z, x + a * y, b + z * (x - c)

    return _flow(slope, _starting_point(start, 3), steps, discard, dt, substeps, "rossler")


def _flow(
    slope: Callable[[float, float, float], Point],
    start: Array,
    steps: Any,
    discard: Any,
    dt: Any,
    substeps: Any,
    name: str,
) -> Array:
    """RK4 with `substeps` steps a sample, in plain numbers (three are too few for NumPy to be faster)."""
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    substeps = check_integer("substeps", substeps, 1)
    h = check_positive("dt", dt) / substeps
    x, y, z = start.tolist()
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
        if not abs(x) + abs(y) + abs(z) < FAR:
            break
        series[t] = x, y, z
    return _check_bounded(series, name)[discard:]


def henon(steps: int, *, a: float = 1.4, b: float = 0.3, start: ArrayLike = (0.0, 0.0), discard: int = 100) -> Array:
    """x' = 1 - a x² + y, y' = b x: (steps, 2). Its largest Lyapunov exponent is 0.419 a step.

    Hénon, A two-dimensional mapping with a strange attractor, Communications in Mathematical Physics 50 (1976).
    """
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    a, b = check_number("a", a), check_number("b", b)
    x, y = _starting_point(start, 2).tolist()
    series = np.full((discard + steps, 2), np.nan)
    for t in range(len(series)):
        x, y = 1 - a * x * x + y, b * x
        if not abs(x) < FAR:
            break
        series[t] = x, y
    return _check_bounded(series, "henon")[discard:]


def kuramoto_sivashinsky(
    steps: int,
    *,
    length: float = 22.0,
    points: int = 64,
    dt: float = 0.25,
    discard: int = 1000,
    random_state: int | np.random.Generator | None = 0,
) -> Array:
    """u_t = -u u_x - u_xx - u_xxxx on a circle of the given length, at `points` places, every dt: (steps, points).

    Starts from small noise (`random_state`); the first `discard` samples are thrown away. With length 22 its largest
    Lyapunov exponent is about 0.05. Solved in Fourier space by ETDRK4: the linear part exactly, the rest by a
    fourth-order Runge-Kutta, its coefficients as means over a circle around each eigenvalue.

    Kuramoto, Progress of Theoretical Physics Supplement 64 (1978); Sivashinsky, Acta Astronautica 4 (1977).
    Scheme: Kassam and Trefethen, Fourth-order time-stepping for stiff PDEs, SIAM J. Scientific Computing 26 (2005).
    """
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    points, h = check_integer("points", points, 8), check_positive("dt", dt)
    k = 2 * np.pi * np.fft.rfftfreq(points, check_positive("length", length) / points)
    linear = k**2 - k**4
    if points % 2 == 0:
        k[-1] = 0.0  # the shortest wave has no first derivative on the grid
    half, E = np.exp(h * linear / 2), np.exp(h * linear)
    roots = np.exp(1j * np.pi * (np.arange(32) + 0.5) / 32)
    z = h * linear[:, None] + roots
    phi = h * ((np.exp(z / 2) - 1) / z).real.mean(axis=1)
    b1 = h * ((-4 - z + np.exp(z) * (4 - 3 * z + z**2)) / z**3).real.mean(axis=1)
    b2 = h * ((2 + z + np.exp(z) * (z - 2)) / z**3).real.mean(axis=1)
    b3 = h * ((-4 - 3 * z - z**2 + np.exp(z) * (4 - z)) / z**3).real.mean(axis=1)

    def rest(v: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """-u u_x = -(u²)_x / 2."""
        return np.asarray(-0.5j * k * np.fft.rfft(np.fft.irfft(v, points) ** 2))

    noise = as_generator(random_state).normal(0.0, 0.1, points)
    v = np.fft.rfft(noise - noise.mean())
    series = np.empty((discard + steps, points))
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(len(series)):
            n0 = rest(v)
            a = half * v + phi * n0
            n1 = rest(a)
            b = half * v + phi * n1
            n2 = rest(b)
            n3 = rest(half * a + phi * (2 * n2 - n0))
            v = E * v + b1 * n0 + 2 * b2 * (n1 + n2) + b3 * n3
            series[t] = np.fft.irfft(v, points)
    return _check_bounded(series, "kuramoto_sivashinsky")[discard:]


def _starting_point(value: ArrayLike, dimensions: int) -> Array:
    x = finite_array("start", value)
    if x.shape != (dimensions,):
        raise ValueError(f"start={value!r:.80}; expected {dimensions} finite numbers.")
    return x


def _check_bounded(series: Array, name: str) -> Array:
    """Return the series (steps, dimensions) if it stayed finite."""
    if not np.isfinite(series).all():
        raise ValueError(
            f"{name} ran off to infinity after {int(np.isfinite(series).all(axis=-1).argmin())} steps: start nearer to "
            "its attractor, use a smaller dt, or the default parameters."
        )
    return series
