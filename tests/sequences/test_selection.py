"""Frames that carry targets, against loops over sequences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference as ref
from echolearn.sequences.batch import pack
from echolearn.sequences.selection import Selection, block_ends, block_starts
from numbered import few_examples, numbered


@few_examples
@given(
    st.lists(st.integers(4, 12), min_size=1, max_size=6),
    st.integers(0, 3),
    st.sampled_from([None, 1, 2, 3, 7]),
    st.sampled_from(["all", "last"]),
)
def test_a_selection_takes_what_the_loops_take(lengths, washout, lookback, targets):
    X = numbered(lengths)
    batch = pack(X, np.float64)
    select = Selection(batch, washout=washout, targets=targets, lookback=lookback)
    taken = select.take(batch.X)
    rows = [x[ref.kept_steps(len(x), washout, lookback, targets)] for x in X]
    np.testing.assert_array_equal(np.sort(taken[:, 0]), np.sort(np.concatenate(rows)[:, 0]))
    # put is the transpose of take: <take M, D> = <M, put D>
    D = np.random.default_rng(0).normal(size=taken.shape)
    assert np.vdot(taken, D) == pytest.approx(np.vdot(batch.X, select.put(D)), rel=1e-9, abs=1e-9)


@few_examples
@given(st.integers(1, 30), st.integers(0, 5), st.sampled_from([None, 1, 2, 3, 7]))
def test_ends_and_starts_of_blocks_agree_with_the_loops(length, washout, lookback):
    length += washout
    assert list(block_ends(length, washout, lookback)) == ref.kept_steps(length, washout, lookback, "last")
    starts = np.flatnonzero(block_starts(length, washout, lookback))
    assert tuple(starts) == ref.block_cuts(length, washout, lookback)


@few_examples
@given(
    st.lists(st.integers(4, 12), min_size=1, max_size=6),
    st.integers(0, 3),
    st.sampled_from(["all", "last"]),
    st.integers(0, 99),
)
def test_targets_of_weight_0_are_left_out(lengths, washout, targets, seed):
    rng = np.random.default_rng(seed)
    X = numbered(lengths)
    w = [rng.choice([0.0, 1.0, 2.5], size=n) for n in lengths]
    labels = [np.zeros(np.shape(c), int) for c in w]
    how = {"washout": washout, "targets": targets, "lookback": 3}
    plain, batch = (pack(X, np.float64, labels, w=c) for c in (None, w))
    everything, select = Selection(plain, **how), Selection(batch, **how)
    counts = everything.take(batch.w)
    expected = everything.take(plain.X)[counts > 0]
    taken = select.take(batch.X)
    np.testing.assert_array_equal(taken, expected)
    np.testing.assert_array_equal(select.take(batch.w), counts[counts > 0])
    if select.w is None:
        assert (counts[counts > 0] == 1).all()
    else:
        np.testing.assert_array_equal(select.w, counts[counts > 0])
    D = rng.normal(size=taken.shape)
    assert np.vdot(taken, D) == pytest.approx(np.vdot(batch.X, select.put(D)), rel=1e-9, abs=1e-9)
