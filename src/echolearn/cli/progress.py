"""Progress on the terminal: a live display, or plain lines where the output goes elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Generic, Self, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from echolearn.paper.cells import EpochRow, FitResult
from echolearn.paper.table1 import Cell, Plan
from echolearn.paper.table1_report import TITLES
from echolearn.training.progress import clock

INTERVAL = 5.0  # seconds between two plain lines about the same thing
KNOWN_FROM = 0.01  # of the work: before that, compilation and the like hide the speed

Job = TypeVar("Job", bound=Hashable)
StageProgress = Callable[[str, int, int], None]  # what, done, total: as corpora and aligners call it


def stderr() -> Console:
    """Return a console that writes to the standard error stream."""
    return Console(stderr=True)


class TimeLeft(Generic[Job]):
    """The seconds left for a set of jobs, from the work done so far and the time it took.

    `work` is the work of each job, in any unit; `now` returns the time in seconds.
    """

    def __init__(self, work: Mapping[Job, float], now: Callable[[], float] = time.perf_counter):
        self.left, self.now = dict(work), now
        self.whole = sum(work.values())
        self.done = self.seconds = 0.0
        self.job: Job | None = None
        self.share, self.first, self.started = 0.0, 0.0, 0.0

    def start(self, job: Job) -> None:
        """Start the clock of a job."""
        self.job, self.share, self.first, self.started = job, 0.0, 0.0, self.now()

    def epoch(self, number: int, epochs: int) -> None:
        """Record a finished epoch. A job that was resumed begins with a share of its work already done."""
        if self.share == 0.0:
            self.first = (number - 1) / epochs
        self.share = number / epochs

    def finish(self, job: Job, reused: bool) -> None:
        """Record a finished job; one that was `reused` from an earlier run tells nothing about the speed."""
        work = self.left.pop(job, 0.0)
        if not reused:
            self.done += (1 - self.first) * work
            self.seconds += self.now() - self.started
        self.job = None

    def of_job(self) -> float | None:
        """Return the seconds left for the running job, None where they are unknown."""
        if self.job is None or self.share <= self.first:
            return None
        return (self.now() - self.started) / (self.share - self.first) * (1 - self.share)

    def of_all(self) -> float | None:
        """Return the seconds left for all jobs, None where they are unknown."""
        done, seconds, left = self.done, self.seconds, sum(self.left.values())
        if self.job is not None and self.job in self.left:
            own = self.left[self.job]
            done, left = done + (self.share - self.first) * own, left - self.share * own
            seconds += (self.now() - self.started) if self.share > self.first else 0.0
        return left * seconds / done if done > KNOWN_FROM * self.whole and seconds > 0 else None


def time_text(seconds: float | None) -> str:
    """Return `about 1:05 left`, or "" where the time is unknown."""
    return "" if seconds is None else f"about {clock(seconds)} left"


def epoch_text(row: EpochRow, epochs: int) -> str:
    """Return `epoch 5/20  valid 55.0 %`."""
    valid = f"  valid {100 * row['valid_error']:.1f} %" if "valid_error" in row else ""
    return f"epoch {row['epoch']:.0f}/{epochs}{valid}"


def error_text(result: FitResult) -> str:
    """Return `test 61.2 %  valid 60.0 %`."""
    return f"test {100 * result['test_error']:.1f} %  valid {100 * result['valid_error']:.1f} %"


def cell_text(cell: Cell) -> str:
    """Return `100 units, fixed ESN, seed 1`."""
    seed = f", seed {cell.seed}" if cell.seed else ""
    return f"{cell.units:,} units, {TITLES[cell.column].long}{seed}"


class Display:
    """A context that prints lines to a console and, at its end, stops whatever was started in it."""

    def __init__(self, console: Console):
        self.console, self.exit = console, ExitStack()
        self.printed = time.perf_counter()  # when the last line about an epoch was printed

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.exit.close()

    def note(self, text: str) -> None:
        """Print text as it is, in one line however long."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def is_due(self) -> bool:
        """Return whether it is time for another line about an epoch; then it counts as printed."""
        due = time.perf_counter() - self.printed >= INTERVAL
        if due:
            self.printed = time.perf_counter()
        return due


class TableLines(Display):
    """The progress of a table in lines: one when a cell starts, one when it ends, one every few seconds between."""

    def __init__(self, console: Console):
        super().__init__(console)
        self.count = self.number = self.epochs = 0
        self.left = TimeLeft[Cell]({})

    def plan(self, plan: Plan, work: Mapping[Cell, float]) -> None:
        self.left, self.count = TimeLeft(work), len(work)

    def start(self, cell: Cell, epochs: int) -> None:
        self.left.start(cell)
        self.epochs, self.printed = epochs, time.perf_counter()
        self.note(f"[{self.number + 1}/{self.count}] {cell_text(cell)}" + (f": {epochs} epochs" if epochs else ""))

    def epoch(self, cell: Cell, row: EpochRow) -> None:
        self.left.epoch(int(row["epoch"]), self.epochs)
        if self.is_due():
            self.note(f"    {epoch_text(row, self.epochs)}  {time_text(self.left.of_job())}{self._table_text()}")

    def finish(self, cell: Cell, result: FitResult, reused: bool) -> None:
        self.left.finish(cell, reused)
        self.number += 1
        if reused:
            self.note(
                f"[{self.number}/{self.count}] {cell_text(cell)}: reused from an earlier run, {error_text(result)}"
            )
        else:
            self.note(f"    {error_text(result)}  {result['seconds']:.1f} s{self._table_text()}")

    def _table_text(self) -> str:
        left = time_text(self.left.of_all()) if self.number < self.count else "complete"
        return f"  (table: {left})" if left else ""


