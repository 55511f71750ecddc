"""Forecasting compared with reservoirpy: same series, size, washout and grid. The table of docs/howto/forecasting.md.

    python benchmarks/forecasting.py [--seeds 10] [--tasks mg lorenz narma] [--figure docs/images/forecasting.png]

Fixed networks of both libraries are tuned over the same grid, separately for every measure: each setting is fitted to
train with six tuning seeds, and the one with the best median on valid is used for the seeds that count. reservoirpy is
tried with its defaults and with those of echolearn: inputs to every unit, and a bias. Learned networks are
ESNForecaster and ESNRegressor with their defaults (200 epochs), fitted to train. Test is only printed. Values are kept
in benchmarks/results/forecasting.json; those of tasks that are not run are taken from there. Two processes.
"""

import argparse
import itertools
import json
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import results
from echolearn import ESNForecaster, ESNRegressor, Reservoir
from echolearn.datasets import lorenz, mackey_glass, narma
from echolearn.exceptions import EchoStateWarning
from echolearn.states import harvest
from echolearn.states.closed_loop import run_closed_loop

UNITS, WASHOUT, EPOCHS = 100, 100, 200
GRID = [
    {"spectral_radius": radius, "leak": leak, "input_scaling": scaling}
    for radius, leak, scaling in itertools.product((0.7, 0.9, 1.1), (0.3, 1.0), (0.1, 0.2, 0.4, 1.0))
]
RIDGES = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4)
TUNING_SEEDS = range(100, 106)
RESULTS = Path(__file__).parent / "results" / "forecasting.json"
LYAPUNOV = 0.906 * 0.02  # Lyapunov times per step of the Lorenz series
MEASURES = {
    "mg1": "Mackey-Glass, 1 step, NRMSE",
    "mg84": "Mackey-Glass, 84 steps, NRMSE",
    "lorenz": "Lorenz, valid time in Lyapunov times",
    "narma": "NARMA-10, NRMSE",
}
LIBRARIES = ("reservoirpy", "echolearn fixed", "echolearn learned")


def data(task):
    """Return inputs X and targets T, one row per step, and the ends of train, valid and test."""
    if task == "narma":
        u, y = narma(6000, random_state=0)
        return standardised(u, 2000), standardised(y, 2000), (2000, 3000, 6000)
    if task == "lorenz":
        series, ends = standardised(lorenz(11001), 3000), (3000, 5000, 11000)
    else:
        series, ends = standardised(mackey_glass(6001), 2000), (2000, 3000, 6000)
    return series[:-1], series[1:], ends


def standardised(series, train):
    """Return the series with the mean 0 and standard deviation 1 over its first `train` rows."""
    return (series - series[:train].mean(axis=0)) / series[:train].std(axis=0)


def peer(X, T, settings, seed, ridges):
    """Yield reservoirpy's network and a readout for each ridge, in our notation."""
    from reservoirpy.mat_gen import uniform
    from reservoirpy.nodes import Reservoir as Node
    from reservoirpy.nodes import Ridge

    like_ours = {"input_connectivity": 1.0, "bias": uniform(low=-0.1, high=0.1, connectivity=1.0)}
    node = Node(
        UNITS,
        sr=settings["spectral_radius"],
        lr=settings["leak"],
        input_scaling=settings["input_scaling"],
        seed=seed,
        **(like_ours if settings["like_ours"] else {}),
    )
    H_c = np.hstack([node.run(X), X])
    bias = dense(node.bias).ravel() * np.ones(UNITS)
    network = Reservoir(W=dense(node.Win).T, W_rec=node.W, leak=settings["leak"], bias=bias, activation="tanh")
    for ridge in ridges:
        readout = Ridge(ridge=ridge).fit(H_c, T, warmup=WASHOUT)
        yield network, np.vstack([readout.Wout, readout.bias])


def dense(matrix):
    """Return a matrix, sparse or not, as an array."""
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


def fixed(X, T, settings, seed, ridges):
    """Yield an ESNRegressor without learning for each ridge: what ESNForecaster does with a standardised series."""
    for ridge in ridges:
        more = {**settings, "ridge": ridge, "random_state": seed, "washout": WASHOUT, "dtype": "float64"}
        esn = ESNRegressor(UNITS, learn="none", validation_fraction=0.0, **more).fit(X, T)
        yield esn.reservoir_, in_given_units(esn)


def learned(X, T, task, seed):
    """Return the reservoir and the readout of a learned network with its defaults."""
    if task == "narma":
        esn = ESNRegressor(UNITS, washout=WASHOUT, epochs=EPOCHS, random_state=seed).fit(X, T)
    else:
        esn = ESNForecaster(UNITS, washout=WASHOUT, epochs=EPOCHS, random_state=seed).fit(X)
    return esn.reservoir_, in_given_units(esn)


def in_given_units(esn):
    """Return the readout, which was fitted to standardised targets, for targets as given."""
    U = esn.network_.readout.U * esn.target_scale_
    U[-1] += esn.target_mean_
    return U


def measure(task, fitted, X, T, *, begin, end):
    """Return {measure: value} of a reservoir and its readout on rows begin ... end.

    The states start from the 200 rows before these.
    """
    network, U = fitted
    H = harvest(network, X[begin - 200 : end])[200:]
    x, t = X[begin:end], T[begin:end]
    H_c = np.hstack([H, x, np.ones((len(x), 1))])
    if task == "narma":
        return {"narma": nrmse(H_c @ U, t)}
    horizon, every = (84, 10) if task == "mg" else (600, 100)
    starts = np.arange(1, len(x) - horizon + 1, every)
    Y = run_closed_loop(network, U, True, H[starts - 1], x[starts], E=np.empty((horizon, len(starts), 0)))
    truth = t[starts + np.arange(horizon)[:, None]]
    if task == "mg":
        return {"mg1": nrmse(H_c @ U, t), "mg84": nrmse(Y[-1], truth[-1])}
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = ~(np.sqrt(((Y - truth) ** 2).mean(axis=2)) < 0.4)
    steps = np.where(wrong.any(axis=0), wrong.argmax(axis=0), horizon)
    return {"lorenz": float(np.median(steps)) * LYAPUNOV}


