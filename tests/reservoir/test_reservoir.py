"""The reservoir: random construction, and what it refuses."""

import dataclasses

import numpy as np
import pytest

import reference as ref
from echolearn.exceptions import EchoStateWarning
from echolearn.reservoir import Reservoir
from echolearn.reservoir._reservoir import bidirectional_reservoir, join_reservoirs
from echolearn.states import harvest


@pytest.mark.parametrize("N", [5, 100, 400])
def test_random_reservoir_has_the_given_spectral_radius(N):
    for radius in (0.3, 0.95):
        r = Reservoir.random(3, N, spectral_radius=radius, random_state=1)
        assert np.abs(np.linalg.eigvals(r.W_rec.toarray())).max() == pytest.approx(radius, rel=1e-6)


@pytest.mark.parametrize("radius", [0, -1, np.nan, np.inf])
def test_radius_must_be_positive(radius):
    with pytest.raises(ValueError, match=r"spectral_radius=.*expected a number > 0"):
        Reservoir.random(2, 5, spectral_radius=radius)


@pytest.mark.parametrize(("activation", "limit"), [("sigmoid", 4.0), ("tanh", 1.0)])
def test_echo_state_warning(activation, limit):
    Reservoir.random(2, 5, spectral_radius=0.99 * limit, activation=activation, random_state=0)
    with pytest.warns(EchoStateWarning, match=rf"activation='{activation}'.*above {limit:g}.*leak below 1"):
        Reservoir.random(2, 5, spectral_radius=1.01 * limit, activation=activation, random_state=0)
    Reservoir.random(2, 5, spectral_radius=1.01 * limit, activation=activation, leak=0.5, random_state=0)


def test_same_seed_same_bits_and_one_generator_per_purpose():
    a, b = (Reservoir.random(3, 20, bias_scaling=0.1, leak=(0.1, 0.9), random_state=5) for _ in range(2))
    c = Reservoir.random(3, 20, n_feedback=2, random_state=5)
    for name in ("W", "leak", "bias"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_array_equal(a.W_rec.toarray(), b.W_rec.toarray())
    np.testing.assert_array_equal(a.W, c.W)
    np.testing.assert_array_equal(a.W_rec.toarray(), c.W_rec.toarray())
    assert (a.W != Reservoir.random(3, 20, random_state=6).W).any()


def test_scalings_and_leaks_stay_in_their_ranges():
    r = Reservoir.random(
        3, 200, input_scaling=0.2, bias_scaling=0.4, feedback_scaling=0.6, n_feedback=2, leak=(0.03, 0.9),
        random_state=0,
    )  # fmt: skip
    for weights, scale in ((r.W, 0.2), (r.bias, 0.4), (r.W_fb, 0.6)):
        assert 0.9 * scale < np.abs(weights).max() <= scale
    assert r.leak.min() >= 0.03
    assert r.leak.max() <= 0.9
    assert (r.leak < np.sqrt(0.03 * 0.9)).mean() == pytest.approx(0.5, abs=0.1)  # evenly in logarithm
    assert Reservoir.random(3, 5, random_state=0).bias is None


def test_a_reservoir_is_frozen_and_keeps_copies():
    W, W_rec = np.ones((1, 2)), np.eye(2)
    r = Reservoir(W=W, W_rec=W_rec)
    W[:], W_rec[:] = 7, 7
    np.testing.assert_array_equal(r.W, 1)
    np.testing.assert_array_equal(r.W_rec.toarray(), np.eye(2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        r.leak = 0.5


def test_with_weights_keeps_the_pattern():
    r = Reservoir(W=np.ones((1, 3)), W_rec=[[0, 2, 0], [1, 0, 3], [0, 0, 4]])
    new = r.with_weights(W_rec=np.array([5.0, 6, 7, 8]), W=np.zeros((1, 3)))
    np.testing.assert_array_equal(new.W_rec.toarray(), [[0, 5, 0], [6, 0, 7], [0, 0, 8]])
    np.testing.assert_array_equal(r.W_rec.toarray(), [[0, 2, 0], [1, 0, 3], [0, 0, 4]])
    np.testing.assert_array_equal(new.W, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"W": np.ones(3)}, r"W has shape \(3,\); expected a matrix"),
        ({"W": np.full((2, 3), np.nan)}, "W has shape .*finite"),
        ({"W_rec": np.eye(4)}, r"W_rec has shape \(4, 4\).*\(3, 3\)"),
        ({"W_rec": np.diag([1, np.inf, 1])}, "W_rec .*holds NaN or infinity; give finite"),
        ({"activation": "softplus"}, r"activation='softplus' is unknown; choose one of .*'tanh'"),
        ({"leak": 0.0}, r"leak lies between 0 and 0; every leak must be in \(0, 1\]"),
        ({"leak": [0.1, 0.2, 1.5]}, r"leak lies between 0\.1 and 1\.5"),
        ({"leak": [0.1, 0.2]}, r"leak has shape \(2,\); expected .*3"),
        ({"leak": np.nan}, "leak"),
        ({"bias": np.ones(2)}, r"bias has shape \(2,\); expected 3 finite numbers"),
        ({"initial_state": np.full(3, np.nan)}, "initial_state has shape .*finite"),
        ({"W_fb": np.ones((2, 1))}, r"W_fb has shape \(2, 1\); expected \(3, outputs\)"),
    ],
)
def test_bad_weights_are_named(changes, message):
    with pytest.raises(ValueError, match=message):
        Reservoir(**{"W": np.ones((2, 3)), "W_rec": np.eye(3), **changes})


