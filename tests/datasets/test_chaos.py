"""Chaotic flows, the Hénon map and the Mackey-Glass equation against other solvers, and against known exponents."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import reference as ref
from echolearn import datasets
from echolearn.datasets import _chaos, _spatiotemporal
from echolearn.datasets._chaos import TRUE_CHAOS

FLOWS = {
    "lorenz": lambda t, p: [10 * (p[1] - p[0]), p[0] * (28 - p[2]) - p[1], p[0] * p[1] - 8 / 3 * p[2]],
    "rossler": lambda t, p: [-p[1] - p[2], p[0] + 0.2 * p[1], 0.2 + p[2] * (p[0] - 5.7)],
}


@pytest.mark.parametrize(("tau", "gamma", "start"), [(17.0, 0.1, 1.2), (30.0, 0.1, 0.6), (6.5, 0.3, 1.0)])
def test_mackey_glass_solves_its_equation(tau, gamma, start):
    slow = ref.mackey_glass(np.arange(1.0, 81.0), tau, 0.2, gamma, 10.0, start)
    fast = datasets.mackey_glass(80, tau, gamma=gamma, start=start, discard=0)
    assert fast.shape == (80, 1)
    np.testing.assert_allclose(fast[:, 0], slow, rtol=0, atol=1e-8)


def restarted(name, monkeypatch):
    """Return the solver's arguments for a default series, and one of its states after the transient."""
    module = _spatiotemporal if name in ("kuramoto_sivashinsky", "lorenz_96") else _chaos
    solve, calls = _chaos.integrate, []

    def record(*arguments, **options):
        calls.append((arguments, options))
        return solve(*arguments, **options)

    monkeypatch.setattr(module, "integrate", record)
    getattr(datasets, name)(1, discard=800)
    ((slope, start), options) = calls[0]
    return slope, solve(slope, start, **options)[-1], options


FLOWS_OF_SOLVER = [name for name in TRUE_CHAOS if name not in ("henon", "mackey_glass")]


@pytest.mark.parametrize("name", FLOWS_OF_SOLVER)
def test_series_are_true_for_as_long_as_stated(name, monkeypatch):
    # against steps of half the length and a polynomial of higher degree
    slope, state, options = restarted(name, monkeypatch)
    true = TRUE_CHAOS[name]
    share = 0.3 if name == "kuramoto_sivashinsky" else 1.0  # the slow one: a part, and what it must be by then
    options["steps"] = int(share * true.lyapunov_times / true.exponent / options["dt"])
    finer = options | {"step": options["step"] / 2, "nodes": options.get("nodes", 16) + 6}
    ours, witness = (_chaos.integrate(slope, state, **o) for o in (options, finer))
    errors = np.linalg.norm(ours - witness, axis=1) / np.linalg.norm(witness.std(axis=0))
    assert errors.max() < (0.05 if share == 1 else 1e-7)
    assert np.abs(ours - witness).max() > 0  # the witness is another computation


def test_mackey_glass_is_true_for_as_long_as_stated():
    exponent, true_for = TRUE_CHAOS["mackey_glass"]
    times = np.arange(1, int(true_for / exponent))
    constants = (0.2, 0.1, 10.0)
    ours, witness = (
        _chaos.solve_delayed(1.2, 17.0, per_delay, times, constants, nodes=nodes)
        for per_delay, nodes in ((34, 16), (68, 22))
    )
    assert np.abs(ours - witness).max() < 0.02 * witness.std()


def decimal_lorenz(start, dt, steps, order=40):
    """Return the Lorenz flow by Taylor series in decimal numbers of 45 digits."""
    rows = []
    with localcontext() as context:
        context.prec = 45
        h, beta = Decimal(dt), Decimal(8 / 3)
        point = [Decimal(v) for v in start]
        for _ in range(steps):
            x, y, z = ([v] for v in point)
            for k in range(order):
                xz, xy = (sum(x[j] * other[k - j] for j in range(k + 1)) for other in (z, y))
                slopes = 10 * (y[k] - x[k]), 28 * x[k] - xz - y[k], xy - beta * z[k]
                for terms, slope in zip((x, y, z), slopes, strict=True):
                    terms.append(slope / (k + 1))
            point = [sum(term * h**k for k, term in enumerate(terms)) for terms in (x, y, z)]
            rows.append([float(v) for v in point])
    return np.array(rows)


def test_the_lorenz_flow_agrees_with_decimal_numbers_for_as_long_as_stated():
    exponent, true_for = TRUE_CHAOS["lorenz"]
    start, steps = datasets.lorenz(1, discard=700)[0].tolist(), int(true_for / exponent / 0.02)
    ours, witness = datasets.lorenz(steps, start=start, discard=0), decimal_lorenz(start, 0.02, steps)
    np.testing.assert_allclose(ours[:200], witness[:200], rtol=0, atol=1e-11)
    assert (np.abs(ours - witness) / witness.std(axis=0)).max() < 0.02


def test_henon_agrees_with_decimal_numbers_for_as_long_as_stated():
    exponent, true_for = TRUE_CHAOS["henon"]
    steps, (x, y), rows = int(true_for / exponent), map(Decimal, datasets.henon(1)[0].tolist()), []
    ours = datasets.henon(steps, start=(float(x), float(y)), discard=0)
    with localcontext() as context:
        context.prec = 60
        a, b = map(Decimal, (1.4, 0.3))  # as floating-point numbers have them
        for _ in range(steps):
            x, y = 1 - a * x * x + y, b * x
            rows.append([float(x), float(y)])
    assert np.abs(ours - np.array(rows)).max() < 0.02


def test_docstrings_state_the_times_that_comparisons_are_held_to():
    for name, true in TRUE_CHAOS.items():
        words = " ".join(getattr(datasets, name).__doc__.split())
        assert f"for {true.lyapunov_times:g} Lyapunov times" in words, name
        assert f"{true.exponent:g}" in words, name


@pytest.mark.parametrize("name", FLOWS)
def test_flows_solve_their_equations(name):
    start, times = np.array([1.5, -2.0, 20.0]), 0.05 * np.arange(1, 41)
    slow = solve_ivp(FLOWS[name], (0, 2), start, method="DOP853", rtol=1e-13, atol=1e-13, t_eval=times).y.T
    fast = getattr(datasets, name)(40, dt=0.05, start=start, discard=0)
    np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-7)  # what the other solver interpolates to


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
    np.testing.assert_allclose(datasets.double_scroll(30, start=start, discard=0), slow, rtol=0, atol=1e-7)


def test_laser_is_the_square_of_the_field_of_its_equations():
    times = 0.5 * np.arange(1, 31)

    def slope(t, p):
        return [2 * (p[1] - p[0]), p[0] * (15 - p[2]) - p[1], p[0] * p[1] - 0.25 * p[2]]

    slow = solve_ivp(slope, (0, 15), [1.0, 2.0, 3.0], method="DOP853", rtol=1e-11, atol=1e-12, t_eval=times).y[0] ** 2
    found = datasets.laser(30, start=(1, 2, 3), discard=0)
    np.testing.assert_allclose(found[:, 0], slow, rtol=0, atol=1e-6)
    pulses = datasets.laser(2000)[:, 0]
    peaks = (pulses[1:-1] > pulses[:-2]) & (pulses[1:-1] > pulses[2:])
    assert 6 < 2000 / peaks.sum() < 9  # samples per pulse
