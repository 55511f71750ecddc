"""Chaotic flows, the Hénon map and the Mackey-Glass equation against other solvers, and against known exponents."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import reference as ref
from echolearn import datasets

FLOWS = {
    "lorenz": lambda t, p: [10 * (p[1] - p[0]), p[0] * (28 - p[2]) - p[1], p[0] * p[1] - 8 / 3 * p[2]],
    "rossler": lambda t, p: [-p[1] - p[2], p[0] + 0.2 * p[1], 0.2 + p[2] * (p[0] - 5.7)],
}


@pytest.mark.parametrize(("tau", "gamma", "start"), [(17.0, 0.1, 1.2), (30.0, 0.1, 0.6), (6.5, 0.3, 1.0)])
def test_mackey_glass_solves_its_equation(tau, gamma, start):
    slow = ref.mackey_glass(np.arange(1.0, 81.0), tau, 0.2, gamma, 10.0, start)
    fast = datasets.mackey_glass(80, tau, gamma=gamma, start=start, discard=0)
    assert fast.shape == (80, 1)
    np.testing.assert_allclose(fast[:, 0], slow, rtol=0, atol=2e-6)


def test_mackey_glass_has_order_four():
    slow = ref.mackey_glass(np.arange(1.0, 81.0), 17.0, 0.2, 0.1, 10.0, 1.2)
    coarse, fine = (np.abs(datasets.mackey_glass(80, discard=0, substeps=n)[:, 0] - slow).max() for n in (2, 4))
    assert 10 < coarse / fine < 30  # 16, and a little


@pytest.mark.parametrize("name", FLOWS)
def test_flows_solve_their_equations(name):
    start, times = np.array([1.5, -2.0, 20.0]), 0.05 * np.arange(1, 41)
    slow = solve_ivp(FLOWS[name], (0, 2), start, method="DOP853", rtol=1e-11, atol=1e-11, t_eval=times).y.T
    fast = getattr(datasets, name)(40, dt=0.05, start=start, discard=0, substeps=20)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-4)


def test_henon_follows_its_map():
    p = datasets.henon(50, start=(0.1, 0.2), discard=0)
    np.testing.assert_allclose(p[0], [1 - 1.4 * 0.1**2 + 0.2, 0.3 * 0.1])
    np.testing.assert_allclose(p[1:, 0], 1 - 1.4 * p[:-1, 0] ** 2 + p[:-1, 1])
    np.testing.assert_allclose(p[1:, 1], 0.3 * p[:-1, 0])


def test_nearby_henon_points_separate_at_the_known_rate():
    logs, v = 0.0, np.array([1.0, 0.0])
    for x, _ in datasets.henon(20_000):
        v = np.array([-2.8 * x * v[0] + v[1], 0.3 * v[0]])
        logs += np.log(np.linalg.norm(v))
        v /= np.linalg.norm(v)
    assert logs / 20_000 == pytest.approx(0.419, abs=0.01)


def test_nearby_lorenz_points_separate_at_the_known_rate():
    rates = []
    for start in datasets.lorenz(2000)[::200]:
        near, far = (datasets.lorenz(500, start=start + np.array([d, 0, 0]), discard=0) for d in (0.0, 1e-9))
        distance = np.linalg.norm(near - far, axis=1)
        rates.append(np.log(distance[-1] / distance[99]) / 8)
    assert np.mean(rates) == pytest.approx(0.906, abs=0.25)


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
