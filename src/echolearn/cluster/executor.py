"""Passes over data that are on the workers of a Dask cluster (extra `dask`; nothing here is imported unasked).

Sequences are sent, or read by the workers, once, and stay there in parts. A task carries weights and the places of its
sequences, and gives back a sum; sums are added on the workers in the tree of `engine.added`. Which worker does what,
and when, touches nothing: the bits are those of this process, as long as the machines are of one kind (H_c of more than
`readout.WIDE` columns is added in another order here). A part is itself the result of a task, which is done again when
its worker dies: from the file, the bag, or the copy that the scheduler keeps of what was sent.
"""

from __future__ import annotations

import importlib.metadata
import pickle
import platform
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from echolearn import __version__
from echolearn.cluster.worker import ClusterError, Parcel, Places, add, restored, work, work_on_held
from echolearn.execution.threads import ARITY, CLUSTER, added
from echolearn.sequences.batch import Data, groups

Array = NDArray[Any]

CONNECT = 20  # seconds that a scheduler, and its first worker, are waited for
ALONE = 60  # seconds without any worker after which the work is given up
FRAMES = 16384  # of a part of the data at least: a task each, so not too few,
PARTS = 4096  # and so many parts at most: the scheduler knows each by name
TASKS = 8  # of a pass for each thread of the cluster, at least where there are parts enough: few wait for the last ones


