"""Limits on the threads of BLAS, whose own pools would compete with our worker threads for the cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock

from threadpoolctl import ThreadpoolController

MAX_BLAS_THREADS = 64  # with which the BLAS of NumPy's and SciPy's wheels is built: no one has limited it to them


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


class _BlasLimit:
    """The limit of this process: the first thread that enters sets it, the last one that leaves lifts it."""

    def __init__(self) -> None:
        self.lock, self.users = Lock(), 0
        self.before: int | None = None  # the threads of BLAS before the limit was set
        self.for_good = False

    def enter(self) -> None:
        """Set the limit unless another thread has."""
        with self.lock:
            if self.users == 0:
                self.before = _blas_threads()
                _take_control()
                self.limiter = _controller().limit(limits=1, user_api="blas")
            self.users += 1

    def leave(self) -> None:
        """Lift the limit unless another thread still needs it."""
        with self.lock:
            self.users -= 1
            if self.users == 0:
                _take_control()
                self.limiter.restore_original_limits()
                _take_control()


def _take_control() -> None:
    """Let this thread change the limits, whichever of ours has set them; a lock protects them. From threadpoolctl 3.8
    on, only the thread that set a limit can lift it."""
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


_limit = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread while the context is open; each of our threads then calls BLAS on its own core."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


def _blas_threads() -> int | None:
    """Return the number of threads of BLAS; None if there is no BLAS to ask, or if it has as many as it can have."""
    counts = [library.num_threads for library in _controller().lib_controllers if library.user_api == "blas"]
    return min((count for count in counts if count is not None and count < MAX_BLAS_THREADS), default=None)


def thread_limit() -> int | None:
    """Return the number of threads that the user leaves to BLAS (for example by `threadpool_limits`), None: any."""
    if _limit.for_good:
        return None  # it is our own limit
    return _limit.before if _limit.users else _blas_threads()


@cache
def limit_blas_for_good() -> None:
    """Limit BLAS to one thread until the process ends."""
    _limit.for_good = True
    _controller().limit(limits=1, user_api="blas")


def reset_after_fork() -> None:
    """Replace the lock, which no thread of a forked child would ever release."""
    _limit.lock = Lock()
