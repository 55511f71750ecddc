"""A small Dask cluster of real processes on the loopback interface, which ends with its context whatever happens."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np

# One BLAS thread per process, and no heartbeat that waits for seconds after a death.
ENVIRONMENT = {
    **os.environ,
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
    "PYTHONWARNINGS": "ignore",
}
WORKER = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--memory-limit", "0")
WORKER += ("--death-timeout", "60", "--lifetime", "2 hours")  # in case nobody is left to end them
SCHEDULER = ("--port", "0", "--no-dashboard", "--no-show", "--idle-timeout", "10 minutes")

SMALL = {"hidden_units": 20, "connections": 4, "epochs": 2, "batch_size": 8}  # settings of a network


def assert_same_bits(one, other):
    """Compare all weights of two fitted estimators."""
    np.testing.assert_array_equal(one.network_.readout.U, other.network_.readout.U)
    for name in ("W", "bias", "leak"):
        np.testing.assert_array_equal(getattr(one.reservoir_, name), getattr(other.reservoir_, name))
    np.testing.assert_array_equal(one.recurrent_weights_.data, other.recurrent_weights_.data)


def start(*arguments):
    """Start a module of Python as a process."""
    command = [sys.executable, "-m", *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def processes(folder, workers, tls=()):
    """Yield the file with the scheduler's address, the worker processes, and a function that starts one more."""
    file = os.path.join(folder, "scheduler.json")
    host = f"{'tls' if tls else 'tcp'}://127.0.0.1"
    scheduler = start("distributed.cli.dask_scheduler", "--host", host, "--scheduler-file", file, *SCHEDULER, *tls)
    running = []

    def start_one():
        running.append(start("distributed.cli.dask_worker", "--scheduler-file", file, *WORKER, *tls))

    try:
        deadline = time.monotonic() + 60
        while not os.path.exists(file) and time.monotonic() < deadline:
            time.sleep(0.05)
        for _ in range(workers):
            start_one()
        yield file, running, start_one
    finally:
        for process in [*running, scheduler]:
            process.kill()
        for process in [*running, scheduler]:
            process.wait()


@contextmanager
def cluster(folder, workers):
    """Yield a client of so many workers, their processes, and a function that starts one more."""
    from distributed import Client

    with (
        processes(folder, workers) as (file, running, start_one),
        Client(scheduler_file=file, timeout=60, set_as_default=False) as client,
    ):
        client.wait_for_workers(workers, timeout=60)
        yield client, running, start_one


def address(file):
    """Return the address in a scheduler's file."""
    with open(file) as opened:
        return json.load(opened)["address"]
