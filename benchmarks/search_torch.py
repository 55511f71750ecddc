"""The search for the settings of PyTorch's networks on AN4: every trial, decided on valid; test is never read.

    python benchmarks/search_torch.py --data an4_states.npz [--trials FILE.json] [--list]

A trial is {"name", "settings", "core_seconds", "every"}; trials that are in results/search_torch.json already are left
out, and each one is written as soon as it is done. Run it on one core: seconds are processor seconds of one thread.
"""

import argparse
import json
from pathlib import Path

import results
from an4 import load_cepstra
from measure import in_own_process

LOG = results.FOLDER / "search_torch.json"


def every(data, n):
    """Return the same data with only every n-th training utterance."""
    X, y = data["train"]
    return data | {"train": (X[::n], y[::n])}


def key(trial):
    """Return what makes a trial: settings, seconds, part of the data and seed."""
    return json.dumps(
        [trial["settings"], trial["core_seconds"], trial.get("every", 1), trial.get("seed", 0)], sort_keys=True
    )


def run(path, trial):
    """Return the trial with what came out of it."""
    import torch_models

    data = every(load_cepstra(path), trial.get("every", 1))
    _, facts = torch_models.train(data, trial["settings"], trial["core_seconds"], trial.get("seed", 0))
    found = {"valid_error": facts["valid_error"], "epochs": facts["epochs"], "weights": facts["weights"]}
    return trial | found | {"spent": facts["core_seconds"], "curve": facts["curve"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="path of an4_states.npz")
    parser.add_argument("--queue", type=Path, help="trials as JSON lines; read again after every trial")
    options = parser.parse_args()
    log = json.loads(LOG.read_text())["trials"] if LOG.exists() else []
    while True:
        done = {key(trial) for trial in log}
        lines = [line for line in options.queue.read_text().splitlines() if line.strip()]
        trials = [t for t in map(json.loads, lines) if key(t) not in done]
        if not trials:
            break
        log.append(in_own_process(run, options.data, trials[0]))
        results.replace_file(LOG, {"versions": results.versions(), "machine": results.machine(), "trials": log})
        last = log[-1]
        print(
            f"{last['valid_error']:.2f} {last['core_seconds']} s every {last.get('every', 1)} epochs {last['epochs']} "
            f"{last['weights']} {json.dumps(last['settings'])}",
            flush=True,
        )


if __name__ == "__main__":
    main()
