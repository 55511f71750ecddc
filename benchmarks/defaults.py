"""Every estimator with its defaults, on common kinds of data, beside what else is used for them.

    make defaults                                    all parts, ten seeds (long)
    .venv-series/bin/python benchmarks/defaults.py --only series awkward --seeds 3 --data an4_states.npz

Parts: series (one long series each), sequences (one label per sequence), an4 (with --data), awkward (gaps, rare
positives, labels that are missing), layouts (the forms of data). Every figure is the median over seeds with the least
and the greatest. Seconds are of one fit and its scores, by the clock, compiled before. Results are kept in
benchmarks/results/defaults.json, part by part, with seeds, versions and commit; parts that are not run stay there.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

import results
from echolearn import ESNClassifier, ESNRegressor, SeriesClassifier

Row = dict[str, Any]  # work, method, values (one per seed), seconds (of each), unit, and what it was made from
Part = tuple[list[Row], list[Row]]  # rows, and goals: work, required, seen, reached
AN4_GOALS = {100: 27.6, 300: 25.4}  # test error in %


def measured(work: str, method: str, unit: str, score: Callable[[int], float], seeds: int) -> Row:
    """Return the row of one method: its values and seconds for every seed, printed as they are measured."""
    values, seconds, processor = [], [], []
    for seed in range(seeds):
        start, busy = time.perf_counter(), time.process_time()
        values.append(float(score(seed)))
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - busy)
    row = {"work": work, "method": method, "unit": unit, "values": values, "seconds": seconds, "processor": processor}
    spread = f"{min(values):.7g} to {max(values):.7g}"
    print(f"  {method:54}  {median(row):10.7g}  {spread:26}  {np.median(seconds):7.2f} s", flush=True)
    return row


def heading(title: str, unit: str) -> None:
    """Print the first lines of a table."""
    print(f"\n{title} ({unit}; median, least to greatest, seconds)")


def median(row: Row) -> float:
    return float(np.median(row["values"]))


def goal(work: str, required: str, seen: str, reached: bool | None) -> Row:
    """Return a goal; reached: None where it was not measured."""
    return {"work": work, "required": required, "seen": seen, "reached": reached}


def compile_first() -> None:
    """Fit something small, so that no clock sees a compilation."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(30, 1)) for _ in range(12)]
    SeriesClassifier(10).fit(X, np.arange(12) % 2).predict(X)
    for learn in ("none", "both"):
        ESNClassifier(10, learn=learn, epochs=1).fit(X, [x[:, 0] > 0 for x in X]).predict(X)
        ESNRegressor(10, learn=learn, epochs=1).fit(X[0], X[0][:, 0]).predict(X[1])


def series(options: argparse.Namespace) -> Part:
    """One long series each: at least as good as reservoirpy, learned at least as good as fixed, within 3 s."""
    import default_series  # here, so that --only an4 does without the other libraries

    rows, goals = [], []
    for work, make in default_series.TASKS.items():
        task = make()
        heading(f"{work}: {task.train} steps to train on, {len(task.X) - task.train} to test on", "R²")
        found = {}
        for method, score in default_series.methods().items():
            row = measured(work, method, "R²", lambda seed, s=score, t=task: s(t, seed), options.seeds)
            found[method] = row | {"train": task.train, "test": len(task.X) - task.train}
        rows += found.values()
        learned, fixed = median(found["ESNRegressor()"]), median(found['ESNRegressor(learn="none")'])
        peers = max(median(found[name]) for name in default_series.TUTORIALS)
        slowest = max(found["ESNRegressor()"]["seconds"])
        goals += [
            goal(work, f"R² >= reservoirpy's {peers:.6f}", f"{learned:.6f}", learned >= peers),
            goal(work, f"learned >= fixed, {fixed:.6f}", f"{learned:.6f}", learned >= fixed),
            goal(work, "<= 3 s", f"{slowest:.1f} s", slowest <= 3),
        ]
    return rows, goals


def sequences(options: argparse.Namespace) -> Part:
    """One label per sequence: mean ranks, Japanese Vowels, the sine task, within 10 s."""
    import default_sequences as own

    own.compile_first()
    rows: list[Row] = []
    errors: dict[str, list[float]] = {}
    several: list[bool] = []
    for name in options.sets or own.names():
        data = own.read(name)
        heading(f"{name}: {len(data[0])} sequences to train on, {len(data[2])} to test on", "errors")
        several.append(data[0][0].shape[1] > 1)
        for method, score in own.METHODS.items():
            if method == own.FOR_SEVERAL and not several[-1]:  # it takes minutes on long series, and was not asked for
                errors.setdefault(method, []).append(np.nan)
                continue
            row = measured(name, method, "errors", lambda seed, s=score, d=data: s(d, seed), options.seeds)
            rows.append(row | {"train": len(data[0]), "test": len(data[2]), "features": data[0][0].shape[1]})
            errors.setdefault(method, []).append(median(row))
    return rows, _sequence_goals(rows, errors, np.array(several))


