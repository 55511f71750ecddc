"""The paper's Table 1: frame-level state error by hidden units and by what is learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from echolearn import __version__
from echolearn.estimators import parameters as settings
from echolearn.estimators.classifier import ESNClassifier
from echolearn.experiments.fitted_cells import Parts, Shelf, fingerprint_with, fit, planned_epochs
from echolearn.modelfile.atomic import write_atomically
from echolearn.reporting import table as report
from echolearn.speech.corpus import Corpus

DEMO_FRAMES = 35_000
FULL_FRAMES = 1_124_823
FULL_UNITS = (100, 500, 2_000, 10_000, 30_000)
FULL_EPOCHS = 40


# One frame's work in a pass beside the Gram matrix, in multiplications a hidden unit; only for the time left.
_STEP_COST = 600.0


@dataclass(frozen=True)
class Column:
    """paper: the paper's settings (else our defaults), with `changes`."""

    paper: bool
    changes: Mapping[str, Any]


COLUMNS: dict[str, Column] = {
    "esn": Column(True, {"learn": "none"}),
    "W_m1": Column(True, {"learn": "input", "lookback": 1}),
    "W_Wrec_m1": Column(True, {"learn": "both", "lookback": 1}),
    "W_Wrec_m3": Column(True, {"learn": "both", "lookback": 3}),
    "W_Wrec_full": Column(True, {"learn": "both", "lookback": None}),
    "esn_ours": Column(False, {"learn": "none"}),
    "ours": Column(False, {}),
}


@dataclass(frozen=True)
class Plan:
    """What to compute. paper, ours: settings that replace the paper's and our own in their columns.

    targets and gradient go to the columns the paper has formulas for (m = 1 and 3).
    """

    units: tuple[int, ...] = (100, 500)
    seeds: int = 1
    epochs: int = 20
    targets: str = "all"
    gradient: str = "exact"
    columns: tuple[str, ...] = tuple(COLUMNS)
    paper: Mapping[str, Any] = field(default_factory=dict)
    ours: Mapping[str, Any] = field(default_factory=dict)

    def estimator(self, cell: Cell) -> ESNClassifier:
        column = COLUMNS[cell.column]
        changes: dict[str, Any] = {"random_state": cell.seed, **column.changes}
        if not column.paper:
            return ESNClassifier(cell.units, **{**changes, **self.ours, **column.changes})
        if changes["learn"] != "none":  # a fixed network is the same however long the others learn
            changes |= {"epochs": self.epochs}
        if changes.get("lookback") is not None:
            changes |= {"targets": self.targets, "gradient": self.gradient}
        return ESNClassifier.paper(cell.units, **{**changes, **self.paper, **column.changes})

    def cells(self) -> list[Cell]:
        """Small networks first: the first rows of the table are soon there."""
        return [Cell(n, c, s) for n in self.units for c in self.columns for s in range(self.seeds)]

    def check(self) -> None:
        """Every setting of every cell, before the first is fitted."""
        unknown = [c for c in self.columns if c not in COLUMNS]
        if unknown or not self.columns:
            raise ValueError(f"columns: {', '.join(unknown) or 'none'}; expected some of {', '.join(COLUMNS)}.")
        if not self.units or self.seeds < 1:
            raise ValueError(f"units={self.units}, seeds={self.seeds}; expected at least one of each.")
        for cell in self.cells():
            settings.check(self.estimator(cell).get_params(deep=False))


@dataclass(frozen=True)
class Cell:
    units: int
    column: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.column}-{self.units}-{self.seed}"


class Watch(Protocol):
    """Who is told how it goes."""

    def say(self, text: str) -> object: ...
    def plan(self, plan: Plan, work: Mapping[Cell, float]) -> object: ...
    def start(self, cell: Cell, epochs: int) -> object: ...
    def epoch(self, cell: Cell, row: Mapping[str, float]) -> object: ...
    def finish(self, cell: Cell, result: Mapping[str, Any], kept: bool) -> object: ...


def run(corpus: Corpus, plan: Plan, out: Path, watch: Watch, *, force: bool = False) -> dict[str, Any]:
    """Computes what is not there yet; after every cell the table on disk holds all that is known."""
    plan.check()
    out.mkdir(parents=True, exist_ok=True)
    parts = Parts.of(corpus)
    for note in (*corpus.notes, *parts.notes):
        watch.say(note)
    shelf = Shelf(out / "cells", watch.say)
    cells = plan.cells()
    if force:
        shelf.clear([cell.name for cell in cells])
    watch.plan(plan, {cell: work(plan.estimator(cell), parts) for cell in cells})
    done: dict[Cell, dict[str, Any]] = {}
    for cell in cells:
        estimator = plan.estimator(cell)
        fingerprint = fingerprint_with(estimator, parts.fingerprint)
        result = shelf.find(cell.name, fingerprint)
        kept = result is not None
        if result is None:
            watch.start(cell, planned_epochs(estimator, len(parts.train[0])))
            checkpoint = shelf.checkpoint(cell.name, fingerprint)

            def row_done(row: dict[str, float], cell: Cell = cell) -> None:
                watch.epoch(cell, row)

            result = fit(estimator, parts, checkpoint, row_done, watch.say)
            result["fingerprint"] = fingerprint
            shelf.put(cell.name, result, estimator)
        done[cell] = result
        watch.finish(cell, result, kept)
        report.write_tables(out, summary(corpus, plan, done))
    table = summary(corpus, plan, done)
    watch.say("drawing the report")
    write_atomically(out / "report.html", report.page(table, figures(corpus, table, done, shelf)).encode())
    return table


