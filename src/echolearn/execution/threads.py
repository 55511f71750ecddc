"""Map over parts of the data and add: the one way in which work is spread over cores and machines.

A part is worked on by one thread from end to end (matrix products on one BLAS thread, compiled loops without
the GIL), so no two pools of threads fight for the cores, and parts are added in one fixed tree, so the
result does not depend on timing or on how many threads there are. Here is what this process does itself; `cluster`
does the same on the workers of a Dask cluster, for data that are there.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from functools import cache, partial
from threading import Lock, local
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")
Placed = TypeVar("Placed")

NAME = "echolearn-part"
ARITY = 4  # parts that a node of the tree adds, from left to right

_thread = local()
# The cluster that data are sent to, or None: see `cluster.on`.
CLUSTER: ContextVar[Any] = ContextVar("echolearn-cluster", default=None)


@cache
def threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads(), thread_name_prefix=NAME, initializer=work_on_parts)


def work_on_parts() -> None:
    """This thread works on parts from now on, without a word on numbers that are not finite: they are met where the
    parts are added up, and a warning from each thread says less."""
    _thread.inside = True
    np.seterr(over="ignore", invalid="ignore")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


class _BlasLimit:
    """One limit for the process, though its threads overlap: the first one in sets it, the last one out lifts it."""

    def __init__(self) -> None:
        self.lock, self.inside = Lock(), 0
        self.limiter: Any = None

    def enter(self) -> None:
        with self.lock:
            if self.inside == 0:
                _take_control()
                self.limiter = _blas().limit(limits=1, user_api="blas")
            self.inside += 1

    def leave(self) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                _take_control()
                self.limiter.restore_original_limits()
                _take_control()


def _take_control() -> None:
    """From threadpoolctl 3.8 on only the thread that set a limit can lift it; here any of ours may, under a lock."""
    for library in _blas().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


_limit = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Each of our threads calls BLAS for itself; its own pools would only get in the way."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


def _after_fork() -> None:
    """A forked child has no threads: it makes its own pool at first use, and nobody holds the lock."""
    _pool.cache_clear()
    _limit.lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def at_work() -> Iterator[None]:
    """A thread that is not ours, a cluster's, works on a part. BLAS keeps to one thread in its process from now on:
    others may be at work there when this one ends."""
    _one_for_good()
    _thread.inside = True
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    finally:
        _thread.inside = False


@cache
def _one_for_good() -> Any:
    return _blas().limit(limits=1, user_api="blas")


def inside() -> bool:
    """Whether this is one of our threads, at work on a part."""
    return getattr(_thread, "inside", False)


def each(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """function(item) for every item, in order, on all cores; never more than threads + 1 results waiting.

    Within a part that has a thread already, one after another: two levels of threads would wait for each other.
    """
    if inside():
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(_pool().submit(copy_context().run, function, item))
            if len(waiting) > threads():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def total(function: Callable[[Item], Any], items: Iterable[Item]) -> Any:
    """Σ function(item), added in the tree of `added`."""
    return added(each(function, items))


def added(parts: Iterable[Any]) -> Any:
    """The sum of the parts, in a tree that only their number decides: each node adds ARITY neighbours from left to
    right, into the first. One sum waits on each level."""
    waiting: list[list[Any]] = []  # [sum, how many it holds] of the unfinished node of each level

    def take(part: Any, level: int) -> None:
        if level == len(waiting):
            waiting.append([part, 1])
        elif waiting[level][1] == 0:
            waiting[level] = [part, 1]
        else:
            waiting[level][0] += part
            waiting[level][1] += 1
        if waiting[level][1] == ARITY:
            whole = waiting[level][0]
            waiting[level] = [None, 0]
            take(whole, level + 1)

    for part in parts:
        take(part, 0)
    level = 0
    while level < len(waiting):
        part, count = waiting[level]
        if count and not any(more for _, more in waiting[level + 1 :]):
            return part
        if count:
            waiting[level] = [None, 0]
            take(part, level + 1)
        level += 1
    return None


def chosen(engine: Any) -> AbstractContextManager[Any]:
    """The engine of a fit: None for this process (or the cluster in use), or what `cluster.on` takes."""
    if engine is None:
        return nullcontext()
    from echolearn.cluster import executor as cluster

    return cluster.on(engine)


def sent(X: Sequence[Any]) -> Sequence[Any]:
    """Sequences, on the cluster where there is one in use."""
    cluster = CLUSTER.get()
    return X if cluster is None else cluster.sent(X)


def together(data: Placed) -> Placed:
    """Data whose targets are where its X is."""
    where: Any = data.where  # type: ignore[attr-defined]
    return data if where is HERE else where.together(data)


class Here:
    """Passes over data that are in this process. `cluster.Cluster` has the same methods.

    A function is given the data and an item: indices of sequences, or a tuple that begins with them.
    """

    def each(self, data: Any, function: Callable[..., Result], items: Iterable[Any]) -> Iterator[Result]:
        """function(data, *item) for every item, in order."""
        return each(partial(_apply, function, data), items)

    def total(self, data: Any, function: Callable[..., Any], items: Iterable[Any]) -> Any:
        return added(self.each(data, function, items))

    def hold(self, data: Any, function: Callable[..., Any], items: Iterable[Any]) -> list[Any]:
        """As `each`; results stay where they are made, for `each_held` and `total_held`."""
        return list(self.each(data, function, items))

    def each_held(self, function: Callable[[Any], Result], held: Iterable[Any]) -> Iterator[Result]:
        return each(function, held)

    def total_held(self, function: Callable[[Any], Any], held: Iterable[Any]) -> Any:
        return total(function, held)


HERE = Here()


def _apply(function: Callable[..., Result], data: Any, item: Any) -> Result:
    return function(data, *(item if isinstance(item, tuple) else (item,)))