def _sequence_goals(rows: list[Row], errors: dict[str, list[float]], several: np.ndarray) -> list[Row]:
    """Return what was required of whole sequences, and what was seen."""
    methods = list(errors)
    table = np.array([errors[method] for method in methods])
    mean = rankdata(table[:2], axis=0).mean(axis=1)  # among equals the mean
    of_several = rankdata(table[:, several], axis=0).mean(axis=1) if several.any() else None
    print("\nmean ranks: " + ", ".join(f"{m} {r:.2f}" for m, r in zip(methods, mean, strict=False)))
    found = {(row["work"], row["method"]): row for row in rows}
    goals = [goal("all data sets", f"mean rank <= MiniRocket's {mean[1]:.2f}", f"{mean[0]:.2f}", mean[0] <= mean[1])]
    if of_several is not None:
        required = f"mean rank <= reservoir-computing's {of_several[2]:.2f}"
        goals.append(goal("several features", required, f"{of_several[0]:.2f}", of_several[0] <= of_several[2]))
    vowels, sines = (found.get((name, methods[0])) for name in ("JapaneseVowels", "sines"))
    if vowels:
        goals.append(goal("JapaneseVowels", "median <= 4 of 370", f"{median(vowels):g}", median(vowels) <= 4))
    if sines:
        accuracy = 1 - median(sines) / sines["test"]
        goals.append(goal("sines", "accuracy >= 0.95", f"{accuracy:.3f}", accuracy >= 0.95))
    slowest = max((max(row["seconds"]), row["work"]) for row in rows if row["method"] == methods[0])
    goals.append(goal(f"slowest: {slowest[1]}", "<= 10 s", f"{slowest[0]:.1f} s", slowest[0] <= 10))
    return goals


def an4(options: argparse.Namespace) -> Part:
    """Phone states of AN4: not worse than before."""
    if options.data is None:
        print("\nan4: left out; give --data path/to/an4_states.npz")
        return [], [goal("AN4", "27.6 and 25.4 %", "not measured: no --data", None)]
    import protocol
    from an4 import load_an4

    data = load_an4(options.data)
    test, _ = protocol.open_test("defaults", options.data, seeds=range(options.seeds), prepared=True)

    def error(units: int, seed: int) -> float:
        return 100 * (1 - ESNClassifier(units, random_state=seed).fit(*data["train"]).score(*test))

    rows, goals = [], []
    heading("AN4 phone states", "test error in %")
    for units, required in AN4_GOALS.items():
        method = f"ESNClassifier({units})"
        row = measured("AN4", method, "%", lambda seed, n=units: error(n, seed), options.seeds)
        rows.append(row)
        goals.append(goal(f"AN4, {units} units", f"<= {required} %", f"{median(row):.2f} %", median(row) <= required))
    return rows, goals


def awkward(options: argparse.Namespace) -> Part:
    """Gaps, rare positives and missing labels, beside scikit-learn's usual cures; figures, no goals."""
    import awkward as own

    rows, goals = [], []
    for make in own.TASKS_HERE:
        work, methods = make()
        heading(work, "greater is better")
        title, *_, unit = map(str.strip, work.split(","))
        found = [measured(title, name, unit, score, options.seeds) for name, score in methods.items()]
        rows += found
        seen = "; ".join(f"{row['method']} {median(row):.4f}" for row in found)
        goals.append(goal(work, "figures beside scikit-learn's cures", seen, None))
    return rows, goals


def layouts(options: argparse.Namespace) -> Part:
    """The table of data layouts: each right, or refused with the line that mends it."""
    try:
        own = importlib.import_module("layouts")
    except ModuleNotFoundError as problem:
        print(f"\nlayouts: left out ({problem})")
        return [], [goal("layouts", "40, none misread", "not measured: benchmarks/layouts.py cannot run here", None)]
    failures = own.main()
    count = len(own.table())
    return [], [goal("layouts", "40, none misread", f"{count}, {failures} wrong", count >= 40 and not failures)]


PARTS = {part.__name__: part for part in (series, sequences, an4, awkward, layouts)}


def keep(name: str, found: Part, options: argparse.Namespace) -> None:
    """Add the results of a part to the file."""
    path = options.out
    kept = json.loads(path.read_text()) if path.exists() else {"parts": {}}
    rows, goals = found
    for row in rows:
        row |= {"median": median(row), "least": min(row["values"]), "greatest": max(row["values"])}
    about = {"date": results.now(), "commit": results.commit(), "seeds": options.seeds}
    about |= {"machine": results.machine(), "versions": results.versions(), "defaults": results.defaults()}
    former = kept["parts"].get(name)
    if former is not None and former["rows"] != rows:  # what was measured before stays in the file
        kept.setdefault("superseded", []).append({"part": name, **former})
    kept["parts"][name] = {**about, "goals": goals, "rows": rows}
    results.replace_file(path, kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="parts to run")
    parser.add_argument("--seeds", type=int, default=10, help="seeds of every method (default: 10)")
    parser.add_argument("--data", help="path of an4_states.npz, for the part an4")
    parser.add_argument("--sets", nargs="+", help="data sets of the part sequences (default: all)")
    out = results.FOLDER / "defaults.json"
    parser.add_argument("--out", type=Path, default=out, help=f"the result file (default: {out})")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    compile_first()
    goals = []
    for name in options.only:
        found = PARTS[name](options)
        keep(name, found, options)
        goals += found[1]
    print("\nGoals")
    for g in goals:
        word = {True: "reached", False: "MISSED", None: "-"}[g["reached"]]
        print(f"{g['work']:44}  required {g['required']:44}  seen {g['seen']:24}  {word}")
    sys.exit(any(g["reached"] is False for g in goals))


if __name__ == "__main__":
    main()
