"""Packing: no frame lost or repeated, and every frame where it belongs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from echolearn.sequences.batch import (
    LANES,
    MIN_BATCHES_TO_JOIN,
    MIN_SEQUENCES_PER_BATCH,
    MIN_STATES_FOR_TWO_THREADS,
    draw_minibatches,
    group_sequences,
    pack,
    split_evenly,
    split_minibatch,
    unpack,
)
from numbered import few_examples, lengths_of_sequences, numbered


@few_examples
@given(lengths_of_sequences)
def test_unpack_undoes_pack(lengths):
    X = numbered(lengths)
    batch = pack(X, np.float64, X)
    assert batch.frames == sum(lengths)
    for got, targets, x in zip(unpack(batch, batch.X), unpack(batch, batch.T), X, strict=True):
        np.testing.assert_array_equal(got, x)
        np.testing.assert_array_equal(targets, x)


@few_examples
@given(lengths_of_sequences)
def test_the_layout_is_step_by_step_with_the_longest_sequence_first(lengths):
    batch = pack(numbered(lengths), np.float64)
    assert (np.diff(batch.lengths) <= 0).all()
    assert sorted(batch.order) == list(range(len(lengths)))
    for t, (first, live) in enumerate(zip(batch.offsets, batch.active, strict=True)):
        assert live == sum(n > t for n in lengths)
        np.testing.assert_array_equal(batch.X[first : first + live, 0] % 100, t)


@few_examples
@given(lengths_of_sequences)
def test_rows_are_those_of_one_sequence_in_time_order(lengths):
    X = numbered(lengths)
    batch = pack(X, np.float64)
    for s, which in enumerate(batch.order):
        np.testing.assert_array_equal(batch.X[batch.rows(s)], X[which])


@few_examples
@given(lengths_of_sequences)
def test_reversed_rows_reverse_every_sequence_in_time(lengths):
    X = numbered(lengths)
    batch = pack(X, np.float64)
    turned = batch.reversed_rows()
    for got, x in zip(unpack(batch, batch.X[turned]), X, strict=True):
        np.testing.assert_array_equal(got, x[::-1])
    np.testing.assert_array_equal(turned[turned], np.arange(batch.frames))


@few_examples
@given(lengths_of_sequences)
def test_before_is_the_previous_step(lengths):
    X = [x + 1 for x in numbered(lengths)]
    batch = pack(X, np.float64)
    for got, x in zip(unpack(batch, batch.before(batch.X)), X, strict=True):
        np.testing.assert_array_equal(got, np.vstack([np.zeros((1, 2)), x[:-1]]))


@few_examples
@given(lengths_of_sequences, st.data())
def test_some_steps_are_a_batch_of_the_sequences_that_have_them(lengths, data):
    X = numbered(lengths)
    batch = pack(X, np.float64, X)
    begin = data.draw(st.integers(0, max(lengths) - 1))
    end = data.draw(st.integers(begin + 1, max(lengths) + 2))
    part = batch.steps(begin, end)
    assert sorted(part.order) == [i for i, n in enumerate(lengths) if n > begin]
    for s, which in enumerate(part.order):
        np.testing.assert_array_equal(part.X[part.rows(s)], X[which][begin:end])
        np.testing.assert_array_equal(part.T[part.rows(s)], X[which][begin:end])
    assert np.shares_memory(part.X, batch.X)


def test_one_target_per_sequence_follows_the_packed_order():
    batch = pack(numbered([2, 5, 3]), np.float64, [np.array([i]) for i in range(3)], per_step=False)
    np.testing.assert_array_equal(batch.T[:, 0], batch.order)
    np.testing.assert_array_equal(batch.order, [1, 2, 0])


def test_noise_of_a_sequence_is_the_same_in_any_batch():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 2)) for n in (5, 9, 7)]
    T = [x[:, :1] for x in X]
    together = pack(X, np.dtype("float64"), T, noise=0.5)
    rows = unpack(together, together.noise.rows(together, 4))
    for x, t, expected in zip(X, T, rows, strict=True):
        alone = pack([x], np.dtype("float64"), [t], noise=0.5)
        np.testing.assert_array_equal(alone.noise.rows(alone, 4), expected)
    assert 0.35 < np.std(np.concatenate(rows)) < 0.65
    assert pack(X, np.dtype("float64"), T).noise is None


# ---------------- Groups, mini-batches and shares


@few_examples
@given(lengths_of_sequences, st.integers(1, 30), st.booleans())
def test_groups_have_every_sequence_once(lengths, frames, shuffled):
    lengths = np.array(lengths)
    order = np.random.default_rng(0).permutation(len(lengths)) if shuffled else None
    groups = list(group_sequences(lengths, frames, order))
    assert sorted(np.concatenate(groups)) == list(range(len(lengths)))
    assert all(len(group) == 1 or lengths[group].sum() <= frames for group in groups)
    if shuffled:
        np.testing.assert_array_equal(np.concatenate(groups), order)


def test_groups_begin_with_the_longest_and_fill_all_lanes():
    lengths = np.arange(1, 101)
    groups = list(group_sequences(lengths, 2000))
    assert (np.diff(lengths[np.concatenate(groups)]) < 0).all()
    assert all(len(group) % LANES == 0 for group in groups[:-1] if len(group) > LANES)
    assert any(len(group) > LANES for group in groups[:-1])


@few_examples
@given(st.lists(st.integers(1, 500), min_size=1, max_size=60), st.integers(1, 20), st.integers(0, 9))
def test_minibatches_have_every_sequence_once(lengths, size, seed):
    lengths = np.array(lengths)
    batches = draw_minibatches(lengths, size, np.random.default_rng(seed))
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    sizes = sorted(map(len, batches), reverse=True)
    rest = len(lengths) % size
    if len(lengths) <= MIN_BATCHES_TO_JOIN * size or rest == 0 or rest >= MIN_SEQUENCES_PER_BATCH:
        assert all(n == size for n in sizes[:-1])
        assert len(batches) == -(-len(lengths) // size)
    else:  # one or two sequences are no mini-batch of their own
        assert sizes == [size + rest] + [size] * (len(lengths) // size - 1)
    again = draw_minibatches(lengths, size, np.random.default_rng(seed))
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))


def test_sequences_of_a_minibatch_are_of_similar_length_and_change_from_epoch_to_epoch():
    lengths = np.random.default_rng(0).integers(100, 1000, 400)
    rng = np.random.default_rng(1)
    first, second = (draw_minibatches(lengths, 8, rng) for _ in range(2))
    for batch in first:
        assert lengths[batch].max() <= 1.1 / 0.9 * 1.1 * lengths[batch].min()
    assert {tuple(sorted(b)) for b in first} != {tuple(sorted(b)) for b in second}
    means = [lengths[batch].mean() for batch in first]
    assert abs(np.corrcoef(np.arange(len(means)), means)[0, 1]) < 0.5  # not in the order of their lengths


@few_examples
@given(lengths_of_sequences, st.integers(1, 6))
def test_shares_have_every_sequence_of_a_batch_once(lengths, parts):
    lengths = np.array(lengths)
    which = np.random.default_rng(0).permutation(len(lengths))[: max(1, len(lengths) - 2)]
    shares = split_evenly(which, lengths, parts)
    assert sorted(np.concatenate(shares)) == sorted(which)
    assert len(shares) == min(parts, len(which))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert all((np.diff(lengths[share]) <= 0).all() for share in shares)
    frames = [lengths[share].sum() for share in shares]
    assert max(frames) - min(frames) <= lengths.max()


def test_only_a_large_mini_batch_is_split_between_threads():
    which, lengths = np.arange(4), np.full(4, 10)
    assert len(split_minibatch(which, lengths, 2, MIN_STATES_FOR_TWO_THREADS // 40 - 1)) == 1
    assert len(split_minibatch(which, lengths, 2, MIN_STATES_FOR_TWO_THREADS // 40 + 1)) == 2


def test_from_nine_mini_batches_on_a_small_rest_joins_the_batch_before():
    for count, sizes in ((8 * 4, [4] * 8), (8 * 4 + 1, [4] * 7 + [5]), (7 * 4 + 1, [4] * 7 + [1])):
        batches = draw_minibatches(np.full(count, 10), 4, np.random.default_rng(0))
        assert sorted(map(len, batches)) == sorted(sizes)
