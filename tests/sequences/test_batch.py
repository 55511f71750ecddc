"""Packing, selecting and dealing: nothing lost, nothing twice, everything where it belongs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference as ref
from echolearn.sequences.batch import pack, unpack
from echolearn.sequences.batching import group_sequences, split_evenly
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.selection import Selection, block_ends, block_starts
from echolearn.sequences.targets import as_class_numbers, one_hot

lengths_ = st.lists(st.integers(1, 12), min_size=1, max_size=9)
few = settings(max_examples=60, deadline=None)


def numbered(lengths, width=2):
    """Sequences whose entries tell where they stand: 100 × sequence + step, and its negative."""
    columns = [100.0 * i + np.arange(n)[:, None] for i, n in enumerate(lengths)]
    return [np.hstack([c, -c][:width]) for c in columns]


@few
@given(lengths_)
def test_unpack_undoes_pack(lengths):
    X = numbered(lengths)
    batch = pack(X, np.float64, X)
    assert batch.frames == sum(lengths)
    for got, targets, x in zip(unpack(batch, batch.X), unpack(batch, batch.T), X, strict=True):
        np.testing.assert_array_equal(got, x)
        np.testing.assert_array_equal(targets, x)


@few
@given(lengths_)
def test_layout_is_step_by_step_longest_first(lengths):
    batch = pack(numbered(lengths), np.float64)
    assert (np.diff(batch.lengths) <= 0).all()
    assert sorted(batch.order) == list(range(len(lengths)))
    for t, (first, live) in enumerate(zip(batch.offsets, batch.active, strict=True)):
        assert live == sum(n > t for n in lengths)
        np.testing.assert_array_equal(batch.X[first : first + live, 0] % 100, t)


@few
@given(lengths_)
def test_before_is_the_step_before(lengths):
    X = [x + 1 for x in numbered(lengths)]
    batch = pack(X, np.float64)
    for got, x in zip(unpack(batch, batch.before(batch.X)), X, strict=True):
        np.testing.assert_array_equal(got, np.vstack([np.zeros((1, 2)), x[:-1]]))


def test_one_row_a_sequence_follows_the_packed_order():
    batch = pack(numbered([2, 5, 3]), np.float64, [np.array([i]) for i in range(3)], per_step=False)
    np.testing.assert_array_equal(batch.T[:, 0], batch.order)
    np.testing.assert_array_equal(batch.order, [1, 2, 0])


@few
@given(
    st.lists(st.integers(4, 12), min_size=1, max_size=6),
    st.integers(0, 3),
    st.sampled_from([None, 1, 2, 3, 7]),
    st.sampled_from(["all", "last"]),
    st.sampled_from([None, "mean", "last", 1, 3, 6]),
)
def test_selection_takes_what_the_loops_take(lengths, washout, lookback, targets, pooling):
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


@few
@given(st.integers(1, 30), st.integers(0, 5), st.sampled_from([None, 1, 2, 3, 7]))
def test_ends_and_block_starts_agree_with_the_loops(length, washout, lookback):
    length += washout
    assert list(block_ends(length, washout, lookback)) == ref.kept_steps(length, washout, lookback, "last")
    starts = np.flatnonzero(block_starts(length, washout, lookback))
    assert tuple(starts) == ref.block_cuts(length, washout, lookback)


@few
@given(lengths_, st.integers(1, 30), st.booleans())
def test_groups_cover_every_sequence_once(lengths, frames, shuffled):
    lengths = np.array(lengths)
    order = np.random.default_rng(0).permutation(len(lengths)) if shuffled else None
    parts = list(group_sequences(lengths, frames, order))
    assert sorted(np.concatenate(parts)) == list(range(len(lengths)))
    assert all(len(p) == 1 or lengths[p].sum() <= frames for p in parts)


@few
@given(lengths_, st.integers(1, 6))
def test_dealt_piles_cover_a_batch_once(lengths, parts):
    lengths = np.array(lengths)
    which = np.random.default_rng(0).permutation(len(lengths))[: max(1, len(lengths) - 2)]
    piles = split_evenly(which, lengths, parts)
    assert sorted(np.concatenate(piles)) == sorted(which)
    assert len(piles) == min(parts, len(which))
    assert max(map(len, piles)) - min(map(len, piles)) <= 1


def test_one_hot():
    np.testing.assert_array_equal(one_hot(np.array([2, 0]), 3, np.float32), [[0, 0, 1], [1, 0, 0]])


def test_as_classes_undoes_one_hot_and_leaves_the_rest():
    labels = [np.array([2, 0]), np.array([1])]
    rows = [one_hot(each, 3, np.float64) for each in labels]
    for got, wanted in zip(as_class_numbers(rows), labels, strict=True):
        np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(as_class_numbers([row[0] for row in rows]), [2, 1])
    for odd in ([0, 0, 0], [1, 1, 0], [1, -1, 0], [0, 0, 2], [0.5, 0.5, 0]):
        given = [rows[0], np.array([odd], float)]
        assert as_class_numbers(given) is given


def test_data_batches_and_subsets():
    X = numbered([3, 5, 4])
    labels = [np.arange(len(x)) % 3 for x in X]
    data = Dataset(X, labels, 3, True, np.dtype("float32"))
    assert data.n_out == 3
    batch = data.subset([2, 0]).batch([0, 1])
    assert batch.X.dtype == np.float32
    assert batch.T.dtype == np.int64
    np.testing.assert_array_equal(unpack(batch, batch.X)[0], X[2])
    np.testing.assert_array_equal(unpack(batch, batch.T)[0], labels[2])
    np.testing.assert_array_equal(unpack(batch, batch.T)[1], labels[0])
    values = Dataset(X, [x[:, :1] for x in X], None, True, np.dtype("float64"))
    assert values.n_out == 1
    np.testing.assert_array_equal(unpack(values.batch([1]), values.batch([1]).T)[0], X[1][:, :1])
    one_each = Dataset(X, [2, 0, 1], 3, False, np.dtype("float32")).batch([0, 1, 2])
    np.testing.assert_array_equal(one_each.T, [0, 1, 2])  # longest first
