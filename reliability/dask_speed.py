"""The same fits in this process on two threads, and on Dask workers with one thread each: seconds, bytes, memory.

python -m reliability.dask_speed [--workers 2]        # the fits take turns; the fastest of each counts

The data are arrays of this process; in rows called "from files" the workers read them from files instead. Scheduler and
workers take some processor time even when they have nothing to do, and the more of it the longer a disturbed run lasts;
it is measured, and "net CPU ratio" is the ratio without it. The workers run with the settings of `ENVIRONMENT` below
(docs/explanation/cluster.md), or without them (--plain).
"""

from __future__ import annotations

import argparse
import resource
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
import clusters
from echolearn import ESNClassifier
from echolearn.cluster.executor import ClusterExecutor
from echolearn.execution.threads import thread_count
from echolearn.fitting.parameters import grouped_settings
from reliability import results

INPUTS, CLASSES = 39, 40
FIXED = {"hidden_units": 1000, "learn": "none", "readout": "ridge"}
LEARNED = {"hidden_units": 500, "readout": "ridge", "epochs": 1}
SETTINGS = {
    "sums and ridge, 1000": FIXED,
    "sums and ridge, 1000, from files": FIXED,
    "full batch, 3 epochs, 500": LEARNED | {"batch_size": None, "epochs": 3},
    "an epoch by 512, 500": LEARNED | {"batch_size": 512},
    "an epoch by 64, 500": LEARNED | {"batch_size": 64},
    "an epoch by 8, 300": LEARNED | {"batch_size": 8, "hidden_units": 300},
    "softmax readout, 500": {"hidden_units": 500, "learn": "none", "readout": "softmax"},
    "ensemble of 4 x 150, an epoch by 64": LEARNED | {"hidden_units": 600, "ensemble": 4, "batch_size": 64},
    "ensemble of 4 x 150, softmax": {"hidden_units": 600, "ensemble": 4, "learn": "none", "readout": "softmax"},
}
# A worker without the profiler of Dask, whose allocator does not return the memory of large arrays after every group.
ENVIRONMENT = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false",
    "MALLOC_MMAP_THRESHOLD_": "100000000",
    "MALLOC_TRIM_THRESHOLD_": "400000000",
}
IDLE = 4.0  # seconds for which the processes are watched at rest


def corpus(frames):
    """Return random sequences of about so many frames, with labels."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(100, 500, max(1, frames // 300))
    X = [rng.standard_normal((n, INPUTS)).astype(np.float32) for n in lengths]
    return X, [np.argmax(x[:, :CLASSES] @ np.eye(INPUTS, CLASSES), axis=1) for x in X]


def written(X, y, folder):
    """Write one file per sequence and return the files as `fit` takes them."""
    files = [str(Path(folder, f"{i}.npz")) for i in range(len(X))]
    for file, x, labels in zip(files, X, y, strict=True):
        np.savez(file, X=x, y=labels)
    return files, None


def traffic(dask_worker):
    """Return, on a worker, the bytes sent to other workers and the client, and the largest memory so far."""
    return dask_worker.transfer_outgoing_bytes_total, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


class ByteCounter:
    """Counts the tasks of this process, the bytes that it sends with them, and those that it receives as results."""

    def __init__(self):
        self.out = self.back = self.tasks = 0
        submit, result = ClusterExecutor.submit, ClusterExecutor.result

        def counted_submit(cluster, name, function, *arguments, **where):
            self.tasks += 1
            self.out += sum(len(a) for a in arguments if isinstance(a, bytes))
            return submit(cluster, name, function, *arguments, **where)

        def counted_result(cluster, future):
            value = result(cluster, future)
            self.back += size(value)
            return value

        ClusterExecutor.submit, ClusterExecutor.result = counted_submit, counted_result


def size(value):
    """Return the bytes of all arrays in a value."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, (list, tuple)):
        return sum(map(size, value))
    return sum(map(size, vars(value).values())) if hasattr(value, "__dict__") else 0


def timed(fit, others=()):
    """Return wall seconds, processor seconds of this process, and those of each of the other processes."""
    before = [sum(p.cpu_times()[:2]) for p in others]
    clock, cpu = time.perf_counter(), time.process_time()
    fit()
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    return clock, cpu, [sum(p.cpu_times()[:2]) - b for p, b in zip(others, before, strict=True)]


