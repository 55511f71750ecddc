"""Two layers against one with as many weights, on AN4: valid and test errors of some seeds.

    python benchmarks/stacks.py --data an4_states.npz [--seeds 0 1 2] [--only "one layer"]

Weights: W, W_rec, bias, leaks and readouts of all layers. Settings were chosen on train and valid; valid also decides
on strengths and epochs, for one layer as for two; test is only read. Runs that the result file has are not run again.
"""

import argparse
import json
import time

import results
from an4 import load_or_synthetic
from measure import in_own_process

# name -> (units of the layers, settings); about as many weights within a group
MODELS = {
    "one layer": ([326], {"blocks": 1}),
    "one layer, 2 blocks": ([326], {"blocks": 2}),
    "output": ([145, 145], {"sees": "output"}),
    "output+input": ([94, 94], {"sees": "output+input"}),
    "output+hidden": ([100, 100], {"sees": "output+hidden"}),
    "output+hidden, one by one": ([100, 100], {"sees": "output+hidden", "joint_epochs": 0}),
}


def measure(path, name, seed):
    from echolearn import ESNClassifier, StackedClassifier

    data, _ = load_or_synthetic(path)
    units, settings = MODELS[name]
    if len(units) == 1:
        model = ESNClassifier(units[0], random_state=seed, **settings)
    else:
        model = StackedClassifier(units, random_state=seed, **settings)
    start = time.perf_counter()
    model.fit(*data["train"], validation=data["valid"])
    seconds = time.perf_counter() - start
    layers = getattr(model, "layers_", [model])
    return {
        "model": name,
        "units": units,
        "seed": seed,
        "weights": sum(weights(layer) for layer in layers),
        "valid_error": 100 * (1 - model.score(*data["valid"])),
        "test_error": 100 * (1 - model.score(*data["test"])),
        "seconds": seconds,
        "together": list(getattr(model, "history_", [])) if len(units) > 1 else [],
    }


def weights(layer):
    r = layer.reservoir_
    return r.W.size + r.W_rec.nnz + layer._U.size + 2 * r.N


def rows_of(records):
    """A row a model: its mean test error beside that of one layer."""
    rows = []
    for name in MODELS:
        mine = [r for r in records if r["model"] == name]
        seeds = {r["seed"] for r in mine}
        peer = [r for r in records if r["model"] == "one layer" and r["seed"] in seeds]
        if not mine:
            continue
        test, valid = (sum(r[key] for r in mine) / len(mine) for key in ("test_error", "valid_error"))
        other = sum(r["test_error"] for r in peer) / len(peer) if len(peer) == len(mine) else None
        rows.append(
            {
                "figure": "stacks",
                "work": f"{name}: {'+'.join(map(str, mine[0]['units']))} units, {mine[0]['weights']} weights, "
                f"{len(mine)} seeds, valid {valid:.2f}",
                "ours": test,
                "peer": other,
                "peer_name": "one layer",
                "unit": "%",
                "ratio": None if other is None else other / test,
                "asked": "two beat one" if len(mine[0]["units"]) > 1 else None,
                "reached": test < other if other is not None and len(mine[0]["units"]) > 1 else None,
                "records": mine,
            }
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="path of an4_states.npz")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--only", nargs="+", default=list(MODELS), choices=list(MODELS))
    options = parser.parse_args()
    kept = results.FOLDER / "stacks.json"
    records = [r for row in json.loads(kept.read_text())["rows"] for r in row["records"]] if kept.exists() else []
    for seed in options.seeds:
        for name in options.only:
            if any((r["model"], r["seed"]) == (name, seed) for r in records):
                continue
            records.append(in_own_process(measure, options.data, name, seed))
            r = records[-1]
            told = f"valid {r['valid_error']:.2f} %  test {r['test_error']:.2f} %  {r['seconds']:.0f} s"
            print(f"  {name}, seed {seed}: {told}", flush=True)
            results.write("stacks", rows_of(records))
    print(results.table(rows_of(records)))


if __name__ == "__main__":
    main()