def nrmse(Y, T):
    """Return the root of the mean squared error, relative to the standard deviation of the targets."""
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(np.sqrt(((Y - T) ** 2).mean() / T.var()))
    return value if np.isfinite(value) else np.inf


def measure_fixed(task, library, settings, *, seed, ridges, part):
    """Return the measures of one fixed network with each ridge, on "valid" or "test"."""
    warnings.simplefilter("ignore", EchoStateWarning)  # the grid includes a radius of 1.1 without leak
    X, T, (a, b, c) = data(task)
    make = peer if library == "reservoirpy" else fixed
    begin, end = (a, b) if part == "valid" else (b, c)
    return [measure(task, net, X, T, begin=begin, end=end) for net in make(X[:a], T[:a], settings, seed, ridges)]


def measure_learned(task, seed):
    """Return the measures of one learned network on test, and the processor seconds of its fit."""
    X, T, (a, b, c) = data(task)
    started = time.process_time()
    net = learned(X[:a], T[:a], task, seed)
    return measure(task, net, X, T, begin=b, end=c), time.process_time() - started


def tuned(pool, task, library):
    """Return {measure: (settings, ridge)} with the best median on valid over the tuning seeds."""
    grid = [s | {"like_ours": like} for like in (False, True) for s in GRID] if library == "reservoirpy" else GRID
    jobs = [
        pool.submit(measure_fixed, task, library, settings, seed=seed, ridges=RIDGES, part="valid")
        for settings in grid
        for seed in TUNING_SEEDS
    ]
    found = [job.result() for job in jobs]
    best = {}
    for name in found[0][0]:
        values = np.array([[row[name] for row in rows] for rows in found]).reshape(len(grid), len(TUNING_SEEDS), -1)
        medians = np.median(values, axis=1) * (-1 if name == "lorenz" else 1)
        i, j = np.unravel_index(np.argmin(medians), medians.shape)
        best[name] = grid[i], RIDGES[j]
    return best


def run(pool, task, seeds):
    """Return {measure: {library: one value per seed}}."""
    values = {}
    later = [pool.submit(measure_learned, task, seed) for seed in seeds]
    for library in LIBRARIES[:2]:
        for name, (settings, ridge) in tuned(pool, task, library).items():
            print(f"{name}, {library}: {settings | {'ridge': ridge}}", file=sys.stderr, flush=True)
            jobs = [
                pool.submit(measure_fixed, task, library, settings, seed=seed, ridges=[ridge], part="test")
                for seed in seeds
            ]
            values.setdefault(name, {})[library] = [job.result()[0][name] for job in jobs]
    for job in later:
        row, seconds = job.result()
        print(f"{task}, learned in {seconds:.1f} s: {row}", file=sys.stderr, flush=True)
        for name, value in row.items():
            values[name].setdefault(LIBRARIES[2], []).append(value)
    return values


def draw(values, path):
    """Draw every seed as a dot and the median as a line, one panel per measure."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(values), squeeze=False, figsize=(1 + 3 * len(values), 3.2), layout="constrained")
    for axis, (name, by_library) in zip(axes[0], values.items(), strict=True):
        for place, (v, colour) in enumerate(zip(by_library.values(), ("#999999", "#4477aa", "#cc3311"), strict=True)):
            axis.plot(place + np.linspace(-0.15, 0.15, len(v)), v, ".", color=colour, alpha=0.6)
            axis.plot([place - 0.25, place + 0.25], [np.median(v)] * 2, color=colour, lw=2)
        axis.set(
            xticks=range(3), title=MEASURES[name].replace(", ", "\n", 1), yscale="linear" if name == "lorenz" else "log"
        )
        axis.set_xticklabels(["reservoirpy\nfixed", "fixed", "learned"])
        axis.spines[["top", "right"]].set_visible(False)
        if name == "lorenz":
            axis.set_ylim(bottom=0)
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="how many networks of each kind count")
    parser.add_argument("--tasks", nargs="*", default=["mg", "lorenz", "narma"], help="tasks to run")
    parser.add_argument("--figure", help="where to draw the values of all seeds")
    args = parser.parse_args()
    values = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    started = time.perf_counter()
    # Two processes with one core each: the BLAS of neither may use both.
    limits = {"mp_context": get_context("spawn"), "initializer": threadpool_limits, "initargs": (1,)}
    with ProcessPoolExecutor(2, **limits) as pool:
        for task in args.tasks:
            found = run(pool, task, range(args.seeds))
            former = {name: values[name] for name in found if values.get(name, found[name]) != found[name]}
            if former:  # what was measured before stays in the file
                values.setdefault("superseded", []).append({"about": values.get("about"), **former})
            about = {"date": results.now(), "commit": results.commit(), "versions": results.versions()}
            values |= found | {"about": about | {"defaults": results.defaults()}}
            results.replace_file(RESULTS, values)
            print(f"{task} done after {time.perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
    values = {name: values[name] for name in MEASURES if name in values}
    if args.figure:
        draw(values, args.figure)


if __name__ == "__main__":
    main()
