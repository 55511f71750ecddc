"""The compiled loop of a stream, frame after frame, against slow loops."""

import numpy as np
import pytest

import reference as ref
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS
from echolearn.states._kernels import compressed
from echolearn.states._steps import advance


def arguments(w, activation, U, softmax):
    """Return the weights in the order in which the loop takes them."""
    r = Reservoir(**w, activation=activation)
    W_fb = np.zeros((0, r.N)) if r.W_fb is None else np.ascontiguousarray(r.W_fb.T)
    bias = np.zeros(r.N) if r.bias is None else r.bias
    code = ACTIVATIONS[activation]
    return r.W, *compressed(r.W_rec, np.float64), W_fb, bias, r.leak, code, np.ascontiguousarray(U.T), softmax


def softmax_of(y):
    return np.exp(y - y.max()) / np.exp(y - y.max()).sum()


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("feedback", ["none", "outputs", "probabilities"])
def test_outputs_and_states_agree_with_loops(activation, direct, feedback):
    rng = np.random.default_rng(3)
    w = ref.network(rng, N=6, n_in=2, n_out=3, feedback=feedback != "none")
    if w["W_fb"] is not None:
        w["W_fb"] *= 0.3
    U, x, h0 = 0.3 * rng.normal(size=(6 + 2 * direct + 1, 3)), rng.normal(size=(9, 2)), rng.normal(size=6)
    weights = arguments(w, activation, U, feedback == "probabilities")
    h, y, z, Y = h0.copy(), np.zeros(3), np.empty(6), np.empty((9, 3))
    for chunk in (slice(0, 4), slice(4, 5), slice(5, 9)):  # the state is carried from chunk to chunk
        assert advance(x[chunk], *weights, h, y, z, Y[chunk]) == -1
    if feedback == "none":
        H = ref.states(w, x, activation, h0=h0).T
        slow = np.hstack([H, x, np.ones((9, 1))] if direct else [H, np.ones((9, 1))]) @ U
        np.testing.assert_allclose(h, H[-1], rtol=1e-10, atol=1e-12)
    else:
        feed_back = softmax_of if feedback == "probabilities" else np.array
        slow = ref.run_with_feedback(w, x, U, activation, direct=direct, h0=h0, feed_back=feed_back)
    np.testing.assert_allclose(Y, slow, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("damage", [np.nan, np.inf])
def test_a_chunk_with_a_damaged_frame_changes_nothing(damage):
    rng = np.random.default_rng(0)
    w = ref.network(rng, N=4, n_in=2)
    x = rng.normal(size=(5, 2))
    x[3, 1] = damage
    h, y = rng.normal(size=4), np.zeros(1)
    before = h.copy()
    weights = arguments(w, "tanh", rng.normal(size=(5, 1)), False)
    assert advance(x, *weights, h, y, np.empty(4), np.empty((5, 1))) == 3
    np.testing.assert_array_equal(h, before)
