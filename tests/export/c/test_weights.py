"""Weights in C: groups of four units, and whole numbers."""

import shutil

import numpy as np
import pytest

from echolearn.export.c.weights import answers_in, in_groups
from echolearn.runtime._plan import Sparse
from reference.plans import evaluate
from reliability.exports import difference, in_c


def test_recurrent_weights_in_groups_of_four():
    """Seven units with 0 to 3 connections: groups are filled up with zeros, the last one with units."""
    W = np.triu(np.ones((7, 7)), 1) * [1, 0, 0, 2, 0, 3, 0]
    rows, columns = np.nonzero(W)
    matrix = Sparse(np.append(0, np.cumsum(np.bincount(rows, minlength=7))), columns, W[rows, columns])
    groups = in_groups(matrix)
    assert groups.start.tolist() == [0, 2, 3]
    again = np.zeros((8, 7))
    for p, (places, weights) in enumerate(zip(groups.arrange(columns), groups.arrange(matrix.data), strict=True)):
        for k in range(4):
            again[4 * (p >= groups.start[1]) + k, places[k]] += weights[k]
    np.testing.assert_array_equal(again[:7], W)
    np.testing.assert_array_equal(matrix.dense(), W)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler")
@pytest.mark.parametrize("numbers", ["int16", "int8"])
def test_whole_numbers_are_those_of_the_slow_version(some, numbers):
    """The sanitizers would find a sum that overflows."""
    for one, found in zip(some, in_c(some, numbers), strict=True):
        expected = evaluate(one.plan, one.x, numbers)
        spread = np.abs(one.expected).max()
        exact = np.abs(expected - one.expected).max() / spread
        assert np.abs(found - expected).max() / spread < max(5e-5, exact / 5)
        assert exact < {"int16": 1e-3, "int8": 0.1}[numbers]
    assert difference(some[0], found_of(some[0], "int16")) < difference(some[0], found_of(some[0], "int8"))


def found_of(one, numbers):
    return evaluate(one.plan, one.x, numbers)


@pytest.mark.parametrize(("numbers", "limit"), [("float64", 1e-6), ("float32", 1e-5), ("int16", 1e-4), ("int8", 1e-2)])
def test_losses_are_measured_with_the_numbers_of_the_header(some, numbers, limit):
    """The layers of the runtime with whole numbers; a state that rounds the other way changes a little."""
    for one in some:
        expected = evaluate(one.plan, one.x, numbers)
        assert np.abs(answers_in(one.plan, one.x, numbers) - expected).max() <= limit * np.abs(expected).max()