def times(local, remote, idle):
    """Return the times of fits here and on the cluster; idle: processor seconds of the cluster per second at rest."""
    row = {"here s": min(wall for wall, _, _ in local), "Dask s": min(wall for wall, _, _ in remote)}
    row["ratio"] = row["Dask s"] / row["here s"]
    here = row["here CPU s"] = min(cpu for _, cpu, _ in local)
    row["Dask CPU s"] = min(cpu + sum(others) for _, cpu, others in remote)
    row["CPU ratio"] = row["Dask CPU s"] / here
    row["net CPU ratio"] = min(cpu + sum(others) - idle * wall for wall, cpu, others in remote) / here
    least = min(remote, key=lambda one: one[1] + sum(one[2]) - idle * one[0])
    row |= {"client CPU s": least[1], "scheduler CPU s": least[2][0]}
    row |= {"worker CPU s, least": min(least[2][1:]), "worker CPU s, most": max(least[2][1:])}
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1_000_000, help="frames of the data")
    parser.add_argument("--repeats", type=int, default=2, help="fits of each kind, of which the fastest counts")
    parser.add_argument("--workers", type=int, default=2, help="workers, each with one thread")
    parser.add_argument("--plain", action="store_true", help="workers as Dask starts them")
    parser.add_argument("--name", default="dask_speed", help="the name of the file of results")
    parser.add_argument("--only", nargs="*", default=list(SETTINGS), help="names of fits, or how they begin")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the workers end too
    clusters.ENVIRONMENT |= {} if options.plain else ENVIRONMENT
    data = corpus(options.frames)
    chosen = {n: s for n, s in SETTINGS.items() if any(n.startswith(o) for o in options.only)}
    rows = {}
    with tempfile.TemporaryDirectory() as folder, clusters.cluster(folder, options.workers) as (client, running, _):
        scheduler = client.run_on_scheduler(lambda: __import__("os").getpid())
        others = [psutil.Process(pid) for pid in (scheduler, *(p.pid for p in running))]
        _, _, rest = timed(lambda: time.sleep(IDLE), others)
        idle = sum(rest) / IDLE
        counter = ByteCounter()
        files = written(*data, folder)
        for name, settings in chosen.items():
            esn = ESNClassifier(
                validation_fraction=0.0, ridge=1.0, **grouped_settings({**settings, "refine_epochs": 0}, ESNClassifier)
            )
            given = files if name.endswith("from files") else data
            small = [None if part is None else part[:40] for part in given]
            esn.fit(data[0][:40], data[1][:40]).fit(*small, engine=client)  # compiled and imported everywhere
            local, remote, start = [], [], client.run(traffic)
            counter.out = counter.back = counter.tasks = 0
            for _ in range(options.repeats):
                local.append(timed(lambda esn=esn: esn.fit(*data)))
                remote.append(timed(lambda esn=esn, given=given: esn.fit(*given, engine=client), others))
            end = client.run(traffic)
            row = rows[name] = times(local, remote, idle)
            row["out MB"], row["back MB"] = (b / 1e6 / options.repeats for b in (counter.out, counter.back))
            row["tasks"] = counter.tasks // options.repeats
            row["between MB"] = sum(end[w][0] - start[w][0] for w in end) / 1e6 / options.repeats - row["back MB"]
            row["worker MB"] = max(m for _, m in end.values()) / 1e6
            print(f"{name}: {row['here CPU s']:.2f} CPU s here, net ratio {row['net CPU ratio']:.2f}", flush=True)
    threads = thread_count()
    title = f"{options.frames:,} frames, {threads} threads here, {options.workers} workers with 1 thread each"
    results.show(title, tuple(next(iter(rows.values()))), rows)
    about = {
        "frames": int(sum(map(len, data[0]))),
        "threads": threads,
        "repeats": options.repeats,
        "workers": options.workers,
    }
    about |= {"environment": {} if options.plain else ENVIRONMENT, "idle CPU per second": idle}
    results.keep(options.name, {**about, "rows": rows})


if __name__ == "__main__":
    main()
