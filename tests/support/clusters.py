"""A small Dask cluster of real processes on the loopback, which ends with its context whatever happens."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

# one BLAS thread each, no heartbeat that waits for seconds after a death
ENVIRONMENT = {
    **os.environ,
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
    "PYTHONWARNINGS": "ignore",
}
WORKER = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--memory-limit", "0")
# should nobody be left to end them
WORKER += ("--death-timeout", "60", "--lifetime", "2 hours")
SCHEDULER = ("--port", "0", "--no-dashboard", "--no-show", "--idle-timeout", "10 minutes")


def start(*arguments):
    command = [sys.executable, "-m", *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def processes(folder, workers, tls=()):
    """The scheduler's address, the worker processes, and a function that starts one more."""
    file = os.path.join(folder, "scheduler.json")
    protocol = "tls" if tls else "tcp"
    scheduler = start(
        "distributed.cli.dask_scheduler",
        "--host",
        f"{protocol}://127.0.0.1",
        "--scheduler-file",
        file,
        *SCHEDULER,
        *tls,
    )
    running = []

    def more():
        running.append(start("distributed.cli.dask_worker", "--scheduler-file", file, *WORKER, *tls))

    try:
        deadline = time.monotonic() + 60
        while not os.path.exists(file) and time.monotonic() < deadline:
            time.sleep(0.05)
        for _ in range(workers):
            more()
        yield file, running, more
    finally:
        for process in [*running, scheduler]:
            process.kill()
        for process in [*running, scheduler]:
            process.wait()


@contextmanager
def cluster(folder, workers):
    """A client of as many workers, their processes, and a function that starts one more."""
    from distributed import Client

    with (
        processes(folder, workers) as (file, running, more),
        Client(scheduler_file=file, timeout=60, set_as_default=False) as client,
    ):
        client.wait_for_workers(workers, timeout=60)
        yield client, running, more


def address(file):
    with open(file) as opened:
        return json.load(opened)["address"]
