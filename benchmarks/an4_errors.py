"""State errors of our networks on AN4: both directions of time, and what each step beyond the paper gains.

Everything was tuned on train and valid; the test part is read through `protocol.open_test`. Each group has its own
result file.

    python benchmarks/an4_errors.py --data an4_states.npz [--only directions ablation]
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
PLAIN = {
    "reservoir": {"activation": "sigmoid"},
    "leak": 1.0,
    "spectral_radius": 3.0,
    "learning": {"learn_leak": False, "step_size": 0.03},
}
SPREAD_FIXED = {"learning": {"learn_leak": False}}


def ours(path, units=100, **settings):
    """Fit a network to train and return its errors on valid and test, its cost and its size."""
    from echolearn import ESNClassifier

    data = load_an4(path)
    X, y = data["train"]
    ESNClassifier(10, epochs=1).fit(X[:6], y[:6])  # compiled before the clock starts
    esn = ESNClassifier(units, **settings)
    with measured() as record:
        esn.fit(X, y)
    test, opened = protocol.open_test(EXPERIMENT, path, seeds=[settings.get("random_state", 0)], prepared=True)
    errors = {"valid_error": 100 * (1 - esn.score(*data["valid"])), "test_error": 100 * (1 - esn.score(*test))}
    return record | errors | {"weights": count_weights(esn.network_), "opened": opened}


def jobs():
    """Yield group, label and settings of every fit."""
    for units, seed, both in itertools.product((100, 300), (0, 1, 2), (False, True)):
        directions = "both directions" if both else "one direction"
        settings = {"units": units, "random_state": seed, "bidirectional": both}
        yield "directions", f"defaults, {units} units, {directions}, seed {seed}", settings
    full_batch = {"epochs": 60, "learning": {"batch_size": None, "step_size": 0.03, "clip": None}}
    for leak, of_leak in (("no leak, sigmoid", PLAIN), ("spread leak", SPREAD_FIXED), ("learned leak", {})):
        for readout in ("ridge", "softmax"):
            settings = {**of_leak, "readout": readout}
            if leak != "learned leak":
                yield "ablation", f"fixed, {leak}, {readout}", {**settings, "learn": "none"}
            yield "ablation", f"learned full batch, {leak}, {readout}", merged_settings(settings, full_batch)
            yield "ablation", f"learned mini-batch, {leak}, {readout}", settings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="path of an4_states.npz")
    parser.add_argument(
        "--only",
        nargs="+",
        default=["directions"],
        choices=["directions", "ablation"],
        help="groups to run (default: directions)",
    )
    options = parser.parse_args()
    opened = protocol.describe(EXPERIMENT, options.data, seeds=[])  # refuses now rather than after hours
    rows = {group: [] for group in options.only}
    print(f"{'':52}  valid %   test %  seconds  peak MB  weights")
    for group, label, settings in jobs():
        if group in rows:
            record = in_own_process(ours, options.data, **settings)
            record = {k: v for k, v in record.items() if k not in ("curve", "opened")}
            rows[group].append({"group": group, "label": label, **record})
            print(
                f"{label:52}  {record['valid_error']:7.2f}  {record['test_error']:7.2f}  {record['seconds']:7.1f}  "
                f"{record.get('peak_mb', 0):7.0f}  {record['weights']:7}",
                flush=True,
            )
            results.write(f"an4_errors_{group}", rows[group], opened=opened)


if __name__ == "__main__":
    start = time.perf_counter()
    main()
    print(f"{time.perf_counter() - start:.0f} s in total")
