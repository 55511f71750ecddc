"""The error at the top of a stack: its derivatives through all layers, against complex steps through slow ones."""

import numpy as np
import pytest

import reference as ref
from echolearn.gradients.stacked import OWN, stacked_gradients
from echolearn.gradients.stacked_network import StackedNetwork
from stacks import N_OUT, draw, two_batches, with_readouts


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


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("kind", ["values", "labels"])
def test_gradients_of_the_squared_error_reach_all_layers(seed, kind):
    weights, X, labels, layers, how, ridges = draw(seed)
    one_hot = [np.eye(N_OUT)[y] for y in labels]
    rng = np.random.default_rng(seed)
    values = [t + rng.normal(size=t.shape) for t in one_hot]
    y, T = (values, values) if kind == "values" else (labels, one_hot)
    network = StackedNetwork(layers, how["sees"], softmax=False)
    found = stacked_gradients(network, two_batches(X, y), N_OUT)

    def witness(weights):
        return ref.stack_loss(weights, X, T, "tanh", ridges=ridges, **how)

    U = found.readouts[-1][:-1]
    assert found.loss + ridges[-1] * (U * U).sum() == pytest.approx(witness(weights), rel=1e-9)
    assert found.dE_dV == []
    assert_derivatives(found.gradients, weights, witness, (seed, how))


@pytest.mark.parametrize("seed", range(15))
def test_gradients_of_the_cross_entropy_reach_all_layers(seed):
    weights, X, labels, layers, how, _ = draw(seed)
    rng = np.random.default_rng(seed)
    T = [np.eye(N_OUT)[y] for y in labels]
    V = [rng.normal(size=U.shape) for _, _, U in ref.stack(weights, X, T, "tanh", ridges=[1] * 3, **how)]
    network = StackedNetwork(with_readouts(layers, V), how["sees"], softmax=True)
    found = stacked_gradients(network, two_batches(X, labels), N_OUT)

    def witness(weights, V=V, own=OWN):
        return ref.stack_entropy(weights, X, T, "tanh", readouts=V, own=own, **how)

    assert found.loss == pytest.approx(witness(weights, own=0), rel=1e-9)
    assert_derivatives(found.gradients, weights, witness, (seed, how))
    for number, value in enumerate(V):
        way, h = rng.normal(size=value.shape), 1e-30
        derivative = witness(weights, replaced(V, number, value + 1j * h * way)).imag / h
        assert np.vdot(found.dE_dV[number], way) == pytest.approx(derivative, rel=1e-8)


def draw_weights(seed, labels):
    """Return weights of the targets, some of them 0, in the form of the labels, and labels with -1 at weight 0."""
    rng = np.random.default_rng([5, seed])
    w = [rng.choice([0.0, 0.5, 1.0, 3.0], size=np.shape(y)) for y in labels]
    return w, [np.where(c > 0, y, -1) for c, y in zip(w, labels, strict=True)]


@pytest.mark.parametrize("seed", range(10))
def test_gradients_of_weighted_targets_reach_all_layers(seed):
    weights, X, labels, layers, how, ridges = draw(seed)
    counts, marked = draw_weights(seed, labels)
    T = [np.eye(N_OUT)[y] for y in labels]
    network = StackedNetwork(layers, how["sees"], softmax=False)
    found = stacked_gradients(network, two_batches(X, marked, counts), N_OUT)

    def witness(weights):
        return ref.stack_loss(weights, X, T, "tanh", ridges=ridges, counts=counts, **how)

    U = found.readouts[-1][:-1]
    assert found.loss + ridges[-1] * (U * U).sum() == pytest.approx(witness(weights), rel=1e-9)
    first = how["hows"][-1]["washout"]
    assert found.n == pytest.approx(sum(c[first:].sum() for c in counts))
    assert_derivatives(found.gradients, weights, witness, (seed, how))


@pytest.mark.parametrize("seed", range(6))
def test_gradients_of_the_cross_entropy_of_weighted_targets_reach_all_layers(seed):
    weights, X, labels, layers, how, _ = draw(seed)
    counts, marked = draw_weights(seed, labels)
    rng = np.random.default_rng(seed)
    T = [np.eye(N_OUT)[y] for y in labels]
    V = [rng.normal(size=U.shape) for _, _, U in ref.stack(weights, X, T, "tanh", ridges=[1] * 3, **how)]
    network = StackedNetwork(with_readouts(layers, V), how["sees"], softmax=True)
    found = stacked_gradients(network, two_batches(X, marked, counts), N_OUT)

    def witness(weights, V=V, own=OWN):
        return ref.stack_entropy(weights, X, T, "tanh", readouts=V, own=own, counts=counts, **how)

    assert found.loss == pytest.approx(witness(weights, own=0), rel=1e-9)
    assert_derivatives(found.gradients, weights, witness, (seed, how))
    for number, value in enumerate(V):
        way, h = rng.normal(size=value.shape), 1e-30
        derivative = witness(weights, replaced(V, number, value + 1j * h * way)).imag / h
        assert np.vdot(found.dE_dV[number], way) == pytest.approx(derivative, rel=1e-8)
