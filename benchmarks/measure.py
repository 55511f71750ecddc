"""Seconds and peak memory of one piece of work, in a process of its own; and the number of weights of a network."""

import gc
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil


def in_own_process(function, *args, **kwargs):
    """Return function(*args, **kwargs), called in a fresh interpreter; function must be importable by name."""
    # Spawned, because a fork would start with the memory of its parent.
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **kwargs).result()


@contextmanager
def measured():
    """Yield a record that holds seconds, cpu_seconds, peak_mb and extra_mb at the end.

    cpu_seconds are those of all threads, without worker processes; on a busy machine they are steadier than seconds.
    peak_mb is the peak of the whole process, extra_mb how far it lies above the start. The peak is the kernel's own
    high-water mark, not a sample, and includes worker processes that are still alive.
    """
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # otherwise the mark would include the imports
    before = psutil.Process().memory_info().rss / 1e6
    record = {}
    start, cpu = time.perf_counter(), time.process_time()
    yield record
    record["seconds"] = time.perf_counter() - start
    record["cpu_seconds"] = time.process_time() - cpu
    process = psutil.Process()
    record["peak_mb"] = sum(high_water_mb(p.pid) for p in [process, *process.children(recursive=True)])
    record["extra_mb"] = record["peak_mb"] - before


def high_water_mb(pid):
    """Return the largest resident memory that a process has had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError(f"process {pid} has no memory of its own")


def count_weights(network):
    """Return the number of weights of a fitted network: W, W_rec, bias, leaks and the readout with its intercept."""
    reservoir = network.reservoir
    return reservoir.W.size + reservoir.W_rec.nnz + 2 * reservoir.N + network.readout.U.size
