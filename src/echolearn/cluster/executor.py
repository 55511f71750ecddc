"""Passes over data that are on the workers of a Dask cluster (extra `dask`).

Sequences are sent to the workers, or read by them, once, and stay there in parts. A task carries weights and the
places of its sequences, and returns a sum; sums are added on the workers in the tree of `threads.tree_sum`. The bits
do not depend on which worker does what, or when: they are those of this process, as long as the machines are of one
kind (products of H_c with more than `MAX_COLUMNS_PER_THREAD` columns are added in another order here, see
`readout/statistics.py`). A part is itself the result of a task, which is repeated when its worker dies: from the file,
the bag, or the scheduler's copy of what was sent.
"""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import DTypeLike

from echolearn import __version__
from echolearn.cluster.worker import (
    Entry,
    Parcel,
    Pick,
    Place,
    add,
    call,
    listed,
    transformed,
    unpickled,
    work,
    work_on_all_kept,
    work_on_copy,
)
from echolearn.exceptions import ClusterError
from echolearn.execution.executor import Item, Prepared, Remote
from echolearn.execution.threads import TERMS_PER_NODE, tree_sum
from echolearn.sequences.batch import group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array

Client = Any  # a distributed.Client; distributed is imported only when it is needed
Result = TypeVar("Result")

WORKERLESS_SECONDS = 60  # seconds without any worker after which the work is given up
MIN_FRAMES_PER_PART = 16384  # of the data: each part is a task, so there must not be too many
MAX_PARTS = 4096  # the most parts: the scheduler keeps a record of each
MAX_CHAINED_STEPS = 64  # of a fold, until its state comes to the client: so many are repeated when it is lost
WHOLE_MEMORY_SHARE = 0.25  # share of a worker's memory up to which it may have a copy of all the data
TASKS_PER_THREAD = 8  # of a pass, where there are enough parts: no thread then waits long for the last tasks


class Future(Protocol):
    """The part of distributed.Future that is used here; distributed itself is imported only when it is needed."""

    key: str

    def result(self, timeout: float | None = None) -> Any:
        """Return the result of the task."""

    def done(self) -> bool:
        """Return whether the task has ended, in whatever way."""


