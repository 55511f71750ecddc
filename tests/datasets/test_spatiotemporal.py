"""Lorenz 96 and the Kuramoto-Sivashinsky equation against other solvers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from echolearn import datasets
from echolearn.datasets import _spatiotemporal


def test_lorenz_96_solves_its_equation():
    start = datasets.lorenz_96(1, dims=6, discard=50)[0]
    times = 0.05 * np.arange(1, 21)

    def slope(t, x):
        n = len(x)
        return [(x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + 8 for i in range(n)]

    slow = solve_ivp(slope, (0, 1.01), start, method="DOP853", rtol=1e-11, atol=1e-12, t_eval=times).y.T
    np.testing.assert_allclose(datasets.lorenz_96(20, dims=6, discard=51), slow, rtol=0, atol=1e-7)


@pytest.mark.parametrize("points", [128, 129])
def test_kuramoto_sivashinsky_solves_its_equation(points):
    # from a point of the attractor, with a general solver for stiff equations
    u = datasets.kuramoto_sivashinsky(9, points=points, discard=400, dt=0.125, random_state=3)
    k = 2j * np.pi * np.fft.fftfreq(points, 22.0 / points)
    k[points // 2] *= points % 2  # the shortest wave has no first derivative on the grid
    square = (2 * np.pi * np.fft.fftfreq(points, 22.0 / points)) ** 2

    def slope(t, u):
        v = np.fft.fft(u)
        return np.fft.ifft(-0.5 * k * np.fft.fft(u * u) + (square - square**2) * v).real

    slow = solve_ivp(slope, (0, 1), u[0], method="LSODA", rtol=1e-10, atol=1e-10, t_eval=0.125 * np.arange(1, 9)).y.T
    np.testing.assert_allclose(u[1:], slow, rtol=0, atol=1e-6)
    np.testing.assert_allclose(u.mean(axis=1), 0, atol=1e-10)  # conserved


def test_a_finer_grid_does_not_change_the_waves(monkeypatch):
    found = []
    for distance in (_spatiotemporal.MAX_POINT_DISTANCE, 0.1, 1.0):
        monkeypatch.setattr(_spatiotemporal, "MAX_POINT_DISTANCE", distance)
        found.append(datasets.kuramoto_sivashinsky(40, points=32, discard=400))
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-8)
    assert np.abs(found[0] - found[2]).max() > 1e-6  # 32 points do not carry all waves
