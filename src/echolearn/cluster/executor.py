"""Passes over data that are on the workers of a Dask cluster (extra `dask`).

Sequences are sent to the workers, or read by them, once, and stay there in parts. A task carries weights and the
places of its sequences, and returns a sum; sums are added on the workers in the tree of `execution.tree_sum`. The bits
do not depend on which worker does what, or when: they are those of this process, as long as the machines are of one
kind (products of H_c with more than `readout.statistics.WIDE` columns are added in another order here). A part is
itself the result of a task, which is repeated when its worker dies: from the file, the bag, or the scheduler's copy of
what was sent.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import DTypeLike

from echolearn import __version__
from echolearn._typing import Array
from echolearn.cluster.worker import (
    ClusterError,
    Entry,
    Parcel,
    Pick,
    Place,
    add,
    transformed,
    unpickled,
    work,
    work_on_kept,
)
from echolearn.execution.executor import Item, Remote
from echolearn.execution.tree_sum import ARITY, tree_sum
from echolearn.sequences.batching import group_sequences
from echolearn.sequences.dataset import Dataset

Client = Any  # a distributed.Client; distributed is imported only when it is needed
Future = Any  # a distributed.Future
Result = TypeVar("Result")

ALONE = 60  # seconds without any worker after which the work is given up
FRAMES = 16384  # the least frames of a part of the data: each part is a task, so there must not be too many
PARTS = 4096  # the most parts: the scheduler keeps a record of each
TASKS = 8  # tasks of a pass per thread, where there are enough parts: no thread then waits long for the last tasks


@dataclass(frozen=True, eq=False)
class RemoteSequence(Remote):
    """A sequence, or its targets, on a cluster: entry `index` of a part, from row `start` on."""

    executor: ClusterExecutor
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


class ClusterExecutor:
    """Passes over data on a cluster: the operations of `execution.executor.Executor`."""

    def __init__(self, client: Client):
        self.client = client
        self._slots: list[str] = []
        self._looked_up = -np.inf

    # Data

    def place(self, X: Sequence[Array]) -> Sequence[Any]:
        """Send sequences to the workers, those of similar lengths in one part."""
        if isinstance(X[0], RemoteSequence):
            return X
        return self.place_parts([x.shape for x in X], lambda which, slot: self._send([X[i] for i in which], slot))

    def place_parts(
        self, shapes: Sequence[tuple[int, ...]], make: Callable[[Array, str], Future]
    ) -> list[RemoteSequence]:
        """Return sequences of these shapes in parts; make(which, slot): the part with the sequences `which`."""
        lengths = np.array([shape[0] for shape in shapes])
        out: dict[int, RemoteSequence] = {}
        groups = list(group_sequences(lengths, max(FRAMES, int(lengths.sum()) // PARTS)))
        for k, which in enumerate(groups):
            part = make(which, self.slot(k, len(groups)))
            out |= {i: RemoteSequence(self, part, index, shapes[i]) for index, i in enumerate(which)}
        return [out[i] for i in range(len(shapes))]

    def _send(self, values: list[Entry], slot: str) -> Future:
        """Return values as a part. They travel with the task that makes it, so that the scheduler can repeat it."""
        return self.submit("part", unpickled, pickle.dumps(values, protocol=5), slot=slot)

    def place_targets(self, data: Dataset) -> Dataset:
        """Send the targets of sequences, and their weights, to the workers, in the same parts."""
        return self.place_weights(replace(data, y=self._beside(data, data.y)))

    def place_weights(self, data: Dataset) -> Dataset:
        """Send those weights to the workers that are not yet there, in the parts of their sequences."""
        return data if data.weights is None else replace(data, weights=self._beside(data, data.weights))

    def _beside(self, data: Dataset, entries: Sequence[Entry]) -> list[Any]:
        """Return one entry per sequence, sent to the workers in the parts of the sequences if it is not there."""
        by_part: dict[str, list[int]] = {}
        out = {i: entry for i, entry in enumerate(entries) if isinstance(entry, RemoteSequence)}
        for i, x in enumerate(data.X):
            assert isinstance(x, RemoteSequence)
            if i not in out:
                by_part.setdefault(x.part.key, []).append(i)
        start = 0 if data.per_step else None
        for k, which in enumerate(by_part.values()):
            part = self._send([entries[i] for i in which], self.slot(k, len(by_part)))
            out |= {i: RemoteSequence(self, part, index, np.shape(entries[i]), start) for index, i in enumerate(which)}
        return [out[i] for i in range(len(data.X))]

    def transform(self, X: Sequence[Any], function: Callable[[Array], Array], width: int) -> Sequence[Any]:
        """Return function(x), which has `width` columns, of every sequence; each part becomes another part."""
        import cloudpickle

        job, parts = cloudpickle.dumps(function, protocol=5), {x.part.key: x.part for x in X}
        made = {key: self.submit("inputs", transformed, __version__, job, part) for key, part in parts.items()}
        return [replace(x, part=made[x.part.key], shape=(len(x), width)) for x in X]

    # Passes

    def map(self, data: Dataset, function: Callable[..., Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield function(data, *item) in order; only few tasks wait, or hold results, at any time."""
        items = list(items)
        job, waiting = self._job(function, data, many=len(items) > ARITY), deque[Future]()
        for k, item in enumerate(items):
            waiting.append(self._task(job, function, data, [item], self.slot(k % len(self.slots), len(self.slots))))
            if len(waiting) > 2 * len(self.slots):
                yield self.result(waiting.popleft())
        while waiting:
            yield self.result(waiting.popleft())

    def sum(self, data: Dataset, function: Callable[..., Result], items: Iterable[Item]) -> Result:
        """Return the sum of function(data, *item); each task adds one item, or all items below a node of the tree."""
        items, size = list(items), 1
        while len(items) // (size * ARITY) >= TASKS * len(self.slots):
            size *= ARITY
        starts = range(0, len(items), size)
        job = self._job(function, data, many=len(starts) > ARITY)
        tasks = []
        for start in starts:
            node = items[start : start + size]
            tasks.append(self._task(job, function, data, node, self.slot(start + len(node) // 2, len(items))))
        total: Result = self._tree_sum(tasks)
        return total

    def keep(self, data: Dataset, function: Callable[..., object], items: Iterable[Item]) -> list[Future]:
        """Return futures of function(data, *item), whose results stay on the workers."""
        items = list(items)
        job = self._job(function, data, many=len(items) > ARITY)
        return [self._task(job, function, data, [item], self.slot(k, len(items))) for k, item in enumerate(items)]

    def map_kept(self, function: Callable[[Any], Result], kept: Iterable[Future]) -> Iterator[Result]:
        """Yield function(result) for every kept result."""
        return map(self.result, self._with_kept(function, kept))

    def sum_kept(self, function: Callable[[Any], Result], kept: Iterable[Future]) -> Result:
        """Return the sum of function(result) over the kept results."""
        total: Result = self._tree_sum(self._with_kept(function, kept))
        return total

    def _with_kept(self, function: Callable[..., object], kept: Iterable[Future]) -> list[Future]:
        """Return futures of function(result) for the kept results."""
        job = self._job(function, None, many=False)
        return [self.submit("kept", work_on_kept, __version__, job, one) for one in kept]

    def _tree_sum(self, terms: list[Future]) -> Any:
        """Return the sum, added on the workers; at most ARITY terms are added in this process."""
        if len(terms) <= ARITY:
            return tree_sum(map(self.result, terms))
        while len(terms) > 1:
            nodes = [terms[start : start + ARITY] for start in range(0, len(terms), ARITY)]
            terms = [self.submit("sum", add, *node) if len(node) > 1 else node[0] for node in nodes]
        return self.result(terms[0])

    # Tasks

    def _job(self, function: Callable[..., object], data: Dataset | None, *, many: bool) -> bytes | Future:
        """Return what all tasks of a pass share: the function with its weights, and the kind of the data.

        A few tasks carry it themselves; many fetch it from a worker that has it.
        """
        import cloudpickle

        kind = None if data is None else (data.classes, data.per_step, data.dtype, data.noise)
        job: bytes = cloudpickle.dumps((function, kind), protocol=5)
        return self.submit("job", bytes, job) if many else job

    def _task(
        self, job: bytes | Future, function: Callable[..., object], data: Dataset, items: list[Item], slot: str
    ) -> Future:
        """Return the future of the sum of function(data, *item) over the items."""
        futures: dict[str, Future] = {}
        picks: list[Pick] = []
        for item in items:
            which, *rest = item if isinstance(item, tuple) else (item,)
            X = _places([data.X[i] for i in which], futures)
            y = _places([data.y[i] for i in which], futures) if len(data.y) else []
            w = None if data.weights is None else _places([data.weights[i] for i in which], futures)
            picks.append((X, y, rest, w))
        arguments = __version__, job, picks, *futures.values()
        return self.submit(function.__name__.strip("<>"), work, *arguments, slot=slot)

    def submit(self, name: str, function: Callable[..., object], *arguments: object, slot: str | None = None) -> Future:
        """Submit a task under a name of its own; slot: the worker that should do it, if it is free."""
        import dask

        # Dask warns of a "large graph", which a part with its data is on purpose.
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
        """The workers' addresses, each as often as it has threads; looked up at most once per second."""
        if time.monotonic() > self._looked_up + 1:
            self._slots = [a for a, n in sorted(self.client.nthreads().items()) for _ in range(n)] or self._slots
            self._looked_up = time.monotonic()
        return self._slots

    def slot(self, number: int, of: int) -> str:
        """Return the worker for task `number` of `of`: neighbours go to one worker, which has their data."""
        return self.slots[min(number, of - 1) * len(self.slots) // of]

    def result(self, future: Future) -> Any:
        """Return the result of a task, however long it takes, as long as there are workers."""
        from distributed import KilledWorker

        patience = ALONE
        try:
            while True:
                try:
                    result = future.result(timeout=patience)
                    return result.value if isinstance(result, Parcel) else result
                except TimeoutError:
                    patience *= 2  # so that a large result arrives over a slow connection in the end
                    if not self.client.nthreads():
                        raise ClusterError(
                            f"the cluster has had no worker for {ALONE} s or more; start some and fit again (with "
                            "checkpoint= the fit resumes after its last epoch)."
                        ) from None
        except KilledWorker as problem:
            raise ClusterError(
                f"one task ended every worker that tried it ({problem}). Most often the cause is memory: give the "
                "workers more, or raise distributed.scheduler.allowed-failures if they die of something else."
            ) from problem
        except CancelledError as problem:
            raise ClusterError(
                f"the scheduler has dropped the work ({problem}): it was restarted, or the client was closed."
            ) from problem


def _places(entries: Sequence[RemoteSequence], futures: dict[str, Future]) -> list[Place]:
    """Return the place of each entry, its part as an index into `futures`; new parts are added to them."""
    places: list[Place] = []
    for entry in entries:
        futures.setdefault(entry.part.key, entry.part)
        number = list(futures).index(entry.part.key)
        stop = None if entry.start is None else entry.start + len(entry)
        places.append((number, entry.index, entry.start or 0, stop))
    return places
