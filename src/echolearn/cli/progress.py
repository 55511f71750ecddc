"""What a person watches while a table is computed: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from echolearn.training.progress import clock

EVERY = 5.0  # seconds between two plain lines about the same thing
KNOWN_FROM = 0.01  # of the work: before that the first compilation and the like hide how fast it goes

Cell = Any  # experiments.table1.Cell: importing it would import all of NumPy
Rows = Mapping[Any, Mapping[str, Any]]


class TimeLeft:
    """Seconds left, from the work done so far and how long it took."""

    def __init__(self, work: Mapping[Cell, float], now: Callable[[], float] = time.perf_counter):
        self.left, self.now = dict(work), now
        self.whole = sum(work.values())
        self.done = self.seconds = 0.0
        self.cell: Cell = None
        self.share, self.first, self.started = 0.0, 0.0, 0.0

    def start(self, cell: Cell) -> None:
        self.cell, self.share, self.first, self.started = cell, 0.0, 0.0, self.now()

    def epoch(self, number: int, epochs: int) -> None:
        """A cell that went on from a checkpoint begins with a share of its work already done."""
        if self.share == 0.0:
            self.first = (number - 1) / epochs
        self.share = number / epochs

    def finish(self, cell: Cell, kept: bool) -> None:
        work = self.left.pop(cell, 0.0)
        if not kept:
            self.done += (1 - self.first) * work
            self.seconds += self.now() - self.started
        self.cell = None

    def of_cell(self) -> float | None:
        if self.cell is None or self.share <= self.first:
            return None
        return (self.now() - self.started) / (self.share - self.first) * (1 - self.share)

    def of_table(self) -> float | None:
        done, seconds, left = self.done, self.seconds, sum(self.left.values())
        if self.cell is not None and self.cell in self.left:
            own = self.left[self.cell]
            done, left = done + (self.share - self.first) * own, left - self.share * own
            seconds += (self.now() - self.started) if self.share > self.first else 0.0
        return left * seconds / done if done > KNOWN_FROM * self.whole and seconds > 0 else None


def about(seconds: float | None) -> str:
    return "" if seconds is None else f"about {clock(seconds)} left"


class Lines:
    """A line when a cell starts and ends, and every few seconds between."""

    def __init__(self, console: Console, titles: Mapping[str, Any]):
        self.console, self.titles = console, titles
        self.count = self.number = self.epochs = 0
        self.spoke = time.perf_counter()
        self.left = TimeLeft({})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def plan(self, plan: Any, work: Mapping[Cell, float]) -> None:
        self.left, self.count = TimeLeft(work), len(work)

    def start(self, cell: Cell, epochs: int) -> None:
        self.left.start(cell)
        self.epochs, self.spoke = epochs, time.perf_counter()
        self.say(f"[{self.number + 1}/{self.count}] {self.name(cell)}" + (f": {epochs} epochs" if epochs else ""))

    def epoch(self, cell: Cell, row: Mapping[str, float]) -> None:
        self.left.epoch(int(row["epoch"]), self.epochs)
        if time.perf_counter() - self.spoke >= EVERY:
            self.spoke = time.perf_counter()
            self.say(f"    {epoch_words(row, self.epochs)}  {about(self.left.of_cell())}{self.of_table()}")

    def finish(self, cell: Cell, result: Mapping[str, Any], kept: bool) -> None:
        self.left.finish(cell, kept)
        self.number += 1
        if kept:
            self.say(f"[{self.number}/{self.count}] {self.name(cell)}: kept from before, {error_words(result)}")
        else:
            self.say(f"    {error_words(result)}  {result['seconds']:.1f} s{self.of_table()}")

    def of_table(self) -> str:
        left = about(self.left.of_table()) if self.number < self.count else "complete"
        return f"  (table: {left})" if left else ""

    def name(self, cell: Cell) -> str:
        seed = f", seed {cell.seed}" if cell.seed else ""
        return f"{cell.units:,} units, {self.titles[cell.column].long}{seed}"


def epoch_words(row: Mapping[str, float], epochs: int) -> str:
    valid = f"  valid {100 * row['valid_error']:.1f} %" if "valid_error" in row else ""
    return f"epoch {row['epoch']:.0f}/{epochs}{valid}"


def error_words(result: Mapping[str, Any]) -> str:
    return f"test {100 * result['test_error']:.1f} %  valid {100 * result['valid_error']:.1f} %"


class LiveTable(Lines):
    """The table as it fills, with two bars below: the cell and the whole."""

    def __init__(self, console: Console, titles: Mapping[str, Any]):
        super().__init__(console, titles)
        self.errors: dict[tuple[int, str], list[float]] = {}
        self.units: Sequence[int] = ()
        self.columns: Sequence[str] = ()
        self.running: Cell = None
        self.words = ""
        self.live: Live | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def plan(self, plan: Any, work: Mapping[Cell, float]) -> None:
        super().plan(plan, work)
        self.units, self.columns = plan.units, plan.columns
        self.live = Live(console=self.console, get_renderable=self.view, refresh_per_second=4, transient=True)
        self.live.start()

    def start(self, cell: Cell, epochs: int) -> None:
        self.left.start(cell)
        self.running, self.epochs, self.words = cell, epochs, "starting"

    def epoch(self, cell: Cell, row: Mapping[str, float]) -> None:
        self.left.epoch(int(row["epoch"]), self.epochs)
        self.words = epoch_words(row, self.epochs)

    def finish(self, cell: Cell, result: Mapping[str, Any], kept: bool) -> None:
        self.left.finish(cell, kept)
        self.number += 1
        self.running = None
        self.errors.setdefault((cell.units, cell.column), []).append(result["test_error"])

    def view(self) -> RenderableType:
        table = Table(title="test error, per cent", title_justify="left", title_style="dim", box=None, pad_edge=False)
        table.add_column("units", justify="right")
        for column in self.columns:
            table.add_column(self.titles[column].short, justify="right")
        for units in self.units:
            table.add_row(f"{units:,}", *(self._entry(units, column) for column in self.columns))
        return Group(table, "", *self._bars())

    def _entry(self, units: int, column: str) -> Text:
        values = self.errors.get((units, column))
        running = self.running is not None and (self.running.units, self.running.column) == (units, column)
        if running:
            return Text(f"{100 * self.left.share:.0f} % done" if self.left.share else "…", style="cyan")
        if not values:
            return Text("·", style="dim")
        return Text(f"{100 * sum(values) / len(values):.1f}", style="bold")

    def _bars(self) -> Iterator[RenderableType]:
        grid = Table.grid(padding=(0, 2))
        if self.running is not None:
            bar = ProgressBar(total=1.0, completed=self.left.share, width=24, pulse=self.left.share == 0.0)
            grid.add_row(self.name(self.running), bar, self.words, about(self.left.of_cell()))
        whole = ProgressBar(total=max(1, self.count), completed=self.number, width=24)
        grid.add_row("the table", whole, f"{self.number} of {self.count} cells", about(self.left.of_table()))
        yield grid


def watch(console: Console, titles: Mapping[str, Any]) -> Lines:
    return LiveTable(console, titles) if console.is_terminal else Lines(console, titles)


@contextmanager
def stages(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """progress(what, done, total), as corpora and aligners call it: a bar a stage, or a line now and then."""
    if not console.is_terminal:
        yield _stage_lines(console)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.percentage:.0f} %"))
    with Progress(*columns, TimeRemainingColumn(compact=True), console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield progress


@contextmanager
def fitting(
    console: Console, epochs: int
) -> Iterator[tuple[Callable[[dict[str, float]], None], Callable[[str], None]]]:
    """(row_done, say) for one fit: a bar with the newest error, or a line now and then."""
    lines = Lines(console, {})
    lines.left = TimeLeft({"fit": 1.0})
    lines.left.start("fit")
    with stages(console) as progress:
        if console.is_terminal:
            progress("fitting", 0, max(1, epochs))

        def row_done(row: dict[str, float]) -> None:
            lines.left.epoch(int(row["epoch"]), epochs)
            if console.is_terminal:
                progress("fitting", int(row["epoch"]), epochs)
            elif time.perf_counter() - lines.spoke >= EVERY or row["epoch"] == epochs:
                lines.spoke = time.perf_counter()
                lines.say(f"{epoch_words(row, epochs)}  {about(lines.left.of_cell())}".rstrip())

        yield row_done, lines.say


def _stage_lines(console: Console) -> Callable[[str, int, int], None]:
    started: dict[str, float] = {}
    spoke: dict[str, float] = {}

    def progress(what: str, done: int, total: int) -> None:
        now = time.perf_counter()
        first = started.setdefault(what, now)
        if what not in spoke or now - spoke[what] >= EVERY or done >= total:
            spoke[what] = now
            left = about((now - first) / done * (total - done)) if 0 < done < total and now > first else ""
            console.print(f"{what}: {done:,} of {total:,} {left}".rstrip(), markup=False, highlight=False)

    return progress
