"""The validation split: whole sequences, the last steps of few long ones, or nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import (
    MAX_LEAD_IN_STEPS,
    MIN_SEQUENCES_TO_HOLD_OUT,
    MIN_STEPS_TO_CUT,
    Piece,
    Split,
    cut_into_windows,
    cut_out,
    hold_out,
)
from numbered import few_examples, numbered


def dataset(lengths, per_step=True):
    X = numbered(lengths)
    y = [x[:, :1] for x in X] if per_step else [np.array([float(i)]) for i in range(len(X))]
    return Dataset(X, y, None, per_step, np.dtype("float64"))


@few_examples
@given(st.integers(MIN_SEQUENCES_TO_HOLD_OUT, 40), st.floats(0.001, 0.999), st.booleans(), st.integers(0, 99))
def test_of_many_sequences_a_fraction_is_held_out(n, fraction, per_step, seed):
    data = dataset([3] * n, per_step)
    split = hold_out(data, fraction, 0, np.random.default_rng(seed))
    train, held_out = ([int(x[0, 0]) // 100 for x in part.X] for part in (split.train, split.held_out))
    assert sorted(train + held_out) == list(range(n))
    assert train == sorted(train)
    assert held_out == sorted(held_out)
    assert len(held_out) == min(max(1, round(fraction * n)), n - 1)
    assert len(split.everything.X) == n
    again = hold_out(data, fraction, 0, np.random.default_rng(seed))
    assert [int(x[0, 0]) // 100 for x in again.held_out.X] == held_out


@pytest.mark.parametrize("washout", [0, 7])
def test_of_few_sequences_the_last_steps_are_held_out(washout):
    data = dataset([60, 100])
    split = hold_out(data, 0.25, washout, np.random.default_rng(0))
    for part in (split.train, split.held_out):
        for x, y in zip(part.X, part.y, strict=True):
            np.testing.assert_array_equal(x[:, :1], y)
    for x, head, tail, cut in zip(data.X, split.train.X, split.held_out.X, (45, 75), strict=True):
        np.testing.assert_array_equal(head, x[:cut])
        np.testing.assert_array_equal(tail, x)  # it begins in its head, of which no target counts
    for x, weights, cut in zip(data.X, split.held_out.weights, (45, 75), strict=True):
        np.testing.assert_array_equal(weights, np.arange(len(x)) >= cut)
    assert split.train.weights is None


def test_a_tail_begins_at_most_so_many_steps_before_it():
    data = dataset([4000])
    held_out = hold_out(data, 0.1, 0, np.random.default_rng(0)).held_out
    np.testing.assert_array_equal(held_out.X[0], data.X[0][3600 - MAX_LEAD_IN_STEPS :])
    assert held_out.weights[0].sum() == 400


@pytest.mark.parametrize(
    ("lengths", "fraction", "washout", "per_step"),
    [
        ([60] * 9, 0.0, 0, True),
        ([MIN_STEPS_TO_CUT - 1, 100], 0.25, 0, True),
        ([60, 100], 0.25, 16, True),
        ([60, 100], 0.95, 5, True),
        ([60, 100], 0.25, 0, False),
    ],
    ids=["no fraction", "short sequence", "long washout", "short head", "one target per sequence"],
)
def test_nothing_is_held_out_where_it_cannot_be(lengths, fraction, washout, per_step):
    data = dataset(lengths, per_step)
    split = hold_out(data, fraction, washout, np.random.default_rng(0))
    assert split.held_out is None
    assert split.train is data
    assert split.everything is data


def test_readouts_are_not_fitted_to_held_out_data_of_the_user():
    train, given = dataset([4, 5]), dataset([3])
    assert Split(train, given, refit=False).everything is train
    assert len(Split(train, given).everything.X) == 3


@pytest.mark.parametrize("per_step", [True, False])
def test_sequences_without_a_target_are_not_held_out(per_step):
    data = dataset([4] * 12, per_step)
    useful = {1, 4, 7}
    some = [np.array([1.0, 1.0, 0.0, 2.0]) if per_step else np.array(2.0) for _ in data.X]
    data = replace(data, weights=[w if i in useful else 0 * w for i, w in enumerate(some)])
    for seed in range(10):
        split = hold_out(data, 0.3, 1, np.random.default_rng(seed))
        held_out = [int(x[0, 0]) // 100 for x in split.held_out.X]
        assert set(held_out) < useful
        assert len(held_out) == 1
        assert len(split.train.X) == 11
    only_one = replace(data, weights=[w if i == 1 else 0 * w for i, w in enumerate(some)])
    assert hold_out(only_one, 0.3, 1, np.random.default_rng(0)).held_out is None


def test_last_steps_without_a_target_are_not_held_out():
    data = dataset([60, 100])
    weights = [np.arange(60.0), np.arange(100.0)]
    split = hold_out(replace(data, weights=weights), 0.25, 5, np.random.default_rng(0))
    np.testing.assert_array_equal(split.train.weights[0], np.arange(45))
    np.testing.assert_array_equal(split.held_out.weights[1], np.where(np.arange(100) < 75, 0, np.arange(100)))
    heads = [np.where(np.arange(len(w)) < 0.7 * len(w), 1.0, 0.0) for w in weights]
    assert hold_out(replace(data, weights=heads), 0.25, 5, np.random.default_rng(0)).held_out is None


# ---------------- Pieces of long sequences, and the steps before them that only settle the state


def dataset_pieces(lengths):
    X = numbered(lengths)
    return Dataset(X, [x[:, :1] for x in X], None, True, np.dtype("float64"))


@pytest.mark.parametrize("washout", [0, 7])
def test_every_target_is_in_exactly_one_window(washout):
    data = dataset_pieces([95, 23, 40])
    cut = cut_into_windows(data, 10, 5, washout)
    counted = np.concatenate([y[w > 0, 0] for y, w in zip(cut.y, cut.weights, strict=True)])
    expected = np.concatenate([y[washout:, 0] for y in data.y])
    np.testing.assert_array_equal(np.sort(counted), np.sort(expected))
    for x, y, w in zip(cut.X, cut.y, cut.weights, strict=True):
        np.testing.assert_array_equal(x[:, :1], y)
        assert 8 <= w.sum() <= 12
        assert len(x) - w.sum() <= max(5, washout)


def test_weights_of_targets_are_kept():
    data = dataset_pieces([6])
    data = replace(data, weights=[np.arange(6.0)])
    cut = cut_out(data, [Piece(0, 1, 3, 5)])
    np.testing.assert_array_equal(cut.weights[0], [0, 0, 3, 4])


def test_pieces_that_count_from_their_start_need_no_weights():
    assert cut_out(dataset_pieces([6, 9]), [Piece(0, 0, 0, 4), Piece(1, 2, 2, 9)]).weights is None
