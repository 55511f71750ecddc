"""Class numbers and target rows."""

import numpy as np

from echolearn.sequences.targets import as_class_numbers, one_hot


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