@dataclass(frozen=True, eq=False)
class Far:
    """A sequence, or its targets, on a cluster: entry `index` of a part, from row `start` on."""

    cluster: Cluster
    part: Any  # the future of a list of arrays
    index: int
    shape: tuple[int, ...]
    start: int | None = 0  # None: no rows, one target of a sequence

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Far:
        assert self.start is not None
        start, stop, _ = rows.indices(len(self))
        return Far(self.cluster, self.part, self.index, (stop - start, *self.shape[1:]), self.start + start)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Brought here, for what is done in this process."""
        whole = self.cluster.result(self.part)[self.index]
        rows = whole if self.start is None else whole[self.start : self.start + len(self)]
        return np.asarray(rows, dtype)


@contextmanager
def on(given: Any, security: Any = None) -> Iterator[Cluster]:
    """Within this context fits and predictions send their data to a Dask cluster and work there.

    given: the scheduler's address ("tcp://host:8786"), a `distributed.Client`, or "dask" for the client that is there
    already. security: a `distributed.Security` (TLS) to go with an address; without one Dask's own configuration holds.
    """
    client, own = _client(given, security)
    try:
        _check(client)
        token = CLUSTER.set(Cluster(client))
        try:
            yield CLUSTER.get()
        finally:
            CLUSTER.reset(token)
    finally:
        if own:
            client.close()


def _client(given: Any, security: Any) -> tuple[Any, bool]:
    try:
        import distributed
    except ImportError as problem:
        raise ClusterError(
            f"a Dask cluster needs the package distributed ({problem}): pip install 'echolearn[dask]'"
        ) from problem
    if isinstance(given, distributed.Client):
        if given.asynchronous:
            raise ClusterError("this distributed.Client is asynchronous; give one made with asynchronous=False.")
        return given, False
    if given == "dask":
        try:
            return distributed.default_client(), False
        except ValueError as problem:
            raise ClusterError(
                "engine='dask' uses the distributed.Client that is there, and there is none. Make one, "
                "Client('tcp://host:8786'), or give the scheduler's address as the engine."
            ) from problem
    if not isinstance(given, str) or "://" not in given:
        raise ClusterError(
            f"engine={given!r}; expected 'dask', a scheduler's address such as 'tcp://host:8786', or a "
            "distributed.Client."
        )
    try:
        return distributed.Client(given, security=security, timeout=CONNECT, set_as_default=False), True
    except (OSError, TimeoutError, ValueError, TypeError, RuntimeError) as problem:
        raise ClusterError(
            f"no Dask scheduler answers at {given} ({problem}). Is it running (dask scheduler), is the port open, and "
            "does the protocol fit (tcp:// or tls://)?"
        ) from problem


def _check(client: Any) -> None:
    """Every worker, and the scheduler, must have this echolearn and this Python: functions travel as they are."""
    try:
        client.wait_for_workers(1, timeout=CONNECT)
    except TimeoutError as problem:
        address = client.scheduler.address
        raise ClusterError(
            f"the scheduler at {address} has no workers after {CONNECT} s. Start some: dask worker {address}"
        ) from problem
    python = platform.python_version()
    for name, version in _everywhere(client, platform.python_version):
        if version.split(".")[:2] != python.split(".")[:2]:
            raise ClusterError(
                f"{name} runs Python {version}, here is {python}. Use the same minor version everywhere."
            )
    for name, version in _everywhere(client, importlib.metadata.version, "echolearn"):
        if version != __version__:
            raise ClusterError(f"{name} has echolearn {version}, here is {__version__}. Install the same everywhere.")


def _everywhere(client: Any, function: Callable[..., str], *arguments: str) -> Iterator[tuple[str, str]]:
    """What a function of the standard library says on the scheduler and each worker; "none" for a missing package. A
    worker that dies meanwhile says nothing."""
    missing = importlib.metadata.PackageNotFoundError
    try:
        yield "the scheduler", client.run_on_scheduler(function, *arguments)
    except missing:
        yield "the scheduler", "none"
    for address, said in client.run(function, *arguments, on_error="return").items():
        if isinstance(said, (str, missing)):
            yield f"the worker {address}", said if isinstance(said, str) else "none"


class Cluster:
    """`engine.Here` for data on a cluster."""

    def __init__(self, client: Any):
        self.client = client
        self._slots: list[str] = []
        self._asked = -np.inf

    # data

    def sent(self, X: Sequence[Any]) -> Sequence[Any]:
        """Sequences in parts on the workers, neighbours in length together."""
        if isinstance(X[0], Far):
            return X
        lengths = np.array([len(x) for x in X])
        out: list[Any] = [None] * len(X)
        wholes = list(groups(lengths, max(FRAMES, int(lengths.sum()) // PARTS)))
        for k, which in enumerate(wholes):
            part = self._kept([X[i] for i in which], self.slot(k, len(wholes)))
            for index, i in enumerate(which):
                out[i] = Far(self, part, index, X[i].shape)
        return out

    def _kept(self, values: list[Any], slot: str) -> Any:
        """Values as a part. They go with its task, so that the scheduler can have it done again."""
        return self.submit("part", restored, pickle.dumps(values, protocol=5), slot=slot)

    def together(self, data: Data) -> Data:
        """The targets of sequences beside them, in the same parts."""
        by_part: dict[str, list[int]] = {}
        for i, x in enumerate(data.X):
            by_part.setdefault(x.part.key, []).append(i)  # type: ignore[attr-defined]
        y: list[Any] = [None] * len(data.X)
        for k, which in enumerate(by_part.values()):
            part = self._kept([data.y[i] for i in which], self.slot(k, len(by_part)))
            for index, i in enumerate(which):
                y[i] = Far(self, part, index, np.shape(data.y[i]), 0 if data.per_step else None)
        return Data(data.X, y, data.classes, data.per_step, data.dtype)

    # passes

    def each(self, data: Data, function: Callable[..., Any], items: Iterable[Any]) -> Iterator[Any]:
        """Few tasks wait to be done, or for their results to be fetched, at any time."""
        items = list(items)
        job, waiting = self._job(function, data, many=len(items) > ARITY), deque[Any]()
        for k, item in enumerate(items):
            waiting.append(self._task(job, function, data, [item], k % len(self.slots), len(self.slots)))
            if len(waiting) > 2 * len(self.slots):
                yield self.result(waiting.popleft())
        while waiting:
            yield self.result(waiting.popleft())

    def total(self, data: Data, function: Callable[..., Any], items: Iterable[Any]) -> Any:
        """A task adds one item, or as many as a whole node of the tree: the bits are the same."""
        items, size = list(items), 1
        while len(items) // (size * ARITY) >= TASKS * len(self.slots):
            size *= ARITY
        starts = range(0, len(items), size)
        job = self._job(function, data, many=len(starts) > ARITY)
        tasks = []
        for start in starts:
            run = items[start : start + size]
            tasks.append(self._task(job, function, data, run, start + len(run) // 2, len(items)))
        return self._added(tasks)

    def hold(self, data: Data, function: Callable[..., Any], items: Iterable[Any]) -> list[Any]:
        items = list(items)
        job = self._job(function, data, many=len(items) > ARITY)
        return [self._task(job, function, data, [item], k, len(items)) for k, item in enumerate(items)]

    def each_held(self, function: Callable[[Any], Any], held: Iterable[Any]) -> Iterator[Any]:
        return map(self.result, self._with_held(function, held))

    def total_held(self, function: Callable[[Any], Any], held: Iterable[Any]) -> Any:
        return self._added(self._with_held(function, held))

    def _with_held(self, function: Callable[[Any], Any], held: Iterable[Any]) -> list[Any]:
        job = self._job(function, None, many=False)
        return [self.submit("held", work_on_held, __version__, job, one) for one in held]

    def _added(self, sums: list[Any]) -> Any:
        """On the workers; a handful of sums is added here."""
        if len(sums) <= ARITY:
            return added(map(self.result, sums))
        while len(sums) > 1:
            nodes = [sums[start : start + ARITY] for start in range(0, len(sums), ARITY)]
            sums = [self.submit("sum", add, *node) if len(node) > 1 else node[0] for node in nodes]
        return self.result(sums[0])

    # tasks

    def _job(self, function: Callable[..., Any], data: Data | None, *, many: bool) -> Any:
        """What all tasks of a pass have in common: the function with its weights, and what the data are like. Few tasks
        carry it themselves; many ask the first worker that has it."""
        import cloudpickle

        about = None if data is None else (data.classes, data.per_step, data.dtype)
        job = cloudpickle.dumps((function, about), protocol=5)
        return self.submit("job", bytes, job) if many else job

    def _task(self, job: Any, function: Callable[..., Any], data: Data, items: list[Any], number: int, of: int) -> Any:
        """The sum of function over items, as a future."""
        futures: dict[str, Any] = {}
        picks = []
        for item in items:
            which, *rest = item if isinstance(item, tuple) else (item,)
            X = _places([data.X[i] for i in which], futures)
            y = _places([data.y[i] for i in which], futures) if len(data.y) else []
            picks.append((X, y, rest))
        arguments = __version__, job, picks, *futures.values()
        return self.submit(function.__name__.strip("<>"), work, *arguments, slot=self.slot(number, of))

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any, slot: str | None = None) -> Any:
        import dask

        # a part that is sent is a "large graph", and meant to be one
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self.client.submit(
                function,
                *arguments,
                key=f"echolearn-{name}-{uuid4().hex}",
                workers=slot,
                allow_other_workers=slot is not None,
                pure=False,
            )

    @property
    def slots(self) -> list[str]:
        """The workers' addresses, each once a thread; looked up at most once a second."""
        if time.monotonic() > self._asked + 1:
            self._slots = [a for a, n in sorted(self.client.nthreads().items()) for _ in range(n)] or self._slots
            self._asked = time.monotonic()
        return self._slots

    def slot(self, number: int, of: int) -> str:
        """Where number ... of should go: neighbours to one worker, which has their data."""
        return self.slots[min(number, of - 1) * len(self.slots) // of]

    def result(self, future: Any) -> Any:
        """What a task has given, however long it takes while there are workers."""
        from distributed import KilledWorker

        patience = ALONE
        try:
            while True:
                try:
                    result = future.result(timeout=patience)
                    return result.value if isinstance(result, Parcel) else result
                except TimeoutError:
                    patience *= 2  # a large result on a slow line must come through some time
                    if not self.client.nthreads():
                        raise ClusterError(
                            f"the cluster has had no worker for {ALONE} s or more; start some and fit again (with "
                            "checkpoint= it goes on after its last epoch)."
                        ) from None
        except KilledWorker as problem:
            raise ClusterError(
                f"one task ended every worker that tried it ({problem}). Most often that is memory: give the workers "
                "more, or raise distributed.scheduler.allowed-failures if they die of something else."
            ) from problem
        except CancelledError as problem:
            raise ClusterError(
                f"the scheduler has dropped the work ({problem}): it was restarted, or the client was closed."
            ) from problem


def _places(entries: list[Far], futures: dict[str, Any]) -> Places:
    """Where each entry is, its part by number; parts met first are added to `futures`."""
    places: Places = []
    for far in entries:
        futures.setdefault(far.part.key, far.part)
        number = list(futures).index(far.part.key)
        places.append((number, far.index, 0, None) if far.start is None else
                      (number, far.index, far.start, far.start + len(far)))  # fmt: skip
    return places
