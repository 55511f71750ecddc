"""One label per series: SeriesClassifier() beside MiniRocket, MultiRocket-Hydra and QUANT of aeon, all with defaults.

    .venv-series/bin/python benchmarks/sequences.py FOLDER --train 5         folds of the training parts, ours alone
    .venv-series/bin/python benchmarks/sequences.py FOLDER                   the test parts, all methods
    .venv-series/bin/python benchmarks/sequences.py FOLDER --seeds 10 --sets NAME ...     seeds of each method
    .venv-series/bin/python benchmarks/sequences.py FOLDER --early --sets NAME ...        answers from the first steps
    .venv-series/bin/python benchmarks/sequences.py FOLDER --wheel --seeds 5   sets inside aeon's wheel
    .venv-series/bin/python benchmarks/sequences.py FOLDER --summary         figures of what is in the result file

FOLDER has one file NAME.npz per data set, as of the UCR archive: X_train and X_test (series, steps), y_train and y_test
(series,); NaN at the end of a row pads it. Choices are made on the training parts; the first command never reads the
test parts. They are read under docs/evidence/protocol.md. Every method runs on one thread, smallest sets first, after a
fit to noise that compiles it. What benchmarks/results/sequences.json already has is not run again; a row of ours counts
only as long as the code of the library is the same. The other methods take series of one length: shorter ones are
padded with zeros.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import r2_score
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

import measure
import protocol
import results
from echolearn import SeriesClassifier, SeriesRegressor
from table_text import load, markdown, table

NAME = "sequences"
OURS = "SeriesClassifier()"
MIN_PROBABILITY = 1e-6  # in the log loss: classifiers that answer 0 and 1 would have an infinite one
Row = dict[str, Any]
MEASURES = ("error", "log_loss", "brier", "cpu_seconds", "extra_mb")
EARLY_SHARES = (0.25, 0.5, 0.75, 1.0)  # of the steps, after which early answers are scored
STOP_WHEN = 0.9  # the probability at which ours decides
MIN_ROCKET_STEPS = 9  # shorter prefixes are padded with zeros for MiniRocket


def rival(path: str, kind: str = "classification") -> Callable[[int], Any]:
    """Return what makes an estimator of aeon with a seed, which is imported when it is needed."""

    def make(seed: int) -> Any:
        module, name = path.rsplit(".", 1)
        return getattr(__import__(f"aeon.{kind}.{module}", fromlist=[name]), name)(random_state=seed)

    return make


METHODS: dict[str, Callable[[int], Any]] = {
    OURS: lambda seed: SeriesClassifier(random_state=seed),
    "MiniRocket": rival("convolution_based.MiniRocketClassifier"),
    "MultiRocket-Hydra": rival("convolution_based.MultiRocketHydraClassifier"),
    "QUANT": rival("interval_based.QUANTClassifier"),
}

OURS_FOR_VALUES = "SeriesRegressor()"
REGRESSORS: dict[str, Callable[[int], Any]] = {
    OURS_FOR_VALUES: lambda seed: SeriesRegressor(random_state=seed),
    "RocketRegressor": rival("convolution_based.RocketRegressor", "regression"),
    "DrCIF": rival("interval_based.DrCIFRegressor", "regression"),
}
# Inside aeon's wheel: sets with several features, and sets with one value per series
WHEEL = {"BasicMotions": METHODS, "JapaneseVowels": METHODS, "CardanoSentiment": REGRESSORS, "Covid3Month": REGRESSORS}


def read(path: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the series (series, steps) and the labels of a part of a data set."""
    with np.load(path) as file:
        return file[f"X_{part}"].astype(float), file[f"y_{part}"]


def given(method: str, X: np.ndarray) -> Any:
    """Return series in the form that a method takes."""
    if method != OURS:
        return np.nan_to_num(X)[:, None]
    return [x[: np.flatnonzero(~np.isnan(x))[-1] + 1, None] for x in X]


def scores(classes: np.ndarray, P: np.ndarray, y: np.ndarray) -> Row:
    """Return the error in %, the log loss and the Brier score of probabilities P (series, classes)."""
    truth = y[:, None] == classes
    likely = np.clip(np.where(truth, P, 0).sum(axis=1), MIN_PROBABILITY, 1)
    wrong = classes[P.argmax(axis=1)] != y
    return {
        "error": 100 * float(wrong.mean()),
        "log_loss": float(-np.log(likely).mean()),
        "brier": float(((P - truth) ** 2).sum(axis=1).mean()),
    }


