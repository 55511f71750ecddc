"""Checked sequences with their targets, and the executor that makes passes over them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from echolearn.display.facts import counted, one_line
from echolearn.execution.executor import LOCAL, Executor, Item, active_executor
from echolearn.sequences.batch import Batch, group_sequences, pack
from echolearn.sequences.targets import Target
from echolearn.validation import Array

Result = TypeVar("Result")

HASHED_FRAMES = 4096  # frames that one task hashes


@dataclass(frozen=True, eq=False)
class Dataset:
    """Sequences and their targets.

    X: one array (steps, n_in) per sequence. y: the targets of each sequence, class numbers (steps,) or values
    (steps, n_out); with one target per sequence, a class number or (n_out,). classes: their number, or None for values.
    dtype: the precision of batches. weights: how much each target counts, (steps,) or one number per sequence, like y;
    None: 1 everywhere. A target of weight 0 does not exist: it may be NaN or the class number -1, while its frame still
    runs through the network. X, y and weights may be remote (`execution.executor.Remote`): the executor then makes
    passes over them where they are. noise: the deviation of the noise that units receive in passes that learn.
    """

    X: Sequence[Array]
    y: Sequence[Target]
    classes: int | None
    per_step: bool
    dtype: np.dtype[np.generic]
    executor: Executor[Dataset] = LOCAL
    weights: Sequence[Array] | None = None
    noise: float = 0.0

    def __repr__(self) -> str:
        kind = ("value", "values") if self.classes is None else ("class", "classes")
        per = "per step" if self.per_step else "per sequence"
        facts = [
            counted(len(self.X), "sequence"),
            counted(self.frames, "step"),
            counted(int(np.shape(self.X[0])[1]), "feature") if len(self.X) else "",
            f"{counted(self.n_out, *kind)} {per}" if len(self.y) else "",
            "" if self.weights is None else "weighted",
            str(self.dtype),
        ]
        return one_line(self, facts)

    @classmethod
    def place(
        cls,
        X: Sequence[Array],
        y: Sequence[Target],
        classes: int | None,
        *,
        per_step: bool,
        dtype: DTypeLike,
        weights: Sequence[Array] | None = None,
    ) -> Dataset:
        """Return the dataset on the executor in use: in this process, or on the cluster of `cluster.on`."""
        executor = active_executor()
        data = cls(executor.place(X), y, classes, per_step, np.dtype(dtype), executor, weights)
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
        """Return the sum of function(data, *item) over the items, added in the tree of `execution.threads.tree_sum`."""
        return self.executor.sum(self, function, items)

    def batch(self, which: Sequence[int] | Array, steps: slice = slice(None)) -> Batch:
        """Return the given sequences, or some of their steps, as a packed batch."""
        y = [self.y[i][steps] if self.per_step else self.y[i] for i in which]
        w = None
        if self.weights is not None:
            w = [self.weights[i][steps] if self.per_step else self.weights[i] for i in which]
        return pack([self.X[i][steps] for i in which], self.dtype, y, self.per_step, w=w, noise=self.noise)

    def joined_targets(self, which: Sequence[int] | Array) -> tuple[Array, Array | None]:
        """Return the targets of some sequences one after another, and their weights; None: 1."""
        join = np.concatenate if self.per_step else np.stack
        w = None if self.weights is None else join([np.asarray(self.weights[i], np.float64) for i in which])
        return join([np.asarray(self.y[i]) for i in which]), w

    def target_weights(self, washout: int) -> Array:
        """Return the sum of the weights of each sequence after the washout: without weights, the number of targets."""
        if self.weights is None:
            return np.asarray(self.lengths - washout) if self.per_step else np.ones(len(self.X), int)
        sums = np.zeros(len(self.X))
        items = list(group_sequences(self.lengths, HASHED_FRAMES))
        for which, some in zip(items, self.map(_sums_of_weights, [(which, washout) for which in items]), strict=True):
            sums[which] = some
        return sums

    def fingerprint(self) -> str:
        """Return a hash of every frame, target and weight, in order."""
        digests = [b""] * len(self.X)
        items = list(group_sequences(self.lengths, HASHED_FRAMES))
        for which, some in zip(items, self.map(_digests, items), strict=True):
            for i, digest in zip(which, some, strict=True):
                digests[i] = digest
        return hashlib.blake2b(b"".join(digests), digest_size=16).hexdigest()

    def joined_with(self, more: Dataset) -> Dataset:
        """Return a dataset of the sequences of both."""
        joined = replace(self, X=[*self.X, *more.X], y=[*self.y, *more.y], weights=None)
        if self.weights is None and more.weights is None:
            return joined
        weights = [*_given_or_ones(self), *_given_or_ones(more)]
        # Ones for the targets of a remote dataset without weights are not yet where its targets are.
        given = self.weights is not None and more.weights is not None
        weighted = replace(joined, weights=weights)
        return weighted if given else self.executor.place_weights(weighted)

    def subset(self, which: Sequence[int] | Array) -> Dataset:
        """Return a dataset of the given sequences."""
        weights = None if self.weights is None else [self.weights[i] for i in which]
        return replace(self, X=[self.X[i] for i in which], y=[self.y[i] for i in which], weights=weights)


def _digests(data: Dataset, which: Array) -> list[bytes]:
    """Return a hash of each sequence with its targets."""
    found = []
    for i in which:
        x, y = data.X[i], data.y[i]
        digest = hashlib.blake2b(repr((np.shape(x), np.shape(y))).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(x).data)
        digest.update(np.ascontiguousarray(y).data)
        if data.weights is not None:
            digest.update(b"weights")
            digest.update(np.ascontiguousarray(data.weights[i], np.float64).data)
        found.append(digest.digest())
    return found


def _sums_of_weights(data: Dataset, which: Array, washout: int) -> Array:
    """Return the sum of the weights of each sequence after the washout."""
    assert data.weights is not None
    first = washout if data.per_step else 0
    return np.array([np.sum(np.ravel(data.weights[i])[first:]) for i in which], np.float64)


def _given_or_ones(data: Dataset) -> Sequence[Array]:
    """Return the weights of a dataset, in this process as ones if it has none."""
    if data.weights is not None:
        return data.weights
    return [np.ones(n) for n in data.lengths] if data.per_step else [np.ones(())] * len(data.X)
