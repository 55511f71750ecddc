"""How long closed-loop forecasts of chaotic series stay valid: fixed and learned networks, reservoirpy and NVAR.

    python benchmarks/valid_times.py --tune [--tasks lorenz ...]     # chooses settings on valid; test is not generated
    python benchmarks/valid_times.py [--tasks lorenz ...]            # the figures on test, once settings are committed

Settings and grids are in benchmarks/frozen/valid_times.toml, results in benchmarks/results/valid_times.json. The
choices on valid are kept in the result file too (`chosen`), with the score of every candidate. Test figures are only
computed when `protocol.require_frozen` agrees. One process, one thread; --jobs N runs tasks beside each other.
"""

import argparse
import itertools
import json
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context

import numpy as np
from threadpoolctl import threadpool_limits

import protocol
import results
from echolearn import ESNForecaster, NVARForecaster, Reservoir, datasets
from echolearn.exceptions import EchoStateWarning, TrainingWarning
from echolearn.fitting.parameters import grouped_settings
from echolearn.metrics import valid_time
from echolearn.states import harvest
from echolearn.states.closed_loop import run_closed_loop

NAME = "valid_times"
SIDES = ("reservoirpy", "NVAR", "echolearn fixed", "echolearn learned")
GRID = ("spectral_radius", "leak", "input_scaling", "bias_scaling")


def load(task, settings):
    """Return a series (steps, dims), in standard deviations of train and valid, and their number of steps."""
    series = getattr(datasets, task)(**settings["generate"])
    known = settings["train"] + settings["valid"]
    return (series - series[:known].mean(axis=0)) / series[:known].std(axis=0), known


def grid(settings):
    """Return the settings of networks that every side may try."""
    return [dict(zip(GRID, values, strict=True)) for values in itertools.product(*(settings[name] for name in GRID))]


