"""Load: much data in little memory, many fits in one process, many threads on one model, child processes, long streams.

    python -m reliability.load [--only "long streams"] [--frames 1100000] [--fits 1000] [--stream 10000000]

long streams: frames arrive in chunks of random sizes, from one to CHUNK. At PLACES places, the last answers are
compared with those of `predict` for the last WINDOW frames alone, which the network begins without a state: it has
forgotten earlier ones. Memory is compared between the first place and the last.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import multiprocessing
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from echolearn import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    SeriesClassifier,
    SeriesRegressor,
)
from echolearn.exceptions import PoorFitWarning
from reliability import results
from reliability.memory import limit_growth, process_bytes

HERE = Path(__file__).parent
STEPS, FEATURES, CLASSES = 1000, 39, 183  # as in speech: sequences of ten seconds
CHUNK, WINDOW, COMPARED, PLACES = 2000, 6000, 1000, 10  # frames of a stream; places where it is compared
DEEP_LAYERS = 4  # of the deep network that is fitted to much data


def much(frames: int, units: int, margin_mb: int, kind: str = "one layer") -> dict[str, Any]:
    """Fit all the frames in a child process whose address space may grow by `margin_mb` after its imports."""
    command = [sys.executable, "-m", "reliability.load", "--child", str(frames), str(units), str(margin_mb), kind]
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
        "all_states_mb": round(frames * units * 4 / 1e6) * (DEEP_LAYERS if kind == "deep" else 1),
        "score": round(score, 3),
        "seconds": round(time.perf_counter() - start),
        "reached": True,
    }


def fit_under_a_ceiling(frames: int, units: int, margin_mb: int, kind: str) -> None:
    """Fit in the child process: first a small network, which starts threads and compiles, then one under the limit."""
    rng = np.random.default_rng(0)
    sequences = [rng.standard_normal((STEPS, FEATURES), dtype=np.float32) for _ in range(40)]
    labels = [(np.abs(np.roll(x[:, 0], 1)) * 60).astype(int) % CLASSES for x in sequences]
    make: Any = partial(ESNClassifier, learn="none", readout="ridge")
    if kind == "deep":
        warnings.simplefilter("ignore", PoorFitWarning)
        make = partial(DeepESNClassifier, layers=DEEP_LAYERS, epochs=1)
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
    deep = {"units": 8, "layers": 2, "epochs": 10}
    one_each = [label[-1] for label in labels]
    inputs = np.cos(np.arange(160) / 3)[:, None]
    return [
        lambda: ESNClassifier(**small, learning={"refine_epochs": 1}).fit(X, labels).predict_proba(X),
        lambda: ESNClassifier(20, learn="none", readout="ridge").fit(X, labels).predict(X),
        lambda: ESNClassifier(**small, ensemble=2).fit(X, labels).predict(X),
        lambda: ESNRegressor(**small).fit(X, values).predict(X),
        lambda: ESNForecaster(**small).fit(wave).predict(10),
        lambda: ESNForecaster(**small).fit(wave, exogenous=inputs[:150]).predict(10, exogenous=inputs[150:]),
        lambda: DeepESNClassifier(**deep).fit(X, labels).predict_proba(X),
        lambda: DeepESNRegressor(**deep, ensemble=2).fit(X, values).predict(X),
        lambda: DeepESNClassifier(**deep, bidirectional=True).fit(X, one_each).predict_proba(X),
        lambda: SeriesClassifier(20).fit(X, one_each).predict_proba(X),
        lambda: SeriesRegressor(20).fit(X, range(10)).predict(X),
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
    """Compare calls of predict_proba from many threads on two models with the same calls one after another."""
    rng = np.random.default_rng(1)
    X = [rng.standard_normal((int(n), 4)) for n in rng.integers(5, 400, calls)]
    labels = [x[:, 0] > 0 for x in X[:10]]
    models = [
        ESNClassifier(200, learn="none").fit(X[:10], labels),
        DeepESNClassifier(16, 3, epochs=5).fit(X[:10], labels),
    ]
    asked = [(models[k % 2], x) for k, x in enumerate(X)]
    serial = [model.predict_proba(x) for model, x in asked]
    with ThreadPoolExecutor(threads) as pool:
        at_once = list(pool.map(lambda pair: pair[0].predict_proba(pair[1]), asked))
    same = sum(a.tobytes() == b.tobytes() for a, b in zip(serial, at_once, strict=True))
    return {"threads": threads, "calls": calls, "bit_equal": same, "reached": same == calls}


def answer() -> bytes:
    """Return the prediction after a fit that uses the thread pool: the same bytes in every process."""
    rng = np.random.default_rng(2)
    X = [rng.standard_normal((40, 3)) for _ in range(12)]
    models = ESNClassifier(20, epochs=2), DeepESNClassifier(8, 2, epochs=5, ensemble=2)
    answers = [model.fit(X, [x[:, 0] > 0 for x in X]).predict_proba(X) for model in models]
    return bytes(np.concatenate([rows for one in answers for rows in one]).tobytes())


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


def streamed() -> dict[str, Any]:
    """Return models whose streams are followed, with two features."""
    rng = np.random.default_rng(3)
    X = [rng.standard_normal((200, 2)) for _ in range(20)]
    values = [np.roll(x[:, 0], 1) * x[:, 1] for x in X]
    labels = [y > 0 for y in values]
    return {
        "one layer": ESNClassifier(50, epochs=1).fit(X, labels),
        "one layer, values": ESNRegressor(50, learn="none").fit(X, values),
        "deep": DeepESNClassifier(16, 3, epochs=20).fit(X, labels),
        "deep, values": DeepESNRegressor(16, 3, epochs=20, ensemble=2).fit(X, values),
    }


def long_stream(model: Any, frames: int, seed: int = 4) -> dict[str, Any]:
    """Stream so many frames through a fitted model, and compare its answers with `predict` at some places."""
    rng, stream = np.random.default_rng(seed), model.stream()
    answer, predict = (getattr(one, "predict_proba", one.predict) for one in (stream, model))
    done, worst, memory = 0, 0.0, []
    X, Y = np.empty((0, 2)), answer(np.empty((0, 2)))
    for place in np.linspace(0, frames, PLACES + 1).astype(int)[1:]:
        while done < place:
            size = min(int(place) - done, round(CHUNK ** rng.random()))
            x = rng.standard_normal((size, 2))
            X, Y, done = np.concatenate([X[-WINDOW:], x]), np.concatenate([Y[-COMPARED:], answer(x)]), done + size
        own = predict(X[-WINDOW:])[-COMPARED:]
        worst = max(worst, float(np.abs(Y[-len(own) :] - own).max() / max(1.0, np.abs(own).max())))
        gc.collect()
        memory.append(process_bytes("VmRSS"))
    assert stream.steps == frames
    growth = memory[-1] / memory[0] - 1
    return {
        "frames": frames,
        "largest_difference": worst,
        "growth_percent": round(100 * growth, 3),
        "reached": worst < 1e-5 and growth < 0.01,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=1_100_000, help="frames of the large fit")
    parser.add_argument("--units", type=int, default=2000, help="hidden units of the large fit")
    parser.add_argument("--margin-mb", type=int, default=1000, help="megabytes by which the large fit may grow")
    parser.add_argument("--fits", type=int, default=1000, help="small fits in one process")
    parser.add_argument("--stream", type=int, default=10_000_000, help="frames of each stream")
    parser.add_argument("--only", choices=("many fits", "threads", "children", "much data", "long streams"))
    options = parser.parse_args()
    parts: dict[str, Callable[[], dict[str, dict[str, Any]]]] = {
        "many fits": lambda: {"many fits": many_fits(options.fits, warm_up=50)},
        "threads": lambda: {"threads": many_threads(8, 400)},
        "children": lambda: {"children": children(20)},
        "much data": lambda: {
            "much data": much(options.frames, options.units, options.margin_mb),
            "much data, deep": much(options.frames // 2, 64, options.margin_mb // 2, "deep"),
        },
        "long streams": lambda: {f"stream, {n}": long_stream(m, options.stream) for n, m in streamed().items()},
    }
    path = HERE / "results" / "load.json"
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    found.pop("versions", None)
    for part in parts if options.only is None else (options.only,):
        fresh = parts[part]()
        for name, figures in fresh.items():
            print(f"{name}: " + ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in figures.items()))
            found[name] = {**figures, "date": datetime.date.today().isoformat(), "commit": results.STARTED_AT}
        results.keep("load", found)
    raise SystemExit(not all(figures["reached"] for figures in found.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        fit_under_a_ceiling(*map(int, sys.argv[2:5]), sys.argv[5])
    else:
        main()
