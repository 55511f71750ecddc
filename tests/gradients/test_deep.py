"""The gradient through deep layers: finite differences of every weight, and transposes along random directions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deepnets import bounds_of, draw, forward_pairs, frames
from echolearn.gradients.deep import gradients
from echolearn.states.deep import Buffers, Dropout, in_precision, run

CASES = {
    "forward": {},
    "both directions": {"bidirectional": True},
    "with dropout": {"dropout": Dropout(0.3, 5)},
    "both directions, with dropout": {"bidirectional": True, "dropout": Dropout(0.2, 6)},
    "one step": {"lengths": [1]},
    "three layers": {"layers": 3, "lengths": [4, 1, 6]},
    "a single pair": {"units": 2, "lengths": [5]},
}


def problem(seed, *, units=6, layers=2, lengths=(7, 1, 5), bidirectional=False, dropout=None):
    """Return a network, its states before each sequence, q of other weights, and a direction of dE/dq."""
    stack = draw(seed, units=units, layers=layers, n_in=2, bidirectional=bidirectional)
    X, rng = frames(seed, lengths, 2), np.random.default_rng([14, seed])
    h0, joined = rng.normal(size=(len(X), stack.N)), np.concatenate(X)

    def seen(weights, **how):
        given = {"layers": layers, "forward_pairs": forward_pairs(stack), "h0": h0, "dropout": dropout}
        return run(weights, joined, bounds_of(X), **given, **how)

    return stack, seen, rng.normal(size=(len(joined), units))


def gradient_of(stack, seen, D, dropout=None, **how):
    """Return the gradient of E = <D, q>."""
    weights = in_precision(stack, "float64")
    return gradients(weights, seen(weights), D.copy(), forward_pairs=forward_pairs(stack), dropout=dropout, **how)


def slope(E, e=1e-5):
    """Return the derivative of E(s) at 0 by differences whose error is of the fourth order."""
    return (8 * (E(e) - E(-e)) - (E(2 * e) - E(-2 * e))) / (12 * e)


@pytest.mark.parametrize("case", CASES)
def test_every_weight_by_finite_differences(case):
    how = CASES[case]
    stack, seen, D = problem(len(case), **how)
    found = gradient_of(stack, seen, D, how.get("dropout"))
    assert set(found) == set(stack.weights)
    for name, value in stack.weights.items():
        expected = np.empty(value.shape)
        for place in np.ndindex(value.shape):

            def E(s, name=name, value=value, place=place):
                moved = value.copy()
                moved[place] += s
                return np.vdot(D, seen({**stack.weights, name: moved}).q)

            expected[place] = slope(E)
        limit = 1e-8 * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found[name], expected, rtol=0, atol=limit, err_msg=name)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 999),
    pairs=st.integers(1, 8),
    layers=st.integers(1, 4),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=4),
    bidirectional=st.booleans(),
    share=st.sampled_from([0.0, 0.25]),
)
def test_the_way_back_is_the_transpose_of_the_way_forward(seed, pairs, layers, lengths, bidirectional, share):
    """<dE/dq, dq> = <gradient, dweights> along a random direction of all weights at once."""
    dropout = Dropout(share, seed)
    how = {"units": 2 * pairs, "layers": layers, "lengths": lengths, "bidirectional": bidirectional}
    stack, seen, D = problem(seed, **how, dropout=dropout)
    found, rng = gradient_of(stack, seen, D, dropout), np.random.default_rng(seed)
    way = {name: rng.normal(size=value.shape) / np.sqrt(value.size) for name, value in stack.weights.items()}
    along = sum(np.vdot(found[name], way[name]) for name in way)
    e = 1e-7  # small, so that hardly any unit passes 0 on the way
    ahead, behind = (seen({n: v + s * way[n] for n, v in stack.weights.items()}).q for s in (e, -e))
    assert np.vdot(D, ahead - behind) / (2 * e) == pytest.approx(along, rel=1e-5, abs=1e-5 * np.abs(D).sum() ** 0.5)


def test_errors_add_over_sequences_and_buffers_change_nothing():
    stack, seen, D = problem(3, lengths=(6, 4))
    both = gradient_of(stack, seen, D)
    parts = [np.where(np.arange(10)[:, None] < 6, D, 0), np.where(np.arange(10)[:, None] < 6, 0, D)]
    buffers = Buffers()
    first, second = (gradient_of(stack, seen, part, buffers=buffers) for part in parts)
    for name, value in both.items():
        np.testing.assert_allclose(first[name] + second[name], value, atol=1e-12)


def test_single_precision_is_near_double_precision():
    stack, X = draw(4, units=16, layers=3, bidirectional=True), frames(4, [40, 25])
    D, found = np.random.default_rng(4).normal(size=(65, 16)), {}
    for dtype in ("float64", "float32"):
        weights, joined = in_precision(stack, dtype), np.concatenate(X).astype(dtype)
        seen = run(weights, joined, bounds_of(X), layers=3, forward_pairs=forward_pairs(stack))
        found[dtype] = gradients(weights, seen, D.astype(dtype), forward_pairs=forward_pairs(stack))
    for name, value in found["float64"].items():
        assert found["float32"][name].dtype == np.float32
        np.testing.assert_allclose(found["float32"][name], value, atol=2e-5 * max(1, np.abs(value).max()))
