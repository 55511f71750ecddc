"""Progress on the terminal: a live display, or plain lines where the output goes elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Generic, Self, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn

from echolearn.display.progress import StageProgress, clock

SECONDS_BETWEEN_LINES = 5.0  # seconds between two plain lines about the same thing
MIN_KNOWN_SHARE = 0.01  # of the work: before that, the speed is unknown
MAX_COMPILATION_SECONDS = 30.0  # a first epoch that takes less may consist of compilation, and is not counted

Job = TypeVar("Job", bound=Hashable)
EpochRow = dict[str, float]  # a row of an estimator's history_


def stderr() -> Console:
    return Console(stderr=True)


class TimeLeft(Generic[Job]):
    """The seconds left for a set of jobs, from the work done so far and the time it took. `work` is the work of each
    job, in any unit; `now` returns the time in seconds."""

    def __init__(self, work: Mapping[Job, float], now: Callable[[], float] = time.perf_counter):
        self.left, self.now = dict(work), now
        self.whole = sum(work.values())
        self.done = self.seconds = 0.0
        self.job: Job | None = None
        self.share, self.first, self.started = 0.0, 0.0, 0.0

    def start(self, job: Job) -> None:
        self.job, self.share, self.first, self.started = job, 0.0, 0.0, self.now()

    def epoch(self, number: int, epochs: int) -> None:
        """Record a finished epoch. A job that was resumed begins with a share of its work already done."""
        if self.share == 0.0:
            self.first = (number - 1) / epochs
            if number < epochs and self.now() - self.started < MAX_COMPILATION_SECONDS:
                self.first, self.started = number / epochs, self.now()
        self.share = number / epochs

    def finish(self, job: Job, reused: bool) -> None:
        """Record a finished job; one that was `reused` from an earlier run tells nothing about the speed."""
        work = self.left.pop(job, 0.0)
        if not reused:
            self.done += (1 - self.first) * work
            self.seconds += self.now() - self.started
        self.job = None

    def of_job(self) -> float | None:
        """Return the seconds left for the running job, None where they are unknown, as after the last epoch: what
        follows it, such as a readout of many units, may take minutes."""
        if self.job is None or not self.first < self.share < 1:
            return None
        return (self.now() - self.started) / (self.share - self.first) * (1 - self.share)

    def of_all(self) -> float | None:
        """Return the seconds left for all jobs, None where they are unknown."""
        if self.share == 1 and len(self.left) == 1:  # only what follows the last epoch is left
            return None
        done, seconds, left, of_job = self.done, self.seconds, sum(self.left.values()), 0.0
        if self.job is not None and self.job in self.left:
            work = self.left[self.job]
            done, left = done + (self.share - self.first) * work, left - self.share * work
            seconds += (self.now() - self.started) if self.share > self.first else 0.0
            if (own := self.of_job()) is not None:  # by its own pace
                of_job, left = own, left - (1 - self.share) * work
        return of_job + left * seconds / done if done > MIN_KNOWN_SHARE * self.whole and seconds > 0 else None


def time_text(seconds: float | None) -> str:
    """Return `about 1:05 left`, or "" where the time is unknown."""
    return "" if seconds is None else f"about {clock(seconds)} left"


def epoch_text(row: EpochRow, epochs: int) -> str:
    """Return `epoch 5/20  valid 55.0 %`."""
    valid = f"  valid {100 * row['valid_error']:.1f} %" if "valid_error" in row else ""
    return f"epoch {row['epoch']:.0f}/{epochs}{valid}"


class Display:
    """A context that prints lines to a console and, at its end, stops whatever was started in it."""

    def __init__(self, console: Console):
        self.console, self.exit = console, ExitStack()
        self.printed = time.perf_counter()  # when the last line about an epoch was printed
        self.epochs = 0  # of the running fit, at most
        self.bar: StageProgress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.exit.close()

    def note(self, text: str) -> None:
        """Print text as it is, in one line however long."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def open_bar(self) -> None:
        """Show bars from now on, if the console is a terminal."""
        if self.console.is_terminal and self.bar is None:
            self.bar = self.exit.enter_context(stage_progress(self.console))

    def show(self, title: str, done: int, total: int, line: str, *, last: bool = False) -> None:
        """Move the bar; where there is none, print the line if it is time for another one, or it is the last."""
        now = time.perf_counter()
        if self.bar is not None:
            self.bar(title, done, max(1, total))
        elif last or now - self.printed >= SECONDS_BETWEEN_LINES:
            self.printed = now
            self.note(line)


@contextmanager
def stage_progress(console: Console) -> Iterator[StageProgress]:
    """Yield a function that shows the stages of some work: a bar for the running one, or a line every few seconds."""
    if not console.is_terminal:
        yield _stage_lines(console)
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(24), TextColumn("{task.percentage:.0f} %"))
    with Progress(*columns, TimeRemainingColumn(compact=True), console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def progress(what: str, done: int, total: int) -> None:
            if what not in tasks:
                for finished in tasks.values():
                    bars.update(finished, visible=False)
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done, total=total)

        yield progress


def _stage_lines(console: Console) -> StageProgress:
    left: dict[str, TimeLeft[str]] = {}
    printed: dict[str, float] = {}

    def progress(what: str, done: int, total: int) -> None:
        now = time.perf_counter()
        if what not in left:
            left[what] = TimeLeft({what: 1.0})
            left[what].start(what)
        if done > 0:
            left[what].epoch(done, total)
        if what not in printed or now - printed[what] >= SECONDS_BETWEEN_LINES or done >= total:
            printed[what] = now
            text = f"{what}: {done:,} of {total:,} {time_text(left[what].of_job())}".rstrip()
            console.print(text, markup=False, highlight=False)

    return progress


class FitDisplay(Display):
    """The progress of one fit: a bar, or a line with the newest error every few seconds and after the last epoch."""

    def start(self, epochs: int) -> None:
        self.epochs, self.printed = epochs, time.perf_counter()
        self.left = TimeLeft({"fit": 1.0})
        self.left.start("fit")
        self.open_bar()
        if self.bar is not None:
            self.bar("fitting", 0, max(1, epochs))

    def epoch(self, row: EpochRow) -> None:
        done = int(row["epoch"])
        self.left.epoch(done, self.epochs)
        line = f"{epoch_text(row, self.epochs)}  {time_text(self.left.of_job())}".rstrip()
        self.show("fitting", done, self.epochs, line, last=done == self.epochs)

    def stage(self, what: str, done: int, total: int) -> None:
        if self.bar is None:
            self.bar = _stage_lines(self.console)
        self.bar(what, done, total)
