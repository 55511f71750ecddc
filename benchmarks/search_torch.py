"""The search for the settings of PyTorch's networks on AN4: every trial, decided on valid; test is never read.

    python benchmarks/search_torch.py --data an4_states.npz [--trials FILE] [--log FILE]

search_torch.jsonl lists the trials in the order in which they were made, one per line: settings, seconds of one core
and, for little data, every how many utterances are used. Trials that are in the log already are left out, the others
are added to it one by one; with --log another.json the whole search is made again. Seconds are processor seconds of a
single thread, so that other processes on the machine hardly matter.
"""

import argparse
import json
from pathlib import Path

import results
from an4 import load_cepstra
from measure import in_own_process

TRIALS = Path(__file__).with_suffix(".jsonl")
LOG = results.FOLDER / "search_torch.json"


def key(trial):
    """Return what makes a trial: settings, seconds, part of the data and seed."""
    what = trial["settings"], trial["core_seconds"], trial.get("every", 1), trial.get("seed", 0)
    return json.dumps(what, sort_keys=True)


def run(path, trial):
    """Return the trial with what came out of it."""
    import torch_models  # here, so that a change of the networks is seen by the next trial

    data = load_cepstra(path)
    data["train"] = tuple(part[:: trial.get("every", 1)] for part in data["train"])
    _, facts = torch_models.train(data, trial["settings"], trial["core_seconds"], trial.get("seed", 0))
    found = {"valid_error": facts["valid_error"], "epochs": facts["epochs"], "weights": facts["weights"]}
    return trial | found | {"spent": facts["core_seconds"], "curve": facts["curve"]}


def to_do(trials, log):
    """Return the trials of a file that are not in the log; it is read anew, so that trials can be added meanwhile."""
    done = {key(trial) for trial in log}
    return [t for t in map(json.loads, filter(str.strip, trials.read_text().splitlines())) if key(t) not in done]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="path of an4_states.npz")
    parser.add_argument("--trials", type=Path, default=TRIALS, help="what to try, as JSON lines")
    parser.add_argument("--log", type=Path, default=LOG, help="what came out")
    options = parser.parse_args()
    log = json.loads(options.log.read_text())["trials"] if options.log.exists() else []
    while waiting := to_do(options.trials, log):
        found = in_own_process(run, options.data, waiting[0])
        log.append(found)
        results.replace_file(options.log, {"versions": results.versions(), "machine": results.machine(), "trials": log})
        about = f"{found['core_seconds']} s, every {found.get('every', 1)}, {found['epochs']} epochs"
        print(f"{found['valid_error']:.2f} %  {about}  {json.dumps(found['settings'])}", flush=True)


if __name__ == "__main__":
    main()
