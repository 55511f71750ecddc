"""The progress of `echolearn phones` on the terminal: a bar per stage, or lines where the output goes elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping

from rich.console import Console

from echolearn.cli.progress import Display, StageProgress, TimeLeft, epoch_text, stage_progress, time_text
from echolearn.paper.cells import EpochRow
from echolearn.paper.phone_report import PhoneRow
from echolearn.training.progress import clock

FIT, DECODE = "fit", "decode"  # the two stages of a system


def row_text(row: PhoneRow) -> str:
    """Return `phone error: test 20.1 %, valid 19.0 %`."""
    return (
        f"phone error: test {100 * row['test']['phone_error']:.1f} %, valid {100 * row['valid']['phone_error']:.1f} %"
    )


class PhoneDisplay(Display):
    """A line when a system starts and when it ends; between them bars on a terminal, else a line every few seconds."""

    def __init__(self, console: Console):
        super().__init__(console)
        self.count = self.number = self.epochs = 0
        self.left = TimeLeft[tuple[str, str]]({})
        self.bar: StageProgress | None = None

    def plan(self, fits: Mapping[str, float], decoding: float) -> None:
        work = {(system, stage): w for system, fit in fits.items() for stage, w in ((FIT, fit), (DECODE, decoding))}
        self.left, self.count = TimeLeft(work), len(fits)
        if self.console.is_terminal:
            self.bar = self.exit.enter_context(stage_progress(self.console))

    def start(self, system: str, epochs: int) -> None:
        self.left.start((system, FIT))
        self.epochs, self.printed = epochs, time.perf_counter()
        self.note(f"[{self.number + 1}/{self.count}] {system}" + (f": {epochs} epochs at most" if epochs else ""))

    def epoch(self, system: str, done: int, row: EpochRow) -> None:
        self.left.epoch(done, max(done, self.epochs))
        self._show(f"{system}: epochs", done, self.epochs, epoch_text({**row, "epoch": done}, self.epochs))

    def decode(self, system: str, text: str, done: int, total: int) -> None:
        if self.left.job != (system, DECODE):
            self.left.finish((system, FIT), reused=False)
            self.left.start((system, DECODE))
        self.left.epoch(done, total)
        self._show(f"{system}: {text}", done, total, f"{text}: {done} of {total}")

    def _show(self, title: str, done: int, total: int, line: str) -> None:
        if self.bar is not None:
            self.bar(title, done, max(1, total))
        elif self.is_due():
            self.note(f"    {line}{self._left_text()}")

    def finish(self, system: str, row: PhoneRow, reused: bool) -> None:
        for stage in (FIT, DECODE):
            self.left.finish((system, stage), reused or stage == FIT)
        self.number += 1
        if reused:
            self.note(f"[{self.number}/{self.count}] {system}: reused from an earlier run, {row_text(row)}")
        else:
            took = f"fit {clock(row['seconds'])}, decoding {clock(row['decoding_seconds'])}"
            self.note(f"    {row_text(row)}  ({took}){self._left_text()}")

    def _left_text(self) -> str:
        left = time_text(self.left.of_all()) if self.number < self.count else ""
        return f"  (all systems: {left})" if left else ""
