"""`harvest`: the states of whatever a user has, against loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import networks
import reference as ref
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS
from echolearn.sequences.batch import LANES
from echolearn.states import harvest


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
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


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    N=st.integers(1, 70),
    activation=st.sampled_from(list(ACTIVATIONS)),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=2 * LANES + 3),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_states_of_any_list_agree_with_loops(seed, N, activation, lengths, dtype):
    """Packed by steps, or one sequence after another where their lengths are similar."""
    rng = np.random.default_rng(seed)
    w = networks.contracting(rng, N=N, bias=bool(seed % 2))
    h0 = rng.normal(size=N) if seed % 3 == 0 else None
    X = [rng.normal(size=(n, len(w["W"]))) for n in lengths]
    reservoir = Reservoir(**w, activation=activation, initial_state=h0)
    for x, H in zip(X, harvest(reservoir, X, dtype=dtype), strict=True):
        slow = ref.states(w, x, activation, None, h0).T
        np.testing.assert_allclose(H, slow, rtol=0, atol=100 * np.finfo(dtype).eps * max(1, np.abs(slow).max()))


def test_states_come_in_the_form_of_the_input():
    rng = np.random.default_rng(0)
    r = Reservoir.random(2, 8, random_state=0)
    x = rng.normal(size=(7, 2))
    one, many = harvest(r, x), harvest(r, [x, x[:3]])
    assert isinstance(one, np.ndarray)
    assert one.shape == (7, 8)
    assert isinstance(many, list)
    np.testing.assert_array_equal(many[0], one)
    np.testing.assert_array_equal(many[1], one[:3])
    assert harvest(r, np.stack([x, x])).shape == (2, 7, 8)


def test_states_of_a_long_list_are_in_the_order_of_the_list():
    """More than one group of sequences, processed by several threads."""
    rng = np.random.default_rng([11, 6])
    w = networks.contracting(rng, 0.6, N=20)
    h0 = rng.normal(size=20)
    r = Reservoir(**w, activation="tanh", initial_state=h0)
    X = [rng.normal(size=(n, len(w["W"]))) for n in rng.integers(1, 900, 40)]
    for x, H in zip(X, harvest(r, X), strict=True):
        np.testing.assert_allclose(H, ref.states(w, x, "tanh", None, h0).T, rtol=0, atol=1e-12)


def test_input_that_does_not_fit_and_states_that_diverge_are_refused():
    r = Reservoir.random(2, 8, random_state=0)
    with pytest.raises(ValueError, match="X has 3 features, but this network is expecting 2 features"):
        harvest(r, np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"dtype='int8'; expected 'float32' or 'float64'"):
        harvest(r, np.ones((4, 2)), dtype="int8")
    diverging = Reservoir(W=np.ones((1, 2)), W_rec=1e30 * np.eye(2), activation="identity")
    with pytest.raises(ValueError, match="states are not finite"):
        harvest(diverging, np.ones((20, 1)))
