"""Chaos in space and time: a partial differential equation, and a ring of coupled places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echolearn.datasets._chaos import check_bounded
from echolearn.datasets._solver import integrate
from echolearn.validation import as_generator, check_integer, check_number, check_positive

MAX_POINT_DISTANCE = 0.2  # of the grid on which waves are followed; shorter waves than it carries are rounding errors


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
        Time between samples.
    random_state : int, numpy.random.Generator or None, default 0
        Seed of the small noise that the solution starts from. Another seed gives another part of the attractor.

    Returns
    -------
    array of shape (steps, points)
        The samples.

    Notes
    -----
    The equation is solved in Fourier space, on a grid that is fine enough for every wave above rounding errors. The
    linear part is solved exactly, as in exponential integrators [3]_, and the rest as in `lorenz`. With the default
    parameters the largest Lyapunov exponent is 0.048 per unit of time, and the series is true for 30 Lyapunov
    times: from 6 starts it stayed with steps of half the length and 16 nodes in place of 10 for at least 32.

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
    points, dt, length = check_integer("points", points, 8), check_positive("dt", dt), check_positive("length", length)
    grid = points * int(np.ceil(length / points / MAX_POINT_DISTANCE))
    k = 2 * np.pi * np.fft.rfftfreq(grid, length / grid)
    linear = k**2 - k**4
    if grid % 2 == 0:
        k[-1] = 0.0  # the shortest wave has no first derivative on the grid

    def slope(v: NDArray[np.complex128]) -> NDArray[np.complex128]:
        """Return the transform of -u u_x = -(u²)_x / 2."""
        return np.asarray(-0.5j * k[:, None] * np.fft.rfft(np.fft.irfft(v, grid, axis=0) ** 2, axis=0))

    noise = as_generator(random_state).normal(0.0, 0.1, points)
    v = np.fft.rfft(noise - noise.mean()) * (grid / points)
    start = np.append(v, np.zeros(len(k) - len(v)))
    waves = integrate(slope, start, steps=discard + steps, dt=dt, step=0.25, rates=linear, nodes=10)
    series = np.fft.irfft(waves, grid)[:, :: grid // points]
    return np.ascontiguousarray(check_bounded(series, "kuramoto_sivashinsky")[discard:])


def lorenz_96(
    steps: int,
    *,
    dims: int = 40,
    forcing: float = 8.0,
    dt: float = 0.05,
    discard: int = 1000,
    random_state: int | np.random.Generator | None = 0,
) -> NDArray[np.float64]:
    """Generate the Lorenz-96 flow, a model of the weather around a circle of latitude.

    The equations are dx_i/dt = (x_{i+1} - x_{i-2}) x_{i-1} - x_i + forcing, with indices modulo `dims`.

    Parameters
    ----------
    steps, discard
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
    With 40 points and a forcing of 8 the largest Lyapunov exponent is about 1.7 per unit of time. The series is true
    for 26 Lyapunov times, checked as that of `double_scroll`.

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
    dims, F, dt = check_integer("dims", dims, 4), check_number("forcing", forcing), check_positive("dt", dt)

    before, twice_before, after = (np.roll(np.arange(dims), shift) for shift in (1, 2, -1))

    def slope(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((x[after] - x[twice_before]) * x[before] - x + F)

    x = F + 0.01 * as_generator(random_state).standard_normal(dims)
    series = integrate(slope, x, steps=discard + steps, dt=dt, step=0.1)
    return np.ascontiguousarray(check_bounded(series, "lorenz_96")[discard:])