def tried(method: str, train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray], seed: int = 0) -> Row:
    """Return the figures of a method: fitted to one part, scored on the other."""
    (X, y), (X_new, y_new) = train, test
    with measure.measured() as costs:
        model = METHODS[method](seed).fit(given(method, X), y)
        P = np.asarray(model.predict_proba(given(method, X_new)))
    return scores(np.asarray(model.classes_), P, y_new) | costs


def compile_first(method: str) -> None:
    """Fit a method to noise, so that no clock sees a compilation."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((20, 60)), np.arange(20) % 2
    tried(method, noise, noise)


def folds(path: Path, count: int) -> Row | None:
    """Return the mean figures of ours over folds of a training part; None if a class has fewer than two series."""
    X, y = read(path, "train")
    count = min(count, np.unique(y, return_counts=True)[1].min())
    if count < 2:
        return None
    split = StratifiedKFold(count, shuffle=True, random_state=0).split(X, y)
    found = [tried(OURS, (X[fit], y[fit]), (X[held], y[held])) for fit, held in split]
    return {name: float(np.mean([row[name] for row in found])) for name in MEASURES}


def by_size(folder: Path, names: list[str] | None) -> list[Path]:
    """Return the data sets, the smallest first."""
    paths = [folder / f"{name}.npz" for name in names] if names else list(folder.glob("*.npz"))
    return sorted(paths, key=lambda path: path.stat().st_size)


def reading_of(paths: list[Path]) -> tuple[str, Row]:
    """Return the fingerprint of the library's code, and the record of a reading of test parts, or refuse."""
    record = protocol.require_frozen(NAME)
    digest = hashlib.sha256("".join(protocol.file_digest(path) for path in sorted(paths)).encode()).hexdigest()
    facts = {"experiment": NAME, **record, "data_sha256": digest, "date": results.now()}
    return protocol.code_fingerprint(["src/echolearn"]), facts


def measure_all(paths: list[Path], methods: list[str]) -> None:
    """Add what is missing to the result file, under the rules of the protocol."""
    code, record = reading_of(paths)
    for method in methods:
        wanted = [path for path in paths if not known(path.stem, method, code)]
        if not wanted:
            continue
        protocol.log_reading(record)
        compile_first(method)
        for path in wanted:
            row = {"work": path.stem, "method": method, **tried(method, read(path, "train"), read(path, "test"))}
            keep(row | {"commit": record["commit"], "code": code if method == OURS else None})
            print(f"{path.stem:32} {method:20}", *(f"{name} {row[name]:.4g}" for name in MEASURES), flush=True)


def measure_seeds(paths: list[Path], methods: list[str], count: int) -> None:
    """Add the errors of seeds 0, 1, ... to the result file, under "seeds"; what it has is not run again."""
    code, record = reading_of(paths)
    protocol.log_reading(record)
    for method in methods:
        compile_first(method)
        for path, seed in itertools.product(paths, range(count)):
            about = {"work": path.stem, "method": method, "seed": seed, "code": code if method == OURS else None}
            if any(about.items() <= row.items() for row in load(NAME).get("seeds", [])):
                continue
            found = tried(method, read(path, "train"), read(path, "test"), seed)
            with protocol.updated(results.FOLDER / f"{NAME}.json") as content:
                content["seeds"] = [*content.get("seeds", []), about | found | {"commit": record["commit"]}]
            print(f"{path.stem:32} {method:20} seed {seed} error {found['error']:.4g}", flush=True)


