"""Speed and memory compared with other libraries, on the same matrices and data (figures 1 to 4).

    python benchmarks/peers.py [--data an4_states.npz] [--only 1 2 3 4]

1 states of one sequence of 20,000 steps     2 states of the 708 training utterances of AN4
3 classical fit and predict on AN4           4 one exact-gradient epoch over W and W_rec on half of AN4's train

Every measurement has a process of its own; the libraries take turns, and the best turn of each counts. Without the
data, synthetic sequences of similar lengths take their place. Ours runs in float32, which the library's estimators use;
reservoirpy and PyRCN's estimators have only float64. Memory is what the work adds to the process (extra_mb), because
imports differ by hundreds of megabytes between libraries; the peaks of the whole processes are in the file too.
"""

import argparse
import itertools

import numpy as np

import reservoir_peers as peers
import results
import torch_peers
from an4 import load_an4
from measure import in_own_process, measured

SIZES = ((100, 0.1), (500, 0.1), (1000, 0.1), (1000, 0.01), (2000, 0.1), (5000, 0.01))  # units, density of figure 1
STEPS = 20_000
RIDGE = 1.0
CLASSES = 102
# Dense, one sequence at a time: about 3 ms per step at N = 2000, more than ten minutes. --slow runs them.
SLOW = ("PyRCN", "echoes")


def reservoir_of(network):
    """Return the matrices as one of our reservoirs."""
    from echolearn.reservoir import Reservoir

    return Reservoir(W=network.W, W_rec=network.W_rec, leak=network.leak, activation="tanh")


def our_states(network, X, dtype="float32"):
    """Measure the states of one sequence or of a list."""
    from echolearn.states import harvest

    reservoir = reservoir_of(network)
    harvest(reservoir, X[:8], dtype=dtype)  # compiles
    harvest(reservoir, X[:2000], dtype=dtype)
    with measured() as record:
        states = harvest(reservoir, X, dtype=dtype)
    return record | {"states": peers.sample(states)}


def our_fit_predict(units, X, y, X_test, y_test):
    """Measure the classifier as a user calls it; it draws random matrices of its own."""
    from echolearn import ESNClassifier

    settings = {"learn": "none", "readout": "ridge", "ridge": RIDGE, "direct": False}
    settings |= {"leak": 0.3, "learn_leak": False, "spectral_radius": 0.9, "input_scaling": 0.1, "bias_scaling": 0.0}
    ESNClassifier(10, **settings).fit(X[:6], y[:6]).predict(X[:6])  # compiles
    esn = ESNClassifier(units, **settings)
    with measured() as fit:
        esn.fit(X, y)
    with measured() as predict:
        labels = esn.predict(X_test)
    wrong = sum((a != b).sum() for a, b in zip(labels, y_test, strict=True))
    return {"fit": fit, "predict": predict, "error": 100 * wrong / sum(map(len, y_test))}


def our_epoch(network, X, T):
    """Measure the exact gradient of one epoch."""
    from echolearn.gradients import loss_and_gradients

    reservoir = reservoir_of(network)
    loss_and_gradients(reservoir, X[:6], T[:6], ridge=RIDGE, dtype="float32")  # compiles
    with measured() as record:
        g = loss_and_gradients(reservoir, X, T, ridge=RIDGE, dtype="float32")
    return record | {"loss": g.loss, "dE_dW": g.dE_dW, "dE_dW_rec": g.dE_dW_rec.toarray()}


def torch_epoch(network, X, T, form, way="through the solve"):
    """Measure PyTorch's gradient of one epoch, with a dense W_rec or one in CSR form.

    The way is autograd through the solve with all sequences held, or a detached U and one group of sequences at a time.
    """
    W_rec = network.W_rec if form == "CSR" else network.W_rec.toarray()
    epoch = torch_peers.ridge_epoch if way == "through the solve" else torch_peers.ridge_epoch_detached
    return epoch(network.W, W_rec, X, T, RIDGE, activation="tanh", leak=network.leak)


def seconds(record):
    """Return the seconds of a measurement; those of fit and predict are added."""
    return record["seconds"] if "seconds" in record else record["fit"]["seconds"] + record["predict"]["seconds"]


