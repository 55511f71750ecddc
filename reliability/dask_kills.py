"""Workers of a Dask cluster are killed in the middle of fits: the bits must be those of a fit that nobody disturbed.

python -m reliability.dask_kills --runs 50        # real processes on the loopback, one, two and three killed in turn
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
    "full batch": {"readout": "ridge", "batch_size": None, "epochs": 3},
    "mini-batches": {"batch_size": 64, "epochs": 1, "refine_epochs": 1},
}


def corpus():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((n, 8)).astype(np.float32) for n in rng.integers(60, 240, 400)]
    return X, [(x[:, 0] * np.roll(x[:, 0], 1) > 0) + 2 * (x[:, 1] > 0) for x in X]


def bits(esn):
    return esn._U.tobytes(), esn.reservoir_.W.tobytes(), esn.recurrent_weights_.data.tobytes()


class Killer(threading.Thread):
    """Ends workers at given moments of a fit, and notes which of them were at work."""

    def __init__(self, client, victims, moments):
        super().__init__(daemon=True)
        self.client, self.victims, self.moments = client, victims, sorted(moments)
        self.addresses = {pid: address for address, pid in client.run(os.getpid).items()}
        self.killed, self.busy, self.over = 0, 0, threading.Event()

    def run(self):
        started = time.monotonic()
        for victim, moment in zip(self.victims, self.moments, strict=True):
            if self.over.wait(max(0.0, started + moment - time.monotonic())):
                return
            busy = bool(self.client.processing().get(self.addresses[victim.pid]))
            victim.send_signal(signal.SIGKILL)
            self.killed, self.busy = self.killed + 1, self.busy + busy


def complete(client, running, more):
    """WORKERS processes that are at hand; where one has not come up, another takes its place."""
    for _ in range(10):
        for _ in range(WORKERS - sum(process.poll() is None for process in running)):
            more()
        try:
            client.wait_for_workers(WORKERS, timeout=60)
            return [process for process in running if process.poll() is None]
        except TimeoutError:
            continue
    raise SystemExit("no new worker has come up in ten minutes")


def one_run(client, running, more, settings, data, kills, seconds, rng):
    """A fit with kills: its bits, how many were killed before it ended, how many of these were at work."""
    alive = complete(client, running, more)
    victims = [alive[i] for i in rng.permutation(len(alive))[:kills]]
    killer = Killer(client, victims, rng.uniform(0.1, 0.8, kills) * seconds)
    killer.start()
    esn = ESNClassifier(**settings).fit(*data, engine=client)
    killer.over.set()
    killer.join()
    return bits(esn), killer.killed, killer.busy


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--units", type=int, default=150)
    parser.add_argument("--minutes", type=float, default=60, help="no new run after these")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the workers end, too
    data, rng, started = corpus(), np.random.default_rng(1), time.monotonic()
    rows, late = {}, 0
    with tempfile.TemporaryDirectory() as folder, clusters.cluster(folder, WORKERS) as (client, running, more):
        undisturbed = {}
        for name, changes in SETTINGS.items():
            settings = {"hidden_units": asked.units, "blocks": 1, **changes}
            here = bits(ESNClassifier(**settings).fit(*data))
            for _ in range(2):  # the second without compilation and imports
                clock = time.monotonic()
                there = bits(ESNClassifier(**settings).fit(*data, engine=client))
                seconds = time.monotonic() - clock
            undisturbed[name] = settings, here, seconds
            rows[name] = {"as in process": there == here, "seconds": seconds, "runs": 0, "same bits": 0}
            rows[name] |= {"killed": 0, "killed at work": 0}
        done = 0
        while done < asked.runs and time.monotonic() < started + 60 * asked.minutes:
            name = list(SETTINGS)[done % len(SETTINGS)]
            settings, expected, seconds = undisturbed[name]
            kills = 1 + done % 3
            found, killed, busy = one_run(client, running, more, settings, data, kills, seconds, rng)
            if killed < kills:
                late += 1  # the fit was over first: not the run that was asked for
                if late > asked.runs:
                    break
                continue
            done += 1
            row = rows[name]
            row["runs"] += 1
            row["same bits"] += found == expected
            row["killed"] += killed
            row["killed at work"] += busy
            print(
                f"{done:3} {name}: {kills} killed, {'the same bits' if found == expected else 'OTHER BITS'}", flush=True
            )
    columns = ("as in process", "seconds", "runs", "same bits", "killed", "killed at work")
    results.show(f"{WORKERS} workers of one thread, killed in the middle of fits", columns, rows)
    total, same = (sum(row[c] for row in rows.values()) for c in ("runs", "same bits"))
    print(f"{same} of {total} runs have the bits of an undisturbed fit ({late} ended before the last kill, repeated)")
    results.keep("dask_kills", {"units": asked.units, "workers": WORKERS, "rows": rows, "late": late})
    return 0 if same == total == asked.runs else 1


if __name__ == "__main__":
    sys.exit(main())