def read_wheel(work: str, part: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the series (steps, n) and the labels or values of a part of a data set inside aeon's wheel."""
    from aeon import datasets

    opened = datasets.load_classification if WHEEL[work] is METHODS else datasets.load_regression
    X, y = opened(work, split=part)
    return [np.asarray(x, float).T for x in X], y if WHEEL[work] is METHODS else y.astype(float)


def wheel_row(work: str, method: str, seed: int) -> Row:
    """Return the figures of a method on a set of the wheel; other methods are given series padded with zeros."""
    (X, y), (X_new, y_new) = read_wheel(work, "train"), read_wheel(work, "test")
    if method not in (OURS, OURS_FOR_VALUES):
        longest = max(map(len, [*X, *X_new]))
        X, X_new = (np.stack([np.pad(x, ((0, longest - len(x)), (0, 0))).T for x in some]) for some in (X, X_new))
    with measure.measured() as costs:
        model = WHEEL[work][method](seed).fit(X, y)
        found = np.asarray(model.predict_proba(X_new) if method in METHODS else model.predict(X_new))
    if method in METHODS:
        return scores(np.asarray(model.classes_), found, y_new) | {"cases": len(y_new)} | costs
    return {"error": float(np.sqrt(np.mean((found - y_new) ** 2))), "r2": float(r2_score(y_new, found))} | costs


def measure_wheel(methods: list[str], count: int) -> None:
    """Add the figures of seeds 0, 1, ... on the sets of the wheel to the result file, under "wheel"."""
    import aeon.datasets

    folder = Path(aeon.datasets.__file__).parent / "data"
    code, record = reading_of([folder / work / f"{work}_{part}.ts" for work in WHEEL for part in ("TRAIN", "TEST")])
    protocol.log_reading(record)
    for work, seed in itertools.product(WHEEL, range(count)):
        for method in (name for name in WHEEL[work] if name in methods):
            ours = method in (OURS, OURS_FOR_VALUES)
            about = {"work": work, "method": method, "seed": seed, "code": code if ours else None}
            if any(about.items() <= row.items() for row in load(NAME).get("wheel", [])):
                continue
            found = wheel_row(work, method, seed)
            with protocol.updated(results.FOLDER / f"{NAME}.json") as content:
                content["wheel"] = [*content.get("wheel", []), about | found | {"commit": record["commit"]}]
            print(f"{work:20} {method:20} seed {seed} error {found['error']:.4g}", flush=True)


@table
def sequences_wheel() -> str:
    """Return errors, or R², on the sets of the wheel: median (lowest to highest) over seeds."""
    rows, cells = load(NAME).get("wheel", []), []
    for work, method in ((work, method) for work, methods in WHEEL.items() for method in methods):
        found = [row for row in rows if (row["work"], row["method"]) == (work, method)]
        found = [row for row in found if row["code"] == found[-1]["code"]]
        if not found:
            continue
        if method in METHODS:
            values = np.array([row["error"] * row["cases"] / 100 for row in found])
            what = f"errors of {found[0]['cases']}", f"{np.median(values):g} ({values.min():g} to {values.max():g})"
        else:
            values = np.array([row["r2"] for row in found])
            what = "R²", f"{np.median(values):.3f} ({values.min():.3f} to {values.max():.3f})"
        cells.append([work, method, len(found), *what, f"{np.median([row['cpu_seconds'] for row in found]):.1f}"])
    return markdown(["", "method", ">seeds", "measure", ">median (lowest to highest)", ">processor seconds"], cells)


def early_ours(train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray], ends: list[int]) -> list[Row]:
    """Return the figures of ours after each of so many steps, then those of its own decisions."""
    X, X_new, y_new = given(OURS, train[0]), given(OURS, test[0]), test[1]
    model = SeriesClassifier().fit(X, train[1])
    stream = model.stream(training=(X, train[1]), stop_when=STOP_WHEN)
    P, earliness = np.empty((len(ends) + 1, len(X_new), len(model.classes_))), np.ones(len(X_new))
    for i, x in enumerate(X_new):
        stream.reset()
        decided = False
        for steps, frame in enumerate(x, 1):
            now = stream.step(frame)
            if steps in ends:
                P[ends.index(steps), i] = now
            if stream.decided and not decided:
                decided, P[-1, i], earliness[i] = True, now, steps / len(x)
    found = [scores(model.classes_, some, y_new) for some in P]
    found[-1]["earliness"] = float(earliness.mean())
    return found


def early_rival(model: Any, train: tuple[np.ndarray, np.ndarray], test: tuple[np.ndarray, np.ndarray], n: int) -> Row:
    """Return the figures of a classifier of series (n_series, n_steps) that is fitted to their first n steps."""
    model.fit(train[0][:, :n], train[1])
    return scores(model.classes_, model.predict_proba(test[0][:, :n]), test[1])


class PaddedRocket:
    """MiniRocket for rows of numbers."""

    def __init__(self) -> None:
        self.model = METHODS["MiniRocket"](0)

    def fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.model.fit(self._padded(X), y)
        self.classes_ = self.model.classes_

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.model.predict_proba(self._padded(X)))

    def _padded(self, X: np.ndarray) -> np.ndarray:
        return np.pad(X, ((0, 0), (0, max(0, MIN_ROCKET_STEPS - X.shape[1]))))[:, None]


EARLY_RIVALS: dict[str, Callable[[], Any]] = {"1-NN": lambda: KNeighborsClassifier(1), "MiniRocket": PaddedRocket}


