"""Eq. 1: the states of a batch against loops, and what must hold for any recurrence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import networks
import reference as ref
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS
from echolearn.reservoir._reservoir import bidirectional_reservoir
from echolearn.sequences.batch import LANES, pack, unpack
from echolearn.sequences.targets import one_hot
from echolearn.states import harvest
from echolearn.states.run import run


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    N=st.integers(1, 70),
    activation=st.sampled_from(list(ACTIVATIONS)),
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=2 * LANES + 3),
    feedback=st.booleans(),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_states_of_any_number_of_sequences_agree_with_loops(seed, N, activation, lengths, feedback, dtype):
    rng = np.random.default_rng(seed)
    w = networks.contracting(rng, N=N, feedback=feedback, bias=bool(seed % 2))
    h0 = rng.normal(size=N) if seed % 3 == 0 else None
    X = [rng.normal(size=(n, len(w["W"]))) for n in lengths]
    T = [rng.normal(size=(n, 2)) for n in lengths] if feedback else None
    batch = pack(X, dtype, T)
    found = run(Reservoir(**w, activation=activation, initial_state=h0), batch)
    for i, H in enumerate(unpack(batch, found.H)):
        slow = ref.states(w, X[i], activation, T and T[i], h0).T
        np.testing.assert_allclose(H, slow, rtol=0, atol=100 * np.finfo(dtype).eps * max(1, np.abs(slow).max()))


@pytest.mark.parametrize("sequences", [1, 20])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_states_are_those_of_f_and_the_leak(sequences, dtype):
    """H and F = f(z) satisfy eq. 1, and the states do not depend on whether F is kept."""
    rng = np.random.default_rng(0)
    r = Reservoir.random(2, 8, leak=(0.1, 0.9), bias_scaling=0.1, random_state=0)
    batch = pack([rng.normal(size=(n, 2)) for n in rng.integers(1, 12, sequences)], dtype)
    found, without = run(r, batch), run(r, batch, keep_F=False)
    before = batch.before(found.H)
    np.testing.assert_allclose(found.H, (1 - r.leak) * before + r.leak * found.F, atol=1e-6)
    np.testing.assert_array_equal(found.H, without.H)
    assert without.F is without.H


@pytest.mark.parametrize("lengths", [[9], [9, 9, 9, 9]])
def test_a_run_continues_from_the_state_in_which_another_ended(lengths):
    rng = np.random.default_rng(0)
    r = Reservoir.random(2, 8, random_state=0)
    X = [rng.normal(size=(n, 2)) for n in lengths]
    whole = pack(X, np.float64)
    first, second = whole.steps(0, 4), whole.steps(4, 9)
    H = run(r, first).H
    H = np.vstack([H, run(r, second, H[first.offsets[-1] :].copy()).H])
    np.testing.assert_allclose(H, run(r, whole).H, rtol=0, atol=1e-14)


@pytest.mark.parametrize("t", [0, 3, 8])
def test_a_state_depends_on_no_later_input(t):
    r = Reservoir.random(2, 8, leak=(0.1, 0.9), bias_scaling=0.1, random_state=0)
    x = np.random.default_rng(0).normal(size=(10, 2))
    other = x.copy()
    other[t + 1 :] += 5
    np.testing.assert_array_equal(harvest(r, x)[: t + 1], harvest(r, other)[: t + 1])
    assert (harvest(r, x)[t + 1] != harvest(r, other)[t + 1]).any()


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_nan_in_a_state_stays_nan(activation):
    """A damaged input gives NaN, never numbers that look healthy."""
    w = {"W": np.ones((1, 2)), "W_rec": np.eye(2)}
    x = pack([np.array([[1.0], [np.nan], [1.0]])], np.float64)
    H = run(Reservoir(**w, activation=activation), x).H
    assert np.isfinite(H[0]).all()
    assert np.isnan(H[1:]).all()


def test_an_unconnected_reservoir_runs():
    r = Reservoir(W=np.ones((1, 3)), W_rec=np.zeros((3, 3)), activation="identity")
    np.testing.assert_array_equal(harvest(r, np.arange(4.0)[:, None]), np.tile(np.arange(4.0)[:, None], 3))


def test_class_numbers_are_fed_back_as_rows():
    rng = np.random.default_rng(0)
    r = Reservoir.random(2, 8, n_feedback=3, random_state=0)
    X, labels = [rng.normal(size=(n, 2)) for n in (7, 4)], [rng.integers(0, 3, n) for n in (7, 4)]
    rows = [one_hot(y, 3, np.float64) for y in labels]
    by_number, by_row = (run(r, pack(X, np.float64, T)) for T in (labels, rows))
    np.testing.assert_array_equal(by_number.H, by_row.H)


def test_feedback_without_targets_is_refused():
    r = Reservoir.random(2, 4, n_feedback=1, random_state=0)
    with pytest.raises(ValueError, match=r"feedback weights W_fb: give the targets T"):
        run(r, pack([np.ones((3, 2))], np.float64))


# Both directions in time


@pytest.mark.parametrize(("dtype", "close"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("sequences", [1, 4, 20])
def test_states_of_both_directions_agree_with_loops(dtype, close, sequences):
    for seed, activation in enumerate(ACTIVATIONS):
        rng = np.random.default_rng([5, seed])
        w, backward = networks.two_directions(rng)
        h0 = rng.normal(size=6) if seed % 2 else None
        X = [rng.normal(size=(n, len(w["W"]))) for n in rng.integers(1, 12, sequences)]
        r = Reservoir(**w, activation=activation, initial_state=h0, backward=backward)
        for x, H in zip(X, harvest(r, X, dtype=dtype), strict=True):
            slow = ref.states_both_ways(w, backward, x, activation, h0).T
            np.testing.assert_allclose(H, slow, rtol=0, atol=close * max(1, np.abs(slow).max()))


def test_both_directions_of_one_long_sequence():
    """Long enough for both directions to run in chunks."""
    halves = [Reservoir.random(2, 20, leak=0.5, input_scaling=0.5, random_state=seed) for seed in (0, 1)]
    x = np.random.default_rng(0).normal(size=(3000, 2))
    both = bidirectional_reservoir(*halves)
    assert all(direction.states.chunk for direction in run(both, pack([x], np.float32)).directions)
    H = harvest(both, x, dtype="float32")
    np.testing.assert_allclose(H[:, :20], harvest(halves[0], x), atol=1e-5)
    np.testing.assert_allclose(H[:, 20:], harvest(halves[1], x[::-1])[::-1], atol=1e-5)


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32), st.sampled_from(list(ACTIVATIONS)))
def test_reversing_time_swaps_the_directions(seed, activation):
    rng = np.random.default_rng(seed)
    w, backward = networks.two_directions(rng)
    x = rng.normal(size=(9, len(w["W"])))
    r, swapped = (Reservoir(**w, activation=activation, backward=mask) for mask in (backward, ~backward))
    np.testing.assert_allclose(harvest(swapped, x[::-1])[::-1], harvest(r, x), rtol=1e-9, atol=1e-12)


def test_forward_units_know_the_past_and_backward_units_the_future():
    w, backward = networks.two_directions(np.random.default_rng(0), n_in=2)
    r = Reservoir(**w, activation="tanh", backward=backward)
    x = np.random.default_rng(1).normal(size=(10, 2))
    other = x.copy()
    other[4] += 1
    H, moved = harvest(r, x), harvest(r, other)
    np.testing.assert_array_equal(H[:4, ~backward], moved[:4, ~backward])
    np.testing.assert_array_equal(H[5:, backward], moved[5:, backward])
    assert (H[4] != moved[4]).all()
