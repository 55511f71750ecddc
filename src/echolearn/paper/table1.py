"""The paper's Table 1: state errors by frame, or those of another level, by hidden units and by what is learned."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from echolearn.display.progress import clock
from echolearn.estimators import DeepESNClassifier, ESNClassifier
from echolearn.fitting.parameters import merged_settings
from echolearn.paper.cells import Cell, CellStore, Experiment, Outcome, Progress, costs_of, fingerprint_of
from echolearn.paper.estimate import CorpusSize, estimate_lines, memory_text
from echolearn.paper.fits import FitResult, MeasuredFit, check_network, with_errors
from echolearn.paper.parts import CorpusParts
from echolearn.paper.phone_scoring import TUNING, PhoneScoring, level_errors
from echolearn.paper.table1_figures import draw_figures
from echolearn.paper.table1_report import (
    COLUMNS,
    GAINS,
    LEVELS,
    PAPER_COLUMNS,
    Entry,
    PaperRow,
    Row,
    Table,
    aligned,
    deep_shape,
    table_page,
    write_tables,
)
from echolearn.speech import Corpus
from echolearn.speech.recognition._recognizer import StateClassifier
from echolearn.training import cost_model
from echolearn.training.cost_model import Rates

Settings = Mapping[str, Any]  # parameters of ESNClassifier or DeepESNClassifier
# Of each finished cell its fit, and the same at the level of the plan.
Done = Mapping[Cell, tuple[FitResult, FitResult]]

DEMO_FRAMES = 35_000
# The paper's scale.
FULL_FRAMES = 1_124_823
FULL_UNITS = (100, 500, 2_000, 10_000, 30_000)
FULL_EPOCHS = 40
# In the ensemble columns a network has about so many units: on held-out speech 2 x 250 learned units beat 1 x 500, and
# 1 x 300 beat 3 x 100. There are two networks at least, as one would be the column of single networks again.
ENSEMBLE_UNITS = 250
MIN_ENSEMBLE = 2
SCORE_VERSION = 1  # raised when a level counts otherwise, so that kept scores are computed again


# The columns of a quick table; the ensembles are computed where they are named, and with --full.
SINGLE_COLUMNS = tuple(name for name, column in COLUMNS.items() if not column.ensemble)


@dataclass(frozen=True)
class Plan:
    """What to compute. Networks do not depend on the level."""

    units: tuple[int, ...] = (100, 500)  # hidden units, one row of the table each
    seeds: int = 1  # so many networks, with seeds from 0, are averaged
    epochs: int = 20  # of the paper's columns; ours take as many as the data need
    targets: str = "all"  # or "last": only the last frame of each block has a target, as in the paper; with m = 1 and 3
    gradient: str = "exact"  # or "printed": the paper's formulas as printed; with m = 1 and 3
    columns: tuple[str, ...] = SINGLE_COLUMNS  # of COLUMNS
    level: str = "state"  # at which errors are counted, of LEVELS
    paper: Settings = field(default_factory=dict)  # replace the paper's in its columns
    ours: Settings = field(default_factory=dict)  # replace our defaults; `ensemble` in the columns of ensembles only
    deep: Settings = field(default_factory=dict)  # replace the defaults of deep networks

    def estimator(self, cell: Cell) -> StateClassifier:
        column = COLUMNS[cell.column]
        changes: dict[str, Any] = {"random_state": cell.seed, **column.changes}
        if column.kind == "deep":
            layers, units = deep_shape(cell.units, self.deep)
            shape = {"units": units, "layers": layers}
            return DeepESNClassifier(**merged_settings(changes, self.deep, shape, column.changes))
        if column.kind == "ours":
            networks = {"ensemble": max(MIN_ENSEMBLE, round(cell.units / ENSEMBLE_UNITS))}
            changes = merged_settings(changes, networks, self.ours, column.changes)
            return ESNClassifier(cell.units, **(changes if column.ensemble else {**changes, "ensemble": 1}))
        if changes["learn"] != "none":  # a fixed network is the same however many epochs the others take
            changes |= {"epochs": self.epochs}
        if changes.get("learning", {}).get("lookback") is not None:
            changes["learning"] = {**changes["learning"], "targets": self.targets, "gradient": self.gradient}
        return ESNClassifier.paper(cell.units, **merged_settings(changes, self.paper, column.changes))

    def cells(self) -> list[Cell]:
        """Return all cells, small networks first, so that the first rows are soon complete."""
        return [Cell(n, c, s) for n in self.units for c in self.columns for s in range(self.seeds)]

    def folder(self, out: Path) -> Path:
        """Return the folder of the tables and the report: that of the run, with one inside it for each other level."""
        return out if self.level == "state" else out / self.level

    def check(self) -> Plan:
        """Return the plan; ValueError for any setting of any cell that cannot be, before the first is fitted."""
        unknown = [c for c in self.columns if c not in COLUMNS]
        if unknown or not self.columns:
            raise ValueError(f"columns: {', '.join(unknown) or 'none'}; expected some of {', '.join(COLUMNS)}.")
        if self.level not in LEVELS:
            raise ValueError(f"level is {self.level!r}; expected one of {', '.join(LEVELS)}.")
        if not self.units or self.seeds < 1:
            raise ValueError(f"units={self.units}, seeds={self.seeds}; expected at least one of each.")
        if self.ours.get("ensemble", MIN_ENSEMBLE) == 1 and any(COLUMNS[c].ensemble for c in self.columns):
            raise ValueError("[ours] ensemble=1: the columns of ensembles would be those of single networks again; "
                             "leave them out of the columns.")  # fmt: skip
        for cell in self.cells():
            check_network(self.estimator(cell))
        return self


def plan_of(*, full: bool = False, **given: Any) -> Plan:
    """Return the plan with these settings, where they are not None (columns "all": every one); with `full` the rest as
    in the paper."""
    every = tuple(COLUMNS)
    changes = {name: value for name, value in given.items() if value is not None}
    if changes.get("columns") == ("all",):
        changes["columns"] = every
    paper = {"units": FULL_UNITS, "epochs": FULL_EPOCHS, "columns": every} if full else {}
    return Plan(**{**paper, **changes})


def estimate_text(plan: Plan, size: CorpusSize, rates: Rates | None = None) -> str:
    """Return a table of the estimated time and memory of every column, and the time of all cells. rates: those of this
    machine, unless they are given."""
    costs = costs_of(plan, size, rates or cost_model.measured())
    rows = []
    for units in plan.units:
        row = [costs[Cell(units, column, 0)] for column in plan.columns]
        rows.append([f"{units:,}", *(f"{clock(cost.seconds)} {memory_text(cost)}" for cost in row)])
    seconds = sum(cost.seconds for cost in costs.values())
    seeds = "one seed" if plan.seeds == 1 else f"{plan.seeds} seeds"
    hours = f" or {seconds / 3600:,.1f} hours" if seconds >= 3600 else ""
    summary = (
        f"all {len(costs)} cells ({seeds}): about {clock(seconds)}{hours}; "
        "fits that stop early take less, finished cells none"
    )
    table = aligned(["units", *(COLUMNS[column].head for column in plan.columns)], rows)
    return estimate_lines("cell", table, summary, refused="cell")


AVERAGED = ("test_error", "valid_error", "seconds", "processor_seconds", "frames_per_second", "peak_memory_mb",
            "weights", "spectral_radius", "epochs")  # fmt: skip


# Table 1 of the paper, as printed: TIMIT, core test set.
PAPER_TIMIT: list[PaperRow] = [
    {"units": units, "test_error": dict(zip(PAPER_COLUMNS, errors, strict=True)), "relative_gain": gain}
    for units, errors, gain in (
        (100, (0.755, 0.667, 0.640, 0.632), 0.163),
        (500, (0.701, 0.598, 0.575, 0.568), 0.190),
        (2_000, (0.638, 0.542, 0.527, 0.521), 0.183),
        (10_000, (0.571, 0.495, 0.480, 0.468), 0.180),
        (30_000, (0.533, 0.459, 0.445, 0.430), 0.193),
    )
]


def _row(units: int, plan: Plan, done: Mapping[Cell, FitResult]) -> Row:
    columns = {}
    for column in plan.columns:
        cells = [Cell(units, column, seed) for seed in range(plan.seeds)]
        seeds = [(cell.seed, done[cell]) for cell in cells if cell in done]
        if seeds:
            columns[column] = averaged(seeds)
    gains = {name: relative_gain(columns, fixed, learned) for name, (fixed, learned, _) in GAINS.items()}
    return cast(Row, {"units": units, "columns": columns, **gains})


def averaged(results: Sequence[tuple[int, FitResult]]) -> Entry:
    """Return the means over (seed, result) pairs; errors also with their standard deviation (n - 1) and one by one."""
    entry: dict[str, object] = {}
    for name in AVERAGED:
        values = [cast(Mapping[str, float | None], result).get(name) for _, result in results]
        known = [value for value in values if value is not None]
        entry[name] = round(float(np.mean(known)), 6) if known else None
        if name.endswith("error") and len(known) > 1:
            entry[f"{name}_deviation"] = round(float(np.std(known, ddof=1)), 6)
            entry[f"{name}s"] = [round(value, 6) for value in known]
    entry["seeds"] = [seed for seed, _ in results]
    return cast(Entry, entry)


def relative_gain(columns: Mapping[str, Entry], fixed: str, learned: str) -> float | None:
    """Return by how much learning lowers the test error of the fixed network; None where one of them is missing."""
    if fixed not in columns or learned not in columns or not columns[fixed]["test_error"]:
        return None
    return round(1 - float(columns[learned]["test_error"]) / float(columns[fixed]["test_error"]), 4)


class Table1(Experiment[FitResult, FitResult, Table]):
    """Table 1 on a corpus. The score of a cell is its fit with the errors of the plan's level."""

    plan: Plan

    def kept_fit(self, model: StateClassifier, fit: MeasuredFit) -> FitResult:
        return with_errors(model, self.parts, fit)

    def kept_score(self, cell: Cell, fit: FitResult) -> FitResult | None:
        return self.score(cell, fit)

    def score(self, cell: Cell, fit: FitResult, model: StateClassifier | None = None) -> FitResult:
        level = self.plan.level
        if level == "state":  # what a fit ends with
            return fit
        fingerprint = fingerprint_of([fit["fingerprint"], level, SCORE_VERSION, TUNING])
        errors = self.store.find_score(cell.name, level, fingerprint)
        if errors is None:
            valid, test = level_errors(self.store.load_model(cell.name), self.corpus, level, self.task)
            errors = {"valid_error": valid, "test_error": test}
            self.store.save_score(cell.name, level, fingerprint, errors)
        return cast(FitResult, {**fit, **errors})

    @cached_property
    def task(self) -> PhoneScoring:
        """References and decoders of the corpus, which all networks share."""
        return PhoneScoring.of(self.corpus, order=2)  # one order for all columns

    def outcome(self, fit: FitResult, score: FitResult) -> Outcome:
        return Outcome(score["test_error"], score["valid_error"], score["seconds"])

    def table(self, done: Done) -> Table:
        results = {cell: score for cell, (_, score) in done.items()}
        rows = [_row(units, self.plan, results) for units in self.plan.units]
        made_with = [result["made_with"] for result in results.values() if "made_with" in result]
        return {
            **self.corpus_report(asdict(self.plan), done),
            "rows": [row for row in rows if row["columns"]],
            "paper_timit": PAPER_TIMIT,
            "made_with": list({json.dumps(one, sort_keys=True): one for one in made_with}.values()),  # each once
        }

    def write(self, out: Path, table: Table) -> None:
        write_tables(out, table)

    def page(self, table: Table, done: Done) -> str:
        fits = {cell.name: fit for cell, (fit, _) in done.items()}
        return table_page(table, draw_figures(self.corpus, table, fits, self.store.load_model))


def run(corpus: Corpus, plan: Plan, out: Path, progress: Progress, *, force: bool = False) -> Table:
    """Compute the cells that the folder `out` does not hold yet, and return the table. Networks that are kept are not
    fitted again to be scored at another level. With `force`, all cells are computed."""
    plan.check()
    plan.folder(out).mkdir(parents=True, exist_ok=True)
    parts, store = CorpusParts.load(corpus), CellStore[FitResult](out / "cells", progress.note)
    return Table1(corpus, plan, parts, store, progress).run(plan.folder(out), force=force)
