"""Speed and memory compared with other libraries, on the same matrices and data (figures 1 to 4).

    python benchmarks/peers.py --data an4_states.npz [--only 1 2 3 4]

1 states of one sequence of 20,000 steps     2 states of the 708 training utterances of AN4
3 classical fit on AN4's train, predict on   4 one exact-gradient epoch over W and W_rec on half of AN4's train
  its valid

Every measurement has a process of its own; the libraries take as many turns each, and the best turn of each counts. In
figures 1 to 3 both sides have the same precision, matrices and, in figure 3, the same intercept. Each comparison has a
row by the clock and a row by processor time, which worker processes do not show; each row has the memory that the work
adds (extra_mb: imports differ by hundreds of megabytes) and the peak of the whole process (peak_mb) of both sides.
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


def our_states(network, X, dtype):
    """Measure the states of one sequence or of a list."""
    from echolearn.states import harvest

    reservoir = reservoir_of(network)
    harvest(reservoir, X[:8], dtype=dtype)  # compiles
    harvest(reservoir, X[:2000], dtype=dtype)
    with measured() as record:
        states = harvest(reservoir, X, dtype=dtype)
    return record | {"states": peers.sample(states)}


def our_fit_predict(network, X, y, X_test, y_test, *, intercept, dtype):
    """Measure the classifier on the given matrices, with fixed weights and a ridge readout that sees the states."""
    from echolearn import ESNClassifier

    settings = {"learn": "none", "readout": "ridge", "ridge": RIDGE, "standardize": False}
    settings |= {"learning": {"direct": False, "fit_intercept": intercept}}
    settings |= {"dtype": dtype, "reservoir": reservoir_of(network)}
    ESNClassifier(**settings).fit(X[:6], y[:6]).predict(X[:6])  # compiles
    esn = ESNClassifier(**settings)
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


def memory(ours, peer):
    """Return entries for the file: the memory that the work adds, and the peaks of the whole processes."""
    sides = (("ours", ours.get("fit", ours)), ("peer", peer.get("fit", peer)))
    return {f"{key}_{side}": record[key] for side, record in sides for key in ("extra_mb", "peak_mb")}


def time_rows(figure, work, ours, peer, *, name, required, **more):
    """Print and return a row by the clock and one by processor time; required: the ratio by each, or None.

    The processor time of the peer's worker processes is not known, so that there is no second row for them.
    """
    more |= processor(ours, peer) | memory(ours, peer)
    rows = [row(figure, work, seconds(ours), seconds(peer), name=name, unit="s", required=required[0], **more)]
    if "workers" not in name:
        times = cpu(ours), cpu(peer)
        rows.append(row(figure, f"{work}: processor", *times, name=name, unit="s", required=required[1], **more))
    return rows


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
    text = "-" if required is None else f">= {required:g}"
    names = {"figure": figure, "work": work, "ours": ours, "peer": peer, "peer_name": name, "unit": unit}
    return printed(names | {"ratio": ratio, "required": text, "reached": reached} | more)


def printed(one):
    """Print a row and return it."""
    print(results.table([one]).splitlines()[1], flush=True)
    return one


def largest_difference(a, b):
    """Return the largest difference, relative to the largest number of b."""
    return float(np.abs(np.asarray(a) - np.asarray(b)).max() / np.abs(b).max())


def figure_1(data, turns, slow):
    """Compare the states of one long sequence, in either precision."""
    rows = []
    for units, density in SIZES:
        network = peers.random_network(3, units, int(units * density))
        X = np.random.default_rng(1).uniform(-1, 1, (STEPS, 3))
        for dtype, required, most in (("float64", 1.5, 1e-10), ("float32", 3.0, 1e-4)):
            jobs = {
                "ours": (our_states, (network, X, dtype), {}),
                "reservoirpy": (peers.reservoirpy_states, (network, X), {"dtype": dtype}),
            }
            found = in_turns(jobs, turns)
            ours, peer = found["ours"], found["reservoirpy"]
            apart = largest_difference(ours["states"], peer["states"])
            work = f"one sequence, N={units}, density {density:g}, {dtype}"
            more = {"states_apart": apart, "precision": dtype}
            rows += time_rows(1, work, ours, peer, name="reservoirpy", required=(required, required), **more)
            for one in rows[-2:]:
                one["reached"] = one["reached"] and apart <= most
    return rows + [mean_row(rows, dtype, kind) for dtype in ("float64", "float32") for kind in ("", ": processor")]


def mean_row(rows, dtype, kind):
    """Print and return the geometric mean of the ratios of figure 1 in one precision, by the clock or the processor."""
    ratios = [one["ratio"] for one in rows if one["work"].endswith(dtype + kind)]
    mean, required = float(np.exp(np.log(ratios).mean())), {"float64": 3.0, "float32": 6.0}[dtype]
    whole = {"figure": 1, "work": f"geometric mean, {dtype}{kind}", "unit": "s", "peer_name": "reservoirpy"}
    return printed(whole | {"ratio": mean, "required": f">= {required:g}", "reached": mean >= required})


def figure_2(data, turns, slow):
    """Compare the states of many utterances, in either precision."""
    rows, X = [], data["train"][0]
    for units in (100, 500, 2000):
        network = peers.random_network(X[0].shape[1], units, 10)
        for dtype in ("float64", "float32"):
            given = (network, X)
            jobs = {
                "ours": (our_states, (*given, dtype), {}),
                "reservoirpy": (peers.reservoirpy_states, given, {"dtype": dtype}),
                "reservoirpy, 2 workers": (peers.reservoirpy_states, given, {"dtype": dtype, "workers": 2}),
                "PyRCN": (peers.pyrcn_states, given, {"dtype": dtype}),
                "PyRCN, batches of 16": (peers.pyrcn_states, given, {"batch_size": 16, "dtype": dtype}),
            }
            found = in_turns(jobs, turns, () if slow or units < 2000 else SLOW)
            ours = found.pop("ours")
            for name, record in found.items():
                more = {"states_apart": largest_difference(ours["states"], record["states"]), "precision": dtype}
                work = f"708 utterances, N={units}, {dtype}"
                rows += time_rows(2, work, ours, record, name=name, required=(15.0, 10.0), **more)
    return rows


def figure_3(data, turns, slow):
    """Compare fit and predict of the same network with fixed weights in float64, without and with an intercept."""
    rows, (X, y), (X_test, y_test) = [], data["train"], data["valid"]
    for units in (500, 2000):
        network = peers.random_network(X[0].shape[1], units, 10)
        for intercept in (False, True):
            given = (network, X, y, X_test, y_test)
            settings = {"ridge": RIDGE, "n_out": CLASSES, "intercept": intercept}
            jobs = {
                "ours": (our_fit_predict, given, {"intercept": intercept, "dtype": "float64"}),
                "reservoirpy": (peers.reservoirpy_fit_predict, given, settings),
                "reservoirpy, 2 workers": (peers.reservoirpy_fit_predict, given, settings | {"workers": 2}),
                "PyRCN": (peers.pyrcn_fit_predict, given, settings),
                "echoes": (peers.echoes_fit_predict, given, settings),
            }
            found = in_turns(jobs, turns, () if slow or units < 2000 else SLOW)
            ours = found.pop("ours")
            for name, record in found.items():
                work = f"fit and predict, N={units}, " + ("with intercept" if intercept else "without intercept")
                more = {"error_ours": ours["error"], "error_peer": record["error"], "precision": "float64"}
                rows += time_rows(3, work, ours, record, name=name, required=(10.0, 10.0), **more)
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
