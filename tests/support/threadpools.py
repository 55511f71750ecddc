"""Work on a given number of threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from echolearn.execution import threads


@contextmanager
def thread_pool(count: int) -> Iterator[None]:
    """Give the library a new pool of `count` threads, and its own one back afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "thread_count", lambda: count)
        patch.setattr(threads, "_pool", cache(threads._pool.__wrapped__))
        try:
            yield
        finally:
            threads._pool(count).shutdown()
