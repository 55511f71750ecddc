"""Packing: no frame lost or repeated, and every frame where it belongs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from echolearn.sequences.batch import pack, unpack
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
