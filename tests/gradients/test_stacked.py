"""The error at the top of a stack: its derivatives through all layers, against complex steps through slow ones."""

from dataclasses import replace

import numpy as np
import pytest

import reference as ref
from echolearn.gradients.stacked import (
    OWN,
    StackedNetwork,
    scale_to_one,
    stacked_gradients,
    stacked_outputs,
    targets_per_step,
)
from echolearn.sequences.dataset import Dataset
from stacks import N_OUT, draw, two_batches


def assert_derivatives(gradients, weights, witness, about):
    """Compare the gradients of every layer with complex steps of the witness."""
    for number, w in enumerate(weights):
        for name, values in w.items():
            if values is None:
                continue

            def moved(own, number=number):
                return witness(replaced(weights, number, own))

            true = np.zeros_like(values)
            for place in np.ndindex(*values.shape):
                if name != "W_rec" or values[place] != 0:
                    true[place] = ref.complex_step(w, name, place, moved)
            true = true[values != 0] if name == "W_rec" else true
            found = getattr(gradients[number], name)
            assert np.abs(found - true).max() <= 1e-8 * max(np.abs(true).max(), 1e-6), (number, name, about)


def replaced(parts, number, part):
    """Return a list with one entry replaced."""
    return [*parts[:number], part, *parts[number + 1 :]]


def with_readouts(layers, readouts):
    """Return the layers with these readouts U."""
    return [replace(layer, U=U) for layer, U in zip(layers, readouts, strict=True)]


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("kind", ["values", "labels"])
def test_gradients_of_the_squared_error_reach_all_layers(seed, kind):
    weights, X, labels, layers, how, ridges, per_step = draw(seed)
    one_hot = [np.eye(N_OUT)[y] for y in labels]
    rng = np.random.default_rng(seed)
    values = [t + rng.normal(size=t.shape) for t in one_hot]
    y, T = (values, values) if kind == "values" else (labels, one_hot)
    network = StackedNetwork(layers, how["sees"], softmax=False)
    found = stacked_gradients(network, two_batches(X, y, per_step), N_OUT, per_step=per_step)

    def witness(weights):
        return ref.stack_loss(weights, X, T, "tanh", ridges=ridges, **how)

    U = found.readouts[-1][:-1]
    assert found.loss + ridges[-1] * (U * U).sum() == pytest.approx(witness(weights), rel=1e-9)
    assert found.dE_dV == []
    assert_derivatives(found.gradients, weights, witness, (seed, how))


@pytest.mark.parametrize("seed", range(15))
def test_gradients_of_the_cross_entropy_reach_all_layers(seed):
    weights, X, labels, layers, how, _, per_step = draw(seed)
    rng = np.random.default_rng(seed)
    T = [np.eye(N_OUT)[y] for y in labels]
    V = [rng.normal(size=U.shape) for _, _, U in ref.stack(weights, X, T, "tanh", ridges=[1] * 3, **how)]
    network = StackedNetwork(with_readouts(layers, V), how["sees"], softmax=True)
    found = stacked_gradients(network, two_batches(X, labels, per_step), N_OUT, per_step=per_step)

    def witness(weights, V=V, own=OWN):
        return ref.stack_entropy(weights, X, T, "tanh", readouts=V, own=own, **how)

    assert found.loss == pytest.approx(witness(weights, own=0), rel=1e-9)
    assert_derivatives(found.gradients, weights, witness, (seed, how))
    for number, value in enumerate(V):
        way, h = rng.normal(size=value.shape), 1e-30
        derivative = witness(weights, replaced(V, number, value + 1j * h * way)).imag / h
        assert np.vdot(found.dE_dV[number], way) == pytest.approx(derivative, rel=1e-8)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("softmax", [False, True])
def test_outputs_are_those_of_the_slow_layers(seed, softmax):
    weights, X, labels, layers, how, ridges, per_step = draw(seed)
    T = [np.eye(N_OUT)[y] for y in labels]
    U = [U for _, _, U in ref.stack(weights, X, T, "tanh", ridges=ridges, **how)]
    network = StackedNetwork(with_readouts(layers, U), how["sees"], softmax)
    slow = ref.stack(weights, X, T, "tanh", **({"readouts": U} if softmax else {"ridges": ridges}), **how)
    H_c, T_c, _ = slow[-1]
    expected, targets = H_c @ U[-1], T_c.argmax(axis=1)
    found = [stacked_outputs(network, batch, per_step) for batch in two_batches(X, labels, per_step)]
    order = np.lexsort(expected.T)
    Y, T_found = np.vstack([Y for Y, _ in found]), np.concatenate([T for _, T in found])
    np.testing.assert_allclose(Y[np.lexsort(Y.T)], expected[order], rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(T_found[np.lexsort(Y.T)], targets[order])


def test_a_target_per_sequence_is_repeated_for_the_layers_below():
    X = [np.ones((3, 2)), np.ones((2, 2))]
    per_sequence = Dataset(X, [2, 0], 3, False, np.dtype(float))
    np.testing.assert_array_equal(targets_per_step(per_sequence)[0], [2, 2, 2])
    values = Dataset(X, [np.array([1.0, 2.0]), np.zeros(2)], None, False, np.dtype(float))
    np.testing.assert_array_equal(targets_per_step(values)[0], [[1, 2]] * 3)
    per_step = Dataset(X, [np.arange(3), np.arange(2)], 3, True, np.dtype(float))
    assert targets_per_step(per_step) == list(per_step.y)


def test_outputs_are_scaled_to_a_standard_deviation_of_one():
    rng = np.random.default_rng(0)
    X = [np.hstack([5 * rng.normal(size=(n, 1)), np.full((n, 1), 7.0), rng.normal(size=(n, 1))]) for n in (30, 50)]
    before = np.vstack(X)
    factors = scale_to_one(X, 2)
    assert np.vstack(X)[:, 0].std() == pytest.approx(1)
    assert factors[1] == 1  # a constant column stays as it is
    np.testing.assert_array_equal(np.vstack(X)[:, 2], before[:, 2])
    np.testing.assert_allclose(np.vstack(X)[:, :2], before[:, :2] * factors)