def measure_early(paths: list[Path]) -> None:
    """Add figures of early answers to the result file, under "early"; sets that it has are not run again."""
    code, record = reading_of(paths)
    protocol.log_reading(record)
    for path in paths:
        if any(row["work"] == path.stem and row["code"] == code for row in load(NAME).get("early", [])):
            continue
        train, test = read(path, "train"), read(path, "test")
        ends = [int(np.ceil(share * train[0].shape[1])) for share in EARLY_SHARES]
        found = [
            (OURS, share, row) for share, row in zip((*EARLY_SHARES, 0), early_ours(train, test, ends), strict=True)
        ]
        for name, make in EARLY_RIVALS.items():
            some = [early_rival(make(), train, test, n) for n in ends]
            found += [(name, share, row) for share, row in zip(EARLY_SHARES, some, strict=True)]
        about = {"work": path.stem, "code": code, "commit": record["commit"]}
        with protocol.updated(results.FOLDER / f"{NAME}.json") as content:
            kept = [row for row in content.get("early", []) if row["work"] != path.stem]
            content["early"] = kept + [about | {"method": m, "share": share} | row for m, share, row in found]
        print(f"{path.stem:32}", *(f"{m} {share:g} error {row['error']:.4g}" for m, share, row in found), flush=True)


def early_figures(measure_name: str, method: str, share: float) -> np.ndarray:
    """Return a figure of early answers (sets,), in the order of the sets; share 0: of ours at its own decisions."""
    rows = [r for r in load(NAME).get("early", []) if (r["method"], r["share"]) == (method, share)]
    return np.array([row[measure_name] for row in sorted(rows, key=lambda row: row["work"])])


@table
def sequences_early() -> str:
    """Return mean errors and log losses after shares of the steps, and ours beside the better rival of each set."""
    cells = []
    for share in EARLY_SHARES:
        errors = np.array([early_figures("error", method, share) for method in (OURS, *EARLY_RIVALS)])
        difference = (errors[0] - errors[1:].min(axis=0)).round(9)
        counts = "/".join(str(int(some.sum())) for some in (difference < 0, difference == 0, difference > 0))
        losses = [early_figures("log_loss", method, share).mean() for method in (OURS, *EARLY_RIVALS)]
        means = [f"{some.mean():.2f}" for some in errors] + [counts] + [f"{loss:.3f}" for loss in losses]
        cells.append([f"{share:.0%}", errors.shape[1], *means])
    columns = [f">{what}, {who}" for what in ("error %", "log loss") for who in ("ours", *EARLY_RIVALS)]
    columns.insert(3, ">wins/ties/losses against the better of both")
    return markdown(["steps", ">sets", *columns], cells)


@table
def sequences_decisions() -> str:
    """Return the errors and the earliness of ours at its own decisions, set by set."""
    works = sorted({row["work"] for row in load(NAME).get("early", [])})
    figures = [early_figures("earliness", OURS, 0), early_figures("error", OURS, 0), early_figures("error", OURS, 1.0)]
    columns = np.array([np.append(values, values.mean()) for values in figures])
    cells = [
        [work, f"{100 * earliness:.0f}", f"{error:.2f}", f"{end:.2f}"]
        for work, (earliness, error, end) in zip([*works, "mean"], columns.T, strict=True)
    ]
    return markdown(["", ">earliness, % of the steps", ">error %, decided early", ">error %, at the end"], cells)


def known(work: str, method: str, code: str) -> bool:
    """Return whether the result file has a row that still counts."""
    rows = load(NAME).get("rows", [])
    return any(r["work"] == work and r["method"] == method and r["code"] in (None, code) for r in rows)


def keep(row: Row) -> None:
    """Write a row to the result file; one that it replaces stays there under "superseded"."""
    with protocol.updated(results.FOLDER / f"{NAME}.json") as content:
        same = [r for r in content.get("rows", []) if (r["work"], r["method"]) == (row["work"], row["method"])]
        others = [r for r in content.get("rows", []) if r not in same]
        about = {"machine": results.machine(), "versions": results.versions(), "defaults": results.defaults()}
        content |= {"date": results.now(), **about, "rows": [*others, row]}
        content["superseded"] = content.get("superseded", []) + same


def table_of(measure_name: str, methods: list[str]) -> np.ndarray:
    """Return the figures (sets, methods) of the data sets that all these methods have run on."""
    found = {(row["work"], row["method"]): row[measure_name] for row in load(NAME).get("rows", [])}
    works = sorted({work for work, _ in found})
    kept = [work for work in works if all((work, method) in found for method in methods)]
    return np.array([[found[work, method] for method in methods] for work in kept]).reshape(-1, len(methods))


