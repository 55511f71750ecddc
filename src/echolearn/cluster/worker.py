"""What runs on a Dask cluster's workers, and how its results travel (see `cluster`)."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from echolearn import __version__
from echolearn.execution import threads as engine
from echolearn.execution.threads import added
from echolearn.sequences.batch import Data

Places = list[tuple[int, int, int, int | None]]  # of each sequence: part, index, start, stop (None: the entry itself)


class ClusterError(ConnectionError):
    """The cluster cannot be reached, does not fit, or has failed."""


class Parcel:
    """A result, whose arrays come out of a journey in memory of their own.

    Dask hands on arrays as views into what came over the line, at any address; and loops over numbers that do not lie
    at multiples of their size add in another order.
    """

    def __init__(self, value: Any):
        self.value = value

    def __reduce__(self) -> Any:
        return _unpacked, (pickle.dumps(self.value, protocol=5),)

    def __sizeof__(self) -> int:
        """For the scheduler, which moves the smaller things; nothing is copied."""
        arrays: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(self.value, protocol=5, buffer_callback=arrays.append)
        return len(rest) + sum(array.raw().nbytes for array in arrays)


def _unpacked(value: bytes) -> Parcel:
    return Parcel(pickle.loads(value))


def restored(values: bytes) -> list[Any]:
    entries: list[Any] = pickle.loads(values)
    return entries


def work(version: str, job: bytes, picks: list[Any], *parts: list[Any]) -> Parcel:
    """Σ function(data, which, *rest) over the picked sequences."""
    _check_version(version)
    function, (classes, per_step, dtype) = pickle.loads(job)

    def one(X: Places, y: Places, rest: list[Any]) -> Any:
        data = Data(_taken(parts, X), _taken(parts, y), classes, per_step, dtype)
        return function(data, np.arange(len(X)), *rest)

    with engine.at_work():
        return Parcel(added(one(*pick) for pick in picks))


def work_on_held(version: str, job: bytes, held: Parcel) -> Parcel:
    _check_version(version)
    with engine.at_work():
        return Parcel(pickle.loads(job)[0](held.value))


def add(first: Parcel, *more: Parcel) -> Parcel:
    """The sum; what is given is left as it is, for it may be asked for again."""
    return Parcel(added([deepcopy(first.value), *(one.value for one in more)]))


def _check_version(version: str) -> None:
    """Of a worker that has come later than `_check`."""
    if version != __version__:
        raise ClusterError(f"a worker has echolearn {__version__}, the client {version}. Install the same everywhere.")


def _taken(parts: Sequence[list[Any]], places: Places) -> list[Any]:
    return [parts[k][i] if stop is None else parts[k][i][start:stop] for k, i, start, stop in places]
