"""How fast reservoirs forget: known answers, and slow ways to the same numbers."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from echolearn import Reservoir
from echolearn.diagnostics import echo, linearised, lyapunov
from echolearn.reservoir._topologies import delay_line, ring

X = np.random.default_rng(0).normal(size=(600, 1))


def line(k):
    """A delay line: inputs enter at the first unit and move on by one unit per step."""
    return Reservoir(W=np.eye(1, k), W_rec=delay_line(k), activation="identity")


def linear(N, radius):
    return Reservoir.random(1, N, activation="identity", spectral_radius=radius, random_state=0)


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
    """The slow way: a second run starts 1e-7 beside the first, and is brought back to that distance at every step."""
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


def test_echo_tells_which_reservoir_forgets():
    quiet = np.zeros((300, 1))
    assert echo(Reservoir.random(1, 50, spectral_radius=0.8, random_state=0), quiet).forgotten_after() is not None
    lively = replace(Reservoir.random(1, 50, random_state=0), W_rec=3 * Reservoir.random(1, 50, random_state=0).W_rec)
    assert echo(lively, quiet).forgotten_after() is None
    assert lyapunov(lively, quiet).exponent > 0
    # inputs that saturate the units make even this one forget
    assert echo(lively, 1000 * X).forgotten_after() is not None
    assert lyapunov(lively, 1000 * X).exponent < 0


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
