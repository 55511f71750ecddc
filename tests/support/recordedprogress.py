"""Progress of an experiment that a test looks at."""

from __future__ import annotations

from collections.abc import Mapping

from echolearn.paper.cells import Cell, Outcome
from echolearn.paper.fits import EpochRow


class RecordedProgress:
    """Remembers all progress; raises KeyboardInterrupt, as Ctrl-C does, at an epoch or a step of decoding.

    stop: the column of a cell, "epoch" or "decode", and the number of the epoch or step.
    """

    def __init__(self, stop: tuple[str, str, int] | None = None):
        self.stop = stop
        self.notes: list[str] = []
        self.finished: dict[Cell, bool] = {}  # whether it was reused
        self.epochs: dict[str, list[int]] = {}

    @property
    def reused(self) -> list[Cell]:
        return [cell for cell, reused in self.finished.items() if reused]

    @property
    def fitted(self) -> list[Cell]:
        return [cell for cell, reused in self.finished.items() if not reused]

    def note(self, text: str) -> None:
        self.notes.append(text)

    def plan(self, fits: Mapping[Cell, float], decoding: float) -> None:
        assert min(fits.values()) > 0
        assert decoding >= 0

    def start(self, cell: Cell, epochs: int) -> None:
        self.epochs[cell.column] = []

    def epoch(self, cell: Cell, done: int, row: EpochRow) -> None:
        self.epochs[cell.column].append(done)
        if self.stop == (cell.column, "epoch", done):
            raise KeyboardInterrupt

    def decode(self, cell: Cell, text: str, done: int, total: int) -> None:
        if self.stop == (cell.column, "decode", done):
            raise KeyboardInterrupt

    def finish(self, cell: Cell, outcome: Outcome, reused: bool) -> None:
        self.finished[cell] = reused
