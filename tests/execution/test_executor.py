"""Passes over a dataset in this process, and the executor that new datasets are placed on."""

import numpy as np
import pytest

from echolearn.execution.executor import LOCAL, LocalExecutor, active_executor, executing_on
from echolearn.execution.threads import map_in_order


def test_items_are_indices_or_tuples_that_begin_with_them():
    data = np.arange(10)
    assert list(LOCAL.map(data, lambda data, which: data[which].sum(), [[0, 1], [2, 3]])) == [1, 5]
    assert list(LOCAL.map(data, lambda data, which, factor: factor * data[which], [(1, 2), (3, 4)])) == [2, 12]


def test_sums_have_the_order_of_the_tree():
    values = [1e16, 1.0, -1e16, 3.0, 0.5]
    assert LOCAL.sum(values, lambda data, i: data[i], range(5)) == 3.5
    assert LOCAL.sum(values, lambda data, i: data[i], []) is None


def test_kept_results_serve_several_passes():
    kept = LOCAL.keep([1, 2, 3], lambda data, i: 10 * data[i], range(3))
    assert list(LOCAL.map_kept(lambda value: value + 1, kept)) == [11, 21, 31]
    assert LOCAL.sum_kept(lambda value: value + 1, kept) == 63


def test_data_in_this_process_stay_as_they_are():
    X, data = [np.ones((2, 2))], object()
    assert LOCAL.place(X) is X
    assert LOCAL.place_targets(data) is data


def test_a_context_sets_the_executor_and_threads_inherit_it():
    mine = LocalExecutor()
    with executing_on(mine):
        assert active_executor() is mine
        assert set(map_in_order(lambda _: active_executor(), range(4))) == {mine}
    assert set(map_in_order(lambda _: active_executor(), range(4))) == {LOCAL}


def test_a_failure_in_the_context_restores_the_executor():
    with pytest.raises(ZeroDivisionError), executing_on(LocalExecutor()):
        raise ZeroDivisionError
    assert active_executor() is LOCAL
