"""Deep networks beside networks of one layer, both with their defaults, on tasks with a label or a value per step.

    NUMBA_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/deep_tasks.py [--only "NARMA-10" ...] [--seeds 3]

Needs benchmarks/requirements.txt. Seconds are the processor time of one fit. Results are written to
benchmarks/results/deep_tasks.json after every fit, and fits that the file has are not repeated: delete the file to
measure everything again. A task whose data come with a library that is not installed is left out and named in the file.

Signs: 150 sequences of 50 to 150 steps and three standard normal features, drawn as in README.md; the label says
whether the first feature has the sign that it had d steps before. 100 sequences are learned from. The first d labels of
a sequence cannot be known, because `numpy.roll` takes them from its end. The sequences, and the inputs of NARMA, are
drawn anew for every seed. NARMA and Mackey-Glass are one series of 2,500 steps, and the 500 that follow are the test
part. All other data are those of benchmarks/defaults.py, where both networks get the one setting that they require.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score

import awkward
import default_series
import results
from echolearn import DeepESNClassifier, DeepESNRegressor, ESNClassifier, ESNRegressor
from echolearn.datasets import mackey_glass, narma
from echolearn.execution.threads import thread_count

NAME = "deep_tasks"
DELAYS = (1, 2, 3, 5, 8, 16)  # steps
TRAINING_STEPS, TEST_STEPS = 2500, 500  # of NARMA and Mackey-Glass
Parts = tuple[Any, Any, Any, Any]  # X and y to train on, X and y to test on
Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """The data of a seed, the measure of the error, and the settings that the data require."""

    parts: Callable[[int], Parts]
    measure: str
    settings: dict[str, object] = field(default_factory=dict)
    delay: int = 0  # steps at the start of a sequence whose labels cannot be known

    @property
    def of_labels(self) -> bool:
        return self.measure != "1 - R²"

    def methods(self) -> dict[str, type]:
        """Return the class of one layer and the deep one, by how they are written."""
        kinds = (ESNClassifier, DeepESNClassifier) if self.of_labels else (ESNRegressor, DeepESNRegressor)
        text = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return {f"{kind.__name__}({text})": kind for kind in kinds}


def signs(delay: int, seed: int) -> Parts:
    """Return whether the first feature has the sign of some steps before."""
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((rng.integers(50, 150), 3)) for _ in range(150)]
    y = [x[:, 0] * np.roll(x[:, 0], delay) > 0 for x in X]
    return X[:100], y[:100], X[100:], y[100:]


def narma_series(seed: int) -> Parts:
    """Return NARMA-10 as one series that is cut in two."""
    u, values = narma(TRAINING_STEPS + TEST_STEPS, random_state=seed)
    return default_series.Task(u, values.ravel(), TRAINING_STEPS).parts


def mackey_glass_series(seed: int) -> Parts:
    """Return Mackey-Glass 10 steps ahead as one series that is cut in two; it has no seed."""
    series = mackey_glass(TRAINING_STEPS + TEST_STEPS + 10).ravel()
    return default_series.ahead(series, 10, TRAINING_STEPS).parts


def half_of_the_labels(seed: int) -> Parts:
    X, y, X_test, y_test = awkward.with_all_labels()
    return X, awkward.half_ignored(y), X_test, y_test


TASKS = {
    **{f"sign of x(t) x(t-{d})": Task(lambda seed, d=d: signs(d, seed), "wrong, %", delay=d) for d in DELAYS},
    "NARMA-10": Task(narma_series, "1 - R²"),
    "Mackey-Glass, 10 ahead": Task(mackey_glass_series, "1 - R²"),
    "Lorenz, 1 ahead": Task(lambda seed: default_series.TASKS["Lorenz, 1 ahead"]().parts, "1 - R²"),
    "sunspots (yearly), 1 ahead": Task(lambda seed: default_series.sunspots_task().parts, "1 - R²"),
    "Lorenz, 30 % of inputs missing": Task(lambda seed: awkward.gapped(), "1 - R²", {"missing": "carry"}),
    "2 % positives": Task(lambda seed: awkward.with_rare_labels(), "balanced error, %", {"class_weight": "balanced"}),
    "half of the labels ignored": Task(half_of_the_labels, "wrong, %", {"ignore_label": awkward.IGNORED}),
    "the same, all labels": Task(lambda seed: awkward.with_all_labels(), "wrong, %"),
}


def measured(name: str, method: str, seed: int) -> Row:
    """Return what one fit took, and how good it is on the test part."""
    task = TASKS[name]
    X, y, X_test, y_test = task.parts(seed)
    estimator = task.methods()[method](random_state=seed, **task.settings)
    start = time.process_time()
    estimator.fit(X, y)
    row = {"task": name, "method": method, "seed": seed, "measure": task.measure, "commit": results.commit()}
    row["processor_seconds"] = time.process_time() - start
    if not task.of_labels:
        return row | {"error": 1 - float(estimator.score(X_test, y_test))}
    answers = estimator.predict(X_test)
    true, found = np.concatenate(y_test), np.concatenate(answers)
    right = balanced_accuracy_score(true, found) if task.measure.startswith("balanced") else np.mean(found == true)
    row["error"] = 100 * (1 - float(right))
    if task.delay:
        known = [a[task.delay :] != t[task.delay :] for a, t in zip(answers, y_test, strict=True)]
        row["error_where_known"] = 100 * float(np.concatenate(known).mean())
    return row


def missing_library(name: str) -> str | None:
    """Return why the data of a task cannot be had here, or None."""
    try:
        TASKS[name].parts(0)
    except ModuleNotFoundError as problem:
        return str(problem)
    return None


def compile_first() -> None:
    """Fit something small, so that no clock sees a compilation."""
    X = [np.random.default_rng(k).normal(size=(30, 1)) for k in range(12)]
    for labels in (ESNClassifier(10, epochs=1), DeepESNClassifier(4, 2, epochs=1)):
        labels.fit(X, [x[:, 0] > 0 for x in X]).predict(X)
    for values in (ESNRegressor(10, epochs=1), DeepESNRegressor(4, 2, epochs=1)):
        values.fit(X[0], X[0][:, 0]).predict(X[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), default=list(TASKS), help="tasks to run")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of every method (default: 3)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    compile_first()
    path = results.FOLDER / f"{NAME}.json"
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    rows, left_out = kept.get("rows", []), kept.get("left_out", {})
    for name in options.only:
        reason = missing_library(name)
        if reason:
            left_out[name] = reason
            print(f"{name}: left out ({reason})")
            continue
        left_out.pop(name, None)
        for method in TASKS[name].methods():
            for seed in range(options.seeds):
                if any((row["task"], row["method"], row["seed"]) == (name, method, seed) for row in rows):
                    continue
                rows.append(measured(name, method, seed))
                print({key: value for key, value in rows[-1].items() if key != "commit"}, flush=True)
                results.write(NAME, rows, left_out=left_out, threads=thread_count())
    results.write(NAME, rows, left_out=left_out, threads=thread_count())


if __name__ == "__main__":
    main()
