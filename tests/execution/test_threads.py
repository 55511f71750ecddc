"""Map and add: in order, whatever the threads do, and no failure lost."""

import os
import threading
import time
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

import toys
from echolearn import ESNClassifier
from echolearn.execution import threads as engine
from echolearn.execution.blas import one_blas_thread
from echolearn.execution.threads import map_and_sum, map_in_order, thread_count
from echolearn.execution.tree_sum import ARITY, tree_sum


def test_results_come_in_order():
    def slow_first(i):
        time.sleep(0.02 if i == 0 else 0)
        return i

    assert list(map_in_order(slow_first, range(20))) == list(range(20))
    assert list(map_in_order(slow_first, [])) == []


def test_total_adds_in_order_into_the_first():
    parts = [np.array([float(i)]) for i in range(5)]
    assert map_and_sum(lambda i: parts[i], range(5)) is parts[0]
    assert parts[0][0] == 10
    # floating-point sums keep their order: 1e16 + 1 - 1e16 is 0 from left to right
    assert map_and_sum(lambda v: np.array([v]), [1e16, 1.0, -1e16])[0] == 0


def test_a_failure_in_a_thread_reaches_the_caller():
    def fail(i):
        if i == 3:
            raise ZeroDivisionError("in part 3")
        return i

    with pytest.raises(ZeroDivisionError, match="in part 3"):
        list(map_in_order(fail, range(10)))


def test_few_results_wait():
    """Work runs at most a few items ahead of the one who takes the results."""
    started = []
    results = map_in_order(lambda i: started.append(i), range(100))
    next(results)
    time.sleep(0.05)
    assert len(started) <= thread_count() + 2
    results.close()


def test_work_leaves_the_main_thread():
    names = set(map_in_order(lambda _: threading.current_thread().name, range(8)))
    assert all(name.startswith("echolearn") for name in names)


def test_blas_is_limited_inside_and_restored_after():
    def sizes():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = sizes()
    with one_blas_thread():
        assert set(sizes()) <= {1}
    assert sizes() == before


def test_the_number_of_threads_does_not_touch_the_bits(monkeypatch):
    X, y = toys.labels(sequences=8)
    many = ESNClassifier(**toys.FAST).fit(X, y)
    monkeypatch.setattr(engine, "threads", lambda: 1)
    one = ESNClassifier(**toys.FAST).fit(X, y)
    np.testing.assert_array_equal(many._U, one._U)
    np.testing.assert_array_equal(many.recurrent_weights_.data, one.recurrent_weights_.data)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_makes_its_own_threads():
    assert list(map_in_order(lambda i: i, range(4))) == [0, 1, 2, 3]
    child = os.fork()
    if child == 0:
        os._exit(0 if list(map_in_order(lambda i: i, range(4))) == [0, 1, 2, 3] else 1)
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return
        time.sleep(0.02)
    os.kill(child, 9)
    os.waitpid(child, 0)
    pytest.fail("the child hangs")


@given(st.lists(st.floats(-1e6, 1e6), max_size=70))
def test_added_is_a_tree_of_neighbours(values):
    def node(parts):
        """Level after level, ARITY neighbours from left to right."""
        while len(parts) > 1:
            wholes = [parts[start : start + ARITY] for start in range(0, len(parts), ARITY)]
            parts = [reduce(add, whole) for whole in wholes]  # `sum` adds otherwise from Python 3.12 on
        return parts[0] if parts else None

    assert tree_sum(values) == node(values)


def test_a_thread_knows_the_cluster_of_its_caller():
    token = engine.CLUSTER.set("mine")
    try:
        assert set(map_in_order(lambda _: engine.CLUSTER.get(), range(4))) == {"mine"}
    finally:
        engine.CLUSTER.reset(token)
    assert set(map_in_order(lambda _: engine.CLUSTER.get(), range(4))) == {None}
