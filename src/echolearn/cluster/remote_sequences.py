"""Sequences on the workers of a cluster, and the parts of the data in which they are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike

from echolearn.cluster.worker import Pick, Place
from echolearn.execution.executor import Remote
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array


class Future(Protocol):
    """The part of distributed.Future that is used here; distributed itself is imported only when it is needed."""

    key: str

    def result(self, timeout: float | None = None) -> Any:
        """Return the result of the task."""

    def done(self) -> bool:
        """Return whether the task has ended, in whatever way."""


class Fetcher(Protocol):
    """Brings results of the workers to this process."""

    def result(self, future: Future) -> Any:
        """Return the result of a task."""


@dataclass(frozen=True, eq=False)
class RemoteSequence(Remote):
    """A sequence, or its targets, on a cluster: entry `index` of a part, from row `start` on."""

    executor: Fetcher
    part: Future  # of a list of arrays or targets
    index: int
    shape: tuple[int, ...]
    start: int | None = 0  # None for a single target, which has no rows

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> RemoteSequence:
        assert self.start is not None
        start, stop, _ = rows.indices(len(self))
        return replace(self, shape=(stop - start, *self.shape[1:]), start=self.start + start)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Fetch the numbers to this process."""
        whole = self.executor.result(self.part)[self.index]
        rows = whole if self.start is None else whole[self.start : self.start + len(self)]
        return np.asarray(rows, dtype)


class Parts:
    """The parts that hold some sequences, targets and weights, each once, in the order in which they were met."""

    def __init__(self) -> None:
        self.futures: list[Future] = []
        self.numbers: dict[str, int] = {}  # of each part, by its key

    def places(self, entries: Iterable[object]) -> list[Place]:
        """Return the place of each entry; parts that were not met before are added."""
        places: list[Place] = []
        for entry in entries:
            assert isinstance(entry, RemoteSequence)
            number = self.numbers.setdefault(entry.part.key, len(self.futures))
            if number == len(self.futures):
                self.futures.append(entry.part)
            stop = None if entry.start is None else entry.start + len(entry)
            places.append((number, entry.index, entry.start or 0, stop))
        return places

    def pick(self, data: Dataset, which: Iterable[int], rest: list[object]) -> Pick:
        """Return the places of some sequences of a dataset, of their targets and of the weights of these."""
        which = list(which)
        X = self.places(data.X[i] for i in which)
        y = self.places(data.y[i] for i in which) if len(data.y) else []
        weights = data.weights
        return X, y, rest, None if weights is None else self.places(weights[i] for i in which)


def parts_of(data: Dataset) -> Parts:
    """Return all parts of a dataset."""
    parts = Parts()
    parts.pick(data, range(len(data.X)), [])
    return parts
