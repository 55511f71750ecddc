"""Fits on a Dask cluster whose workers are killed: the results must have the bits of an undisturbed fit.

python -m reliability.dask_kills --runs 50        # real processes on this machine; one, two or three are killed per fit
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
import clusters
from echolearn import ESNClassifier
from reliability import results

WORKERS = 4
SETTINGS = {
    "sums and ridge": {"learn": "none", "readout": "ridge"},
    "softmax readout": {"learn": "none"},
    "full batch": {"readout": "ridge", "learning": {"batch_size": None}, "epochs": 3},
    "mini-batches": {"learning": {"batch_size": 64, "refine_epochs": 1}, "epochs": 1},
    "ensemble": {"ensemble": 4, "learning": {"batch_size": 64, "refine_epochs": 1}, "epochs": 2},
}


def corpus():
    """Return random sequences with labels that need a memory of one step."""
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, 8)).astype(np.float32) for n in rng.integers(60, 240, 400)]
    return X, [(x[:, 0] * np.roll(x[:, 0], 1) > 0) + 2 * (x[:, 1] > 0) for x in X]


def bits(esn):
    """Return the bytes of the learned weights."""
    return esn.network_.readout.U.tobytes(), esn.reservoir_.W.tobytes(), esn.recurrent_weights_.data.tobytes()


class Killer(threading.Thread):
    """Kills workers at given times of a fit, and counts those that were processing a task."""

    def __init__(self, client, victims, times):
        super().__init__(daemon=True)
        self.client, self.victims, self.times = client, victims, sorted(times)
        self.addresses = {pid: address for address, pid in client.run(os.getpid).items()}
        self.killed, self.busy, self.over = 0, 0, threading.Event()

    def run(self):
        started = time.monotonic()
        for victim, seconds in zip(self.victims, self.times, strict=True):
            if self.over.wait(max(0.0, started + seconds - time.monotonic())):
                return
            busy = bool(self.client.processing().get(self.addresses[victim.pid]))
            victim.send_signal(signal.SIGKILL)
            self.killed, self.busy = self.killed + 1, self.busy + busy


def alive_workers(client, running, start_worker):
    """Return WORKERS running processes; one that has not started in a minute is replaced."""
    for _ in range(10):
        for _ in range(WORKERS - sum(process.poll() is None for process in running)):
            start_worker()
        try:
            client.wait_for_workers(WORKERS, timeout=60)
            return [process for process in running if process.poll() is None]
        except TimeoutError:
            continue
    raise SystemExit("no new worker has started in ten minutes")


def killed_fit(client, workers, settings, data, *, kills, seconds, rng):
    """Return the bits of a fit, how many workers were killed before it ended, and how many of these were busy.

    seconds: what the fit takes without kills.
    """
    victims = [workers[i] for i in rng.permutation(len(workers))[:kills]]
    killer = Killer(client, victims, rng.uniform(0.1, 0.8, kills) * seconds)
    killer.start()
    esn = ESNClassifier(**settings).fit(*data, engine=client)
    killer.over.set()
    killer.join()
    return bits(esn), killer.killed, killer.busy


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50, help="fits with kills")
    parser.add_argument("--units", type=int, default=150, help="hidden units")
    parser.add_argument("--minutes", type=float, default=60, help="no run begins after these")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the workers end too
    data, rng, started = corpus(), np.random.default_rng(1), time.monotonic()
    rows, late = {}, 0
    with tempfile.TemporaryDirectory() as folder, clusters.cluster(folder, WORKERS) as (client, running, start_worker):
        undisturbed = {}
        for name, changes in SETTINGS.items():
            settings = {"hidden_units": options.units, **changes}
            in_process = bits(ESNClassifier(**settings).fit(*data))
            for _ in range(2):  # the second time without compilation and imports
                clock = time.monotonic()
                on_cluster = bits(ESNClassifier(**settings).fit(*data, engine=client))
                seconds = time.monotonic() - clock
            undisturbed[name] = settings, in_process, seconds
            rows[name] = {"as in process": on_cluster == in_process, "seconds": seconds, "runs": 0, "same bits": 0}
            rows[name] |= {"killed": 0, "killed at work": 0}
        done = 0
        while done < options.runs and time.monotonic() < started + 60 * options.minutes:
            name = list(SETTINGS)[done % len(SETTINGS)]
            settings, expected, seconds = undisturbed[name]
            kills = 1 + done % 3
            workers = alive_workers(client, running, start_worker)
            found, killed, busy = killed_fit(client, workers, settings, data, kills=kills, seconds=seconds, rng=rng)
            if killed < kills:
                late += 1  # the fit ended before the last kill, so this run does not count
                if late > options.runs:
                    break
                continue
            done += 1
            row = rows[name]
            row["runs"] += 1
            row["same bits"] += found == expected
            row["killed"] += killed
            row["killed at work"] += busy
            outcome = "the same bits" if found == expected else "DIFFERENT BITS"
            print(f"{done:3} {name}: {kills} killed, {outcome}", flush=True)
    columns = ("as in process", "seconds", "runs", "same bits", "killed", "killed at work")
    results.show(f"{WORKERS} workers with one thread each, killed during fits", columns, rows)
    total, same = (sum(row[c] for row in rows.values()) for c in ("runs", "same bits"))
    print(f"{same} of {total} runs have the bits of an undisturbed fit; {late} that ended too early were repeated")
    results.keep("dask_kills", {"units": options.units, "workers": WORKERS, "rows": rows, "late": late})
    return 0 if same == total == options.runs else 1


if __name__ == "__main__":
    sys.exit(main())
