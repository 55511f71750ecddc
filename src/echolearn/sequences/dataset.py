"""Checked sequences with their targets, and the executor that makes passes over them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from echolearn._typing import Array
from echolearn.execution.executor import LOCAL, Executor, Item, active_executor
from echolearn.sequences.batch import Batch, pack
from echolearn.sequences.batching import group_sequences
from echolearn.sequences.targets import Target

Result = TypeVar("Result")

HASHED_FRAMES = 4096  # frames that one task hashes


@dataclass(frozen=True, eq=False)
class Dataset:
    """Sequences and their targets.

    X: one array (steps, n_in) per sequence. y: the targets of each sequence, class numbers (steps,) or values
    (steps, n_out); with one target per sequence, a class number or (n_out,). classes: their number, or None for values.
    dtype: the precision of batches. X and y may be remote (`execution.executor.Remote`): the executor then makes passes
    over them where they are.
    """

    X: Sequence[Array]
    y: Sequence[Target]
    classes: int | None
    per_step: bool
    dtype: np.dtype[np.generic]
    executor: Executor[Dataset] = LOCAL

    @classmethod
    def place(
        cls, X: Sequence[Array], y: Sequence[Target], classes: int | None, *, per_step: bool, dtype: DTypeLike
    ) -> Dataset:
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
        """The number of steps of all sequences."""
        return int(self.lengths.sum())

    @property
    def n_out(self) -> int:
        """The number of classes, or of values per target."""
        return self.classes or int(np.shape(self.y[0])[-1])

    def map(self, function: Callable[..., Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield function(data, *item) for every item, in order; see `Executor` for the items and the function."""
        return self.executor.map(self, function, items)

    def sum(self, function: Callable[..., Result], items: Iterable[Item]) -> Result:
        """Return the sum of function(data, *item) over the items, added in the tree of `execution.tree_sum`."""
        return self.executor.sum(self, function, items)

    def batch(self, which: Sequence[int] | Array, steps: slice = slice(None)) -> Batch:
        """Return the given sequences, or some of their steps, as a packed batch."""
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
        """Return a dataset of the sequences of both."""
        return replace(self, X=[*self.X, *more.X], y=[*self.y, *more.y])

    def subset(self, which: Sequence[int] | Array) -> Dataset:
        """Return a dataset of the given sequences."""
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
