"""Class numbers and target rows."""

import numpy as np
import pytest

from echolearn.sequences.opening import open_sequences
from echolearn.sequences.targets import as_class_numbers, one_hot, open_weights
from numbered import numbered


def test_class_numbers_become_rows_with_a_single_one():
    rows = one_hot(np.array([2, 0]), 3, np.float32)
    np.testing.assert_array_equal(rows, [[0, 0, 1], [1, 0, 0]])
    assert rows.dtype == np.float32


def test_class_numbers_come_back_from_rows_with_a_single_one_and_from_no_others():
    labels = [np.array([2, 0]), np.array([1])]
    rows = [one_hot(each, 3, np.float64) for each in labels]
    for got, expected in zip(as_class_numbers(rows), labels, strict=True):
        np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(as_class_numbers([row[0] for row in rows]), [2, 1])
    for other in ([0, 0, 0], [1, 1, 0], [1, -1, 0], [0, 0, 2], [0.5, 0.5, 0]):
        given = [rows[0], np.array([other], float)]
        assert as_class_numbers(given) is given


# ---------------- Weights of targets as users give them


X = numbered([3, 5, 4])
STEPS = [np.array([1.0, 0.0, 2.0]), np.ones(5), np.array([0.5, 0.0, 0.0, 3.0])]


def test_one_weight_per_step_in_the_form_of_the_sequences():
    joined = open_sequences(np.concatenate(X), [3, 5, 4])
    for given, w in ((open_sequences(X), STEPS), (joined, np.concatenate(STEPS)), (open_sequences(X), tuple(STEPS))):
        for found, expected in zip(open_weights(w, given, per_step=True), STEPS, strict=True):
            np.testing.assert_array_equal(found, expected)
    (only,) = open_weights([1, 0, 2], open_sequences(X[0]), per_step=True)
    np.testing.assert_array_equal(only, STEPS[0])
    stack = open_weights(np.arange(8).reshape(2, 4), open_sequences(np.ones((2, 4, 1))), per_step=True)
    np.testing.assert_array_equal(stack[1], [4, 5, 6, 7])


@pytest.mark.parametrize("lengths", [None, [3, 5, 4]])
def test_one_weight_per_sequence_is_that_of_each_of_its_steps(lengths):
    given = open_sequences(X if lengths is None else np.concatenate(X), lengths)
    found = open_weights([1.0, 0.0, 2.5], given, per_step=True)
    np.testing.assert_array_equal(found[2], np.full(4, 2.5))
    each = open_weights(np.array([1.0, 0.0, 2.5]), given, per_step=False)
    assert [float(w) for w in each] == [1.0, 0.0, 2.5]


def test_no_weights_are_none():
    assert open_weights(None, open_sequences(X), per_step=True) is None


@pytest.mark.parametrize(
    ("w", "per_step", "message"),
    [
        ([1.0, 2.0], True, "sample_weight has 2 entries, but X has 3 sequences; expected one number per sequence"),
        ([1.0, np.nan, 1.0], True, "sample_weight holds nan; expected finite numbers >= 0"),
        ([1.0, -1.0, 1.0], False, "sample_weight holds -1.0; expected finite numbers >= 0"),
        ([1.0, np.inf, 1.0], True, "sample_weight holds inf"),
        ([0.0, 0.0, 0.0], True, "sample_weight is zero everywhere"),
        (["a", "b", "c"], True, "sample_weight is 'a'; expected one number per sequence"),
        (3.0, True, "sample_weight is 3.0; expected one number per sequence"),
        ([STEPS[0], STEPS[1][:-1], STEPS[2]], True, r"sequence 1 has shape \(4,\); expected one number, or 5"),
        (STEPS, False, r"sequence 0 has shape \(3,\); expected one number, as y has one entry"),
    ],
)
def test_bad_weights_are_refused_with_a_reason(w, per_step, message):
    with pytest.raises(ValueError, match=message):
        open_weights(w, open_sequences(X), per_step=per_step)


def test_weights_of_one_sequence_or_joined_ones_have_their_length():
    with pytest.raises(ValueError, match=r"shape \(2,\); expected \(3,\), one number for each step of X\."):
        open_weights([1.0, 1.0], open_sequences(X[0]), per_step=True)
    with pytest.raises(ValueError, match=r"shape \(2,\); expected \(12,\).*or 3, one per sequence"):
        open_weights([1.0, 1.0], open_sequences(np.concatenate(X), [3, 5, 4]), per_step=True)
