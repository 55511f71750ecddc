"""Chaos in space and time: a partial differential equation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from echolearn.datasets.bounds import check_bounded
from echolearn.validation.values import as_generator, check_integer, check_positive


def kuramoto_sivashinsky(
    steps: int,
    *,
    length: float = 22.0,
    points: int = 64,
    dt: float = 0.25,
    discard: int = 1000,
    random_state: int | np.random.Generator | None = 0,
) -> NDArray[np.float64]:
    """Generate the Kuramoto-Sivashinsky flow, waves on a circle that are chaotic in space and time.

    The equation is u_t = -u u_x - u_xx - u_xxxx.

    Parameters
    ----------
    steps : int
        Number of samples to return.
    length : float, default 22.0
        Circumference of the circle. The longer, the more dimensions the chaos has. With 22 the largest Lyapunov
        exponent is about 0.05 per unit of time.
    points : int, default 64
        Number of places, evenly spaced, at which u is sampled; at least 8. Use more for a longer circle.
    dt : float, default 0.25
        Time between samples, and the step of the solver.
    discard : int, default 1000
        Number of first samples that are not returned, in which the waves grow from noise.
    random_state : int, numpy.random.Generator or None, default 0
        For the small noise that the flow starts from.

    Returns
    -------
    array of shape (steps, points)
        The samples.

    Raises
    ------
    ValueError
        If an argument is out of range, or the solution diverges (`dt` is too large).

    Notes
    -----
    Solved in Fourier space by ETDRK4 [3]_: the linear part exactly, the rest by a fourth-order Runge-Kutta scheme, with
    coefficients that are means over a circle around each eigenvalue.

    References
    ----------
    .. [1] Kuramoto, Progress of Theoretical Physics Supplement 64 (1978).
    .. [2] Sivashinsky, Acta Astronautica 4 (1977).
    .. [3] Kassam and Trefethen, Fourth-order time-stepping for stiff PDEs, SIAM J. Scientific Computing 26 (2005).

    Examples
    --------
    >>> from echolearn.datasets import kuramoto_sivashinsky
    >>> u = kuramoto_sivashinsky(100, points=32, discard=400)
    >>> u.shape
    (100, 32)
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
