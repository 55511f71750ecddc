"""Frames that carry targets, and pooling, against loops over sequences."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference as ref
from echolearn.sequences.batch import pack
from echolearn.sequences.selection import Selection, block_ends, block_starts, part_bounds, pooled_parts
from numbered import few_examples, lengths_of_sequences, numbered


@few_examples
@given(
    st.lists(st.integers(4, 12), min_size=1, max_size=6),
    st.integers(0, 3),
    st.sampled_from([None, 1, 2, 3, 7]),
    st.sampled_from(["all", "last"]),
    st.sampled_from([None, "mean", "last", 1, 3, 6]),
)
def test_a_selection_takes_what_the_loops_take(lengths, washout, lookback, targets, pooling):
    X = numbered(lengths)
    batch = pack(X, np.float64)
    select = Selection(batch, washout=washout, targets=targets, lookback=lookback, pooling=pooling)
    taken = select.take(batch.X)
    if isinstance(pooling, int):
        rows = [ref.part_means(x[washout:].T, pooling).ravel() for x in X]
        np.testing.assert_allclose(taken, np.array(rows)[batch.order], rtol=1e-12, atol=1e-12)
    elif pooling:
        rows = [x[washout:].mean(axis=0) if pooling == "mean" else x[-1] for x in X]
        np.testing.assert_allclose(taken, np.array(rows)[batch.order], rtol=1e-12, atol=1e-12)
    else:
        rows = [x[ref.kept_steps(len(x), washout, lookback, targets)] for x in X]
        np.testing.assert_array_equal(np.sort(taken[:, 0]), np.sort(np.concatenate(rows)[:, 0]))
    # put is the transpose of take: <take M, D> = <M, put D>
    D = np.random.default_rng(0).normal(size=taken.shape)
    assert np.vdot(taken, D) == pytest.approx(np.vdot(batch.X, select.put(D)), rel=1e-9, abs=1e-9)


@few_examples
@given(lengths_of_sequences, st.sampled_from([None, "mean", "last", 3]), st.integers(0, 3), st.booleans())
def test_put_is_the_transpose_of_take_with_backward_columns_too(lengths, pooling, seed, mixed):
    rng = np.random.default_rng(seed)
    batch = pack([np.empty((n, 1)) for n in lengths], np.float64)
    select = Selection(batch, washout=0, targets="all", lookback=None, pooling=pooling)
    backward = np.array([False, True, True, False]) if mixed else None
    M = rng.normal(size=(batch.frames, 4))
    taken = select.take(M, backward)
    D = rng.normal(size=taken.shape)
    np.testing.assert_allclose(np.vdot(taken, D), np.vdot(M, select.put(D, backward)), rtol=1e-10, atol=1e-10)


def test_the_last_state_of_backward_units_is_at_step_0():
    X = numbered([3, 5, 4])
    batch = pack(X, np.float64)
    select = Selection(batch, washout=0, targets="all", lookback=None, pooling="last")
    backward = np.array([False, True])
    taken = select.take(batch.X, backward)
    np.testing.assert_array_equal(taken, [[X[i][-1, 0], X[i][0, 1]] for i in batch.order])
    D = np.random.default_rng(0).normal(size=taken.shape)
    assert np.vdot(taken, D) == pytest.approx(np.vdot(batch.X, select.put(D, backward)), rel=1e-12)


@few_examples
@given(st.integers(1, 30), st.integers(0, 5), st.sampled_from([None, 1, 2, 3, 7]))
def test_ends_and_starts_of_blocks_agree_with_the_loops(length, washout, lookback):
    length += washout
    assert list(block_ends(length, washout, lookback)) == ref.kept_steps(length, washout, lookback, "last")
    starts = np.flatnonzero(block_starts(length, washout, lookback))
    assert tuple(starts) == ref.block_cuts(length, washout, lookback)


@few_examples
@given(st.integers(1, 30), st.integers(0, 5), st.integers(1, 8))
def test_parts_cover_the_time_after_the_washout(steps, washout, parts):
    bounds = part_bounds(washout + steps, washout, parts)
    assert len(bounds) == parts
    assert bounds[0][0] == washout
    assert bounds[-1][1] == washout + steps
    assert all(start < stop for start, stop in bounds)
    for (_, stop), (start, _) in pairwise(bounds):
        assert stop - 1 <= start <= stop  # neighbours meet, or share the step on their border


def test_only_a_number_of_parts_pools_into_several_means():
    assert [pooled_parts(pooling) for pooling in (None, "mean", "last", 1, 4, np.int64(3))] == [1, 1, 1, 1, 4, 3]


@few_examples
@given(
    st.lists(st.integers(4, 12), min_size=1, max_size=6),
    st.integers(0, 3),
    st.sampled_from(["all", "last"]),
    st.sampled_from([None, "mean", "last", 3]),
    st.integers(0, 99),
    st.booleans(),
)
def test_targets_of_weight_0_are_left_out(lengths, washout, targets, pooling, seed, mixed):
    rng = np.random.default_rng(seed)
    X = numbered(lengths)
    w = [rng.choice([0.0, 1.0, 2.5], size=() if pooling else n) for n in lengths]
    labels = [np.zeros(np.shape(c), int) for c in w]
    how = {"washout": washout, "targets": targets, "lookback": 3, "pooling": pooling}
    backward = np.array([False, True]) if mixed else None
    plain, batch = (pack(X, np.float64, labels, pooling is None, w=c) for c in (None, w))
    everything, select = Selection(plain, **how), Selection(batch, **how)
    counts = everything.targets(batch.w)
    expected = everything.take(plain.X, backward)[counts > 0]
    taken = select.take(batch.X, backward)
    np.testing.assert_array_equal(taken, expected)
    np.testing.assert_array_equal(select.targets(batch.w), counts[counts > 0])
    if select.w is None:
        assert (counts[counts > 0] == 1).all()
    else:
        np.testing.assert_array_equal(select.w, counts[counts > 0])
    D = rng.normal(size=taken.shape)
    assert np.vdot(taken, D) == pytest.approx(np.vdot(batch.X, select.put(D, backward)), rel=1e-9, abs=1e-9)
