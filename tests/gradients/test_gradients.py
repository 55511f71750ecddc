"""Gradients of several batches."""

import numpy as np

from echolearn.gradients.gradients import Gradients


def test_gradients_are_added_in_place_and_missing_ones_stay_missing():
    first = Gradients(np.ones((2, 3)), np.arange(4.0), None, np.ones(3), np.zeros(3))
    W = first.W
    first += Gradients(np.full((2, 3), 2.0), np.ones(4), None, np.ones(3), np.ones(3))
    assert first.W is W
    np.testing.assert_array_equal(first.W, 3)
    np.testing.assert_array_equal(first.W_rec, [1, 2, 3, 4])
    np.testing.assert_array_equal(first.bias, 2)
    np.testing.assert_array_equal(first.leak, 1)
    assert first.W_fb is None
