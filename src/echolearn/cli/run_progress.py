"""The progress of Table 1 and of `echolearn phones` on the terminal, or in lines where the output goes elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from rich.console import Console

from echolearn.cli.progress import Display, TimeLeft, epoch_text, time_text
from echolearn.display.progress import clock
from echolearn.paper.cells import Cell, Outcome
from echolearn.paper.fits import EpochRow
from echolearn.paper.table1_report import COLUMNS

FIT, DECODE = "fit", "decode"  # the stages of a cell


@dataclass(frozen=True)
class Wording:
    """The words for the cells of an experiment; `whole` names all of them, `complete` follows the last."""

    whole: str
    complete: str
    epochs: str
    cell: Callable[[Cell], str]
    errors: Callable[[Outcome], str]
    cost: Callable[[Outcome], str]


TABLE1_WORDING = Wording(
    whole="table",
    complete="  (table: complete)",
    epochs="epochs",
    cell=lambda cell: f"{cell.units:,} units, {COLUMNS[cell.column].long}{f', seed {cell.seed}' if cell.seed else ''}",
    errors=lambda found: f"test {100 * found.test_error:.1f} %  valid {100 * found.valid_error:.1f} %",
    cost=lambda found: f"{found.seconds:.1f} s",
)
PHONES_WORDING = Wording(
    whole="all systems",
    complete="",
    epochs="epochs at most",
    cell=lambda cell: cell.column,
    errors=lambda found: f"phone error: test {100 * found.test_error:.1f} %, valid {100 * found.valid_error:.1f} %",
    cost=lambda found: f"(fit {clock(found.seconds)}, decoding {clock(found.decoding_seconds)})",
)


class RunLines(Display):
    """A line when a cell starts and when it ends; between them bars on a terminal, else a line every few seconds."""

    def __init__(self, console: Console, words: Wording, *, known: Collection[str] = ()):
        """known: notes that were shown before, and are not shown again."""
        super().__init__(console)
        self.words, self.known = words, known
        self.count = self.number = 0
        self.left = TimeLeft[tuple[Cell, str]]({})

    def note(self, text: str) -> None:
        if text not in self.known:
            super().note(text)

    def plan(self, fits: Mapping[Cell, float], decoding: float) -> None:
        work = {(cell, stage): w for cell, fit in fits.items() for stage, w in ((FIT, fit), (DECODE, decoding)) if w}
        self.left, self.count = TimeLeft(work), len(fits)
        self.open_bar()

    def start(self, cell: Cell, epochs: int) -> None:
        self.left.start((cell, FIT))
        self.epochs, self.printed = epochs, time.perf_counter()
        most = f": {epochs} {self.words.epochs}" if epochs else ""
        self.note(f"[{self.number + 1}/{self.count}] {self.words.cell(cell)}{most}")

    def epoch(self, cell: Cell, done: int, row: EpochRow) -> None:
        self.left.epoch(done, max(done, self.epochs))
        line = f"{epoch_text({**row, 'epoch': done}, self.epochs)}  {time_text(self.left.of_job())}".rstrip()
        line += "  fitting the readout" if done == self.epochs else ""
        self.show(f"{self.words.cell(cell)}: epochs", done, self.epochs, f"    {line}{self._left_text()}")

    def decode(self, cell: Cell, text: str, done: int, total: int) -> None:
        if self.left.job != (cell, DECODE):
            self.left.finish((cell, FIT), reused=False)
            self.left.start((cell, DECODE))
        self.left.epoch(done, total)
        line = f"    {text}: {done} of {total}{self._left_text()}"
        self.show(f"{self.words.cell(cell)}: {text}", done, total, line)

    def finish(self, cell: Cell, outcome: Outcome, reused: bool) -> None:
        running = self.left.job  # of the two stages the one whose time has not been counted
        for stage in (FIT, DECODE):
            self.left.finish((cell, stage), reused or running != (cell, stage))
        self.number += 1
        errors = self.words.errors(outcome)
        if reused:
            place = f"[{self.number}/{self.count}] {self.words.cell(cell)}"
            self.note(f"{place}: reused from an earlier run, {errors}")
        else:
            self.note(f"    {errors}  {self.words.cost(outcome)}{self._left_text()}")

    def _left_text(self) -> str:
        if self.number == self.count:
            return self.words.complete
        left = time_text(self.left.of_all())
        return f"  ({self.words.whole}: {left})" if left else ""
