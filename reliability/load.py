"""Load: much data in little memory, many fits in one process, many threads on one model, child processes.

python -m reliability.load [--frames 1100000] [--units 2000] [--margin-mb 1000] [--fits 1000]
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from echolearn import ESNClassifier, ESNForecaster, ESNRegressor
from reliability import results
from reliability.memory import limit_growth, process_bytes

HERE = Path(__file__).parent
STEPS, FEATURES, CLASSES = 1000, 39, 183  # as in speech: sequences of ten seconds


def much(frames: int, units: int, margin_mb: int) -> dict[str, Any]:
    """Fit all the frames in a child process whose address space may grow by `margin_mb` after its imports."""
    command = [sys.executable, "-m", "reliability.load", "--child", str(frames), str(units), str(margin_mb)]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=HERE.parent, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the fit on {frames} frames failed with {margin_mb} MB:\n{done.stderr}")
    ceiling, mapped, resident, score = map(float, done.stdout.split())
    return {
        "frames": frames,
        "units": units,
        "margin_mb": margin_mb,
        "ceiling_mb": round(ceiling / 1e6),
        "mapped_mb": round(mapped / 1e6),
        "resident_mb": round(resident / 1e6),
        "all_states_mb": round(frames * units * 4 / 1e6),
        "score": round(score, 3),
        "seconds": round(time.perf_counter() - start),
        "reached": True,
    }


def fit_under_a_ceiling(frames: int, units: int, margin_mb: int) -> None:
    """Fit in the child process: first a small network, which starts threads and compiles, then one under the limit."""
    rng = np.random.default_rng(0)
    sequences = [rng.standard_normal((STEPS, FEATURES), dtype=np.float32) for _ in range(40)]
    labels = [(np.abs(np.roll(x[:, 0], 1)) * 60).astype(int) % CLASSES for x in sequences]
    make = partial(ESNClassifier, learn="none", readout="ridge")
    make(10).fit(sequences[:10], labels[:10]).predict(sequences[:10])
    ceiling = limit_growth(margin_mb * 10**6)
    lengths = [STEPS] * (frames // STEPS) + [frames % STEPS] * (frames % STEPS > 0)
    X = [sequences[i % 40][:n] for i, n in enumerate(lengths)]
    y = [labels[i % 40][:n] for i, n in enumerate(lengths)]
    esn = make(units).fit(X, y)
    print(ceiling, process_bytes("VmPeak"), process_bytes("VmHWM"), esn.score(X[:20], y[:20]))


def small_jobs() -> list[Any]:
    """Return functions that make one fit and prediction of each kind."""
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((30, 3)) for _ in range(10)]
    labels = [np.roll(x[:, 0], 1) > 0 for x in X]
    values = [np.roll(x[:, 0], 1) for x in X]
    wave = np.sin(np.arange(150) / 4)
    small = {"hidden_units": 20, "epochs": 1}
    return [
        lambda: ESNClassifier(**small, learning={"refine_epochs": 1}).fit(X, labels).predict_proba(X),
        lambda: ESNClassifier(20, learn="none", readout="ridge").fit(X, labels).predict(X),
        lambda: ESNClassifier(**small, ensemble=2).fit(X, labels).predict(X),
        lambda: ESNRegressor(**small).fit(X, values).predict(X),
        lambda: ESNForecaster(**small).fit(wave).predict(10),
    ]


def many_fits(fits: int, warm_up: int) -> dict[str, Any]:
    """Compare resident memory after the first fits and at the end; a leak of 1 KB per fit adds 1 MB in a thousand."""
    jobs = cycle(small_jobs())
    for _ in range(warm_up):
        next(jobs)()
    gc.collect()
    before = process_bytes("VmRSS")
    for _ in range(fits):
        next(jobs)()
    gc.collect()
    growth = process_bytes("VmRSS") / before - 1
    return {
        "fits": fits,
        "resident_mb": round(before / 1e6, 1),
        "growth_percent": round(100 * growth, 3),
        "reached": growth < 0.01,
    }


def many_threads(threads: int, calls: int) -> dict[str, Any]:
    """Compare calls of predict_proba from many threads on one model with the same calls one after another."""
    rng = np.random.default_rng(1)
    X = [rng.standard_normal((int(n), 4)) for n in rng.integers(5, 400, calls)]
    esn = ESNClassifier(200, learn="none").fit(X[:10], [x[:, 0] > 0 for x in X[:10]])
    serial = [esn.predict_proba(x) for x in X]
    with ThreadPoolExecutor(threads) as pool:
        at_once = list(pool.map(esn.predict_proba, X))
    same = sum(a.tobytes() == b.tobytes() for a, b in zip(serial, at_once, strict=True))
    return {"threads": threads, "calls": calls, "bit_equal": same, "reached": same == calls}


def answer() -> bytes:
    """Return the prediction after a fit that uses the thread pool: the same bytes in every process."""
    rng = np.random.default_rng(2)
    X = [rng.standard_normal((40, 3)) for _ in range(12)]
    esn = ESNClassifier(20, epochs=2).fit(X, [x[:, 0] > 0 for x in X])
    return bytes(np.concatenate(esn.predict_proba(X)).tobytes())


def _put_answer(queue: Any) -> None:
    queue.put(answer())


def child(method: str, seconds: float) -> bytes | None:
    """Return `answer` from a forked or spawned child process; None if it does not answer in time."""
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    process = context.Process(target=_put_answer, args=(queue,))
    process.start()
    end = time.monotonic() + seconds
    while queue.empty() and process.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    found = None if queue.empty() else queue.get()
    process.kill()
    process.join()
    return found


def children(rounds: int) -> dict[str, Any]:
    """Start child processes after fits have used the thread pools, some of them while another thread fits."""
    expected = answer()
    good = dict.fromkeys(("fork", "spawn", "fork during a fit"), 0)
    for _ in range(rounds):
        good["fork"] += child("fork", 600) == expected
        good["spawn"] += child("spawn", 600) == expected
        with ThreadPoolExecutor(1) as pool:
            working = pool.submit(answer)
            good["fork during a fit"] += child("fork", 600) == expected
            assert working.result() == expected
    return {"rounds": rounds, **good, "reached": all(count == rounds for count in good.values())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=1_100_000, help="frames of the large fit")
    parser.add_argument("--units", type=int, default=2000, help="hidden units of the large fit")
    parser.add_argument("--margin-mb", type=int, default=1000, help="megabytes by which the large fit may grow")
    parser.add_argument("--fits", type=int, default=1000, help="small fits in one process")
    options = parser.parse_args()
    found = {"many fits": many_fits(options.fits, warm_up=50)}
    found["threads"] = many_threads(8, 400)
    found["children"] = children(20)
    found["much data"] = much(options.frames, options.units, options.margin_mb)
    for name, figures in found.items():
        print(f"{name}: " + ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in figures.items()))
    results.keep("load", found)
    raise SystemExit(not all(figures["reached"] for figures in found.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        fit_under_a_ceiling(*map(int, sys.argv[2:]))
    else:
        main()
