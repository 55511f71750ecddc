"""The double scroll and the laser against other solvers of their equations."""

import numpy as np
from scipy.integrate import solve_ivp

from echolearn import datasets


def circuit(t, v):
    g = (v[0] - v[1]) / 3.44 + 4.5e-5 * np.sinh(11.6 * (v[0] - v[1]))
    return [v[0] / 1.2 - g, g - v[2], v[1] - 0.193 * v[2]]


def test_double_scroll_solves_its_equation():
    start, times = [0.3, 0.1, -0.1], 0.25 * np.arange(1, 31)
    slow = solve_ivp(circuit, (0, 8), start, method="DOP853", rtol=1e-11, atol=1e-12, t_eval=times).y.T
    np.testing.assert_allclose(datasets.double_scroll(30, start=start, discard=0), slow, rtol=0, atol=1e-6)


def test_laser_is_the_square_of_the_field_of_its_equations():
    times = 0.5 * np.arange(1, 31)

    def slope(t, p):
        return [2 * (p[1] - p[0]), p[0] * (15 - p[2]) - p[1], p[0] * p[1] - 0.25 * p[2]]

    slow = solve_ivp(slope, (0, 15), [1.0, 2.0, 3.0], method="DOP853", rtol=1e-11, atol=1e-12, t_eval=times).y[0] ** 2
    found = datasets.laser(30, start=(1, 2, 3), discard=0)
    np.testing.assert_allclose(found[:, 0], slow, rtol=0, atol=1e-3)
    pulses = datasets.laser(2000)[:, 0]
    peaks = (pulses[1:-1] > pulses[:-2]) & (pulses[1:-1] > pulses[2:])
    assert 6 < 2000 / peaks.sum() < 9  # samples per pulse
    digits = datasets.laser(500, digitize=True, noise=0.05)
    assert digits.min() == 0
    assert digits.max() == 255
    np.testing.assert_array_equal(digits, np.round(digits))
