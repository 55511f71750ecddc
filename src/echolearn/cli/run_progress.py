"""The progress of Table 1 and of `echolearn phones` on the terminal, or in lines where the output goes elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from echolearn.cli.progress import Display, StageProgress, TimeLeft, epoch_text, stage_progress, time_text
from echolearn.display.progress import clock
from echolearn.paper.cells import Cell, Outcome
from echolearn.paper.fits import EpochRow
from echolearn.paper.table1_report import TITLES

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


def _cell_of_table(cell: Cell) -> str:
    """Return `100 units, fixed ESN, seed 1`."""
    seed = f", seed {cell.seed}" if cell.seed else ""
    return f"{cell.units:,} units, {TITLES[cell.column].long}{seed}"


TABLE1_WORDING = Wording(
    whole="table",
    complete="  (table: complete)",
    epochs="epochs",
    cell=_cell_of_table,
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

    def __init__(self, console: Console, words: Wording):
        super().__init__(console)
        self.words = words
        self.count = self.number = self.epochs = 0
        self.left = TimeLeft[tuple[Cell, str]]({})
        self.bar: StageProgress | None = None

    def plan(self, fits: Mapping[Cell, float], decoding: float) -> None:
        work = {(cell, stage): w for cell, fit in fits.items() for stage, w in ((FIT, fit), (DECODE, decoding)) if w}
        self.left, self.count = TimeLeft(work), len(fits)
        if self.console.is_terminal:
            self._open(fits)

    def _open(self, cells: Mapping[Cell, float]) -> None:
        self.bar = self.exit.enter_context(stage_progress(self.console))

    def start(self, cell: Cell, epochs: int) -> None:
        self._begin(cell, epochs)
        most = f": {epochs} {self.words.epochs}" if epochs else ""
        self.note(f"[{self.number + 1}/{self.count}] {self.words.cell(cell)}{most}")

    def _begin(self, cell: Cell, epochs: int) -> None:
        self.left.start((cell, FIT))
        self.epochs, self.printed = epochs, time.perf_counter()

    def epoch(self, cell: Cell, done: int, row: EpochRow) -> None:
        self.left.epoch(done, max(done, self.epochs))
        line = f"{epoch_text({**row, 'epoch': done}, self.epochs)}  {time_text(self.left.of_job())}".rstrip()
        self._show(f"{self.words.cell(cell)}: epochs", done, self.epochs, line)

    def decode(self, cell: Cell, text: str, done: int, total: int) -> None:
        if self.left.job != (cell, DECODE):
            self.left.finish((cell, FIT), reused=False)
            self.left.start((cell, DECODE))
        self.left.epoch(done, total)
        self._show(f"{self.words.cell(cell)}: {text}", done, total, f"{text}: {done} of {total}")

    def _show(self, title: str, done: int, total: int, line: str) -> None:
        if self.bar is not None:
            self.bar(title, done, max(1, total))
        elif self.is_due():
            self.note(f"    {line}{self._left_text()}")

    def finish(self, cell: Cell, outcome: Outcome, reused: bool) -> None:
        self._end(cell, reused)
        errors = self.words.errors(outcome)
        if reused:
            place = f"[{self.number}/{self.count}] {self.words.cell(cell)}"
            self.note(f"{place}: reused from an earlier run, {errors}")
        else:
            self.note(f"    {errors}  {self.words.cost(outcome)}{self._left_text()}")

    def _end(self, cell: Cell, reused: bool) -> None:
        running = self.left.job  # of the two stages the one whose time has not been counted
        for stage in (FIT, DECODE):
            self.left.finish((cell, stage), reused or running != (cell, stage))
        self.number += 1

    def _left_text(self) -> str:
        if self.number == self.count:
            return self.words.complete
        left = time_text(self.left.of_all())
        return f"  ({self.words.whole}: {left})" if left else ""


class LiveTable(RunLines):
    """Table 1 as it fills, with two bars below: one for the running cell, one for the whole table."""

    def __init__(self, console: Console):
        super().__init__(console, TABLE1_WORDING)
        self.errors: dict[tuple[int, str], list[float]] = {}  # of every seed; [] before the first
        self.running: Cell | None = None
        self.status = ""

    def _open(self, cells: Mapping[Cell, float]) -> None:
        self.errors = {(cell.units, cell.column): [] for cell in cells}
        self.exit.enter_context(
            Live(console=self.console, get_renderable=self.view, refresh_per_second=4, transient=True)
        )

    def start(self, cell: Cell, epochs: int) -> None:
        self._begin(cell, epochs)
        self.running, self.status = cell, "starting"

    def _show(self, title: str, done: int, total: int, line: str) -> None:
        self.status = line.partition("  about")[0]

    def finish(self, cell: Cell, outcome: Outcome, reused: bool) -> None:
        self._end(cell, reused)
        self.running = None
        self.errors[cell.units, cell.column].append(outcome.test_error)

    def view(self) -> RenderableType:
        """Return what the terminal shows now."""
        columns = dict.fromkeys(column for _, column in self.errors)
        table = Table(title="test error, per cent", title_justify="left", title_style="dim", box=None, pad_edge=False)
        table.add_column("units", justify="right")
        for column in columns:
            table.add_column(TITLES[column].short, justify="right")
        for units in dict.fromkeys(units for units, _ in self.errors):
            table.add_row(f"{units:,}", *(self._entry(units, column) for column in columns))
        return Group(table, "", self._bars())

    def _entry(self, units: int, column: str) -> Text:
        values = self.errors[units, column]
        if self.running is not None and (self.running.units, self.running.column) == (units, column):
            return Text(f"{100 * self.left.share:.0f} % done" if self.left.share else "…", style="cyan")
        if not values:
            return Text("·", style="dim")
        return Text(f"{100 * sum(values) / len(values):.1f}", style="bold")

    def _bars(self) -> RenderableType:
        grid = Table.grid(padding=(0, 2))
        if self.running is not None:
            bar = ProgressBar(total=1.0, completed=self.left.share, width=24, pulse=self.left.share == 0.0)
            grid.add_row(self.words.cell(self.running), bar, self.status, time_text(self.left.of_job()))
        whole = ProgressBar(total=max(1, self.count), completed=self.number, width=24)
        grid.add_row("the table", whole, f"{self.number} of {self.count} cells", time_text(self.left.of_all()))
        return grid


def table1_progress(console: Console) -> RunLines:
    """Return the display of Table 1 for this console."""
    return LiveTable(console) if console.is_terminal else RunLines(console, TABLE1_WORDING)
