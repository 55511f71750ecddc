"""Map over parts of the data and add: the one way in which work is spread over cores.

A part is worked on by one thread from end to end (matrix products on one BLAS thread, compiled loops without
the GIL), so no two pools of threads fight for the cores, and parts are added in their own order, so the
result does not depend on timing or on how many threads there are.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, current_thread
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

Item = TypeVar("Item")
Result = TypeVar("Result")

NAME = "echolearn-part"


@cache
def threads() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads(), thread_name_prefix=NAME, initializer=_quiet)


def _quiet() -> None:
    """Numbers that are not finite are met where the parts are added up; a warning from each thread says less."""
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


def inside() -> bool:
    """Whether this is one of our threads, at work on a part."""
    return current_thread().name.startswith(NAME)


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
            waiting.append(_pool().submit(function, item))
            if len(waiting) > threads():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def total(function: Callable[[Item], Any], items: Iterable[Item]) -> Any:
    """Σ function(item), added in the order of the items, into the first result."""
    result = None
    for part in each(function, items):
        if result is None:
            result = part
        else:
            result += part
    return result