class ClusterExecutor:
    """Passes over data on a cluster: the operations of `execution.executor.Executor`."""

    def __init__(self, client: Client):
        self.client = client
        self._slots: list[str] = []
        self._copies: WeakKeyDictionary[Future, dict[str, Future]] = WeakKeyDictionary()
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
        groups = list(group_sequences(lengths, max(MIN_FRAMES_PER_PART, int(lengths.sum()) // MAX_PARTS)))
        for k, which in enumerate(groups):
            part = make(which, self.slot(k, len(groups)))
            out |= {i: RemoteSequence(self, part, index, shapes[i]) for index, i in enumerate(which)}
        return [out[i] for i in range(len(shapes))]

    def place_values(self, values: Sequence[object]) -> Dataset:
        """Send values of any kind to the workers, as the entries X of a dataset for work that is dealt whole."""
        part = self._send(list(values), self.slots[0])
        X = [RemoteSequence(self, part, index, (), None) for index in range(len(values))]
        return Dataset(X, (), None, per_step=False, dtype=np.dtype(float), executor=self)  # type: ignore[arg-type]

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
        # The longest first, as in `place_parts`: targets then go to the worker that has their sequences.
        for k, which in enumerate(sorted(by_part.values(), key=lambda which: -max(len(data.X[i]) for i in which))):
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
        job, waiting = self._job(function, data, many=len(items) > TERMS_PER_NODE), deque[Future]()
        for k, item in enumerate(items):
            waiting.append(self._task(job, function, data, [item], self.slot(k % len(self.slots), len(self.slots))))
            if len(waiting) > 2 * len(self.slots):
                yield self.result(waiting.popleft())
        while waiting:
            yield self.result(waiting.popleft())

    def sum(self, data: Dataset, function: Callable[..., Result], items: Iterable[Item]) -> Result:
        """Return the sum of function(data, *item); each task adds one item, or all items below a node of the tree."""
        items, size = list(items), 1
        while len(items) // (size * TERMS_PER_NODE) >= TASKS_PER_THREAD * len(self.slots):
            size *= TERMS_PER_NODE
        starts = range(0, len(items), size)
        job = self._job(function, data, many=len(starts) > TERMS_PER_NODE)
        tasks = []
        for start in starts:
            node = items[start : start + size]
            tasks.append(self._task(job, function, data, node, self.slot(start + len(node) // 2, len(items))))
        total: Result = self._tree_sum(tasks)
        return total

    def keep(self, data: Dataset, function: Callable[..., object], items: Iterable[Item]) -> list[Future]:
        """Return futures of function(data, *item), whose results stay on the workers."""
        items = list(items)
        job = self._job(function, data, many=len(items) > TERMS_PER_NODE)
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
        return [self.submit("kept", call, __version__, job, one) for one in kept]

    def call_on_kept(self, function: Callable[[list[Any]], Result], kept: Sequence[Future]) -> Result:
        """Return function(results) of all kept results, computed on one worker."""
        job = self._job(function, None, many=False)
        result: Result = self.result(self.submit("together", work_on_all_kept, __version__, job, *kept))
        return result

    def fold(
        self,
        data: Dataset,
        prepare: Callable[..., Prepared],
        items: Iterable[Item],
        advance: Callable[[Result, Prepared], Result],
        start: Result,
    ) -> Result:
        """Return the state after all items; both functions run on the workers, between which only the state moves."""
        job, step = self._job(prepare, data, many=True), self._job(advance, None, many=True)
        parts, whole = Parts(), self.holds(data)
        parts.pick(data, range(len(data.X)), [])
        ahead, states = deque[tuple[str, Future]](), deque[Future]()
        state: Parcel | Future = Parcel(start)
        taken = 0

        def take() -> None:
            """Submit the next step; only few of them wait at any time."""
            nonlocal state, taken
            slot, prepared = ahead.popleft()
            state = self.submit("fold", call, __version__, step, state, prepared, slot=slot, priority=1)
            states.append(state)
            taken += 1
            if taken % MAX_CHAINED_STEPS == 0:
                state = Parcel(self.result(state))
                states.clear()
            elif len(states) > len(self.slots):
                self._finish(states.popleft())

        for k, item in enumerate(items):
            slot = self.slots[k % len(self.slots)]
            copy = (parts, self.copy(parts, slot)) if whole else None
            ahead.append((slot, self._task(job, prepare, data, [item], slot, copy=copy)))
            if len(ahead) > 2 * len(self.slots):
                take()
        while ahead:
            take()
        last: Result = state.value if isinstance(state, Parcel) else self.result(state)
        return last

    def _tree_sum(self, terms: list[Future]) -> Any:
        """Return the sum, added on the workers; at most TERMS_PER_NODE terms are added in this process."""
        if len(terms) <= TERMS_PER_NODE:
            return tree_sum(map(self.result, terms))
        while len(terms) > 1:
            nodes = [terms[start : start + TERMS_PER_NODE] for start in range(0, len(terms), TERMS_PER_NODE)]
            terms = [self.submit("sum", add, *node) if len(node) > 1 else node[0] for node in nodes]
        return self.result(terms[0])

    # Tasks

    def _job(self, function: Callable[..., object], data: Dataset | None, *, many: bool) -> bytes | Future:
        """Return what all tasks of a pass share: carried by each if they are few, fetched from a worker if many."""
        import cloudpickle

        kind = None if data is None else (data.classes, data.per_step, data.dtype, data.noise)
        job: bytes = cloudpickle.dumps((function, kind), protocol=5)
        return self.submit("job", bytes, job) if many else job

    def _task(
        self,
        job: bytes | Future,
        function: Callable[..., object],
        data: Dataset,
        items: list[Item],
        slot: str,
        *,
        copy: tuple[Parts, Future] | None = None,
    ) -> Future:
        """Return the future of the sum of function(data, *item); copy: all parts, and the copy that the worker has."""
        parts = Parts() if copy is None else copy[0]
        picks: list[Pick] = []
        for item in items:
            which, *rest = item if isinstance(item, tuple) else (item,)
            picks.append(parts.pick(data, which, rest))
        name = function.__name__ if hasattr(function, "__name__") else "part"
        task, having = (work, parts.futures) if copy is None else (work_on_copy, [copy[1]])
        return self.submit(name.strip("<>"), task, __version__, job, picks, *having, slot=slot)

    # Copies of all the data

    def holds(self, *data: Dataset) -> bool:
        """Return whether every worker has the memory for a copy of all of these data."""
        entries = [e for one in data for e in (*one.X, *one.y, *(one.weights or ()))]
        size = 8 * sum(float(np.prod(entry.shape)) for entry in entries)
        workers = self.client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker["memory_limit"] for worker in workers if worker.get("memory_limit")]
        return size <= WHOLE_MEMORY_SHARE * min(limits, default=np.inf)

    def copy(self, parts: Parts, slot: str) -> Future:
        """Return the copy of all parts that a worker has, which lives as long as they do: the scheduler removes second
        copies of a part when it likes, but not what a task has made of them."""
        copies = self._copies.setdefault(parts.futures[0], {})
        name = f"{slot} {hash(tuple(parts.numbers))}"
        if name not in copies:
            copies[name] = self.submit("copy", listed, *parts.futures, slot=slot)
        return copies[name]

    def submit(
        self, name: str, function: Callable[..., object], *arguments: object, slot: str | None = None, priority: int = 0
    ) -> Future:
        """Submit a task under a name of its own; slot: the worker that should do it, if it is there."""
        import dask

        # Dask warns of a "large graph", which a part with its data is on purpose.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            future: Future = self.client.submit(
                function,
                *arguments,
                key=f"echolearn-{name}-{uuid4().hex}",
                workers=slot,
                allow_other_workers=slot is not None,
                priority=priority,
                pure=False,
            )
        return future

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
        result = self._patiently(lambda seconds: future.result(timeout=seconds))
        return result.value if isinstance(result, Parcel) else result

    def _finish(self, future: Future) -> None:
        """Wait until a task has ended, in whatever way; its result stays on the workers."""
        from distributed import wait

        with self.client.as_current():
            self._patiently(lambda seconds: wait([future], timeout=seconds))

    def _patiently(self, attempt: Callable[[float], Result]) -> Result:
        """Return attempt(seconds), repeated after a TimeoutError as long as there are workers."""
        from distributed import KilledWorker

        patience = WORKERLESS_SECONDS
        try:
            while True:
                try:
                    return attempt(patience)
                except TimeoutError:
                    patience *= 2  # so that a large result arrives over a slow connection in the end
                    self.check_workers()
        except KilledWorker as problem:
            raise ClusterError(
                f"one task ended every worker that tried it ({problem}). Most often the cause is memory: give the "
                "workers more, or raise distributed.scheduler.allowed-failures if they die of something else."
            ) from problem
        except CancelledError as problem:
            raise ClusterError(
                f"the scheduler has dropped the work ({problem}): it was restarted, or the client was closed."
            ) from problem

    def check_workers(self) -> None:
        """Give up if there has been no worker for some time, and there is none now."""
        if not self.client.nthreads():
            raise ClusterError(
                f"the cluster has had no worker for {WORKERLESS_SECONDS} s or more; start some and fit again (with "
                "checkpoint= the fit resumes after its last epoch)."
            )


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
