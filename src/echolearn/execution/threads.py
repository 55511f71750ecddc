"""Work on all cores of this machine: the only pool of threads.

Each item of the work is done by one thread from beginning to end (matrix products on one BLAS thread, compiled loops
without the GIL), so that no two pools of threads compete for the cores.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from threading import local
from typing import TypeVar

import numpy as np

from echolearn.execution import blas
from echolearn.execution.tree_sum import tree_sum

Item = TypeVar("Item")
Result = TypeVar("Result")

NAME = "echolearn-part"

_thread = local()


@cache
def thread_count() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_count(), thread_name_prefix=NAME, initializer=_become_worker)


def _become_worker() -> None:
    """Mark this thread as a worker, and silence NumPy there.

    Numbers that are not finite are reported where the results are summed; a warning from each thread says less.
    """
    _thread.is_worker = True
    np.seterr(over="ignore", invalid="ignore")


def _after_fork() -> None:
    """Forget the pool: a forked child has none of its threads, and makes a pool of its own at first use."""
    _pool.cache_clear()
    blas.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def as_worker() -> Iterator[None]:
    """Let a thread of another pool, such as a cluster's, work as one of our worker threads.

    BLAS has one thread in this process from then on, because other threads may still work when this one ends.
    """
    blas.limit_blas_for_good()
    _thread.is_worker = True
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    finally:
        _thread.is_worker = False


def on_worker_thread() -> bool:
    """Return whether this is one of our worker threads."""
    return getattr(_thread, "is_worker", False)


def map_in_order(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield function(item) for every item, in order, computed on all cores.

    At most thread_count() + 1 results exist at a time. On a worker thread the items are computed one after another: two
    levels of threads would wait for each other.
    """
    if on_worker_thread():
        yield from map(function, items)
        return
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(_pool().submit(copy_context().run, function, item))
            if len(waiting) > thread_count():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def map_and_sum(function: Callable[[Item], Result], items: Iterable[Item]) -> Result:
    """Return the sum of function(item) over all items, added in the tree of `tree_sum`."""
    return tree_sum(map_in_order(function, items))
