"""Ten and thirty thousand units, a million frames: seconds, memory, error; the iterative readout against the exact one.

    python benchmarks/large.py --data an4_states.npz [--only accuracy run] [--units 10000 30000] [--frames 1120000]

accuracy: the exact ridge readout compared with the iterative one, 5,000 units, AN4 once.
run: a fixed fit and a learned one (`--epochs`). AN4's training utterances are repeated with a little noise until there
are `--frames` frames. Learning stops after the epoch in which `--minutes` have passed.
"""

import argparse
import time

import numpy as np

import protocol
from an4 import load_an4
from echolearn import ESNClassifier
from echolearn.execution.blas import one_blas_thread
from echolearn.readout.large.conjugate_gradients import solve_iteratively
from echolearn.readout.large.sketch import choose_ridge_by_sample, make_sketch, sample_rows
from echolearn.readout.network import Network, Readout, mean_error
from echolearn.readout.ridge import RIDGE_PATH, choose_ridge, loss, solve, squared_error
from echolearn.readout.statistics import collect
from echolearn.readout.view import ReadoutView
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from measure import in_own_process, measured
from results import table, write

CLASSES = 102
NOISE = 0.1  # standard deviation of what is added to repeated features, whose own is 1
BATCH = 32  # sequences of a mini-batch: sixteen run at once on each core
MOST_GB = 20
MOST_SECONDS = 3600


def repeated(X, y, frames):
    """Return about so many frames: the sequences, and after them copies with noise."""
    rng = np.random.default_rng(0)
    lengths = np.array([len(x) for x in X])
    count = int(np.searchsorted(np.cumsum(np.tile(lengths, 1 + frames // lengths.sum())), frames)) + 1
    several = [
        X[i % len(X)] + (i >= len(X)) * NOISE * rng.standard_normal(X[i % len(X)].shape, np.float32)
        for i in range(count)
    ]
    return several, [y[i % len(y)] for i in range(count)]


def accuracy(path, units, frames):
    """Return rows for the exact readout, and the iterative one at the same ridge and at its own.

    Each has the seconds, the squared error per frame on train, and the errors on valid and test.
    """
    corpus = load_an4(path)
    corpus["test"], _ = protocol.open_test("large", path, seeds=[0], prepared=True)
    data = {name: dataset(*part) for name, part in corpus.items()}
    train = dataset(*repeated(*corpus["train"], frames)) if frames else data["train"]
    reservoir = Reservoir.random(
        117, units, connections=10, input_scaling=0.1, bias_scaling=0.1, leak=(0.03, 0.9), random_state=0
    )
    view, rng = ReadoutView(), np.random.default_rng(0)
    with one_blas_thread():
        start = time.perf_counter()
        s = collect(reservoir, train, view)
        ridges = RIDGE_PATH * s.mean_diagonal
        mu, _ = choose_ridge(s, ridges, intercept=True, held_out=collect(reservoir, data["valid"], view))
        found = {"exact": (solve(s, mu, intercept=True), mu, time.perf_counter() - start)}
        start = time.perf_counter()
        rows_seen = sample_rows(reservoir, train, view, rng)
        own = choose_ridge_by_sample(rows_seen, ridges, CLASSES, sample_rows(reservoir, data["valid"], view, rng))
        sketch = make_sketch(rows_seen[0], s.n, w=rows_seen[2])
        prepared = time.perf_counter() - start
        for name, ridge in (("iterative, same ridge", mu), ("iterative, its own ridge", own)):
            start = time.perf_counter()
            U = solve_iteratively(reservoir, train, view, ridge, sketch, say=print)
            found[name] = U, ridge, prepared + time.perf_counter() - start
        rows = []
        for name, (U, ridge, seconds) in found.items():
            network = Network(reservoir, Readout(U, False, ridge), view)
            wrong = {part: 100 * mean_error(network, data[part], wrong_frames) for part in ("valid", "test")}
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
                f"{rows[-1]['work']}: ridge {rows[-1]['ridge']:.0e} of the mean diagonal, E {E:.5f} per frame, "
                f"valid {wrong['valid']:.2f} %, test {wrong['test']:.2f} %, {seconds:.0f} s",
                flush=True,
            )
    return rows


def dataset(X, y):
    """Return sequences and their labels as the library's internal functions take them."""
    return Dataset(X, y, CLASSES, True, np.dtype(np.float32))


def wrong_frames(Y, labels):
    """Return how many frames are classified wrongly."""
    return int((Y.argmax(axis=1) != labels).sum())


def run(path, units, *, frames, learn, readout, epochs, minutes):
    """Return errors, seconds and memory of one fit, and the seconds of every epoch."""
    data = load_an4(path)
    X, y = repeated(*data["train"], frames)
    ESNClassifier(10, epochs=1).fit(X[:6], y[:6])  # compiled before the clock starts
    learning = {"batch_size": BATCH, "refine_epochs": 0}
    esn = ESNClassifier(units, learn=learn, readout=readout, epochs=epochs, learning=learning, verbose=2)
    start = time.perf_counter()
    epoch_seconds = []

    def stop_in_time(row):
        epoch_seconds.append(row["seconds"])
        return time.perf_counter() - start > 60 * minutes

    with measured() as record:
        esn.fit(X, y, callback=stop_in_time)
    data["test"], _ = protocol.open_test("large", path, seeds=[0], prepared=True)
    errors = {name: 100 * (1 - esn.score(*data[name])) for name in ("valid", "test")}
    return record | errors | {"epoch_seconds": epoch_seconds, "frames": sum(map(len, X))}


def rows_of_run(path, units, options):
    """Yield a row for each fit, and one for the first epoch of those that learn."""
    settings = {name: getattr(options, name) for name in ("frames", "readout", "epochs", "minutes")}
    for learn in options.learn:
        found = in_own_process(run, path, units, learn=learn, **settings)
        work = f"{'fixed' if learn == 'none' else 'learned'} fit, {units} units, {found['frames']} frames"
        row = {"figure": 8, "work": work, "ours": found["seconds"], "unit": "s", **found}
        yield row | {"required": f"at most {MOST_GB} GB", "reached": found["peak_mb"] < 1000 * MOST_GB}
        if found["epoch_seconds"]:
            first = found["epoch_seconds"][0]
            required = {"required": "at most an hour", "reached": first < MOST_SECONDS}
            yield {"figure": 8, "work": f"first epoch of that, {units} units", "ours": first, "unit": "s", **required}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="path of an4_states.npz")
    parts = ["accuracy", "run"]
    parser.add_argument("--only", nargs="+", default=parts, choices=parts, help="parts to run")
    parser.add_argument("--units", nargs="+", type=int, default=[10_000, 30_000], help="hidden units of run")
    parser.add_argument("--accuracy-units", type=int, default=5000, help="hidden units of accuracy")
    parser.add_argument("--accuracy-frames", type=int, default=0, help="frames of accuracy (0: AN4 once)")
    parser.add_argument("--frames", type=int, default=1_120_000, help="frames of run")
    parser.add_argument("--learn", nargs="+", default=["none", "both"], help="which weights to learn, one fit each")
    parser.add_argument("--readout", default="softmax", choices=["softmax", "ridge"], help="readout of run")
    parser.add_argument("--epochs", type=int, default=1, help="epochs of learning at most")
    parser.add_argument("--minutes", type=float, default=120, help="no epoch begins after these")
    options = parser.parse_args()
    protocol.describe("large", options.data, seeds=[0])  # refuses now rather than after hours
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
