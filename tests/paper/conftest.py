"""A small corpus, and a recorder of progress."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from echolearn.paper.cells import EpochRow, FitResult
from echolearn.paper.table1 import Cell, Plan
from echolearn.speech import Corpus, open_corpus
from smallcorpus import write


class RecordedProgress:
    """Remembers all progress; raises KeyboardInterrupt, as Ctrl-C does, after the epoch `stop` of a column."""

    def __init__(self, stop: tuple[str, int] | None = None):
        self.stop = stop
        self.notes: list[str] = []
        self.reused: list[Cell] = []
        self.fitted: list[Cell] = []
        self.epochs: list[int] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def plan(self, plan: Plan, work: Mapping[Cell, float]) -> None:
        assert all(w > 0 for w in work.values())

    def start(self, cell: Cell, epochs: int) -> None:
        self.epochs = []

    def epoch(self, cell: Cell, row: EpochRow) -> None:
        self.epochs.append(int(row["epoch"]))
        if self.stop == (cell.column, int(row["epoch"])):
            raise KeyboardInterrupt

    def finish(self, cell: Cell, result: FitResult, reused: bool) -> None:
        (self.reused if reused else self.fitted).append(cell)


@pytest.fixture
def progress() -> type[RecordedProgress]:
    return RecordedProgress


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return open_corpus(f"features:{write(tmp_path_factory.mktemp('corpus') / 'small.npz')}")