def cpu(record):
    """Return the processor seconds of a measurement."""
    parts = [record] if "cpu_seconds" in record else [record["fit"], record["predict"]]
    return sum(part["cpu_seconds"] for part in parts)


def processor(ours, peer):
    """Return entries for the file: processor seconds, which are steadier than wall time on a busy machine."""
    return {"cpu_seconds_ours": cpu(ours), "cpu_seconds_peer": cpu(peer)}


def in_turns(jobs, turns, skipped=()):
    """Run {name: (function, args, kwargs)} in turns and return {name: its fastest record}.

    A failure is printed, and that library is left out of the result.
    """
    found = {}
    for _ in range(turns):
        for name, (function, args, kwargs) in jobs.items():
            if name in skipped:
                print(f"  {name}: skipped (--slow runs it)", flush=True)
                continue
            try:
                record = in_own_process(function, *args, **kwargs)
                print(f"  {name}: {seconds(record):.3g} s, processor {cpu(record):.3g} s", flush=True)
                found.setdefault(name, []).append(record)
            except Exception as problem:
                print(f"  {name}: {problem!r}", flush=True)
    return {name: min(runs, key=seconds) for name, runs in found.items()}


def row(figure, work, ours, peer, *, name, unit, required, **more):
    """Print and return a row; ours and peer are numbers in `unit`, required is the ratio to reach, or None."""
    ratio = peer / ours
    reached = None if required is None else bool(ratio >= required)
    asked = "-" if required is None else f">= {required:g}"
    names = {"figure": figure, "work": work, "ours": ours, "peer": peer, "peer_name": name, "unit": unit}
    return printed(names | {"ratio": ratio, "asked": asked, "reached": reached} | more)


def printed(one):
    """Print a row and return it."""
    print(results.table([one]).splitlines()[1], flush=True)
    return one


def largest_difference(a, b):
    """Return the largest difference, relative to the largest number of b."""
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(b).max())


def figure_1(data, turns, slow):
    """Compare the states of one long sequence."""
    rows = []
    for units, density in SIZES:
        network = peers.random_network(3, units, int(units * density))
        X = np.random.default_rng(1).uniform(-1, 1, (STEPS, 3))
        jobs = {"ours": (our_states, (network, X), {}), "reservoirpy": (peers.reservoirpy_states, (network, X), {})}
        jobs["ours, float64"] = (our_states, (network, X), {"dtype": "float64"})
        found = in_turns(jobs, turns)
        peer = found["reservoirpy"]
        for name, required in (("ours", 3.0), ("ours, float64", None)):
            difference = largest_difference(found[name]["states"], peer["states"])
            work = f"one sequence, N={units}, density {density:g}" + ("" if name == "ours" else ", float64")
            more = {"states_apart": difference, **processor(found[name], peer)}
            times = found[name]["seconds"], peer["seconds"]
            rows.append(row(1, work, *times, name="reservoirpy", unit="s", required=required, **more))
            if required is not None and difference > 1e-4:
                rows[-1]["reached"] = False
    ratios = [one["ratio"] for one in rows if one["asked"] != "-"]
    mean = float(np.exp(np.log(ratios).mean()))
    whole = {"figure": 1, "work": "geometric mean", "unit": "s", "peer_name": "reservoirpy", "ratio": mean}
    return [*rows, printed(whole | {"asked": ">= 6", "reached": mean >= 6})]


def figure_2(data, turns, slow):
    """Compare the states of many utterances."""
    rows, X = [], data["train"][0]
    for units in (100, 500, 2000):
        network = peers.random_network(X[0].shape[1], units, 10)
        jobs = {
            "ours": (our_states, (network, X), {}),
            "reservoirpy": (peers.reservoirpy_states, (network, X), {}),
            "reservoirpy, 2 workers": (peers.reservoirpy_states, (network, X), {"workers": 2}),
            "PyRCN": (peers.pyrcn_states, (network, X), {}),
            "PyRCN, batches of 16, float32": (
                peers.pyrcn_states,
                (network, X),
                {"batch_size": 16, "dtype": "float32"},
            ),
        }
        found = in_turns(jobs, turns, () if slow or units < 2000 else SLOW)
        ours = found.pop("ours")
        for name, record in found.items():
            more = {"states_apart": largest_difference(ours["states"], record["states"]), **processor(ours, record)}
            times = seconds(ours), seconds(record)
            rows.append(row(2, f"708 utterances, N={units}", *times, name=name, unit="s", required=20.0, **more))
    return rows


