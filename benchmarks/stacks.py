"""Two layers compared with one that has as many weights, on AN4: errors on valid and test for several seeds.

    python benchmarks/stacks.py --data an4_states.npz [--seeds 0 1 2] [--only "one layer"]

Weights are W, W_rec, bias, leaks and readouts of all layers. Settings were chosen on train and valid; valid also
decides on strengths and epochs, for one layer as for two; test is only read. Runs that are already in the result file
are not repeated.
"""

import argparse
import json
import time

import protocol
import results
from an4 import load_an4
from measure import count_weights, in_own_process

# name -> (the single layer to compare with, units of the layers, their settings, settings of the stack)
MODELS = {
    "ridge, one layer": (None, [326], {"readout": "ridge"}, {}),
    "ridge, output": ("ridge, one layer", [145, 145], {"readout": "ridge"}, {"sees": "output"}),
    "ridge, output+input": ("ridge, one layer", [94, 94], {"readout": "ridge"}, {"sees": "output+input"}),
    "ridge, output+hidden": ("ridge, one layer", [100, 100], {"readout": "ridge"}, {"sees": "output+hidden"}),
    "ridge, one by one": ("ridge, one layer", [145, 145], {"readout": "ridge"}, {"sees": "output", "joint_epochs": 0}),
    "one layer": (None, [326], {}, {}),
    "output": ("one layer", [145, 145], {}, {"sees": "output"}),
    "output+input": ("one layer", [94, 94], {}, {"sees": "output+input"}),
    "output+hidden": ("one layer", [100, 100], {}, {"sees": "output+hidden"}),
    "one by one": ("one layer", [145, 145], {}, {"sees": "output", "joint_epochs": 0}),
    "large, one layer": (None, [500], {}, {}),
    "large, default": ("large, one layer", [500], {}, {}),
    "large, output": ("large, one layer", [233, 233], {}, {"sees": "output"}),
}


def measure(path, name, seed):
    """Fit one of the models and return its errors, seconds and size."""
    from echolearn import ESNClassifier, StackedClassifier

    data = load_an4(path)
    _, units, of_layers, of_stack = MODELS[name]
    layers = [ESNClassifier(n, random_state=seed, **of_layers) for n in units]
    model = layers[0] if len(layers) == 1 else StackedClassifier(layers, random_state=seed, **of_stack)
    start = time.perf_counter()
    model.fit(*data["train"], validation=data["valid"])
    seconds = time.perf_counter() - start
    layers = getattr(model, "layers_", [model])
    test, opened = protocol.open_test("stacks", path, seeds=[seed], prepared=True)
    return {
        "model": name,
        "units": units,
        "seed": seed,
        "weights": sum(count_weights(layer.network_) for layer in layers),
        "valid_error": 100 * (1 - model.score(*data["valid"])),
        "test_error": 100 * (1 - model.score(*test)),
        "opened": opened,
        "seconds": seconds,
        "together": list(getattr(model, "history_", [])) if len(units) > 1 else [],
    }


def rows_of(records):
    """Return one row per model: its mean test error beside that of one layer, over the seeds that both have."""
    rows = []
    for name, (peer_name, units, *_) in MODELS.items():
        mine = [r for r in records if r["model"] == name]
        if not mine:
            continue
        peer = [r for r in records if r["model"] == peer_name]
        common = {r["seed"] for r in mine} & {r["seed"] for r in peer}
        ours = mean("test_error", [r for r in mine if r["seed"] in common] if common else mine)
        theirs = mean("test_error", [r for r in peer if r["seed"] in common]) if common else None
        rows.append(
            {
                "figure": "stacks",
                "work": f"{name}: {'+'.join(map(str, units))} units, {mine[0]['weights']} weights, seeds {len(mine)}, "
                f"valid {mean('valid_error', mine):.2f}",
                "ours": ours,
                "peer": theirs,
                "peer_name": peer_name or "-",
                "unit": "%",
                "ratio": None if theirs is None else theirs / ours,
                "asked": "two beat one" if len(units) > 1 else None,
                "reached": ours < theirs if theirs is not None and len(units) > 1 else None,
                "records": mine,
            }
        )
    return rows


def mean(key, records):
    """Return the mean of one entry of the records."""
    return sum(r[key] for r in records) / len(records)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="path of an4_states.npz")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="random states to run")
    parser.add_argument("--only", nargs="+", default=list(MODELS), choices=list(MODELS), help="models to run")
    options = parser.parse_args()
    protocol.describe("stacks", options.data, seeds=options.seeds)  # refuses now rather than after hours
    stored = results.FOLDER / "stacks.json"
    records = [r for row in json.loads(stored.read_text())["rows"] for r in row["records"]] if stored.exists() else []
    for seed in options.seeds:
        for name in options.only:
            if any((r["model"], r["seed"]) == (name, seed) for r in records):
                continue
            records.append(in_own_process(measure, options.data, name, seed))
            r = records[-1]
            errors = f"valid {r['valid_error']:.2f} %  test {r['test_error']:.2f} %"
            print(f"  {name}, seed {seed}: {errors}  {r['seconds']:.0f} s", flush=True)
            results.write("stacks", rows_of(records))
    print(results.table(rows_of(records)))


if __name__ == "__main__":
    main()
