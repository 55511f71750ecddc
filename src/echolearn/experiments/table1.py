"""The paper's Table 1: frame-level state error, or that of another level, by hidden units and by what is learned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from echolearn.estimators.classifier import ESNClassifier
from echolearn.experiments.corpus_parts import CorpusParts
from echolearn.experiments.estimate import CorpusSize, costs_of_table
from echolearn.experiments.figures import draw_figures
from echolearn.experiments.fitted_cells import CellStore, fit_fingerprint
from echolearn.experiments.levels import LevelScorer
from echolearn.experiments.measured_fit import EpochRow, FitResult, fit_and_test, planned_epochs
from echolearn.experiments.plan import Cell, Plan
from echolearn.experiments.summary import table_summary
from echolearn.modelfile.atomic import write_atomically
from echolearn.reporting.table import Table, write_tables
from echolearn.reporting.table_page import table_page
from echolearn.speech.corpus import Corpus
from echolearn.training.cost_model import TYPICAL


class TableProgress(Protocol):
    """Receives the progress of a table. `work` is in arbitrary units; `reused` marks a cell of an earlier run."""

    def note(self, text: str) -> object: ...
    def plan(self, plan: Plan, work: Mapping[Cell, float]) -> object: ...
    def start(self, cell: Cell, epochs: int) -> object: ...
    def epoch(self, cell: Cell, row: EpochRow) -> object: ...
    def finish(self, cell: Cell, result: FitResult, reused: bool) -> object: ...


def run(corpus: Corpus, plan: Plan, out: Path, progress: TableProgress, *, force: bool = False) -> Table:
    """Compute the cells that the folder `out` does not hold yet, and return the table.

    Networks that are kept are not fitted again to be scored at another level. After every cell the tables on disk hold
    all that is known. With `force`, all cells are computed again.
    """
    plan.check()
    out.mkdir(parents=True, exist_ok=True)
    parts = CorpusParts.load(corpus)
    for note in (*corpus.notes, *parts.notes):
        progress.note(note)
    store = CellStore[FitResult](out / "cells", progress.note)
    cells = plan.cells()
    if force:
        store.remove(cell.name for cell in cells)
    costs = costs_of_table(plan, CorpusSize.of(corpus), TYPICAL)
    progress.plan(plan, {cell: cost.seconds for cell, cost in costs.items()})
    scorer = LevelScorer(corpus, plan.level, store)
    fits = _finished_cells(plan, parts, store)
    done: dict[Cell, FitResult] = {}
    for cell, fit in fits.items():
        done[cell] = scorer.at_level(cell.name, fit)
        progress.finish(cell, done[cell], True)
    if done:
        write_tables(out, table_summary(corpus, plan, done, parts.fingerprint))
    for cell in (cell for cell in cells if cell not in fits):
        fits[cell] = _fitted_cell(cell, plan.estimator(cell), parts, store, progress)
        done[cell] = scorer.at_level(cell.name, fits[cell])
        progress.finish(cell, done[cell], False)
        write_tables(out, table_summary(corpus, plan, done, parts.fingerprint))
    table = table_summary(corpus, plan, done, parts.fingerprint)
    progress.note("drawing the report")
    figures = draw_figures(corpus, table, {cell.name: fit for cell, fit in fits.items()}, store.load_model)
    write_atomically(out / "report.html", table_page(table, figures).encode())
    return table


def _finished_cells(plan: Plan, parts: CorpusParts, store: CellStore[FitResult]) -> dict[Cell, FitResult]:
    """Return the cells that the store holds, so that the first table on disk already has all of them."""
    found = {
        cell: store.find(cell.name, fit_fingerprint(plan.estimator(cell), parts.fingerprint)) for cell in plan.cells()
    }
    return {cell: result for cell, result in found.items() if result is not None}


def _fitted_cell(
    cell: Cell, estimator: ESNClassifier, parts: CorpusParts, store: CellStore[FitResult], progress: TableProgress
) -> FitResult:
    """Fit a cell, or resume its fit, and store its result."""
    fingerprint = fit_fingerprint(estimator, parts.fingerprint)
    progress.start(cell, planned_epochs(estimator, len(parts.train[0])))
    checkpoint = store.checkpoint(cell.name, fingerprint)

    def on_epoch(row: EpochRow) -> None:
        progress.epoch(cell, row)

    result = fit_and_test(estimator, parts, checkpoint, on_epoch=on_epoch, note=progress.note)
    result["fingerprint"] = fingerprint
    store.save(cell.name, result, estimator)
    return result
