"""Oja's rule and its opposite against a version that goes from connection to connection."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn import Reservoir
from echolearn.reservoir.plasticity import synaptic_plasticity


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
