"""The results of all cells as one table, beside the table of the paper."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

import numpy as np

from echolearn import __version__
from echolearn.experiments.measured_fit import FitResult
from echolearn.experiments.plan import Cell, Plan
from echolearn.experiments.provenance import MadeWith
from echolearn.reporting.table import Entry, PaperRow, Row, Table
from echolearn.speech.corpus import Corpus

AVERAGED = (
    "test_error",
    "valid_error",
    "seconds",
    "processor_seconds",
    "frames_per_second",
    "peak_memory_mb",
    "spectral_radius",
    "epochs",
)


def _paper_row(units: int, errors: tuple[float, float, float, float], gain: float) -> PaperRow:
    columns = ("esn", "W_m1", "W_Wrec_m1", "W_Wrec_m3")
    return {"units": units, "test_error": dict(zip(columns, errors, strict=True)), "relative_gain": gain}


# Table 1 of the paper, as printed: TIMIT, core test set.
PAPER_TIMIT = [
    _paper_row(100, (0.755, 0.667, 0.640, 0.632), 0.163),
    _paper_row(500, (0.701, 0.598, 0.575, 0.568), 0.190),
    _paper_row(2_000, (0.638, 0.542, 0.527, 0.521), 0.183),
    _paper_row(10_000, (0.571, 0.495, 0.480, 0.468), 0.180),
    _paper_row(30_000, (0.533, 0.459, 0.445, 0.430), 0.193),
]
# The gains of a row: by how much the second column is below the first, a fixed network of the same form and readout.
GAINS = {
    "relative_gain": ("esn", "W_Wrec_m3"),
    "relative_gain_ours": ("esn_ours", "ours"),
    "relative_gain_ours_ensemble": ("esn_ours_ensemble", "ours_ensemble"),
}


def table_summary(corpus: Corpus, plan: Plan, done: Mapping[Cell, FitResult], digest: str) -> Table:
    """Return the table of the finished cells; digest: of every feature and label of the corpus."""
    rows = [_row(units, plan, done) for units in plan.units]
    return {
        "corpus": corpus.name,
        "level": plan.level,
        "digest": digest,
        "synthetic": corpus.synthetic,
        "frames": corpus.frames,
        "states": len(corpus.state_names),
        "speakers": len(set(corpus.speakers)),
        "rows": [row for row in rows if row["columns"]],
        "paper_timit": PAPER_TIMIT,
        "settings": {**asdict(plan), "paper": dict(plan.paper), "ours": dict(plan.ours)},
        "notes": list(corpus.notes),
        "complete": len(done) == len(plan.cells()),
        "echolearn": __version__,
        "made_with": _distinct([result["made_with"] for result in done.values() if "made_with" in result]),
    }


def _distinct(found: Sequence[MadeWith]) -> list[MadeWith]:
    """Return each of these once, in the order in which they first occur."""
    return list({json.dumps(one, sort_keys=True): one for one in found}.values())


def _row(units: int, plan: Plan, done: Mapping[Cell, FitResult]) -> Row:
    columns = {}
    for column in plan.columns:
        cells = [Cell(units, column, seed) for seed in range(plan.seeds)]
        seeds = [(cell.seed, done[cell]) for cell in cells if cell in done]
        if seeds:
            columns[column] = averaged(seeds)
    gains = {name: relative_gain(columns, *pair) for name, pair in GAINS.items()}
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
