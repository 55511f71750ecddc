"""Eq. 1: the compiled recurrence against loops, and what must hold of any recurrence."""

import numpy as np
import pytest
from scipy import sparse

import reference as ref
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import pack, unpack
from echolearn.states._kernels import _tanh
from echolearn.states._weights import padded, padded_positions
from echolearn.states.closed_loop import run_with_feedback
from echolearn.states.harvesting import harvest
from echolearn.states.run import run

ACTIVATIONS = ["sigmoid", "tanh", "relu", "identity"]


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("feedback", [False, True])
@pytest.mark.parametrize(("dtype", "close"), [("float64", 1e-12), ("float32", 1e-5)])
def test_states_agree_with_loops(activation, feedback, dtype, close):
    for seed in range(5):
        rng = np.random.default_rng([4, seed])
        w = ref.network(rng, feedback=feedback, bias=bool(seed % 2))
        h0 = rng.normal(size=w["W"].shape[1]) if seed > 2 else None
        X = [rng.normal(size=(n, len(w["W"]))) for n in rng.integers(1, 12, 4)]
        T = [rng.normal(size=(len(x), 2)) for x in X] if feedback else None
        H = harvest(Reservoir(**w, activation=activation, initial_state=h0), X, T, dtype=dtype)
        for i, x in enumerate(X):
            assert H[i].dtype == dtype
            slow = ref.states(w, x, activation, T and T[i], h0).T
            np.testing.assert_allclose(H[i], slow, rtol=0, atol=close * max(1, np.abs(slow).max()))


def test_single_sequence_and_list_forms():
    rng = np.random.default_rng(0)
    r = Reservoir.random(2, 8, random_state=0)
    x = rng.normal(size=(7, 2))
    one, many = harvest(r, x), harvest(r, [x, x[:3]])
    assert isinstance(one, np.ndarray)
    assert one.shape == (7, 8)
    assert isinstance(many, list)
    np.testing.assert_array_equal(many[0], one)
    np.testing.assert_array_equal(many[1], one[:3])  # and so what comes later changes nothing before


@pytest.mark.parametrize("t", [0, 3, 8])
def test_causality(t):
    r = Reservoir.random(2, 8, leak=(0.1, 0.9), bias_scaling=0.1, random_state=0)
    x = np.random.default_rng(0).normal(size=(10, 2))
    other = x.copy()
    other[t + 1 :] += 5
    np.testing.assert_array_equal(harvest(r, x)[: t + 1], harvest(r, other)[: t + 1])
    assert (harvest(r, x)[t + 1] != harvest(r, other)[t + 1]).any()


def test_nan_in_a_state_is_not_hidden():
    """A diverging relu network gives infinities and NaN, never numbers that look healthy."""
    for activation in ACTIVATIONS:
        w = {"W": np.ones((1, 2)), "W_rec": np.eye(2)}
        x = pack([np.array([[1.0], [np.nan], [1.0]])], np.float64)
        H = run(Reservoir(**w, activation=activation), x).H
        assert np.isfinite(H[0]).all()
        assert np.isnan(H[1:]).all()


def test_rational_tanh_is_close_and_odd_and_bounded():
    x = np.concatenate([np.linspace(-20, 20, 20001), [0, 1e-30, -1e-7, 300, -1e30]]).astype(np.float32)
    y = np.array([_tanh(v) for v in x])
    assert np.abs(y - np.tanh(x.astype(np.float64))).max() < 6e-7
    assert np.abs(y).max() <= 1 + 2e-7
    np.testing.assert_array_equal(np.array([_tanh(-v) for v in x]), -y)


def test_padded_layout_holds_the_matrix():
    rng = np.random.default_rng(1)
    for density in (0.0, 0.3, 1.0):
        dense = rng.normal(size=(7, 7)) * (rng.random((7, 7)) < density)
        W_rec = sparse.csr_array(dense)
        place, value = padded(W_rec, np.float64)
        h = rng.normal(size=7)
        np.testing.assert_allclose((value * h[place]).sum(axis=0), dense @ h, atol=1e-14)
        np.testing.assert_array_equal(value[padded_positions(W_rec)], W_rec.data)


def test_an_unconnected_reservoir_runs():
    r = Reservoir(W=np.ones((1, 3)), W_rec=np.zeros((3, 3)), activation="identity")
    np.testing.assert_array_equal(harvest(r, np.arange(4.0)[:, None]), np.tile(np.arange(4.0)[:, None], 3))


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("direct", [True, False])
def test_free_run_against_loops(activation, direct):
    rng = np.random.default_rng(7)
    w = ref.network(rng, N=5, n_in=2, n_out=3, feedback=True)
    w["W_fb"] *= 0.3
    h0 = 0.5 * rng.normal(size=5)
    U = 0.3 * rng.normal(size=(5 + 2 * direct + 1, 3))
    X = [rng.normal(size=(n, 2)) for n in (4, 9, 1, 6)]
    r = Reservoir(**w, activation=activation, initial_state=h0)

    def turn(Y):
        return np.tanh(Y)

    batch = pack(X, np.float64)
    for x, got in zip(X, unpack(batch, run_with_feedback(r, batch, U, direct, turn)), strict=True):
        slow = ref.run_with_feedback(w, x, U, activation, direct=direct, h0=h0, feed_back=turn)
        np.testing.assert_allclose(got, slow, rtol=1e-10, atol=1e-12)


def test_free_run_of_saturated_sigmoids_is_quiet():
    """exp(-z) overflows for z far below zero; the sigmoid itself does not."""
    w = {"W": np.full((1, 2), -1e4), "W_rec": np.eye(2), "W_fb": np.ones((2, 1))}
    batch = pack([np.ones((3, 1))], np.float32)
    out = run_with_feedback(Reservoir(**w), batch, np.ones((3, 1)), False, lambda y: y)
    np.testing.assert_array_equal(out, 1)


def test_feedback_without_targets_is_named():
    r = Reservoir.random(2, 4, n_feedback=1, random_state=0)
    with pytest.raises(ValueError, match=r"feedback weights W_fb: give the targets T"):
        run(r, pack([np.ones((3, 2))], np.float64))
