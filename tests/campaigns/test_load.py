"""The short form of reliability/load.py."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from echolearn.execution.blas import one_blas_thread
from reliability import load

LINUX = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
FORKS = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")


def test_threads_get_the_serial_answers():
    assert load.many_threads(8, 60)["reached"]


def test_threads_that_fit_at_once_get_the_serial_answers():
    jobs = load.small_jobs()
    serial = [job() for job in jobs]
    with ThreadPoolExecutor(len(jobs)) as pool:
        at_once = [task.result() for task in [pool.submit(job) for job in jobs]]
    for a, b in zip(serial, at_once, strict=True):
        np.testing.assert_array_equal(np.concatenate(list(a), axis=None), np.concatenate(list(b), axis=None))


def test_the_limit_on_blas_outlasts_whoever_leaves_first():
    def sizes():
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before, inside, leave = sizes(), threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            inside.set()
            leave.wait(30)

    with one_blas_thread():
        thread = threading.Thread(target=other)
        thread.start()
        inside.wait(30)
    assert set(sizes()) <= {1}  # the other thread is still at work
    leave.set()
    thread.join()
    assert sizes() == before


@FORKS
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12 on: a fork beside threads
def test_a_forked_child_gets_the_same_answer():
    assert load.child("fork", 600) == load.answer()
    assert load.child("fork", 600) == load.answer()  # now the parent's pools have been used for certain


def test_a_spawned_child_gets_the_same_answer():
    assert load.child("spawn", 600) == load.answer()


@LINUX
def test_many_fits_leave_no_memory_behind():
    found = load.many_fits(60, warm_up=15)
    assert found["growth_percent"] < 1, found


@LINUX
def test_more_frames_than_fit_in_memory():
    """All states would take 256 MB, and the child may take 200."""
    found = load.much(640_000, 100, margin_mb=200)
    assert found["mapped_mb"] <= found["ceiling_mb"]
    assert found["all_states_mb"] > 100
