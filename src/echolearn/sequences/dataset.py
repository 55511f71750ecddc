"""Checked sequences with their targets, and the executor that makes passes over them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from echolearn._typing import Array
from echolearn.execution.executor import LOCAL, Executor, active_executor
from echolearn.sequences.batch import Batch, pack
from echolearn.sequences.batching import group_sequences

Result = TypeVar("Result")

HASHED_FRAMES = 4096  # frames that one task hashes


@dataclass(frozen=True, eq=False)
class Dataset:
    """Sequences and targets, to be taken in batches.

    X: one (steps, n_in) array per sequence. y: one array per sequence, of class numbers (steps,) or values
    (steps, n_out); for one target per sequence, a number or (n_out,) each. classes: how many, or None for values.

    X and y may be remote (`execution.executor.Remote`): then the executor makes passes over them where they are.
    """

    X: Sequence[Array]
    y: Sequence[Any]
    classes: int | None
    per_step: bool
    dtype: Any
    executor: Executor = LOCAL

    @classmethod
    def place(cls, X: Sequence[Array], y: Sequence[Any], classes: int | None, *, per_step: bool, dtype: str) -> Dataset:
        """Return the dataset on the executor in use: in this process, or on the cluster of `cluster.on`."""
        executor = active_executor()
        data = cls(executor.place(X), y, classes, per_step, np.dtype(dtype), executor)
        placed: Dataset = executor.place_targets(data) if len(y) else data
        return placed

    @property
    def lengths(self) -> Array:
        """The number of steps of each sequence."""
        return np.array([len(x) for x in self.X])

    @property
    def frames(self) -> int:
        """The number of steps of all sequences together."""
        return int(self.lengths.sum())

    @property
    def n_out(self) -> int:
        """The number of outputs: of classes, or of values per target."""
        return self.classes or int(np.shape(self.y[0])[-1])

    def map(self, function: Callable[..., Result], items: Iterable[Any]) -> Iterator[Result]:
        """Yield function(data, which) for every item, in order. It must not hold the data itself."""
        return self.executor.map(self, function, items)

    def sum(self, function: Callable[..., Result], items: Iterable[Any]) -> Result:
        """Return the sum of function(data, which), added in the tree of `execution.tree_sum`."""
        return self.executor.sum(self, function, items)

    def batch(self, which: Sequence[int] | Array, steps: slice = slice(None)) -> Batch:
        """Return some of the sequences, or some of their steps, packed."""
        y = [self.y[i][steps] if self.per_step else self.y[i] for i in which]
        return pack([self.X[i][steps] for i in which], self.dtype, y, self.per_step)

    def fingerprint(self) -> str:
        """Return a hash of every frame and target, in order."""
        digests = [b""] * len(self.X)
        items = list(group_sequences(self.lengths, HASHED_FRAMES))
        for which, some in zip(items, self.map(_digests, items), strict=True):
            for i, digest in zip(which, some, strict=True):
                digests[i] = digest
        return hashlib.blake2b(b"".join(digests), digest_size=16).hexdigest()

    def joined_with(self, more: Dataset) -> Dataset:
        """Return the sequences of both datasets."""
        return replace(self, X=[*self.X, *more.X], y=[*self.y, *more.y])

    def subset(self, which: Sequence[int] | Array) -> Dataset:
        """Return some of the sequences."""
        return replace(self, X=[self.X[i] for i in which], y=[self.y[i] for i in which])


def _digests(data: Dataset, which: Array) -> list[bytes]:
    """Return a hash of each sequence with its targets."""
    found = []
    for x, y in ((data.X[i], data.y[i]) for i in which):
        digest = hashlib.blake2b(repr((np.shape(x), np.shape(y))).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(x).data)
        digest.update(np.ascontiguousarray(y).data)
        found.append(digest.digest())
    return found