def test_a_count_of_outputs_that_no_array_can_have_is_refused():
    with pytest.raises(ValueError, match=r"n_feedback=.*; expected a whole number below"):
        Reservoir.random(2, 4, n_feedback=10**30)


# Reservoirs made of smaller ones


def test_subreservoir_undoes_join_reservoirs():
    rng = np.random.default_rng(1)
    parts = [Reservoir(**ref.network(rng, N=n, n_in=2), activation="tanh") for n in (3, 5, 2)]
    joined = join_reservoirs(parts)
    for i, part in enumerate(parts):
        back = joined.subreservoir(np.repeat([0, 1, 2], [3, 5, 2]) == i)
        np.testing.assert_array_equal(back.W_rec.toarray(), part.W_rec.toarray())
        np.testing.assert_array_equal(back.W, part.W)
        np.testing.assert_array_equal(back.leak, part.leak)


def test_joined_reservoirs_compute_the_states_of_each():
    rng = np.random.default_rng(2)
    parts = [Reservoir(**ref.network(rng, N=n, n_in=2), activation="tanh") for n in (3, 4)]
    x = rng.normal(size=(20, 2))
    np.testing.assert_allclose(harvest(join_reservoirs(parts), x), np.hstack([harvest(r, x) for r in parts]))


def test_backward_units_compute_the_states_of_the_reversed_sequence():
    forward, backward = (Reservoir.random(2, 5, bias_scaling=0.1, random_state=seed) for seed in (0, 1))
    x = np.random.default_rng(3).normal(size=(20, 2))
    both = bidirectional_reservoir(forward, backward)
    expected = np.hstack([harvest(forward, x), harvest(backward, x[::-1])[::-1]])
    np.testing.assert_allclose(harvest(both, x), expected)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"backward": [True, False]}, r"backward has shape \(2,\); expected 3 times True or False"),
        ({"backward": [0, 1, 1]}, r"backward has shape \(3,\); expected 3 times True or False"),
        ({"backward": [True, False, False], "W_rec": np.ones((3, 3))}, "connects forward and backward units"),
        ({"backward": [True, False, False], "W_fb": np.ones((3, 1))}, "Drop W_fb"),
    ],
)
def test_impossible_directions_are_refused(how, words):
    with pytest.raises(ValueError, match=words):
        Reservoir(**{"W": np.ones((2, 3)), "W_rec": np.eye(3), **how})


def test_no_backward_unit_is_one_direction():
    assert Reservoir(W=np.ones((2, 3)), W_rec=np.eye(3), backward=np.zeros(3, bool)).backward is None
