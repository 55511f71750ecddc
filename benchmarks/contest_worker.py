"""One piece of a contest in a process of its own: train a network, or find the error of networks that are trained.

    python benchmarks/contest_worker.py train|valid|test ORDER.json

`contest.py` starts it with one thread per library. A trained network goes to runs/contest/KEY.model, every figure to
the result file named in the order. Training sees train and valid only; `test` goes through `protocol.open_test`.
"""

import dataclasses
import hashlib
import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path

import cloudpickle
import numpy as np

import an4
import contest_plan
import protocol
import results
from measure import measured

HARNESS = {"an4.py", "contest_plan.py", "contest_worker.py", "measure.py", "protocol.py", "results.py"}
WARM_UP = 1.0  # processor seconds of each of the two trainings that come before the clock starts


def train(order):
    """Train one network, keep it, and return its record."""
    run = contest_plan.Run(**order["run"])
    if protocol.data_digest(order["data"]) != run.data:
        raise RuntimeError(f"{order['data']} has changed since the contest was started")
    data = an4.load_cepstra(order["data"])
    data["train"] = tuple(part[run.offset :: run.every] for part in data["train"])
    side = importlib.import_module(run.module)
    settings = json.loads(run.settings)
    warm = time.process_time()
    few = {name: tuple(part[:40] for part in parts) for name, parts in data.items()}
    for _ in range(2):  # compiled and loaded before the clock starts, on both sides; the first may only just compile
        side.train(few, settings, min(WARM_UP, run.core_seconds), 0)
    warm = time.process_time() - warm
    children = _children_seconds()
    with measured() as record:
        probabilities, facts = side.train(data, settings, run.core_seconds, run.seed)
    record["cpu_seconds"] += _children_seconds() - children
    X, y = data["valid"]
    record |= contest_plan.charge(record["cpu_seconds"], facts, run.core_seconds)
    record |= {"warm_up_cpu_seconds": warm, "valid_error": protocol.frame_error(probabilities(X), y), "facts": facts}
    _require_covered(order["code"])
    if protocol.code_fingerprint(order["code"]) != run.code:
        raise RuntimeError(f"the code of {run.side} has changed since the contest was started")
    _keep(order, run.key, probabilities)
    return dataclasses.asdict(run) | {"settings": settings} | record | _origin()


def _children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _require_covered(patterns):
    """Refuse a run that has loaded code of this repository that its fingerprint does not cover."""
    covered = {path.resolve() for path in protocol.code_files(patterns)}
    covered |= {protocol.ROOT / "benchmarks" / name for name in HARNESS}
    loaded = {Path(file).resolve() for m in list(sys.modules.values()) if (file := getattr(m, "__file__", None))}
    ours = {path for path in loaded if path.is_relative_to(protocol.ROOT) and path.exists()}
    ours = {path for path in ours if "site-packages" not in path.parts}
    if missing := sorted(path.relative_to(protocol.ROOT).as_posix() for path in ours - covered):
        raise RuntimeError(f"the frozen file's `code` of this side does not name what it imports: {', '.join(missing)}")
    protocol.require_own_package()


def _keep(order, key, probabilities):
    path = Path(order["models"]) / f"{key}.model"
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(f".{os.getpid()}.part")
    unfinished.write_bytes(cloudpickle.dumps(probabilities))
    os.replace(unfinished, path)


def _origin():
    """Return the commit, whether the code differed from it, and the date."""
    about = {"versions": results.versions(), "machine": results.machine()}
    about["id"] = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:8]
    commit = protocol.git("rev-parse", "HEAD")
    return {"commit": commit, "changed_files": protocol.changed_files(), "date": results.now(), "environment": about}


def mean_probabilities(models, X):
    """Return the mean of the models' probabilities, one array per utterance."""
    total = None
    for model in models:
        found = [np.asarray(p, dtype=np.float64) for p in model(X)]
        total = found if total is None else [a + b for a, b in zip(total, found, strict=True)]
    return [p / len(models) for p in total]


def load_models(order):
    """Return the networks of an entry as functions from cepstra to probabilities."""
    return [cloudpickle.loads((Path(order["models"]) / f"{key}.model").read_bytes()) for key in order["keys"]]


def valid(order):
    """Return the valid error of averaged networks."""
    X, y = an4.load_cepstra(order["data"])["valid"]
    error = protocol.frame_error(mean_probabilities(load_models(order), X), y)
    return {"keys": order["keys"], "valid_error": error, **_origin()}


def test(order):
    """Return the test error of averaged networks, after their valid error has come out as recorded."""
    models = load_models(order)
    X, y = an4.load_cepstra(order["data"])["valid"]
    error = protocol.frame_error(mean_probabilities(models, X), y)
    if abs(error - order["valid_error"]) > 0.02:  # percent; sums in another order may turn a few frames
        raise RuntimeError(f"valid error {error:.3f} %, but {order['valid_error']:.3f} % when it was trained")
    with measured() as record:
        (X, y), opened = protocol.open_test(order["experiment"], order["data"], seeds=order["seeds"])
        error = protocol.frame_error(mean_probabilities(models, X), y)
    return {"keys": order["keys"], "test_error": error, **record, "opened": opened}


def perform(job, path):
    """Do what an order says and put the record into the result file."""
    order = json.loads(Path(path).read_text())
    record = {"train": train, "valid": valid, "test": test}[job](order)
    with protocol.updated(Path(order["results"])) as content:
        if "environment" in record:
            about = record["environment"]
            content.setdefault("environments", {})[about["id"]] = about
            record["environment"] = about["id"]
        content.setdefault({"train": "runs", "valid": "averages", "test": "tests"}[job], {})[order["key"]] = record


if __name__ == "__main__":
    perform(*sys.argv[1:])
