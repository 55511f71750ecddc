"""State errors on AN4, ours and PyTorch's, in one run.

Groups: the columns of the paper's table, our defaults, little data, both directions of time, and what each step beyond
the paper gains. Everything was tuned on train and valid; the test part is read through `protocol.open_test`.

    python benchmarks/an4_errors.py --data an4_states.npz [--only paper ours little directions ablation]
"""

import argparse
import itertools
import time

import protocol
import results
from an4 import load_an4
from echolearn.fitting.parameters import merged_settings
from measure import count_weights, in_own_process, measured

EXPERIMENT = "an4_errors"
PAPER = {
    "fixed": {"learn": "none"},
    "W, m=1": {"learn": "input", "learning": {"lookback": 1}},
    "W + W_rec, m=1": {"learn": "both", "learning": {"lookback": 1}},
    "W + W_rec, m=3": {"learn": "both", "learning": {"lookback": 3}},
    "W + W_rec, whole": {"learn": "both", "learning": {"lookback": None}},
}
PLAIN = {
    "reservoir": {"activation": "sigmoid"},
    "leak": 1.0,
    "spectral_radius": 3.0,
    "learning": {"learn_leak": False, "step_size": 0.03},
}
SPREAD_FIXED = {"learning": {"learn_leak": False}}
LSTM_STEP = {100: 8e-3, 256: 4e-3}  # units: step size, the best on valid of 1e-3, 2e-3, 4e-3, 8e-3 and 1.6e-2


def ours(path, every=1, paper=False, units=100, **settings):
    """Fit one of our networks to train and return its errors on valid and test, its cost and its size."""
    from echolearn import ESNClassifier

    data = load_an4(path)
    X, y = (part[::every] for part in data["train"])
    ESNClassifier(10, epochs=1).fit(X[:6], y[:6])  # compiled before the clock starts
    esn = ESNClassifier.paper(units, **settings) if paper else ESNClassifier(units, **settings)
    with measured() as record:
        esn.fit(X, y)
    test, opened = protocol.open_test(EXPERIMENT, path, seeds=[settings.get("random_state", 0)], prepared=True)
    errors = {"valid_error": 100 * (1 - esn.score(*data["valid"])), "test_error": 100 * (1 - esn.score(*test))}
    return record | errors | {"weights": count_weights(esn.network_), "opened": opened}


def lstm(path, units, every=1):
    """Train PyTorch's LSTM in the same way."""
    import torch_peers

    data = load_an4(path)
    data["train"] = tuple(part[::every] for part in data["train"])
    network, record = torch_peers.train(data, "lstm", units, step_size=LSTM_STEP[units], epochs=12)
    test, opened = protocol.open_test(EXPERIMENT, path, seeds=[0], prepared=True)
    error = torch_peers.frame_error(network, torch_peers.batches(*test, 64))
    return record | {"test_error": error, "seconds": record["train_seconds"], "opened": opened}


def jobs():
    """Yield group, label, function and settings of every fit."""
    for label, settings in PAPER.items():
        yield "paper", f"paper(100) {label}", ours, {"paper": True, **settings}
    for units in (100, 500):
        yield "ours", f"defaults, {units} units", ours, {"units": units}
        peer_units = 256 if units == 500 else 100
        yield "ours", f"PyTorch LSTM-{peer_units}, 12 epochs", lstm, {"units": peer_units}
    yield "little", "defaults, 100 units, every 8th utterance", ours, {"every": 8}
    yield "little", "PyTorch LSTM-100, every 8th utterance", lstm, {"units": 100, "every": 8}
    for units, seed, both in itertools.product((100, 300), (0, 1, 2), (False, True)):
        directions = "both directions" if both else "one direction"
        settings = {"units": units, "random_state": seed, "bidirectional": both}
        yield "directions", f"defaults, {units} units, {directions}, seed {seed}", ours, settings
    full_batch = {"epochs": 60, "learning": {"batch_size": None, "step_size": 0.03, "clip": None}}
    for leak, of_leak in (("no leak, sigmoid", PLAIN), ("spread leak", SPREAD_FIXED), ("learned leak", {})):
        for readout in ("ridge", "softmax"):
            settings = {**of_leak, "readout": readout}
            if leak != "learned leak":
                yield "ablation", f"fixed, {leak}, {readout}", ours, {**settings, "learn": "none"}
            yield "ablation", f"learned full batch, {leak}, {readout}", ours, merged_settings(settings, full_batch)
            yield "ablation", f"learned mini-batch, {leak}, {readout}", ours, settings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="path of an4_states.npz")
    parser.add_argument(
        "--only",
        nargs="+",
        default=["paper", "ours", "little", "ablation"],
        choices=["paper", "ours", "little", "directions", "ablation"],
        help="groups to run (default: all but directions)",
    )
    options = parser.parse_args()
    opened = protocol.describe(EXPERIMENT, options.data, seeds=[])  # refuses now rather than after hours
    rows = []
    print(f"{'':52}  valid %   test %  seconds  peak MB  weights")
    for group, label, function, settings in jobs():
        if group in options.only:
            record = in_own_process(function, options.data, **settings)
            record = {k: v for k, v in record.items() if k not in ("curve", "opened")}
            rows.append({"group": group, "label": label, **record})
            print(
                f"{label:52}  {record['valid_error']:7.2f}  {record['test_error']:7.2f}  {record['seconds']:7.1f}  "
                f"{record.get('peak_mb', 0):7.0f}  {record['weights']:7}",
                flush=True,
            )
            results.write(f"an4_errors_{'_'.join(options.only)}", rows, opened=opened)


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"{time.perf_counter() - start:.0f} s in total")