def figure_3(data, turns, slow):
    """Compare fit and predict of a network with fixed weights."""
    rows, (X, y), (X_test, y_test) = [], data["train"], data["valid"]
    for units in (500, 2000):
        network = peers.random_network(X[0].shape[1], units, 10)
        given, settings = (network, X, y, X_test, y_test), {"ridge": RIDGE, "n_out": CLASSES}
        jobs = {
            "ours": (our_fit_predict, (units, X, y, X_test, y_test), {}),
            "reservoirpy": (peers.reservoirpy_fit_predict, given, settings),
            "reservoirpy, 2 workers": (peers.reservoirpy_fit_predict, given, settings | {"workers": 2}),
            "PyRCN": (peers.pyrcn_fit_predict, given, settings),
            "echoes": (peers.echoes_fit_predict, given, settings),
        }
        found = in_turns(jobs, turns, () if slow or units < 2000 else SLOW)
        ours = found.pop("ours")
        for name, record in found.items():
            work, more = f"fit and predict, N={units}", {"error_ours": ours["error"], "error_peer": record["error"]}
            more |= processor(ours, record)
            rows.append(row(3, work, seconds(ours), seconds(record), name=name, unit="s", required=10.0, **more))
            required = 5.0 if name.startswith("reservoirpy") else None
            rows.append(memory_row(3, work, ours["fit"], record["fit"], name=name, required=required))
    return rows


def memory_row(figure, work, ours, peer, *, name, required):
    """Print and return a row for the memory that the work adds."""
    peaks = {"peak_mb_ours": ours["peak_mb"], "peak_mb_peer": peer["peak_mb"]}
    added = ours["extra_mb"], peer["extra_mb"]
    return row(figure, f"{work}: memory", *added, name=name, unit="MB", required=required, **peaks)


def figure_4(data, turns, slow):
    """Compare the gradients by W and W_rec of one epoch."""
    rows, X, y = [], data["train"][0][::2], data["train"][1][::2]
    T = [np.eye(CLASSES, dtype=np.float32)[labels] for labels in y]
    for units in (500, 2000):
        network = peers.random_network(X[0].shape[1], units, 10)
        jobs = {"ours": (our_epoch, (network, X, T), {})}
        for form, way in itertools.product(("dense", "CSR"), ("through the solve", "U detached, groups")):
            jobs[f"PyTorch, {form}, {way}"] = torch_epoch, (network, X, T, form, way), {}
        found = in_turns(jobs, turns)
        ours, pattern = found.pop("ours"), network.W_rec.toarray() != 0
        for name, record in found.items():
            difference = max(
                largest_difference(ours["dE_dW"], record["dE_dW"]),
                largest_difference(ours["dE_dW_rec"][pattern], record["dE_dW_rec"][pattern]),
            )
            work = f"gradient epoch, N={units}"
            more = {"gradients_apart": difference, **processor(ours, record)}
            rows.append(row(4, work, seconds(ours), seconds(record), name=name, unit="s", required=5.0, **more))
            if difference > 1e-4:
                rows[-1]["reached"] = False
            rows.append(memory_row(4, work, ours, record, name=name, required=5.0))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="path of an4_states.npz")
    parser.add_argument("--only", nargs="+", type=int, default=[1, 2, 3, 4], help="figures to measure")
    parser.add_argument("--turns", type=int, default=2, help="measurements of each library, of which the best counts")
    parser.add_argument("--slow", action="store_true", help="run the libraries that need more than ten minutes too")
    options = parser.parse_args()
    data, source = load_an4(options.data), "AN4"
    rows = []
    for number in options.only:
        rows += FIGURES[number](data, options.turns, options.slow)
    for one in rows:
        one["data"] = source
    name = "peers" + "".join(f"_{number}" for number in options.only if len(options.only) < 4)
    print(results.table(rows), f"\nwritten to {results.write(name, rows)}", sep="\n")


FIGURES = {1: figure_1, 2: figure_2, 3: figure_3, 4: figure_4}

if __name__ == "__main__":
    main()
