"""What runs on the workers of a Dask cluster, and how its results travel (see `cluster.executor`)."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from echolearn import __version__
from echolearn.execution.threads import as_worker
from echolearn.execution.tree_sum import tree_sum
from echolearn.sequences.dataset import Dataset

Place = tuple[int, int, int, int | None]  # of a sequence: its part, index, start and stop (None: the entry itself)


class ClusterError(ConnectionError):
    """The cluster cannot be reached, does not fit, or has failed."""


class Parcel:
    """A result whose arrays arrive in memory of their own.

    Dask delivers arrays as views into what came over the line, at any address; and loops over numbers that do not lie
    at multiples of their size add in another order.
    """

    def __init__(self, value: Any):
        self.value = value

    def __reduce__(self) -> Any:
        return _parcel, (pickle.dumps(self.value, protocol=5),)

    def __sizeof__(self) -> int:
        """Return the size for the scheduler, which moves the smaller things; nothing is copied."""
        arrays: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(self.value, protocol=5, buffer_callback=arrays.append)
        return len(rest) + sum(array.raw().nbytes for array in arrays)


def _parcel(value: bytes) -> Parcel:
    return Parcel(pickle.loads(value))


def unpickled(values: bytes) -> list[Any]:
    """Return a part of the data that was sent by the client."""
    entries: list[Any] = pickle.loads(values)
    return entries


def work(version: str, job: bytes, picks: list[Any], *parts: list[Any]) -> Parcel:
    """Return the sum of function(data, which, *rest) over the picked sequences."""
    _check_version(version)
    function, (classes, per_step, dtype) = pickle.loads(job)

    def one(X: list[Place], y: list[Place], rest: list[Any]) -> Any:
        data = Dataset(_take(parts, X), _take(parts, y), classes, per_step, dtype)
        return function(data, np.arange(len(X)), *rest)

    with as_worker():
        return Parcel(tree_sum(one(*pick) for pick in picks))


def work_on_kept(version: str, job: bytes, kept: Parcel) -> Parcel:
    """Return function(result) of a result that was kept on the workers."""
    _check_version(version)
    with as_worker():
        return Parcel(pickle.loads(job)[0](kept.value))


def add(first: Parcel, *more: Parcel) -> Parcel:
    """Return the sum; the terms are left as they are, because they may be needed again."""
    return Parcel(tree_sum([deepcopy(first.value), *(one.value for one in more)]))


def _check_version(version: str) -> None:
    """Refuse to work for a client with another version: this worker may have joined after the client's check."""
    if version != __version__:
        raise ClusterError(f"a worker has echolearn {__version__}, the client {version}. Install the same everywhere.")


def _take(parts: Sequence[list[Any]], places: list[Place]) -> list[Any]:
    return [parts[k][i] if stop is None else parts[k][i][start:stop] for k, i, start, stop in places]
