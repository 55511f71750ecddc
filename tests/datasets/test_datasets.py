"""The series against other solvers, term by term, and against known exponents."""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import reference as ref
from echolearn import datasets
from echolearn.datasets import _memory_tasks

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


def test_lorenz_96_solves_its_equation():
    start = datasets.lorenz_96(1, dims=6, discard=50)[0]
    times = 0.05 * np.arange(1, 21)

    def slope(t, x):
        n = len(x)
        return [(x[(i + 1) % n] - x[i - 2]) * x[i - 1] - x[i] + 8 for i in range(n)]

    slow = solve_ivp(slope, (0, 1.01), start, method="DOP853", rtol=1e-11, atol=1e-12, t_eval=times).y.T
    np.testing.assert_allclose(datasets.lorenz_96(20, dims=6, discard=51), slow, rtol=0, atol=5e-3)


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


@pytest.mark.parametrize("points", [32, 33])
def test_kuramoto_sivashinsky_solves_its_equation(points):
    # from a point of the attractor, with a general solver for stiff equations
    u = datasets.kuramoto_sivashinsky(9, points=points, discard=400, dt=0.125, random_state=3)
    k = 2j * np.pi * np.fft.fftfreq(points, 22.0 / points)
    k[points // 2] *= points % 2  # the shortest wave has no first derivative on the grid
    square = (2 * np.pi * np.fft.fftfreq(points, 22.0 / points)) ** 2

    def slope(t, u):
        v = np.fft.fft(u)
        return np.fft.ifft(-0.5 * k * np.fft.fft(u * u) + (square - square**2) * v).real

    slow = solve_ivp(slope, (0, 1), u[0], method="LSODA", rtol=1e-9, atol=1e-9, t_eval=0.125 * np.arange(1, 9)).y.T
    np.testing.assert_allclose(u[1:], slow, rtol=0, atol=1e-4)
    np.testing.assert_allclose(u.mean(axis=1), 0, atol=1e-10)  # conserved


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


@given(order=st.sampled_from([10, 30]), seed=st.integers(0, 10**6), discard=st.sampled_from([0, 200]))
@settings(max_examples=20, deadline=None)
def test_narma_term_by_term(order, seed, discard):
    u, y = datasets.narma(80, order, discard=discard, random_state=seed)
    assert u.shape == y.shape == (80, 1)
    assert 0 <= u.min() <= u.max() <= 0.5
    alpha, beta, gamma, delta = {10: (0.3, 0.05, 1.5, 0.1), 30: (0.2, 0.004, 1.5, 0.201)}[order]
    for t in range(order, 80):
        past = sum(y[t - 1 - i, 0] for i in range(order))
        expected = alpha * y[t - 1] + beta * y[t - 1] * past + gamma * u[t - order + 1] * u[t] + delta
        np.testing.assert_allclose(y[t], expected)


def test_narma_starts_from_zero():
    u, y = datasets.narma(30, discard=0, random_state=1)
    assert len(u) == 30
    assert y[0, 0] >= 0.1  # alpha 0 + ... + delta, and a product of inputs that are not negative


def test_narma_draws_again_and_gives_up(monkeypatch):
    monkeypatch.setitem(_memory_tasks.NARMA_COEFFICIENTS, 10, (0.3, 0.05, 2.0, 0.1))  # a third of all draws explode
    for seed in range(10):
        assert np.isfinite(datasets.narma(100, random_state=seed)[1]).all()
    monkeypatch.setitem(_memory_tasks.NARMA_COEFFICIENTS, 10, (2.0, 0.05, 1.5, 0.1))  # all do
    with pytest.raises(ValueError, match="20 draws of u all ran off"):
        datasets.narma(100)


@pytest.mark.parametrize("count", [1, 2, 5, 8, 12])
def test_mso_is_a_sum_of_sines(count):
    x = datasets.mso(40, count)
    frequencies = [0.2, 0.311, 0.42, 0.51, 0.63, 0.74, 0.85, 0.97, 1.08, 1.19, 1.27, 1.32][:count]
    for t in range(40):
        assert x[t, 0] == pytest.approx(sum(np.sin(f * t) for f in frequencies))


@pytest.mark.parametrize("name", [n for n in datasets.__all__ if n not in ("narma", "mso", "sunspots")])
def test_discarded_steps_are_the_first_ones(name):
    generate = getattr(datasets, name)
    whole, late = generate(30, discard=0), generate(20, discard=10)
    np.testing.assert_array_equal(late, whole[10:])
    assert late.dtype == np.float64
    assert late.flags.c_contiguous


def test_seeds_decide_where_numbers_are_drawn():
    for generate in (datasets.narma, datasets.kuramoto_sivashinsky, datasets.lorenz_96):
        a, b, c = (np.ravel(generate(10, discard=20, random_state=seed)) for seed in (0, 0, 1))
        np.testing.assert_array_equal(a, b)
        assert not np.allclose(a, c)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: datasets.mackey_glass(0), "steps=0; expected a whole number >= 1"),
        (lambda: datasets.mackey_glass(10, tau=-1), "tau=-1; expected a number > 0"),
        (lambda: datasets.mackey_glass(10, tau=0.01), "less than half a step"),
        (lambda: datasets.mackey_glass(10, start=np.nan), "finite"),
        (lambda: datasets.lorenz(2.5), "steps=2.5"),
        (lambda: datasets.lorenz(10, dt="fast"), "dt='fast'"),
        (lambda: datasets.lorenz(10, start=(1, 2)), "expected 3 finite numbers"),
        (lambda: datasets.lorenz(10, dt=5.0), "lorenz ran off to infinity"),
        (lambda: datasets.rossler(10, substeps=0), "substeps=0"),
        (lambda: datasets.rossler(500, start=(50, 50, 50), discard=0), "rossler ran off to infinity"),
        (lambda: datasets.henon(10, discard=-1), "discard=-1"),
        (lambda: datasets.henon(100, start=(3, 3)), "henon ran off to infinity after 3 steps"),
        (lambda: datasets.kuramoto_sivashinsky(10, points=2), "points=2"),
        (lambda: datasets.kuramoto_sivashinsky(10, length=0), "length=0"),
        (lambda: datasets.narma(10, 7), r"order=7; expected one of \[10, 30\]"),
        (lambda: datasets.mso(10, 13), "expected at most 12"),
    ],
)
def test_bad_input_is_explained(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_sunspots_come_from_the_package_that_ships_them(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(ModuleNotFoundError, match="pip install statsmodels"):
        datasets.sunspots()
    folder = tmp_path / "statsmodels" / "datasets" / "sunspots"
    folder.mkdir(parents=True)
    (tmp_path / "statsmodels" / "__init__.py").write_text("raise ImportError('need not be imported')")
    (folder / "sunspots.csv").write_text('"YEAR","SUNACTIVITY"\n1700,5\n1701,11\n2008,2.9\n')
    importlib.invalidate_caches()
    np.testing.assert_array_equal(datasets.sunspots(), [[5], [11], [2.9]])
