"""Ten and thirty thousand units over a million frames: seconds, memory, error; and what the iterative readout leaves.

    python benchmarks/large.py --data an4_states.npz [--only accuracy run] [--units 10000 30000] [--frames 1120000]

accuracy: the exact ridge readout against the iterative one, 5,000 units, AN4 once.
run: a fixed fit and a learned one (`--epochs`), AN4's training utterances repeated with a little noise until there
are `--frames` frames. Learning stops after the epoch in which `--minutes` are over.
"""

import argparse
import time

import numpy as np

from an4 import load_an4
from echolearn.readout.ridge import choose_ridge, loss, solve, squared_error
from measure import in_own_process, measured
from results import table, write

NOISE = 0.1  # of the repeated features, whose standard deviation is 1
BATCH = 32  # sequences of a mini-batch: sixteen run side by side on each core
MOST_GB = 20
MOST_SECONDS = 3600


def repeated(X, y, frames):
    """The sequences again and again with fresh noise, about so many frames."""
    rng = np.random.default_rng(0)
    lengths = np.array([len(x) for x in X])
    count = int(np.searchsorted(np.cumsum(np.tile(lengths, 1 + frames // lengths.sum())), frames)) + 1
    several = [
        X[i % len(X)] + (i >= len(X)) * NOISE * rng.standard_normal(X[i % len(X)].shape, np.float32)
        for i in range(count)
    ]
    return several, [y[i % len(y)] for i in range(count)]


def accuracy(path, units, frames):
    """Squared error per frame on train, error on valid and test, seconds: exact, then iterative at the same ridge and
    at its own."""
    from echolearn.execution.blas import one_blas_thread
    from echolearn.readout import collect as passes
    from echolearn.readout import conjugate_gradients as iterative
    from echolearn.reservoir.reservoir import Reservoir
    from echolearn.sequences.dataset import Dataset

    corpus = load_an4(path)
    data = {name: Dataset(*part, 102, True, np.dtype(np.float32)) for name, part in corpus.items()}
    train = Dataset(*repeated(*corpus["train"], frames), 102, True, np.dtype(np.float32)) if frames else data["train"]
    reservoir = Reservoir.random(
        117, units, connections=10, input_scaling=0.1, bias_scaling=0.1, leak=(0.03, 0.9), random_state=0
    )
    task, rng = passes.Task(), np.random.default_rng(0)
    with one_blas_thread():
        start = time.perf_counter()
        s = passes.collect(reservoir, train, task)
        ridges = 10.0 ** np.arange(-8, 2) * float(np.trace(s.G)) / len(s.G)
        held = passes.collect(reservoir, data["valid"], task)
        mu, _ = choose_ridge(s, ridges, intercept=True, held_out=held)
        found = {"exact": (solve(s, mu, intercept=True), mu, time.perf_counter() - start)}
        start = time.perf_counter()
        seen = iterative.sample(reservoir, train, task, rng)
        own = iterative.choose_ridge(seen, ridges, 102, iterative.sample(reservoir, data["valid"], task, rng))
        about = iterative.sketch(seen[0], s.n)
        prepared = time.perf_counter() - start
        for name, ridge in (("iterative, same ridge", mu), ("iterative, its own ridge", own)):
            start = time.perf_counter()
            U = iterative.fit(reservoir, train, task, ridge, about, say=print)
            found[name] = U, ridge, prepared + time.perf_counter() - start
        rows = []
        for name, (U, ridge, seconds) in found.items():
            wrong = {part: wrong_percent(reservoir, data[part], U, task) for part in ("valid", "test")}
            E = loss(s, U, ridge, intercept=True) / s.n
            rows.append(
                {
                    "figure": 8,
                    "work": f"{name}, {units} units, {s.n:.0f} frames",
                    "ours": seconds,
                    "unit": "s",
                    "ridge": ridge / ridges[0] * 1e-8,
                    "error_per_frame": E,
                    "squared_error": squared_error(s, U) / s.n,
                    **wrong,
                }
            )
            print(
                f"{rows[-1]['work']}: ridge {rows[-1]['ridge']:.0e} of the mean diagonal, E {E:.5f} a frame, "
                f"valid {wrong['valid']:.2f} %, test {wrong['test']:.2f} %, {seconds:.0f} s",
                flush=True,
            )
    return rows


def wrong_percent(reservoir, data, U, task):
    from echolearn.readout import collect as passes
    from echolearn.sequences.batching import group_sequences

    wrong = frames = 0
    for which in group_sequences(data.lengths, passes.FRAMES):
        H_c, labels, _, _ = passes.observed(reservoir, task, data.batch(which))
        wrong += int(((H_c @ U.astype(H_c.dtype)).argmax(axis=1) != labels).sum())
        frames += len(labels)
    return 100 * wrong / frames


def run(path, units, frames, learn, readout, epochs, minutes):
    """One fit in a process of its own; seconds of every epoch apart."""
    from echolearn import ESNClassifier

    data = load_an4(path)
    X, y = repeated(*data["train"], frames)
    ESNClassifier(10, epochs=1).fit(X[:6], y[:6])  # compiled before the clock starts
    # one block: all units learn together, as in the paper
    how = {"batch_size": BATCH, "blocks": 1, "refine_epochs": 0, "verbose": 2}
    esn = ESNClassifier(units, learn=learn, readout=readout, epochs=epochs, **how)
    start = time.perf_counter()
    clock = []

    def seen(row):
        clock.append(row["seconds"])
        return time.perf_counter() - start > 60 * minutes

    with measured() as record:
        esn.fit(X, y, callback=seen)
    errors = {name: 100 * (1 - esn.score(*data[name])) for name in ("valid", "test")}
    return record | errors | {"epoch_seconds": clock, "frames": sum(map(len, X))}


def rows_of_run(path, units, options):
    for learn in options.learn:
        found = in_own_process(
            run, path, units, options.frames, learn, options.readout, options.epochs, options.minutes
        )
        work = f"{'fixed' if learn == 'none' else 'learned'} fit, {units} units, {found['frames']} frames"
        row = {"figure": 8, "work": work, "ours": found["seconds"], "unit": "s", **found}
        yield row | {"asked": f"at most {MOST_GB} GB", "reached": found["peak_mb"] < 1000 * MOST_GB}
        if found["epoch_seconds"]:
            first = found["epoch_seconds"][0]
            asked = {"asked": "at most an hour", "reached": first < MOST_SECONDS}
            yield {"figure": 8, "work": f"first epoch of that, {units} units", "ours": first, "unit": "s", **asked}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="path of an4_states.npz")
    parser.add_argument("--only", nargs="+", default=["accuracy", "run"], choices=["accuracy", "run"])
    parser.add_argument("--units", nargs="+", type=int, default=[10_000, 30_000])
    parser.add_argument("--accuracy-units", type=int, default=5000)
    parser.add_argument("--accuracy-frames", type=int, default=0, help="0: AN4 once")
    parser.add_argument("--frames", type=int, default=1_120_000)
    parser.add_argument("--learn", nargs="+", default=["none", "both"])
    parser.add_argument("--readout", default="softmax", choices=["softmax", "ridge"])
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=120)
    options = parser.parse_args()
    rows = []
    if "accuracy" in options.only:
        rows += in_own_process(accuracy, options.data, options.accuracy_units, options.accuracy_frames)
    for units in options.units if "run" in options.only else []:
        for row in rows_of_run(options.data, units, options):
            print({k: v for k, v in row.items() if k != "figure"}, flush=True)
            rows.append(row)
            write("large", rows)
    print(table(rows))
    print(write("large", rows))


if __name__ == "__main__":
    main()
