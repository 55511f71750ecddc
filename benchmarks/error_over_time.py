"""Error over wall time on AN4: the best error within 20, 60, 180 and 600 seconds of training, ours and PyTorch's.

    python benchmarks/error_over_time.py [--data an4_states.npz] [--budgets 20 60 180 600] [--out docs/images/...]

Ours: pairs of blocks (one a core), as many as the seconds allow, put side by side as one network. PyTorch: an LSTM or
RNN of a few sizes and step sizes, each given the whole budget on both cores, its step size falling to its end. On both
sides valid decides (the epoch; for PyTorch also the size and step) and test is only read; reading off errors is free.
No model looks ahead. Settings of both sides were settled on valid beforehand.
"""

import argparse
import time
from pathlib import Path

import results
from an4 import load_or_synthetic
from measure import in_own_process

# seconds -> units of a block and settings of the learning
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
    """Pairs of blocks until the next would not be done in time."""
    from sklearn.base import clone

    from echolearn import ESNClassifier
    from echolearn.estimators import ensemble as blocks

    data, _ = load_or_synthetic(path)
    X, y = data["train"]
    ESNClassifier(20, blocks=2, epochs=1, refine_epochs=1).fit(X[:6], y[:6])  # compiled before the clock starts
    units, settings = OURS[budget]
    pairs, curve, start = [], [], time.perf_counter()
    free = longest = 0.0  # seconds of reading off errors; of the slowest pair
    while True:
        begin = time.perf_counter()
        pairs.append(ESNClassifier(2 * units, blocks=2, random_state=len(pairs), **settings))
        pairs[-1].fit(X, y, validation=data["valid"])
        network = clone(pairs[0]).set_params(hidden_units=2 * units * len(pairs))
        blocks.adopt(network, pairs)
        end = time.perf_counter()
        longest = max(longest, end - begin)
        errors = {name: 100 * (1 - network.score(*data[name])) for name in ("valid", "test")}
        curve.append((round(end - start - free, 2), errors["valid"], errors["test"]))
        free += time.perf_counter() - end
        if end - start - free + 1.05 * longest > budget:
            break
    return {
        "model": f"{2 * len(pairs)} blocks of {units}",
        "weights": network.input_weights_.size
        + network.recurrent_weights_.nnz
        + network._U.size
        + 2 * network.reservoir_.N,
        "valid_error": errors["valid"],
        "test_error": errors["test"],
        "train_seconds": curve[-1][0],
        "curve": curve,
    }


def theirs(path, budget, model, units, step_size):
    import torch_peers

    data, _ = load_or_synthetic(path)
    torch_peers.train(torch_peers.every(data, 100), "lstm", 8, step_size=1e-3, epochs=1)  # warm, as ours is
    return torch_peers.train(data, model, units, step_size=step_size, budget=budget)[1]


def compare(path, budget):
    """One row: ours against the best of theirs on valid."""
    mine = in_own_process(ours, path, budget)
    print(f"  {budget} s  ours, {mine['model']}: {told(mine)}", flush=True)
    tried = []
    for model, units, step_size in TORCH[budget]:
        tried.append(in_own_process(theirs, path, budget, model, units, step_size))
        print(f"  {budget} s  {model.upper()}-{units}, step {step_size:g}: {told(tried[-1])}", flush=True)
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


def told(record):
    return f"valid {record['valid_error']:.2f} %  test {record['test_error']:.2f} %  {record['train_seconds']:.1f} s"


def time_to_reach(rows):
    """Our seconds to the LSTM's error of the longest budget, against a third of its own."""
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
    axes.set_ylabel("test frames wrong, %")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="path of an4_states.npz")
    parser.add_argument("--budgets", type=int, nargs="+", default=sorted(OURS), choices=sorted(OURS))
    parser.add_argument("--plot", type=Path, help="draw the table here, as SVG")
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
