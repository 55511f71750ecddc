"""Networks that receive their own outputs, against plain loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS
from echolearn.sequences.batch import pack, unpack
from echolearn.states import closed_loop
from echolearn.states.closed_loop import run_closed_loop, run_with_feedback


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("direct", [True, False])
def test_outputs_of_a_network_with_feedback_agree_with_loops(activation, direct):
    rng = np.random.default_rng(7)
    w = ref.network(rng, N=5, n_in=2, n_out=3, feedback=True)
    w["W_fb"] *= 0.3
    h0 = 0.5 * rng.normal(size=5)
    U = 0.3 * rng.normal(size=(5 + 2 * direct + 1, 3))
    X = [rng.normal(size=(n, 2)) for n in (4, 9, 1, 6)]
    r = Reservoir(**w, activation=activation, initial_state=h0)
    batch = pack(X, np.float64)
    for x, got in zip(X, unpack(batch, run_with_feedback(r, batch, U, direct, np.tanh)[0]), strict=True):
        slow = ref.run_with_feedback(w, x, U, activation, direct=direct, h0=h0, feed_back=np.tanh)
        np.testing.assert_allclose(got, slow, rtol=1e-10, atol=1e-12)


def test_saturated_sigmoids_raise_no_warning():
    """exp(-z) overflows for z far below zero; the sigmoid itself does not."""
    w = {"W": np.full((1, 2), -1e4), "W_rec": np.eye(2), "W_fb": np.ones((2, 1))}
    batch = pack([np.ones((3, 1))], np.float32)
    out, _ = run_with_feedback(Reservoir(**w), batch, np.ones((3, 1)), False, lambda y: y)
    np.testing.assert_array_equal(out, 1)


@given(
    seed=st.integers(0, 10**6),
    activation=st.sampled_from(list(ACTIVATIONS)),
    direct=st.booleans(),
    dims=st.integers(1, 3),
    inputs=st.integers(0, 2),
    bias=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_each_path_of_a_closed_loop_agrees_with_a_loop(seed, activation, direct, dims, inputs, bias):
    rng = np.random.default_rng(seed)
    w = ref.network(rng, n_in=dims + inputs, bias=bias)
    N, steps, paths = len(w["leak"]), 5, 3
    reservoir = Reservoir(**w, activation=activation)
    U = 0.3 * rng.normal(size=(N + direct * (dims + inputs) + 1, dims))
    h, x = rng.normal(size=(paths, N)), rng.normal(size=(paths, dims))
    E, shocks = rng.normal(size=(steps, paths, inputs)), rng.normal(size=(steps, paths, dims))
    fast = run_closed_loop(reservoir, U, direct, h, x, E=E, shocks=shocks)
    for b in range(paths):
        slow = ref.run_closed_loop(w, h[b], x[b], E[:, b], U, activation, direct=direct, shocks=shocks[:, b])
        np.testing.assert_allclose(fast[:, b], slow, rtol=1e-9, atol=1e-9)


def test_a_sparse_recurrence_gives_the_path_of_a_dense_one(monkeypatch):
    rng = np.random.default_rng(0)
    reservoir = Reservoir.random(1, 20, random_state=0)
    U, h, x, E = 0.1 * rng.normal(size=(21, 1)), np.zeros((2, 20)), rng.normal(size=(2, 1)), np.empty((9, 2, 0))
    dense = run_closed_loop(reservoir, U, False, h, x, E=E)
    monkeypatch.setattr(closed_loop, "MAX_DENSE_LOOP_UNITS", 10)
    np.testing.assert_allclose(run_closed_loop(reservoir, U, False, h, x, E=E), dense, rtol=1e-10, atol=1e-12)
