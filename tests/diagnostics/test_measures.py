"""Diagnostics on reservoirs whose numbers are known, and against slow ways to the same numbers."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from echolearn import Reservoir
from echolearn.diagnostics import measures as diagnostics
from echolearn.diagnostics.measures import echo, linearised, lyapunov, memory_capacity, ranks
from echolearn.reservoir.topologies import delay_line, ring
from echolearn.states.run import harvest

X = np.random.default_rng(0).normal(size=(600, 1))


def line(k, **how):
    """Inputs enter at the first unit and move on by one unit a step."""
    return Reservoir(W=np.eye(1, k), W_rec=delay_line(k), activation="identity", **how)


def linear(N, radius=0.8, **how):
    return Reservoir.random(1, N, activation="identity", spectral_radius=radius, random_state=0, **how)


@settings(max_examples=8, deadline=None)
@given(st.integers(2, 20))
def test_a_delay_line_remembers_as_long_as_it_is(k):
    memory = memory_capacity(line(k))
    assert memory.total == pytest.approx(k, abs=0.05)
    np.testing.assert_allclose(memory.by_delay[:k], 1, rtol=1e-9)
    assert memory.by_delay[k:].max() < 0.02
    assert len(memory.by_delay) == 2 * k + 1


def test_memory_capacity_is_at_most_n_and_less_where_units_saturate():
    how = {"spectral_radius": 0.95, "random_state": 1}
    straight, bent = (Reservoir.random(1, 30, activation=f, **how) for f in ("identity", "tanh"))
    loud = replace(bent, W=20 * bent.W)
    totals = [memory_capacity(r).total for r in (straight, bent, loud)]
    assert 31 > totals[0] > totals[2]
    assert totals[1] > totals[2]


def test_recall_against_a_least_squares_fit():
    r = Reservoir.random(1, 10, leak=0.5, random_state=0)
    memory = memory_capacity(r, delays=5, steps=200, random_state=3)
    u = np.random.default_rng(3).uniform(-0.5, 0.5, 205)
    H = np.hstack([harvest(r, u[:, None]), np.ones((205, 1))])[5:]
    for d in range(6):
        t = u[5 - d : 205 - d]
        y = H[100:] @ np.linalg.lstsq(H[:100], t[:100], rcond=None)[0]
        assert memory.by_delay[d] == pytest.approx(np.corrcoef(y, t[100:])[0, 1] ** 2, rel=1e-4)
    with pytest.raises(ValueError, match=r"steps=20 is too short for delays=5; give at least 24"):
        memory_capacity(r, delays=5, steps=20)


def test_an_idle_reservoir_remembers_nothing():
    silent = Reservoir(W=np.zeros((1, 3)), W_rec=np.zeros((3, 3)), activation="tanh")
    np.testing.assert_allclose(memory_capacity(silent).by_delay, 0, atol=1e-12)


@pytest.mark.parametrize("radius", [0.5, 0.9, 1.3])
def test_a_linear_reservoirs_exponent_is_the_log_of_its_radius(radius):
    with pytest.warns() if radius > 1 else np.errstate():
        r = linear(60, radius)
    assert lyapunov(r, X).exponent == pytest.approx(np.log(radius), abs=0.01)
    assert linearised(r, X).radius == pytest.approx(radius, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 20), st.floats(0.2, 1.5), st.floats(0.05, 1.0))
def test_a_ring_grows_by_its_weight_and_leaks_to_one(N, weight, leak):
    r = Reservoir(W=np.ones((1, N)), W_rec=weight * ring(N), activation="identity", leak=leak)
    radius = 1 - leak + leak * weight
    assert linearised(r).radius == pytest.approx(radius, rel=1e-6)
    assert linearised(r, X[:5]).radius == pytest.approx(radius, rel=1e-6)
    if leak == 1:
        np.testing.assert_allclose(lyapunov(r, X[:50]).growth, np.log(weight), atol=1e-9)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
def test_exponent_against_two_runs_that_lie_close(activation):
    """The slow way: a second run begins 1e-7 beside the first, and is brought back to that distance every step."""
    rng = np.random.default_rng(5)
    w = ref.network(rng, N=6, n_in=1)
    r = Reservoir(**w, activation=activation)
    v = np.random.default_rng(0).standard_normal(6)
    h, e = np.zeros(6), 1e-7
    other = h + e * v / np.linalg.norm(v)
    growth = []
    for x in X[:60]:
        h, other = (ref.states(w, x[None], activation, h0=start)[:, 0] for start in (h, other))
        gap = np.linalg.norm(other - h)
        growth.append(np.log(gap / e))
        other = h + (other - h) * e / gap
    np.testing.assert_allclose(lyapunov(r, X[:60]).growth, growth, atol=1e-5)


def test_a_delay_lines_disturbance_dies_out():
    found = lyapunov(line(5), X[:50])
    assert found.exponent == -np.inf
    assert np.isneginf(found.growth[5:]).all()
    assert linearised(line(5)).radius == 0
    with pytest.raises(ValueError, match="washout=5 of 5 steps leaves nothing"):
        lyapunov(line(5), X[:5], washout=5)


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu"])
def test_the_linearised_step_against_differences(activation):
    w = ref.network(np.random.default_rng(2), N=5, n_in=1)
    r = Reservoir(**w, activation=activation)
    h, x, e = np.random.default_rng(3).normal(size=5), np.array([0.7]), 1e-6

    def step(h):
        return ref.states(w, x[None], activation, h0=h)[:, 0]

    slow = np.array([(step(h + e * d) - step(h - e * d)) / (2 * e) for d in np.eye(5)]).T
    A = linearised(replace(r, initial_state=h), x[None]).A.toarray()
    np.testing.assert_allclose(A, slow, atol=1e-8)


def test_at_rest_the_bias_sets_the_slope():
    r = Reservoir.random(1, 20, spectral_radius=0.9, random_state=0)
    assert linearised(r).radius == pytest.approx(0.9, rel=1e-5)
    biased = replace(r, bias=np.full(20, 1.0))
    assert linearised(biased).radius == pytest.approx(0.9 * (1 - np.tanh(1.0) ** 2), rel=1e-5)
    assert linearised(r, 5 * X).radius < 0.9  # driven units are flatter


def test_echo_of_a_linear_ring_is_exact():
    r = Reservoir(W=np.ones((1, 8)), W_rec=0.5 * ring(8), activation="identity")
    found = echo(r, X[:30])
    np.testing.assert_allclose(found.distances, found.distances[0] * 0.5 ** np.arange(31), rtol=1e-6)
    assert found.forgotten_after() == 10  # 2^-10 < 1e-3
    assert found.forgotten_after(1e-20) is None


def test_echo_tells_who_forgets():
    quiet = np.zeros((300, 1))
    assert echo(Reservoir.random(1, 50, spectral_radius=0.8, random_state=0), quiet).forgotten_after() is not None
    lively = replace(Reservoir.random(1, 50, random_state=0), W_rec=3 * Reservoir.random(1, 50, random_state=0).W_rec)
    assert echo(lively, quiet).forgotten_after() is None
    assert lyapunov(lively, quiet).exponent > 0
    # inputs that saturate the units make even this one forget
    assert echo(lively, 1000 * X).forgotten_after() is not None
    assert lyapunov(lively, 1000 * X).exponent < 0


def test_ranks_of_a_delay_line():
    found = ranks(line(6), steps=20, common=8)
    assert (found.kernel, found.generalisation) == (6, 1)  # all its units forget what is 6 steps old
    assert ranks(line(6), steps=20, common=4).generalisation == 3  # the two last ones have not yet
    with pytest.raises(ValueError, match="common=20 of steps=20"):
        ranks(line(6), steps=20, common=20)


def test_kernel_rank_of_a_linear_reservoir_is_that_of_its_reach():
    """Final states are Σ W_rec^k W'x_{T-k}: they span what W', W_rec W', W_rec² W' ... span."""
    W_rec = np.diag([0.9, 0.9, -0.9, 0.5])  # two units that always do the same
    r = Reservoir(W=np.ones((1, 4)), W_rec=W_rec, activation="identity")
    reach = np.stack([np.linalg.matrix_power(W_rec, k) @ np.ones(4) for k in range(20)])
    assert ranks(r, tolerance=1e-6).kernel == np.linalg.matrix_rank(reach) == 3


def test_feedback_and_lists_are_refused():
    fed = Reservoir.random(1, 5, n_feedback=1, random_state=0)
    for look in (lyapunov, echo, linearised):
        with pytest.raises(ValueError, match=r"this one has feedback weights. Look at reservoir\.with_weights"):
            look(fed, X)
        with pytest.raises(ValueError, match="X holds 2 sequences; diagnostics take one"):
            look(line(3), [X, X])
        with pytest.raises(ValueError, match="X has 2 features"):
            look(line(3), np.ones((5, 2)))
    assert linearised(fed).radius == pytest.approx(0.9, rel=1e-5)


RESULTS = {
    "linearised": lambda r: linearised(r, X),
    "lyapunov": lambda r: lyapunov(r, X),
    "echo": lambda r: echo(r, X),
    "memory": lambda r: memory_capacity(r, delays=10, steps=100),
    "ranks": lambda r: ranks(r),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_every_diagnostic_has_a_picture(kind, tmp_path):
    figures = pytest.importorskip("matplotlib.figure")
    for r in (Reservoir.random(1, 12, random_state=0), line(4)):
        with np.errstate(all="raise", under="ignore"):
            figure = RESULTS[kind](r).plot()
        assert isinstance(figure, figures.Figure)
        (axes,) = figure.axes
        assert axes.get_title()
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        figure.savefig(tmp_path / "p.png")
        assert RESULTS[kind](r).plot(figure.add_subplot()) is figure


def test_without_matplotlib_only_plots_are_missing(monkeypatch):
    monkeypatch.delitem(sys.modules, "echolearn.diagnostics.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    found = diagnostics.echo(line(3), X[:10])
    monkeypatch.delattr(sys.modules["echolearn"], "diagnostics_plots", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'echolearn\[report\]'"):
        found.plot()
