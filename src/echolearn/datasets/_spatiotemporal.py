"""Chaos in space and time: a partial differential equation, and a ring of coupled places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echolearn.datasets._chaos import check_bounded
from echolearn.validation import as_generator, check_integer, check_number, check_positive


def kuramoto_sivashinsky(
    steps: int,
    *,
    length: float = 22.0,
    points: int = 64,
    dt: float = 0.25,
    discard: int = 1000,
    random_state: int | np.random.Generator | None = 0,
) -> NDArray[np.float64]:
    """Generate a solution of the Kuramoto-Sivashinsky equation, waves on a circle that are chaotic in space and time.

    The equation is u_t = -u u_x - u_xx - u_xxxx.

    Parameters
    ----------
    steps, discard
        As in `lorenz`.
    length : float, default 22.0
        Circumference of the circle. The dimension of the attractor grows with it. With 22 the largest Lyapunov
        exponent is about 0.05 per unit of time.
    points : int, default 64
        Number of evenly spaced points at which u is sampled, at least 8. Use more for a longer circle.
    dt : float, default 0.25
        Time between samples, which is also the step of the solver.
    random_state : int, numpy.random.Generator or None, default 0
        Seed of the small noise that the solution starts from. Another seed gives another part of the attractor.

    Returns
    -------
    array of shape (steps, points)
        The samples.

    Notes
    -----
    The equation is solved in Fourier space by the scheme ETDRK4 [3]_. It solves the linear part exactly and the rest by
    a fourth-order Runge-Kutta scheme, whose coefficients are means over a circle around each eigenvalue.

    References
    ----------
    .. [1] Kuramoto, Progress of Theoretical Physics Supplement 64 (1978).
    .. [2] Sivashinsky, Acta Astronautica 4 (1977).
    .. [3] Kassam and Trefethen, Fourth-order time-stepping for stiff PDEs, SIAM J. Scientific Computing 26 (2005).

    Examples
    --------
    >>> from echolearn.datasets import kuramoto_sivashinsky
    >>> u = kuramoto_sivashinsky(100, points=32, discard=400)
    >>> bool(abs(u.mean(axis=1)).max() < 1e-10)  # the mean over the circle is conserved
    True
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

    def nonlinear(v: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return the transform of -u u_x = -(u²)_x / 2."""
        return np.asarray(-0.5j * k * np.fft.rfft(np.fft.irfft(v, points) ** 2))

    noise = as_generator(random_state).normal(0.0, 0.1, points)
    v = np.fft.rfft(noise - noise.mean())
    series = np.empty((discard + steps, points))
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(len(series)):
            n0 = nonlinear(v)
            a = half * v + phi * n0
            n1 = nonlinear(a)
            b = half * v + phi * n1
            n2 = nonlinear(b)
            n3 = nonlinear(half * a + phi * (2 * n2 - n0))
            v = E * v + b1 * n0 + 2 * b2 * (n1 + n2) + b3 * n3
            series[t] = np.fft.irfft(v, points)
    return check_bounded(series, "kuramoto_sivashinsky")[discard:]


def lorenz_96(
    steps: int,
    *,
    dims: int = 40,
    forcing: float = 8.0,
    dt: float = 0.05,
    discard: int = 1000,
    substeps: int = 2,
    random_state: int | np.random.Generator | None = 0,
) -> NDArray[np.float64]:
    """Generate the Lorenz-96 flow, a model of the weather around a circle of latitude.

    The equations are dx_i/dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + forcing, with indices modulo `dims`.

    Parameters
    ----------
    steps, discard, substeps
        As in `lorenz`.
    dims : int, default 40
        Number of points on the circle, at least 4.
    forcing : float, default 8.0
        The constant forcing. Below about 4 the solution is periodic or constant.
    dt : float, default 0.05
        Time between samples. In this model 0.05 corresponds to six hours of weather.
    random_state
        As in `kuramoto_sivashinsky`.

    Returns
    -------
    array of shape (steps, dims)
        The samples.

    Notes
    -----
    With 40 points and a forcing of 8 the largest Lyapunov exponent is about 1.7 per unit of time.

    References
    ----------
    Lorenz, Predictability: a problem partly solved, Seminar on Predictability, ECMWF (1996).

    Examples
    --------
    >>> from echolearn.datasets import lorenz_96
    >>> lorenz_96(100, dims=8).shape
    (100, 8)
    """
    steps, discard = check_integer("steps", steps, 1), check_integer("discard", discard, 0)
    dims, substeps = check_integer("dims", dims, 4), check_integer("substeps", substeps, 1)
    F, h = check_number("forcing", forcing), check_positive("dt", dt) / substeps

    def slope(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return (np.roll(x, -1) - np.roll(x, 2)) * np.roll(x, 1) - x + F

    x = F + 0.01 * as_generator(random_state).standard_normal(dims)
    series = np.empty((discard + steps, dims))
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(len(series)):
            for _ in range(substeps):
                k1 = slope(x)
                k2 = slope(x + h / 2 * k1)
                k3 = slope(x + h / 2 * k2)
                x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + slope(x + h * k3))
            series[t] = x
    return check_bounded(series, "lorenz_96")[discard:]