def valid_starts(settings):
    """Return where the loops on valid start, which run to its end: the same for all sides."""
    n = settings["valid"]
    return settings["train"] + np.linspace(0, n // 2, 20, endpoint=False).astype(int)


def ours(settings, network, seed, learn):
    """Return an ESNForecaster that holds out the valid part of what it is given."""
    return ESNForecaster(
        settings["units"],
        solver="qr",
        learn="both" if learn else "none",
        epochs=settings["iterations"] if learn else None,
        washout=settings["washout"],
        validation_fraction=settings["valid"] / (settings["train"] + settings["valid"]),
        random_state=seed,
        **grouped_settings({**network, "loop_steps": settings["loop_steps"] if learn else 1}, ESNForecaster),
    )


def peer(settings, network, seed, series):
    """Return reservoirpy's network in our notation, and the function from a ridge to its readout of a series."""
    from reservoirpy.mat_gen import uniform
    from reservoirpy.nodes import Reservoir as Node
    from reservoirpy.nodes import Ridge

    bias = network["bias_scaling"]
    node = Node(
        settings["units"],
        sr=network["spectral_radius"],
        lr=network["leak"],
        input_scaling=network["input_scaling"],
        input_connectivity=1.0,
        bias=uniform(low=-bias, high=bias, connectivity=1.0),
        seed=seed,
    )
    X, T = series[:-1], series[1:]
    H_c = np.hstack([node.run(X), X])
    constant = dense(node.bias).ravel() * np.ones(settings["units"])
    reservoir = Reservoir(W=dense(node.Win).T, W_rec=node.W, leak=network["leak"], bias=constant, activation="tanh")

    def readout(ridge):
        fitted = Ridge(ridge=ridge).fit(H_c, T, warmup=settings["washout"])
        return np.vstack([fitted.Wout, fitted.bias])

    return reservoir, readout


def dense(matrix):
    """Return a matrix, sparse or not, as an array."""
    return matrix.toarray() if hasattr(matrix, "toarray") else np.asarray(matrix)


def loops(reservoir, U, series, starts, horizon):
    """Return closed loops (starts, steps, dims) that continue the series before each start, and the truth."""
    first = min(starts) - 200
    H = harvest(reservoir, series[first : max(starts)])
    at = np.asarray(starts) - first
    Y = run_closed_loop(
        reservoir, U, True, H[at - 2], series[np.asarray(starts) - 1], E=np.empty((horizon, len(starts), 0))
    )
    return list(Y.swapaxes(0, 1))


def times(forecasts, series, starts, settings):
    """Return the valid time of each forecast in Lyapunov times; those that reach its end are cut there."""
    truth = [series[s : s + len(y)] for s, y in zip(starts, forecasts, strict=True)]
    cut = [y[: len(t)] for y, t in zip(forecasts, truth, strict=True)]
    return valid_time(truth, cut, lyapunov=settings["lyapunov"], threshold=settings["threshold"], scale=1.0)


def tune_ours(settings, series):
    """Return the score on valid of every network of the grid: the mean over the tuning seeds."""
    scores = []
    for network in grid(settings):
        found = [ours(settings, network, seed, False).fit(series).history_[0] for seed in settings["tuning_seeds"]]
        scores.append([network, float(np.mean([row["valid_time"] for row in found]) * settings["lyapunov"])])
    return scores


def tune_peer(settings, series):
    """Return the score on valid of every network of the grid with each ridge."""
    starts = valid_starts(settings)
    scores = []
    for network in grid(settings):
        values = []
        for seed in settings["tuning_seeds"]:
            reservoir, readout = peer(settings, network, seed, series[: settings["train"]])
            values.append([])
            for ridge in settings["peer_ridges"]:
                Y = loops(reservoir, readout(ridge), series, starts, settings["valid"])
                values[-1].append(times(Y, series, starts, settings).mean())
        means = np.mean(values, axis=0)
        scores += [[network | {"ridge": r}, float(m)] for r, m in zip(settings["peer_ridges"], means, strict=True)]
    return scores


def tune_nvar(settings, series):
    """Return the score on valid of every NVAR: nothing is random in it, and it chooses its ridge itself, on valid."""
    starts, scores = valid_starts(settings), []
    for delays, stride, degree in settings["nvar"]:
        share = settings["valid"] / len(series)
        model = NVARForecaster(delays, stride=stride, degree=degree, validation_fraction=share)
        ridge = model.fit(series).ridge_
        head = model.set_params(ridge=ridge).fit(series[: settings["train"]])
        if head.n_products_ > settings["units"]:
            raise ValueError(f"{head.n_products_} products are more than {settings['units']} units")
        Y = head.predict(settings["valid"], warm_up=[series[:s] for s in starts])
        chosen = {"delays": delays, "stride": stride, "degree": degree, "ridge": ridge, "products": head.n_products_}
        scores.append([chosen, float(times(Y, series, starts, settings).mean())])
    return scores


def tune(task, settings):
    """Return {side: scores of all candidates} on valid; the test part of the series is cut off first."""
    series, known = load(task, settings)
    series = series[:known]
    with quiet():
        made = {"reservoirpy": tune_peer, "NVAR": tune_nvar, "echolearn fixed": tune_ours}
        return {side: sorted(make(settings, series), key=lambda s: -s[1]) for side, make in made.items()}


def measure(task, settings, chosen):
    """Return {side: {"values": valid times per seed and start}} on test, at the settings chosen on valid."""
    series, known = load(task, settings)
    head, horizon = series[:known], settings["horizon"]
    starts = np.linspace(known, len(series) - horizon, settings["starts"]).astype(int)
    warm = [series[:s] for s in starts]
    found = {side: {"values": [], "seconds": []} for side in SIDES}

    def keep(side, forecasts, began, **more):
        found[side]["values"].append(times(forecasts, series, starts, settings).tolist())
        found[side]["seconds"].append(time.process_time() - began)
        for name, value in more.items():
            found[side].setdefault(name, []).append(value)

    with quiet():
        best = chosen["NVAR"][0][0]
        began = time.process_time()
        model = NVARForecaster(**{k: v for k, v in best.items() if k != "products"}).fit(head)
        keep("NVAR", model.predict(horizon, warm_up=warm), began)
        for seed in settings["seeds"]:
            network, began = dict(chosen["reservoirpy"][0][0]), time.process_time()
            ridge = network.pop("ridge")
            reservoir, readout = peer(settings, network, seed, head)
            keep("reservoirpy", loops(reservoir, readout(ridge), series, starts, horizon), began)
            for side, learn in (("echolearn fixed", False), ("echolearn learned", True)):
                began = time.process_time()
                esn = ours(settings, chosen["echolearn fixed"][0][0], seed, learn).fit(head)
                valid = max(row["valid_time"] for row in esn.history_) * settings["lyapunov"]
                keep(side, esn.predict(horizon, warm_up=warm), began, valid=valid)
    return found


@contextmanager
def quiet():
    """Leave out the warnings that a grid provokes: radii above 1, loops that run away, ill-conditioned matrices."""
    with warnings.catch_warnings():
        for kind in (EchoStateWarning, TrainingWarning, UserWarning, RuntimeWarning):
            warnings.simplefilter("ignore", kind)
        yield


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tune", action="store_true", help="choose settings on valid")
    parser.add_argument("--tasks", nargs="*", help="tasks to run; by default all of the frozen file")
    parser.add_argument("--jobs", type=int, default=1, help="tasks that run beside each other")
    args = parser.parse_args()
    frozen = protocol.read_frozen(NAME)
    shared = {name: value for name, value in frozen.items() if not isinstance(value, dict)}
    tasks = {name: shared | value for name, value in frozen.items() if isinstance(value, dict)}
    path = results.FOLDER / f"{NAME}.json"
    record = None if args.tune else protocol.require_frozen(NAME)
    known = json.loads(path.read_text()) if path.exists() else {}
    limits = {"mp_context": get_context("spawn"), "initializer": threadpool_limits, "initargs": (1,)}
    with ProcessPoolExecutor(args.jobs, **limits) as pool:
        jobs = {}
        for name in args.tasks or tasks:
            more = () if args.tune else (known["chosen"][name],)
            jobs[name] = pool.submit(tune if args.tune else measure, name, tasks[name], *more)
        for name, job in jobs.items():
            found = job.result()
            with protocol.updated(path) as content:
                about = {"date": results.now(), "versions": results.versions(), "machine": results.machine()}
                if args.tune:
                    content.setdefault("chosen", {})[name] = found
                else:
                    former = content.setdefault("tasks", {}).get(name)
                    if former is not None:
                        content.setdefault("superseded", []).append({name: former})
                    content["tasks"][name] = {"sides": found, "record": record, "about": about}
            print(name, summary(found, args.tune), flush=True)


def summary(found, tuned):
    """Return a line of what was found."""
    if tuned:
        return {side: (round(scores[0][1], 2), scores[0][0]) for side, scores in found.items()}
    return {side: round(float(np.mean(v["values"])), 2) for side, v in found.items()}


if __name__ == "__main__":
    main()
