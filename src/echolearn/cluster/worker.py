"""The functions that run on the workers of a Dask cluster, and how their results travel (see `cluster.executor`)."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from echolearn import __version__
from echolearn.execution.threads import as_worker
from echolearn.execution.tree_sum import tree_sum
from echolearn.sequences.dataset import Dataset

Place = tuple[int, int, int, int | None]  # of a sequence: its part, index, start and stop (None: the entry itself)
# of an item: its sequences, their targets, more arguments, and the weights of the targets (None: 1)
Pick = tuple[list[Place], list[Place], list[object], list[Place] | None]
Entry = Any  # of a part: an array, or the target of a sequence


class ClusterError(ConnectionError):
    """The cluster cannot be reached, has other versions, or has failed."""


class Parcel:
    """A result whose arrays arrive in memory of their own.

    Dask delivers arrays as views into the received message, at any address, and loops over numbers that are not aligned
    to their size add in another order.
    """

    def __init__(self, value: Any):
        self.value = value

    def __reduce__(self) -> tuple[Callable[[bytes], Parcel], tuple[bytes]]:
        return _parcel, (pickle.dumps(self.value, protocol=5),)

    def __sizeof__(self) -> int:
        """Return the size, by which the scheduler decides what to move; nothing is copied."""
        arrays: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(self.value, protocol=5, buffer_callback=arrays.append)
        return len(rest) + sum(array.raw().nbytes for array in arrays)


def _parcel(value: bytes) -> Parcel:
    return Parcel(pickle.loads(value))


def unpickled(values: bytes) -> list[Entry]:
    """Return a part of the data that the client has sent."""
    entries: list[Entry] = pickle.loads(values)
    return entries


def transformed(version: str, job: bytes, part: list[Entry]) -> list[Entry]:
    """Return function(x) of every sequence of a part."""
    _check_version(version)
    function = pickle.loads(job)
    with as_worker():
        return [function(x) for x in part]


def work(version: str, job: bytes, picks: list[Pick], *parts: list[Entry]) -> Parcel:
    """Return the sum over the picks of function(data, which, *rest), where the data are the picked sequences."""
    _check_version(version)
    function, (classes, per_step, dtype, noise) = pickle.loads(job)

    def one(X: list[Place], y: list[Place], rest: list[object], w: list[Place] | None = None) -> object:
        weights = None if w is None else _take(parts, w)
        data = Dataset(_take(parts, X), _take(parts, y), classes, per_step, dtype, weights=weights, noise=noise)
        return function(data, np.arange(len(X)), *rest)

    with as_worker():
        return Parcel(tree_sum(one(*pick) for pick in picks))


def work_on_kept(version: str, job: bytes, kept: Parcel) -> Parcel:
    """Return function(result) for a result that was kept on the workers."""
    _check_version(version)
    with as_worker():
        return Parcel(pickle.loads(job)[0](kept.value))


def add(first: Parcel, *more: Parcel) -> Parcel:
    """Return the sum in a new object: the terms may be needed again."""
    return Parcel(tree_sum([deepcopy(first.value), *(one.value for one in more)]))


def _check_version(version: str) -> None:
    """Refuse a client of another version: this worker may have joined after the client's own check."""
    if version != __version__:
        raise ClusterError(f"a worker has echolearn {__version__}, the client {version}. Install the same everywhere.")


def _take(parts: Sequence[list[Entry]], places: list[Place]) -> list[Entry]:
    """Return the entries at these places."""
    return [parts[k][i] if stop is None else parts[k][i][start:stop] for k, i, start, stop in places]