@table
def sequences_pairs() -> str:
    """Return ours beside each rival, on the sets that both have run on."""
    cells = []
    for rival_name in list(METHODS)[1:]:
        errors, losses, briers, seconds, memory = (table_of(name, [OURS, rival_name]) for name in MEASURES)
        if not len(errors):
            continue
        difference = (errors[:, 0] - errors[:, 1]).round(9)
        counts = (difference < 0).sum(), (difference == 0).sum(), (difference > 0).sum()
        means = [
            f"{values[:, k].mean():.{digits}f}"
            for values, digits in ((errors, 2), (losses, 3), (briers, 3))
            for k in (0, 1)
        ]
        sums = [f"{seconds[:, k].sum():.0f}" for k in (0, 1)] + [f"{memory[:, k].max():.0f}" for k in (0, 1)]
        cells.append([rival_name, len(errors), *means[:2], "/".join(map(str, counts)), *means[2:], *sums])
    pairs = [
        f">{name}, {side}"
        for name in ("log loss", "Brier score", "processor seconds", "MB")
        for side in ("ours", "theirs")
    ]
    return markdown(["", ">sets", ">mean error %, ours", ">theirs", ">wins/ties/losses", *pairs], cells)


def complete_methods() -> list[str]:
    """Return the methods that have run on every set that ours has run on."""
    every = len(table_of("error", [OURS]))
    return [method for method in METHODS if len(table_of("error", [OURS, method])) == every]


@table
def sequences_ranks() -> str:
    """Return mean errors, mean ranks, and on how many sets a method is the best, of those that ran on all sets."""
    methods = complete_methods()
    errors, losses, briers = (table_of(name, methods) for name in MEASURES[:3])
    ranks = rankdata(errors.round(9), axis=1).mean(axis=0)
    best = [(values <= values.min(axis=1, keepdims=True) + 1e-12).sum(axis=0) for values in (losses, briers)]
    cells = [
        [method, len(errors), f"{errors[:, k].mean():.2f}", f"{ranks[k]:.2f}", best[0][k], best[1][k]]
        for k, method in enumerate(methods)
    ]
    return markdown(["", ">sets", ">mean error, %", ">mean rank", ">best log loss on", ">best Brier score on"], cells)


@table
def sequences_seeds() -> str:
    """Return how far errors spread over seeds: the mean over sets of the standard deviation over seeds."""
    rows, cells = load(NAME).get("seeds", []), []
    for method in dict.fromkeys(row["method"] for row in rows):
        latest = [row for row in rows if row["method"] == method and row["code"] in (None, rows_code(rows))]
        errors = [[row["error"] for row in latest if row["work"] == work] for work in {row["work"] for row in latest}]
        means, spreads = np.mean([np.mean(e) for e in errors]), np.mean([np.std(e, ddof=1) for e in errors])
        cells.append([method, len(errors), min(map(len, errors)), f"{means:.2f}", f"{spreads:.2f}"])
    return markdown(["", ">sets", ">seeds", ">mean error, %", ">standard deviation over seeds"], cells)


def rows_code(rows: list[Row]) -> str | None:
    """Return the code of the last row of ours."""
    return next((row["code"] for row in reversed(rows) if row["method"] == OURS), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder with the data sets")
    parser.add_argument("--sets", nargs="+", help="data sets (default: all)")
    every = [*METHODS, *REGRESSORS]
    parser.add_argument("--methods", nargs="+", choices=every, default=every, help="methods to run (default: all)")
    parser.add_argument("--train", type=int, metavar="FOLDS", help="try ours on folds of the training parts instead")
    parser.add_argument("--seeds", type=int, metavar="COUNT", help="run so many seeds of each method")
    parser.add_argument("--early", action="store_true", help="score answers from the first steps; series of one length")
    parser.add_argument("--wheel", action="store_true", help="run the sets inside aeon's wheel, with --seeds seeds")
    parser.add_argument("--summary", action="store_true", help="print what the result file has; run nothing")
    options = parser.parse_args()
    if os.environ.get("OMP_NUM_THREADS") != "1":  # which numerical libraries read when they are imported
        os.execve(sys.executable, [sys.executable, *sys.argv], protocol.single_threaded())
    warnings.simplefilter("ignore")
    paths = by_size(options.folder, options.sets)
    if options.train:
        compile_first(OURS)
        for path in paths:
            row = folds(path, options.train)
            if row is not None:
                print(f"{path.stem:32}", *(f"{name} {row[name]:.4g}" for name in MEASURES), flush=True)
        return
    methods = [method for method in options.methods if method in METHODS]
    if options.early:
        measure_early(paths)
    elif options.wheel:
        measure_wheel(options.methods, options.seeds or 1)
    elif options.seeds:
        measure_seeds(paths, methods, options.seeds)
    elif not options.summary:
        measure_all(paths, methods)
    print(f"{sequences_pairs()}\n\n{sequences_ranks()}")


if __name__ == "__main__":
    main()
