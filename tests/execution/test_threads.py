"""Work on all cores: results in order, few at a time, whatever the threads do, and no failure lost."""

import os
import threading
import time
from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

import toys
from echolearn import ESNClassifier
from echolearn.execution import threads
from echolearn.execution.blas import one_blas_thread
from echolearn.execution.threads import (
    TERMS_PER_NODE,
    as_worker,
    map_and_sum,
    map_in_order,
    on_worker_thread,
    thread_count,
    tree_sum,
)
from threadpools import thread_pool
from toys import grouped


def test_results_come_in_order():
    def slow_first(i):
        time.sleep(0.02 if i == 0 else 0)
        return i

    assert list(map_in_order(slow_first, range(20))) == list(range(20))
    assert list(map_in_order(slow_first, [])) == []


def test_a_sum_is_added_in_order_into_its_first_term():
    parts = [np.array([float(i)]) for i in range(5)]
    assert map_and_sum(lambda i: parts[i], range(5)) is parts[0]
    assert parts[0][0] == 10
    # Floating-point sums keep their order: 1e16 + 1 - 1e16 is 0 from left to right.
    assert map_and_sum(lambda v: np.array([v]), [1e16, 1.0, -1e16])[0] == 0


def test_a_failure_in_a_thread_reaches_the_caller():
    def fail(i):
        if i == 3:
            raise ZeroDivisionError("in part 3")
        return i

    with pytest.raises(ZeroDivisionError, match="in part 3"):
        list(map_in_order(fail, range(10)))


def test_work_runs_only_a_few_items_ahead_of_the_results_taken():
    started = []
    results = map_in_order(lambda i: started.append(i), range(100))
    next(results)
    time.sleep(0.05)
    assert len(started) <= thread_count() + 2
    results.close()


def test_work_leaves_the_main_thread_unless_there_is_one_core():
    with thread_pool(2):
        names = set(map_in_order(lambda _: threading.current_thread().name, range(8)))
        assert all(name.startswith("echolearn") for name in names)
        assert not on_worker_thread()
        assert all(map_in_order(lambda _: on_worker_thread(), range(8)))
    with thread_pool(1):
        assert set(map_in_order(lambda _: threading.current_thread(), range(8))) == {threading.current_thread()}


def test_work_on_a_worker_thread_stays_there():
    """A second level of threads would wait for the first one, which holds the pool."""

    def inner(_):
        return set(map_in_order(lambda _: threading.current_thread().name, range(3)))

    for names in map_in_order(inner, range(2 * thread_count())):
        assert len(names) == 1


def test_a_thread_of_others_works_as_a_worker_only_inside_the_context(monkeypatch):
    monkeypatch.setattr(threads.blas, "limit_blas_for_good", lambda: None)
    with as_worker():
        assert on_worker_thread()
        assert next(map_in_order(lambda _: threading.current_thread(), [0])) is threading.current_thread()
        np.float64(1e308) * np.float64(10)  # no warning
    assert not on_worker_thread()


def test_the_number_of_threads_does_not_change_the_bits():
    X, y = toys.labels(sequences=8)
    many = ESNClassifier(**grouped(toys.FAST)).fit(X, y)
    with thread_pool(1):
        one = ESNClassifier(**grouped(toys.FAST)).fit(X, y)
    np.testing.assert_array_equal(many.network_.readout.U, one.network_.readout.U)
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


def test_a_single_item_stays_on_the_calling_thread():
    assert list(map_in_order(lambda _: threading.current_thread(), [0])) == [threading.current_thread()]


@pytest.mark.parametrize("name", threads.THREAD_VARIABLES)
def test_the_environment_limits_the_threads(name, monkeypatch):
    for other in threads.THREAD_VARIABLES:
        monkeypatch.delenv(other, raising=False)
    free = thread_count()
    monkeypatch.setenv(name, "1")
    assert thread_count() == 1
    assert len(set(map_in_order(lambda _: threading.current_thread().name, range(8)))) == 1
    monkeypatch.setenv(name, "1000")
    assert thread_count() == free
    monkeypatch.setenv(name, "what?")
    assert thread_count() == free


def test_threadpoolctl_limits_the_threads_also_while_blas_has_one():
    free = thread_count()
    with one_blas_thread():
        assert thread_count() == free  # our own limit is none
    with threadpool_limits(1):
        assert thread_count() == 1
        with one_blas_thread():
            assert thread_count() == 1
    assert thread_count() == free


def test_worker_processes_of_joblib_share_the_cores(monkeypatch):
    for name in threads.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with parallel_config(backend="loky", inner_max_num_threads=1):
        assert Parallel(n_jobs=2)(delayed(thread_count)() for _ in range(2)) == [1, 1]


# ---------------- Sums in a fixed tree of neighbours


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.floats(-1e6, 1e6), max_size=70))
def test_each_node_adds_its_neighbours_from_left_to_right(values):
    def level_by_level(parts):
        while len(parts) > 1:
            nodes = [parts[start : start + TERMS_PER_NODE] for start in range(0, len(parts), TERMS_PER_NODE)]
            parts = [reduce(add, node) for node in nodes]  # `sum` adds differently from Python 3.12 on
        return parts[0] if parts else None

    assert tree_sum(values) == level_by_level(values)


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(0, 3))
def test_few_partial_sums_wait(count, seed):
    """Terms are taken one at a time, and only one sum per level of the tree stays alive."""
    alive = peak = 0

    class Term:
        def __init__(self, value):
            nonlocal alive, peak
            self.value = value
            alive += 1
            peak = max(peak, alive)

        def __iadd__(self, other):
            self.value += other.value
            return self

        def __del__(self):
            nonlocal alive
            alive -= 1

    values = np.random.default_rng(seed).integers(0, 100, count)
    assert tree_sum(Term(v) for v in values).value == values.sum()
    levels = 1 + int(np.ceil(np.log(count) / np.log(TERMS_PER_NODE)))
    assert peak <= levels + 2
