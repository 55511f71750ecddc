"""BLAS has one thread while our own threads work, and as many as before afterwards."""

import subprocess
import sys
import threading

from threadpoolctl import threadpool_info

from echolearn.execution.blas import one_blas_thread


def blas_threads():
    """Return the number of threads of each BLAS library in this process."""
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_is_limited_inside_and_restored_after():
    before = blas_threads()
    with one_blas_thread():
        assert set(blas_threads()) <= {1}
    assert blas_threads() == before


def test_overlapping_limits_of_two_threads_end_with_the_last_one():
    """The thread that sets the limit leaves first; the other one still has it, and lifts it."""
    before = blas_threads()
    entered, leave, seen = threading.Event(), threading.Event(), []

    def other():
        with one_blas_thread():
            entered.set()
            leave.wait(20)
            seen.append(blas_threads())

    thread = threading.Thread(target=other)
    with one_blas_thread():
        thread.start()
        assert entered.wait(20)
    assert set(blas_threads()) <= {1}
    leave.set()
    thread.join(20)
    assert set(seen[0]) <= {1}
    assert blas_threads() == before


def test_the_lasting_limit_outlives_the_passing_one():
    code = (
        "import numpy; from threadpoolctl import threadpool_info; from echolearn.execution import blas;"
        "blas.limit_blas_for_good()\n"
        "with blas.one_blas_thread(): pass\n"
        "print({pool['num_threads'] for pool in threadpool_info() if pool['user_api'] == 'blas'} <= {1})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
