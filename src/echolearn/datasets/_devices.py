"""Chaos of devices: an electronic circuit and a laser, from their equations."""

from __future__ import annotations

from math import sinh

import numpy as np
from numpy.typing import ArrayLike

from echolearn.datasets._chaos import Point, Series, flow
from echolearn.validation import as_generator, check_boolean, check_number, check_positive


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
    steps : int
        Number of samples to return.
    dt : float, default 0.25
        Time between samples. A larger value makes the series harder to forecast one step ahead.
    start : array of 3 numbers, default (0.37926545, 0.058339, -0.08167691)
        V1, V2 and I at time 0.
    discard : int, default 400
        Number of first samples that are not returned, in which the circuit approaches its attractor.
    substeps : int, default 10
        Number of solver steps (fourth-order Runge-Kutta) per sample. Use more for higher accuracy, or with a larger
        `dt`.

    Returns
    -------
    array of shape (steps, 3)
        The samples V1, V2, I.

    Raises
    ------
    ValueError
        If an argument is out of range, or the solution diverges.

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
    >>> series = double_scroll(500)
    >>> series.shape
    (500, 3)
    """

    def slope(v1: float, v2: float, i: float) -> Point:
        g = (v1 - v2) / 3.44 + 2 * 2.25e-5 * sinh(max(-700.0, min(700.0, 11.6 * (v1 - v2))))
        return v1 / 1.2 - g, g - i, v2 - 0.193 * i

    return flow(slope, start, "double_scroll", steps=steps, discard=discard, dt=dt, substeps=substeps)


def laser(
    steps: int,
    *,
    dt: float = 0.5,
    sigma: float = 2.0,
    pump: float = 15.0,
    b: float = 0.25,
    noise: float = 0.0,
    digitize: bool = False,
    start: ArrayLike = (1.0, 1.0, 1.0),
    discard: int = 1000,
    substeps: int = 20,
    random_state: int | np.random.Generator | None = 0,
) -> Series:
    """Generate the intensity of a far-infrared laser, as in data set A of the Santa Fe competition.

    The recorded laser follows the Lorenz-Haken equations of a single-mode laser closely; they are the Lorenz equations,
    dx/dt = sigma (y - x), dy/dt = x (pump - z) - y, dz/dt = x y - b z, where x is the field. The intensity is x²:
    pulses that grow until they collapse.

    Parameters
    ----------
    steps : int
        Number of samples to return.
    dt : float, default 0.5
        Time between samples; with the default there are about seven per pulse, as in the recording.
    sigma, pump, b : float, default 2.0, 15.0, 0.25
        The constants of the equations. The defaults are those that the recording was compared with.
    noise : float, default 0.0
        Standard deviation of Gaussian noise of the detector, in units of the intensity's standard deviation.
        Use a value such as 0.05 to make the series more like a measured one.
    digitize : bool, default False
        Whether the intensity is scaled to 0 ... 255 and rounded, as an 8-bit converter does.
    start : array of 3 numbers, default (1.0, 1.0, 1.0)
        The point at time 0.
    discard : int, default 1000
        Number of first samples that are not returned, in which the laser approaches its attractor.
    substeps : int, default 20
        Number of solver steps (fourth-order Runge-Kutta) per sample. Use more for higher accuracy, or with a larger
        `dt`.
    random_state : int, numpy.random.Generator or None, default 0
        Seed of the noise. It has no effect if `noise` is 0.

    Returns
    -------
    array of shape (steps, 1)
        The intensity.

    Raises
    ------
    ValueError
        If an argument is out of range, or the solution diverges.

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
    >>> series = laser(1000, digitize=True)
    >>> series.shape, float(series.min()) >= 0, float(series.max())
    ((1000, 1), True, 255.0)
    """
    sigma, pump, b = (check_number(n, v) for n, v in (("sigma", sigma), ("pump", pump), ("b", b)))
    noise = noise if noise == 0 else check_positive("noise", noise)
    check_boolean("digitize", digitize)

    def slope(x: float, y: float, z: float) -> Point:
        return sigma * (y - x), x * (pump - z) - y, x * y - b * z

    field = flow(slope, start, "laser", steps=steps, discard=discard, dt=dt, substeps=substeps)
    intensity = field[:, :1] ** 2
    if noise:
        intensity = intensity + noise * intensity.std() * as_generator(random_state).standard_normal(intensity.shape)
    if digitize:
        low = min(0.0, float(intensity.min()))
        intensity = np.round(255 * (intensity - low) / (float(intensity.max()) - low))
    return intensity
