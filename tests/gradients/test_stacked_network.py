"""The outputs of a stack, and the inputs and targets of its layers."""

import numpy as np
import pytest

import reference as ref
from echolearn.gradients.stacked_network import StackedNetwork, scale_to_one, stacked_outputs
from stacks import N_OUT, draw, two_batches, with_readouts


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("softmax", [False, True])
def test_outputs_are_those_of_the_slow_layers(seed, softmax):
    weights, X, labels, layers, how, ridges = draw(seed)
    T = [np.eye(N_OUT)[y] for y in labels]
    U = [U for _, _, U in ref.stack(weights, X, T, "tanh", ridges=ridges, **how)]
    network = StackedNetwork(with_readouts(layers, U), how["sees"], softmax)
    slow = ref.stack(weights, X, T, "tanh", **({"readouts": U} if softmax else {"ridges": ridges}), **how)
    H_c, T_c, _ = slow[-1]
    expected, targets = H_c @ U[-1], T_c.argmax(axis=1)
    found = [stacked_outputs(network, batch) for batch in two_batches(X, labels)]
    order = np.lexsort(expected.T)
    Y, T_found = np.vstack([Y for Y, _, _ in found]), np.concatenate([T for _, T, _ in found])
    np.testing.assert_allclose(Y[np.lexsort(Y.T)], expected[order], rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(T_found[np.lexsort(Y.T)], targets[order])


def test_outputs_are_scaled_to_a_standard_deviation_of_one():
    rng = np.random.default_rng(0)
    X = [np.hstack([5 * rng.normal(size=(n, 1)), np.full((n, 1), 7.0), rng.normal(size=(n, 1))]) for n in (30, 50)]
    before = np.vstack(X)
    factors = scale_to_one(X, 2)
    assert np.vstack(X)[:, 0].std() == pytest.approx(1)
    assert factors[1] == 1  # a constant column stays as it is
    np.testing.assert_array_equal(np.vstack(X)[:, 2], before[:, 2])
    np.testing.assert_allclose(np.vstack(X)[:, :2], before[:, :2] * factors)
