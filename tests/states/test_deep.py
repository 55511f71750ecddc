"""Deep layers over sequences, beside loops over their equations; causality, echo states and dropout."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference.deep as ref
from deepnets import bounds_of, draw, forward_pairs, frames
from echolearn.states.deep import Buffers, Dropout, in_precision, run, turns

LIMITS = {"float64": 1e-12, "float32": 1e-5}


def features(stack, X, dtype="float64", **how):
    """Return what `run` finds of sequences."""
    joined = np.ascontiguousarray(np.concatenate(X), dtype)
    given = {"layers": stack.layers, "forward_pairs": forward_pairs(stack), **how}
    return run(in_precision(stack, dtype), joined, bounds_of(X), **given)


def expected(stack, X, **how):
    """Return the same features and states from the equations."""
    found = ref.deep(stack.weights, X, layers=stack.layers, forward_pairs=forward_pairs(stack), **how)
    return np.concatenate([q for q, _ in found]), np.concatenate([H for _, H in found])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 9999),
    pairs=st.integers(1, 5),
    layers=st.integers(1, 4),
    n_in=st.integers(1, 4),
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    backward=st.booleans(),
    started=st.booleans(),
    share=st.sampled_from([0.0, 0.0, 0.3]),
    dtype=st.sampled_from(["float64", "float32"]),
)
def test_features_and_states_are_those_of_the_equations(
    seed, pairs, layers, n_in, lengths, backward, started, share, dtype
):
    stack = draw(seed, units=2 * pairs, layers=layers, n_in=n_in, bidirectional=backward)
    X, h0 = frames(seed, lengths, n_in), None
    if started:
        h0 = np.random.default_rng(seed).normal(size=(len(X), stack.N))
    seen = features(stack, X, dtype, h0=h0, dropout=Dropout(share, seed))
    q, H = expected(stack, X, h0=h0, share=share, seed=seed)
    np.testing.assert_allclose(seen.q, q, atol=LIMITS[dtype] * max(1, np.abs(q).max()))
    np.testing.assert_allclose(np.hstack([t.h for t in seen.tape]), H, atol=LIMITS[dtype] * max(1, np.abs(H).max()))
    np.testing.assert_allclose(seen.ends(), H[bounds_of(X)[1:] - 1], atol=LIMITS[dtype] * max(1, np.abs(H).max()))
    assert seen.q.dtype == dtype


def test_sequences_do_not_see_each_other():
    stack, X = draw(1, bidirectional=True), frames(1, [5, 1, 8])
    together = features(stack, X)
    alone = np.concatenate([features(stack, [x]).q for x in X])
    np.testing.assert_allclose(together.q, alone, atol=1e-14)


@pytest.mark.parametrize("backward", [False, True])
def test_a_later_frame_changes_nothing_earlier_without_backward_pairs(backward):
    stack, (x,) = draw(2, bidirectional=backward), frames(2, [12])
    other = x.copy()
    other[7] += 1.0
    before, after = features(stack, [x]).q, features(stack, [other]).q
    assert (before[7:] != after[7:]).any()
    assert (before[:7] == after[:7]).all() == (not backward)
    earlier = x.copy()
    earlier[3] += 1.0
    assert (features(stack, [earlier]).q[4:] != before[4:]).any()


def test_two_initial_states_approach_each_other_as_fast_as_the_slowest_pair_forgets():
    """In the first layer by a at every step, exactly; in the layers above at that rate in the long run."""
    stack, (x,) = draw(3, layers=3), frames(3, [400])
    h0 = np.random.default_rng(3).normal(size=(2, 1, stack.N))
    one, two = (features(stack, [x], h0=h).tape for h in h0)
    a = 1 / (1 + np.exp(-stack.weights["1/alpha"]))
    apart = np.hypot(*np.split(one[0].h - two[0].h, 2, axis=1))
    np.testing.assert_allclose(apart[1:20], apart[:19] * a, rtol=1e-9)
    slowest = max((1 / (1 + np.exp(-stack.weights[f"{k}/alpha"]))).max() for k in (1, 2, 3))
    top = np.abs(one[2].h - two[2].h).max(axis=1)
    assert top[0] > 0.1
    assert top[300] < 50 * 300**2 * slowest**300 + 1e-13  # beside the slowest rate, a polynomial


def test_weights_of_any_size_have_echo_states():
    stack = draw(4, layers=2)
    wild = stack.with_weights({k: v + 50.0 if k.endswith("alpha") else 30 * v for k, v in stack.weights.items()})
    re, im, gain = turns(in_precision(wild, "float32"), 1)
    assert (np.hypot(re, im) < 1).all()
    assert (gain > 0).all()
    assert np.isfinite(features(wild, frames(4, [50]), "float32").q).all()


def test_dropout_leaves_out_its_share_and_preserves_the_mean():
    stack, X = draw(5, units=16, layers=1), frames(5, [60])
    whole = features(stack, X)
    found = [features(stack, X, dropout=Dropout(0.25, seed)).tape[0] for seed in range(300)]
    active = whole.tape[0].p > 0
    dropped = np.mean([(one.p == 0)[active] for one in found], axis=0)
    assert abs(dropped.mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / (300 * active.sum()))
    assert np.abs(dropped - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 300)
    mean = np.mean([one.p for one in found], axis=0)
    spread = whole.tape[0].p * np.sqrt(0.25 / 0.75 / 300)
    assert (np.abs(mean - whole.tape[0].p) <= 5 * spread + 1e-12).all()
    np.testing.assert_array_equal(found[0].h, whole.tape[0].h)  # inputs are not left out


def test_a_seed_is_a_mask_and_places_have_masks_of_their_own():
    stack, X = draw(6, units=16, layers=2), frames(6, [40])
    one, again, other = (features(stack, X, dropout=Dropout(0.5, seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.q, again.q)
    assert (one.q != other.q).any()
    active = (one.tape[0].h + stack.weights["1/b"] > 0) & (one.tape[1].h + stack.weights["2/b"] > 0)
    first, second = ((layer.p > 0)[active] for layer in one.tape)
    assert abs((first == second).mean() - 0.5) < 5 * np.sqrt(0.25 / active.sum())


def test_buffers_are_used_again_and_change_no_result():
    stack, buffers = draw(7), Buffers()
    for seed, lengths in ((1, [9, 4]), (2, [3]), (3, [20, 7, 1])):
        X = frames(seed, lengths)
        np.testing.assert_array_equal(features(stack, X, buffers=buffers).q, features(stack, X).q)
    small, large = (buffers.take("q", rows, 8, np.dtype("f8")) for rows in (2, 5))
    assert np.shares_memory(small, large)
    assert not np.shares_memory(small, buffers.take("q", 2, 8, np.dtype("f4")))
