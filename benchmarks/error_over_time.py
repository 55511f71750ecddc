"""Error over wall time on AN4: the best error within 20, 60, 180 and 600 seconds of training, ours and PyTorch's.

    python benchmarks/error_over_time.py [--data an4_states.npz] [--budgets 20 60 180 600] [--plot docs/images/...]

Ours: pairs of networks (one per core), as many as the seconds allow, averaged into one network. PyTorch: an LSTM or RNN
of a few sizes and step sizes, each trained for the whole budget on both cores, with a step size that falls until the
end. On both sides valid decides (on the epoch; for PyTorch also on the size and the step size), and test is only read.
The time spent on computing errors does not count. No model looks ahead. The settings of both sides were chosen on valid
beforehand.
"""

import argparse
import time
from copy import copy
from pathlib import Path

import results
from an4 import load_or_synthetic
from measure import count_weights, in_own_process

# seconds -> units of each network and settings of its learning
OURS = {
    20: (150, {"epochs": 6}),
    60: (200, {"epochs": 7}),
    180: (300, {}),
    600: (400, {"epochs": 10}),
}
# seconds -> (model, units, step size) to choose among
TORCH = {
    20: [("lstm", 100, 8e-3), ("rnn", 256, 1e-3)],
    60: [("lstm", 160, 4e-3), ("lstm", 256, 4e-3)],
    180: [("lstm", 256, 4e-3), ("lstm", 400, 2e-3)],
    600: [("lstm", 256, 2e-3), ("lstm", 512, 2e-3)],
}


def ours(path, budget):
    """Fit pairs of networks until the next pair would not be finished in time."""
    from echolearn import ESNClassifier
    from echolearn.readout.network import average

    data, _ = load_or_synthetic(path)
    X, y = data["train"]
    ESNClassifier(20, ensemble=2, epochs=1, refine_epochs=1).fit(X[:6], y[:6])  # compiled before the clock starts
    units, settings = OURS[budget]
    pairs, curve, start = [], [], time.perf_counter()
    free = longest = 0.0  # seconds spent on computing errors; seconds of the slowest pair
    while True:
        begin = time.perf_counter()
        pairs.append(ESNClassifier(2 * units, ensemble=2, random_state=len(pairs), **settings))
        pairs[-1].fit(X, y, validation=data["valid"])
        ensemble = copy(pairs[0])
        ensemble.network_ = average([pair.network_ for pair in pairs])
        end = time.perf_counter()
        longest = max(longest, end - begin)
        errors = {name: 100 * (1 - ensemble.score(*data[name])) for name in ("valid", "test")}
        curve.append((round(end - start - free, 2), errors["valid"], errors["test"]))
        free += time.perf_counter() - end
        if end - start - free + 1.05 * longest > budget:
            break
    return {
        "model": f"{2 * len(pairs)} networks of {units}",
        "weights": count_weights(ensemble.network_),
        "valid_error": errors["valid"],
        "test_error": errors["test"],
        "train_seconds": curve[-1][0],
        "curve": curve,
    }


def theirs(path, budget, model, units, step_size):
    """Train one of PyTorch's networks for the whole budget."""
    import torch_peers

    data, _ = load_or_synthetic(path)
    torch_peers.train(torch_peers.every(data, 100), "lstm", 8, step_size=1e-3, epochs=1)  # warms up, as ours does
    return torch_peers.train(data, model, units, step_size=step_size, budget=budget)[1]


def compare(path, budget):
    """Return one row: ours against the best of theirs on valid."""
    mine = in_own_process(ours, path, budget)
    print(f"  {budget} s  ours, {mine['model']}: {summary(mine)}", flush=True)
    tried = []
    for model, units, step_size in TORCH[budget]:
        tried.append(in_own_process(theirs, path, budget, model, units, step_size))
        print(f"  {budget} s  {model.upper()}-{units}, step {step_size:g}: {summary(tried[-1])}", flush=True)
    best = min(tried, key=lambda record: record["valid_error"])
    gain = 1 - mine["test_error"] / best["test_error"]
    return {
        "figure": 5,
        "work": f"test error within {budget} s: {mine['model']}, {mine['weights']} weights",
        "ours": mine["test_error"],
        "peer": best["test_error"],
        "peer_name": f"{best['model'].upper()}-{best['units']}",
        "unit": "%",
        "ratio": best["test_error"] / mine["test_error"],
        "asked": "10 % lower",
        "reached": gain >= 0.1,
        "record": mine,
        "tried": tried,
    }


def summary(record):
    """Return errors and seconds of a record as text."""
    return f"valid {record['valid_error']:.2f} %  test {record['test_error']:.2f} %  {record['train_seconds']:.1f} s"


def time_to_reach(rows):
    """Return one row: our seconds until the error that PyTorch reaches in the longest budget, against its own."""
    last = rows[-1]
    wanted, best = last["peer"], min(last["tried"], key=lambda record: record["valid_error"])
    theirs = best["train_seconds"]
    reached = [t for row in rows for t, _, test in row["record"]["curve"] if test <= wanted]
    mine = min(reached, default=None)
    return {
        "figure": 5,
        "work": f"seconds to {wanted:.1f} % on test",
        "ours": mine,
        "peer": theirs,
        "peer_name": last["peer_name"],
        "unit": "s",
        "ratio": None if mine is None else theirs / mine,
        "asked": ">= 3x",
        "reached": mine is not None and theirs / mine >= 3,
    }


def draw(rows, path):
    """Draw test error over seconds of training."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4))
    for key, label, colour in (("record", "echolearn", "#c4472b"), ("tried", "PyTorch LSTM", "#3b6ea5")):
        points = []
        for row in rows:
            records = [row[key]] if key == "record" else [r for r in row[key] if r["model"] == "lstm"]
            best = min(records, key=lambda record: record["valid_error"])
            points.append((best["train_seconds"], best["test_error"]))
            if key == "tried":
                axes.plot(*list(zip(*[c[::2] for c in best["curve"]], strict=True)), color=colour, alpha=0.25, lw=1)
        axes.plot(*zip(*points, strict=True), "o-", color=colour, label=label)
    axes.set_xscale("log")
    axes.set_ylim(top=max(p for row in rows for p in (row["ours"], row["peer"])) + 4)
    axes.set_xlabel("seconds of training, two cores")
    axes.set_ylabel("test error, % of frames")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="path of an4_states.npz")
    parser.add_argument("--budgets", type=int, nargs="+", default=sorted(OURS), choices=sorted(OURS), help="seconds")
    parser.add_argument("--plot", type=Path, help="where to draw the curves, as SVG")
    options = parser.parse_args()
    rows = []
    for budget in sorted(options.budgets):
        rows.append(compare(options.data, budget))
        results.write("error_over_time", rows)
    if options.plot:
        draw(rows, options.plot)
    rows.append(time_to_reach(rows))
    results.write("error_over_time", rows)
    print(results.table(rows))


if __name__ == "__main__":
    main()
