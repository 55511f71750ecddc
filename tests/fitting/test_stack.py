"""What the layers of a stack pass on."""

import numpy as np
import pytest

import reference as ref
from echolearn.fitting.stack import Passing, StackLayer
from echolearn.readout.network import Network, Readout
from echolearn.readout.view import ReadoutView
from echolearn.reservoir import Reservoir
from stacks import SEES

RNG = np.random.default_rng(2)
X = [RNG.normal(size=(n, 2)) for n in (7, 3, 12)]
SCALE = np.array([0.5, 2.0, 1.0])


def drawn_layer(n_in, direct, dtype="float64"):
    """A layer of five units with random weights, and those weights."""
    w = ref.network(RNG, N=5, n_in=n_in)
    U = RNG.normal(size=(5 + direct * n_in + 1, 3))
    network = Network(Reservoir(**w, activation="tanh"), Readout(U, False, 1.0), ReadoutView(2, direct))
    return StackLayer(network, SCALE, dtype), w


def answers(w, U, x, direct):
    """States (steps, N) by a loop, and outputs."""
    H = ref.states(w, x, "tanh").T
    return H, np.hstack([H, *([x] if direct else []), np.ones((len(x), 1))]) @ U


@pytest.mark.parametrize("sees", SEES)
@pytest.mark.parametrize("softmax", [False, True])
@pytest.mark.parametrize("direct", [False, True])
def test_outputs_are_scaled_and_stand_beside_what_else_is_seen(sees, softmax, direct):
    layer, w = drawn_layer(2, direct)
    for x, passed in zip(X, Passing(sees, softmax).up(layer, X, X, number=1), strict=True):
        H, Y = answers(w, layer.network.readout.U, x, direct)
        if softmax:
            Y = np.exp(Y) / np.exp(Y).sum(axis=1, keepdims=True)
        beside = {"output": [], "output+input": [x], "output+hidden": [H]}[sees]
        np.testing.assert_allclose(passed, np.hstack([Y * SCALE, *beside]), rtol=1e-10, atol=1e-12)


def test_the_inputs_of_each_layer_are_what_the_one_below_passes_on():
    layers = [drawn_layer(n_in, True)[0] for n_in in (2, 5, 5)]
    passing = Passing("output+input", True)
    first, second, third = passing.inputs(layers, X)
    assert first is X
    for a, b in zip(second, passing.up(layers[0], X, X, number=1), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b, x in zip(third, passing.up(layers[1], second, X, number=2), X, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(a[:, 3:], x)  # the input of the stack, not of the layer


def test_states_are_in_the_precision_of_the_layer():
    layer, _ = drawn_layer(2, True, dtype="float32")
    assert {passed.dtype for passed in Passing("output", False).up(layer, X, X, number=1)} == {np.dtype("float32")}


def test_a_layer_whose_outputs_are_not_finite_is_named():
    layer, _ = drawn_layer(2, False, dtype="float32")
    layer.network.readout.U[:] = 1e300
    with pytest.raises(ValueError, match="outputs of layer 7 are not finite"):
        Passing("output", False).up(layer, X, X, number=7)
