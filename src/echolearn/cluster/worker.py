"""The functions that run on the workers of a Dask cluster, and how their results travel (see `cluster.executor`)."""

from __future__ import annotations

import asyncio
import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from copy import deepcopy
from threading import local
from typing import Any
from uuid import uuid4

import numpy as np

from echolearn import __version__
from echolearn.exceptions import ClusterError
from echolearn.execution.threads import as_worker, tree_sum
from echolearn.sequences.dataset import Dataset

Place = tuple[int, int, int, int | None]  # of a sequence: its part, index, start and stop (None: the entry itself)
# of an item: its sequences, their targets, more arguments, and the weights of the targets (None: 1)
Pick = tuple[list[Place], list[Place], list[object], list[Place] | None]
Entry = Any  # of a part: an array, or the target of a sequence

RESEND_SECONDS = 5.0  # seconds after which a report that has no answer is sent again


class Parcel:
    """A result whose arrays arrive in memory of their own. Dask delivers views into the received message, at any
    address, and loops over numbers that are not aligned to their size add in another order."""

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
    function, kind = pickle.loads(job)
    with as_worker():
        return Parcel(tree_sum(function(_picked(parts, p, kind), np.arange(len(p[0])), *p[2]) for p in picks))


def listed(*entries: Entry) -> list[Entry]:
    """Return the entries as a list."""
    return list(entries)


def work_on_copy(version: str, job: bytes, picks: list[Pick], parts: list[list[Entry]]) -> Parcel:
    """Do the work on a worker that has all parts of the data."""
    return work(version, job, picks, *parts)


def call(version: str, job: bytes, *arguments: Parcel) -> Parcel:
    """Return function(*arguments): of a kept result, or of the state and the next item of a fold."""
    _check_version(version)
    with as_worker():
        return Parcel(pickle.loads(job)[0](*(one.value for one in arguments)))


def work_on_all_kept(version: str, job: bytes, *kept: Parcel) -> Parcel:
    """Return function(results) of all results that were kept on the workers."""
    _check_version(version)
    with as_worker():
        return Parcel(pickle.loads(job)[0]([one.value for one in kept]))


def do_piece(version: str, job: bytes, number: int, reports: str, parts: list[list[Entry]]) -> Parcel:
    """Return the result of one piece of work that is dealt whole, with all the data (see `cluster.tasks`)."""
    _check_version(version)
    piece, places = pickle.loads(job)
    datasets = [_picked(parts, pick, kind) for pick, kind in places]
    reporter = Reporter(number, reports)
    try:
        with as_worker():
            return Parcel(piece(number, datasets, reporter.report))
    finally:
        reporter.close()


class Inbox:
    """The messages of a queue of the scheduler. This side limits the time that it waits, and the request stays open:
    the scheduler would log the timeout of a queue as an error, with its traceback."""

    def __init__(self, name: str, client: Any) -> None:
        import distributed

        self.queue, self.loop = distributed.Queue(name, client=client), client.loop.asyncio_loop
        self.request: Future[bytes] | None = None

    def next(self, seconds: float) -> bytes:
        """Return the next message; TimeoutError if there is none in time."""
        if self.request is None:
            self.request = asyncio.run_coroutine_threadsafe(self.queue.get(asynchronous=True), self.loop)
        if not wait([self.request], seconds).done:
            raise TimeoutError
        answered, self.request = self.request, None
        return answered.result()

    def close(self) -> None:
        """Answer the open request, if there is one, and let the scheduler forget the queue."""
        if self.request is not None:
            self.queue.put(b"")
            wait([self.request], RESEND_SECONDS)
        self.queue.close()


class Reporter:
    """Sends the reports of a piece of work to the client, and receives the answers, through queues of the scheduler."""

    def __init__(self, number: int, reports: str):
        import distributed

        self.number, self.name, self.ordinal = number, f"{reports}-{uuid4().hex}", 0
        self.worker, self.task = distributed.get_worker(), distributed.get_worker().get_current_task()
        client = distributed.get_client()
        self.reports, self.replies = distributed.Queue(reports, client=client), Inbox(self.name, client)

    def report(self, message: object) -> Any:
        """Return the client's answer to a message, which is sent again while there is none."""
        self.ordinal += 1
        while True:
            with suppress(OSError):  # no answer in time (TimeoutError), or no connection
                self.reports.put(pickle.dumps((self.number, self.name, self.ordinal, message)))
                while True:
                    ordinal, answer = pickle.loads(self.replies.next(RESEND_SECONDS))
                    if ordinal == self.ordinal:  # others are second answers to earlier messages
                        return answer
            known = self.worker.state.tasks.get(self.task)
            if known is None or known.state != "executing":
                raise ClusterError("nobody waits for this piece of work any more.")

    def close(self) -> None:
        """Tell the client that the piece is done, and let the scheduler forget the queues."""
        with suppress(Exception):  # it may not be there any more
            self.reports.put(pickle.dumps((self.number, None, 0, None)))
        with suppress(Exception):
            self.reports.close()
            self.replies.close()


_listener = local()  # receive: what the warnings of this thread are passed on to


@contextmanager
def warnings_to(receive: Callable[[type[Warning], str], object]) -> Iterator[None]:
    """Pass the warnings of this thread on to a function, instead of printing them on the worker."""
    if warnings.showwarning is not _show_warning:
        _listener_before[:] = [warnings.showwarning]
        warnings.showwarning = _show_warning
        # Otherwise a worker would show a warning once only, and not again in the next fit.
        warnings.filterwarnings("always", category=UserWarning, module=r"(distributed|dask|concurrent)\b")
    _listener.receive = receive
    try:
        yield
    finally:
        _listener.receive = None


_listener_before: list[Callable[..., None]] = []  # what showed warnings before


def _show_warning(message: Warning | str, category: type[Warning], *where: object, **more: object) -> None:
    """Pass a warning on to the listener of this thread, or else show it as before."""
    receive = getattr(_listener, "receive", None)
    if receive is None:
        _listener_before[0](message, category, *where, **more)
    else:
        receive(category, str(message))


def add(first: Parcel, *more: Parcel) -> Parcel:
    """Return the sum in a new object: the terms may be needed again."""
    return Parcel(tree_sum([deepcopy(first.value), *(one.value for one in more)]))


def _check_version(version: str) -> None:
    """Refuse a client of another version: this worker may have joined after the client's own check."""
    if version != __version__:
        raise ClusterError(f"a worker has echolearn {__version__}, the client {version}. Install the same everywhere.")


def _picked(parts: Sequence[list[Entry]], pick: Pick, kind: Sequence[Any]) -> Dataset:
    """Return the picked sequences, their targets and weights. kind: what the tasks know of the data besides."""

    def taken(places: list[Place]) -> list[Entry]:
        return [parts[k][i] if stop is None else parts[k][i][start:stop] for k, i, start, stop in places]

    (X, y, _, w), (classes, per_step, dtype, noise) = pick, kind
    weights = None if w is None else taken(w)
    return Dataset(taken(X), taken(y), classes, per_step, dtype, weights=weights, noise=noise)
