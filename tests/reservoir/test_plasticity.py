"""Intrinsic plasticity: its steps are gradients of the divergence, and the activities reach the target."""

from __future__ import annotations

import numpy as np
import pytest

import toys
from echolearn import Reservoir
from echolearn.reservoir import intrinsic_plasticity, synaptic_plasticity
from echolearn.reservoir._activations import activate
from echolearn.reservoir._plasticity import _towards_exponential, _towards_gaussian
from echolearn.reservoir._reservoir import bidirectional_reservoir
from echolearn.states import harvest


def divergence(name, spread, gain, bias, z):
    """Return -log p(f) of the target - log |df/dz|: the sampled Kullback-Leibler divergence, up to a constant."""
    f = activate(name, gain * z + bias)
    slope = gain * (1 - f * f) if name == "tanh" else gain * f * (1 - f)
    target = f * f / (2 * spread**2) if name == "tanh" else f / spread
    return target - np.log(slope)


@pytest.mark.parametrize(("name", "step"), [("tanh", _towards_gaussian), ("sigmoid", _towards_exponential)])
def test_steps_are_gradients_of_the_divergence(name, step):
    rng = np.random.default_rng(0)
    z, gain, bias = rng.normal(size=50), rng.uniform(0.5, 2, 50), rng.normal(size=50)
    e = 1e-6
    by_bias = divergence(name, 0.3, gain, bias + e, z) - divergence(name, 0.3, gain, bias - e, z)
    by_gain = divergence(name, 0.3, gain + e, bias, z) - divergence(name, 0.3, gain - e, bias, z)
    d_bias = step(activate(name, gain * z + bias), 0.3)
    np.testing.assert_allclose(d_bias, -by_bias / (2 * e), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(1 / gain + d_bias * z, -by_gain / (2 * e), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("name", "spread", "radius"), [("tanh", 0.2, 0.9), ("tanh", 0.4, 0.9), ("sigmoid", 0.2, 2.0)])
def test_activities_reach_the_given_spread(name, spread, radius):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(800, 2))
    r = Reservoir.random(2, 40, activation=name, spectral_radius=radius, input_scaling=0.3, random_state=0)
    moved = intrinsic_plasticity(r, x, spread=spread, rate=2e-3, epochs=8)

    def off(reservoir):
        H = harvest(reservoir, x)[100:]
        reached = H.std(axis=0) if name == "tanh" else H.mean(axis=0)
        return np.abs(reached / spread - 1).mean()

    assert off(moved) < 0.15
    assert off(moved) < 0.4 * off(r)
    np.testing.assert_array_equal(moved.W_rec.indices, r.W_rec.indices)


def test_only_gain_and_bias_change():
    x = np.random.default_rng(1).normal(size=(50, 2))
    r = Reservoir.random(2, 10, leak=0.5, bias_scaling=0.1, random_state=0)
    before = r.W.copy(), r.W_rec.toarray()
    new = intrinsic_plasticity(r, [x, x[:20]], epochs=2)
    gain = new.W[0] / r.W[0]
    np.testing.assert_allclose(new.W, r.W * gain)
    np.testing.assert_allclose(new.W_rec.toarray(), gain[:, None] * r.W_rec.toarray())
    np.testing.assert_array_equal(new.leak, r.leak)
    np.testing.assert_array_equal(r.W, before[0])
    np.testing.assert_array_equal(r.W_rec.toarray(), before[1])
    np.testing.assert_array_equal(intrinsic_plasticity(r, x, epochs=0).W, r.W)


def test_refused_reservoirs_and_numbers():
    x = np.ones((5, 1))
    for r in (Reservoir.random(1, 4, activation="relu"), Reservoir.random(1, 4, n_feedback=1)):
        with pytest.raises(ValueError, match="known for tanh and sigmoid units without feedback; this reservoir has"):
            intrinsic_plasticity(r, x)
    with pytest.raises(ValueError, match=r"spread=0, .*expected positive numbers"):
        intrinsic_plasticity(Reservoir.random(1, 4), x, spread=0)
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="use a smaller rate than 1e"):
        intrinsic_plasticity(Reservoir.random(1, 4), 1e6 * x, rate=1e306)
    with pytest.raises(ValueError, match="X has 1 features"):
        intrinsic_plasticity(Reservoir.random(2, 4), x)


def test_plasticity_of_both_directions_is_that_of_each():
    X = toys.echoes(sequences=3)[0]
    halves = [Reservoir.random(2, 5, connections=3, bias_scaling=0.1, random_state=seed) for seed in (0, 1)]
    both = intrinsic_plasticity(bidirectional_reservoir(*halves), X, epochs=2)
    for units, half, inputs in ((~both.backward, halves[0], X), (both.backward, halves[1], [x[::-1] for x in X])):
        own = intrinsic_plasticity(half, inputs, epochs=2)
        for name in ("W", "W_rec", "bias"):
            np.testing.assert_array_equal(both.subreservoir(units).weights()[name], own.weights()[name])


# Oja's rule and its opposite against a version that goes from connection to connection


def slow(reservoir, X, step):
    """Return W_rec after one pass, unit by unit; only connections move."""
    W_rec, N = reservoir.W_rec.toarray(), reservoir.N
    connected, h = W_rec != 0, np.zeros(N)
    for x in X:
        new = np.empty(N)
        for i in range(N):
            z = reservoir.W[:, i] @ x + W_rec[i] @ h + reservoir.bias[i]
            new[i] = (1 - reservoir.leak[i]) * h[i] + reservoir.leak[i] * np.tanh(z)
        for i in range(N):
            for j in range(N):
                if connected[i, j]:
                    W_rec[i, j] += step * new[i] * (h[j] - new[i] * W_rec[i, j])
        h = new
    return W_rec


def example():
    reservoir = Reservoir.random(2, 8, connections=3, input_scaling=0.8, bias_scaling=0.2, leak=0.6, random_state=0)
    return reservoir, np.random.default_rng(0).standard_normal((40, 2))


@pytest.mark.parametrize(("rule", "step"), [("oja", 0.01), ("anti_oja", -0.01)])
def test_it_follows_the_rule(rule, step):
    reservoir, X = example()
    found = synaptic_plasticity(reservoir, X, rule=rule, rate=0.01)
    np.testing.assert_allclose(found.W_rec.toarray(), slow(reservoir, X, step), atol=1e-12)
    np.testing.assert_array_equal(synaptic_plasticity(reservoir, X, epochs=0).W_rec.data, reservoir.W_rec.data)


def test_what_does_not_fit_is_explained():
    reservoir, X = example()
    for how, words in (({"rule": "hebb"}, "rule='hebb'"), ({"rate": 0}, "rate=0")):
        with pytest.raises(ValueError, match=words):
            synaptic_plasticity(reservoir, X, **how)
    with pytest.raises(FloatingPointError, match="smaller rate"), np.errstate(all="ignore"):
        synaptic_plasticity(reservoir.with_weights(activation="identity"), X * 10, rate=10.0, epochs=20)