class LiveTable(TableLines):
    """The table as it fills, with two bars below: one for the running cell, one for the whole table."""

    def __init__(self, console: Console):
        super().__init__(console)
        self.errors: dict[tuple[int, str], list[float]] = {}
        self.units: Sequence[int] = ()
        self.columns: Sequence[str] = ()
        self.running: Cell | None = None
        self.status = ""

    def plan(self, plan: Plan, work: Mapping[Cell, float]) -> None:
        super().plan(plan, work)
        self.units, self.columns = plan.units, plan.columns
        self.exit.enter_context(
            Live(console=self.console, get_renderable=self.view, refresh_per_second=4, transient=True)
        )

    def start(self, cell: Cell, epochs: int) -> None:
        self.left.start(cell)
        self.running, self.epochs, self.status = cell, epochs, "starting"

    def epoch(self, cell: Cell, row: EpochRow) -> None:
        self.left.epoch(int(row["epoch"]), self.epochs)
        self.status = epoch_text(row, self.epochs)

    def finish(self, cell: Cell, result: FitResult, reused: bool) -> None:
        self.left.finish(cell, reused)
        self.number += 1
        self.running = None
        self.errors.setdefault((cell.units, cell.column), []).append(result["test_error"])

    def view(self) -> RenderableType:
        """Return what the terminal shows now."""
        table = Table(title="test error, per cent", title_justify="left", title_style="dim", box=None, pad_edge=False)
        table.add_column("units", justify="right")
        for column in self.columns:
            table.add_column(TITLES[column].short, justify="right")
        for units in self.units:
            table.add_row(f"{units:,}", *(self._entry(units, column) for column in self.columns))
        return Group(table, "", self._bars())

    def _entry(self, units: int, column: str) -> Text:
        values = self.errors.get((units, column))
        running = self.running is not None and (self.running.units, self.running.column) == (units, column)
        if running:
            return Text(f"{100 * self.left.share:.0f} % done" if self.left.share else "…", style="cyan")
        if not values:
            return Text("·", style="dim")
        return Text(f"{100 * sum(values) / len(values):.1f}", style="bold")

    def _bars(self) -> RenderableType:
        grid = Table.grid(padding=(0, 2))
        if self.running is not None:
            bar = ProgressBar(total=1.0, completed=self.left.share, width=24, pulse=self.left.share == 0.0)
            grid.add_row(cell_text(self.running), bar, self.status, time_text(self.left.of_job()))
        whole = ProgressBar(total=max(1, self.count), completed=self.number, width=24)
        grid.add_row("the table", whole, f"{self.number} of {self.count} cells", time_text(self.left.of_all()))
        return grid


def table_progress(console: Console) -> TableLines:
    """Return the display of a table for this console."""
    return LiveTable(console) if console.is_terminal else TableLines(console)


@contextmanager
def stage_progress(console: Console) -> Iterator[StageProgress]:
    """Yield a function that shows the stages of reading a corpus: one bar per stage, or a line every few seconds."""
    if not console.is_terminal:
        yield _stage_lines(console)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.percentage:.0f} %"))
    with Progress(*columns, TimeRemainingColumn(compact=True), console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield progress


def _stage_lines(console: Console) -> StageProgress:
    started: dict[str, float] = {}
    printed: dict[str, float] = {}

    def progress(what: str, done: int, total: int) -> None:
        now = time.perf_counter()
        first = started.setdefault(what, now)
        if what not in printed or now - printed[what] >= INTERVAL or done >= total:
            printed[what] = now
            left = time_text((now - first) / done * (total - done)) if 0 < done < total and now > first else ""
            console.print(f"{what}: {done:,} of {total:,} {left}".rstrip(), markup=False, highlight=False)

    return progress


class FitDisplay(Display):
    """The progress of one fit: a bar, or a line with the newest error every few seconds and after the last epoch."""

    def __init__(self, console: Console):
        super().__init__(console)
        self.epochs, self.left = 0, TimeLeft({"fit": 1.0})
        self.bar: StageProgress | None = None

    def start(self, epochs: int) -> None:
        self.epochs, self.printed = epochs, time.perf_counter()
        self.left.start("fit")
        if self.console.is_terminal:
            self.bar = self.exit.enter_context(stage_progress(self.console))
            self.bar("fitting", 0, max(1, epochs))

    def epoch(self, row: EpochRow) -> None:
        self.left.epoch(int(row["epoch"]), self.epochs)
        if self.bar is not None:
            self.bar("fitting", int(row["epoch"]), self.epochs)
        elif self.is_due() or row["epoch"] == self.epochs:
            self.note(f"{epoch_text(row, self.epochs)}  {time_text(self.left.of_job())}".rstrip())

    def stage(self, what: str, done: int, total: int) -> None:
        """Show work after the fit."""
        if self.bar is None:
            self.bar = _stage_lines(self.console)
        self.bar(what, done, total)
