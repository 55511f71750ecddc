"""Where passes over a dataset are made: in this process, or where the data are (`cluster.executor`).

Everything between the data and the update of the weights is a map over groups of sequences and a sum. An executor
provides these two operations; both executors give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Protocol, TypeVar

from echolearn._typing import Array
from echolearn.execution.threads import map_and_sum, map_in_order
from echolearn.execution.tree_sum import tree_sum

Result = TypeVar("Result")


class Remote:
    """Base class of sequences and targets that an executor holds outside of this process."""


class Executor(Protocol):
    """The operations on a dataset.

    `function` receives the dataset and an item: indices of sequences, or a tuple that begins with them. It must not
    hold the dataset itself. Results are added with `+=`.
    """

    def place(self, X: Sequence[Array]) -> Sequence[Array]:
        """Return the sequences where this executor works on them."""

    def place_targets(self, data: Any) -> Any:
        """Return a dataset whose targets are where its sequences are."""

    def map(self, data: Any, function: Callable[..., Result], items: Iterable[Any]) -> Iterator[Result]:
        """Yield function(data, *item) for every item, in order."""

    def sum(self, data: Any, function: Callable[..., Result], items: Iterable[Any]) -> Result:
        """Return the sum of function(data, *item) in the fixed tree of `tree_sum`."""

    def keep(self, data: Any, function: Callable[..., Any], items: Iterable[Any]) -> list[Any]:
        """Compute as `map` does, but leave the results where they are made, for `map_kept` and `sum_kept`."""

    def map_kept(self, function: Callable[[Any], Result], kept: Iterable[Any]) -> Iterator[Result]:
        """Yield function(result) for every kept result."""

    def sum_kept(self, function: Callable[[Any], Result], kept: Iterable[Any]) -> Result:
        """Return the sum of function(result) over the kept results."""


class LocalExecutor:
    """Passes over data in this process, on all its cores."""

    def place(self, X: Sequence[Array]) -> Sequence[Array]:
        return X

    def place_targets(self, data: Any) -> Any:
        return data

    def map(self, data: Any, function: Callable[..., Result], items: Iterable[Any]) -> Iterator[Result]:
        return map_in_order(partial(_apply, function, data), items)

    def sum(self, data: Any, function: Callable[..., Result], items: Iterable[Any]) -> Result:
        total: Result = tree_sum(self.map(data, function, items))
        return total

    def keep(self, data: Any, function: Callable[..., Any], items: Iterable[Any]) -> list[Any]:
        return list(self.map(data, function, items))

    def map_kept(self, function: Callable[[Any], Result], kept: Iterable[Any]) -> Iterator[Result]:
        return map_in_order(function, kept)

    def sum_kept(self, function: Callable[[Any], Result], kept: Iterable[Any]) -> Result:
        total: Result = map_and_sum(function, kept)
        return total


LOCAL = LocalExecutor()
_active: ContextVar[Executor] = ContextVar("echolearn-executor", default=LOCAL)


def active_executor() -> Executor:
    """Return the executor that new datasets are placed on."""
    return _active.get()


@contextmanager
def executing_on(executor: Executor) -> Iterator[None]:
    """Place new datasets on this executor while the context is open."""
    token = _active.set(executor)
    try:
        yield
    finally:
        _active.reset(token)


def _apply(function: Callable[..., Result], data: Any, item: Any) -> Result:
    return function(data, *(item if isinstance(item, tuple) else (item,)))