def work(estimator: ESNClassifier, parts: Parts) -> float:
    """About how many multiplications a fit takes; only ratios matter."""
    frames, n_in = sum(map(len, parts.train[0])), parts.train[0][0].shape[1]
    N = estimator.hidden_units
    a_pass = frames * ((N + n_in) ** 2 + (_STEP_COST + n_in) * N)
    passes = 1 + 3 * planned_epochs(estimator, len(parts.train[0])) + 8 * (estimator.readout == "softmax")
    return float(a_pass * passes)


def summary(corpus: Corpus, plan: Plan, done: Mapping[Cell, Mapping[str, Any]]) -> dict[str, Any]:
    """The table as in table1.json (docs/table1.md)."""
    rows: list[dict[str, Any]] = []
    for units in plan.units:
        columns = {c: averaged(list(_seeds(done, units, c))) for c in plan.columns}
        rows.append({"units": units, "columns": {c: entry for c, entry in columns.items() if entry}})
    return {
        "corpus": corpus.name,
        "synthetic": corpus.synthetic,
        "frames": corpus.frames,
        "states": len(corpus.state_names),
        "speakers": len(set(corpus.speakers)),
        "rows": [{**row, **gains(row["columns"])} for row in rows if row["columns"]],
        "paper_timit": PAPER_TIMIT,
        "settings": {**asdict(plan), "paper": dict(plan.paper), "ours": dict(plan.ours)},
        "notes": list(corpus.notes),
        "complete": len(done) == len(plan.cells()),
        "echolearn": __version__,
    }


def _seeds(done: Mapping[Cell, Mapping[str, Any]], units: int, column: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for cell, result in done.items():
        if (cell.units, cell.column) == (units, column):
            yield cell.seed, result


AVERAGED = (
    "test_error",
    "valid_error",
    "seconds",
    "frames_per_second",
    "peak_memory_mb",
    "spectral_radius",
    "epochs",
)


def averaged(results: list[tuple[int, Mapping[str, Any]]]) -> dict[str, Any]:
    """Means over seeds; errors also with their standard deviation (n - 1) where there are several."""
    if not results:
        return {}
    entry: dict[str, Any] = {}
    for name in AVERAGED:
        values = [r[name] for _, r in results if r[name] is not None]
        entry[name] = round(float(np.mean(values)), 6) if values else None
        if name.endswith("error") and len(values) > 1:
            entry[f"{name}_deviation"] = round(float(np.std(values, ddof=1)), 6)
    entry["seeds"] = [seed for seed, _ in results]
    return entry


def gains(columns: Mapping[str, Mapping[str, Any]]) -> dict[str, float | None]:
    """Relative gains over the fixed network with the same readout, on test."""

    def gain(fixed: str, learned: str) -> float | None:
        if fixed not in columns or learned not in columns or not columns[fixed]["test_error"]:
            return None
        return round(1 - float(columns[learned]["test_error"]) / float(columns[fixed]["test_error"]), 4)

    return {"relative_gain": gain("esn", "W_Wrec_m3"), "relative_gain_ours": gain("esn_ours", "ours")}


def _paper(units: int, esn: float, W_m1: float, W_Wrec_m1: float, W_Wrec_m3: float, gain: float) -> Any:
    errors = {"esn": esn, "W_m1": W_m1, "W_Wrec_m1": W_Wrec_m1, "W_Wrec_m3": W_Wrec_m3}
    return {"units": units, "test_error": errors, "relative_gain": gain}


# Table 1 of the paper, as printed: TIMIT, core test set.
PAPER_TIMIT = [
    _paper(100, 0.755, 0.667, 0.640, 0.632, 0.163),
    _paper(500, 0.701, 0.598, 0.575, 0.568, 0.190),
    _paper(2_000, 0.638, 0.542, 0.527, 0.521, 0.183),
    _paper(10_000, 0.571, 0.495, 0.480, 0.468, 0.180),
    _paper(30_000, 0.533, 0.459, 0.445, 0.430, 0.193),
]


def figures(
    corpus: Corpus, table: Mapping[str, Any], done: Mapping[Cell, Mapping[str, Any]], shelf: Shelf
) -> list[report.Figure]:
    """What the page shows beside the table; nothing where matplotlib is missing."""
    try:
        from echolearn.experiments import figures as portraits
    except ImportError:
        return []
    return portraits.draw(corpus, table, {cell.name: result for cell, result in done.items()}, shelf.model)
