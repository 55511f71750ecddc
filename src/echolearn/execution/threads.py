"""Work on all cores of this machine: the only pool of threads, and sums in a fixed order.

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
from itertools import chain, islice
from threading import local
from typing import TypeVar, cast

import numpy as np

from echolearn.execution import blas

Item = TypeVar("Item")
Result = TypeVar("Result")

THREAD_NAME_PREFIX = "echolearn-part"

# Limits on the threads of a process. OpenMP's may be a list, of which the first number counts here.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "LOKY_MAX_CPU_COUNT")

_thread = local()


def thread_count() -> int:
    """Return the number of threads that this process may use: one per core, unless `THREAD_VARIABLES` (joblib sets one
    in its processes) or threadpoolctl allow for fewer. It has no influence on the bits of a result."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    settings = [os.environ.get(name, "").split(",")[0].strip() for name in THREAD_VARIABLES]
    limits = [int(text) for text in settings if text.isdigit()]
    return max(1, min([cores, *limits, blas.thread_limit() or cores]))


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix=THREAD_NAME_PREFIX, initializer=_become_worker)


def _become_worker() -> None:
    """Mark this thread as a worker, and silence NumPy there: numbers that are not finite are reported where the results
    are summed."""
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
    """Let a thread of another pool, such as a cluster's, work as one of ours. BLAS has one thread in this process from
    then on, because other threads may still work when this one ends."""
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
    levels of threads would wait for each other. With one core or one item, the calling thread computes: it would only
    wait. With several items it then counts as a worker, so that results do not depend on the number of cores.
    """
    if on_worker_thread():
        yield from map(function, items)
        return
    count, rest = thread_count(), iter(items)
    first = list(islice(rest, 2))
    if len(first) < 2 or count == 1:
        for item in chain(first, rest):
            _thread.is_worker = len(first) == 2
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    result = function(item)
            finally:
                _thread.is_worker = False
            yield result
        return
    waiting = deque[Future[Result]]()
    try:
        for item in chain(first, rest):
            waiting.append(_pool(count).submit(copy_context().run, function, item))
            if len(waiting) > count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def map_and_sum(function: Callable[[Item], Result], items: Iterable[Item]) -> Result:
    """Return the sum of function(item) over all items, added in the tree of `tree_sum`."""
    return tree_sum(map_in_order(function, items))


# ---------------- Sums whose order of addition, and so their bits, depends on the number of terms alone


Term = TypeVar("Term")

TERMS_PER_NODE = 4  # terms that one node of the tree adds, from left to right


def tree_sum(terms: Iterable[Term]) -> Term:
    """Return the sum of the terms, each node of a fixed tree adding TERMS_PER_NODE neighbours into the first of them by
    `+=`. Only one partial sum exists on each level; without any terms, the result is None."""
    levels: list[list[Term]] = []  # the sum in the unfinished node of each level, or nothing
    counts: list[int] = []  # how many terms that sum has

    def add(term: Term, level: int) -> None:
        """Add a term to the unfinished node of a level; a finished node becomes a term of the next level."""
        if level == len(levels):
            levels.append([])
            counts.append(0)
        if levels[level]:
            levels[level][0] += term  # type: ignore[operator]
        else:
            levels[level].append(term)
        counts[level] += 1
        if counts[level] == TERMS_PER_NODE:
            add(finish(level), level + 1)

    def finish(level: int) -> Term:
        """Return the sum in the node of a level, and empty the node."""
        counts[level] = 0
        return levels[level].pop()

    for term in terms:
        add(term, 0)
    level = 0
    while level < len(levels):
        if levels[level] and not any(levels[level + 1 :]):
            return finish(level)
        if levels[level]:
            add(finish(level), level + 1)
        level += 1
    return cast("Term", None)
