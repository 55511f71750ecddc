"""Where passes over a dataset are made: in this process, or on the workers that have the data (`cluster.executor`).

Everything between the data and the update of the weights is a map over groups of sequences, and a sum. An executor
provides these two operations; both executors give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, reduce
from typing import Any, Protocol, TypeVar

from echolearn.execution.threads import map_and_sum, map_in_order, tree_sum
from echolearn.validation import Array

Result = TypeVar("Result")
Prepared = TypeVar("Prepared")

Data = TypeVar("Data")  # a `sequences.dataset.Dataset`, which is defined above this package
Item = Any  # the indices of sequences, or a tuple that begins with them
Kept = Any  # a result, or the future of one


class Remote:
    """Base class of sequences and targets outside of this process."""


class Executor(Protocol[Data]):
    """The operations on a dataset.

    An item is the indices of some sequences, or a tuple that begins with them. `function` receives a dataset and the
    item, its tuple as separate arguments. It must not refer to the dataset in any other way: on a cluster it receives
    another dataset with those sequences alone. Results are added with `+=`.
    """

    def place(self, X: Sequence[Array]) -> Sequence[Array]:
        """Return the sequences, moved to where this executor works on them."""

    def place_targets(self, data: Data) -> Data:
        """Return the dataset with its targets, and their weights, moved to where its sequences are."""

    def place_weights(self, data: Data) -> Data:
        """Return the dataset with those weights moved to where its sequences are that are not yet there."""

    def transform(self, X: Sequence[Array], function: Callable[[Array], Array], width: int) -> Sequence[Array]:
        """Return function(x), which has `width` columns, of every sequence, computed where the sequences are."""

    def map(self, data: Data, function: Callable[..., Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield function(data, *item) for every item, in order."""

    def sum(self, data: Data, function: Callable[..., Result], items: Iterable[Item]) -> Result:
        """Return the sum of function(data, *item) over the items, in the fixed tree of `tree_sum`."""

    def keep(self, data: Data, function: Callable[..., object], items: Iterable[Item]) -> list[Kept]:
        """Compute as `map` does, but leave the results where they are computed, for `map_kept` and `sum_kept`."""

    def map_kept(self, function: Callable[[Kept], Result], kept: Iterable[Kept]) -> Iterator[Result]:
        """Yield function(result) for every kept result."""

    def sum_kept(self, function: Callable[[Kept], Result], kept: Iterable[Kept]) -> Result:
        """Return the sum of function(result) over the kept results."""

    def call_on_kept(self, function: Callable[[list[Kept]], Result], kept: Sequence[Kept]) -> Result:
        """Return function(results) of all kept results together, computed where they are."""

    def fold(
        self,
        data: Data,
        prepare: Callable[..., Prepared],
        items: Iterable[Item],
        advance: Callable[[Result, Prepared], Result],
        start: Result,
    ) -> Result:
        """Return the state after state = advance(state, prepare(data, *item)) for every item, from `start` on. Items
        are prepared ahead and in parallel. `advance` must not change its arguments."""


class LocalExecutor:
    """Passes over data in this process, on all cores."""

    def place(self, X: Sequence[Array]) -> Sequence[Array]:
        return X

    def place_targets(self, data: Data) -> Data:
        return data

    def transform(self, X: Sequence[Array], function: Callable[[Array], Array], width: int) -> Sequence[Array]:
        return [function(x) for x in X]

    def place_weights(self, data: Data) -> Data:
        return data

    def map(self, data: object, function: Callable[..., Result], items: Iterable[Item]) -> Iterator[Result]:
        return map_in_order(partial(_apply, function, data), items)

    def sum(self, data: object, function: Callable[..., Result], items: Iterable[Item]) -> Result:
        return tree_sum(self.map(data, function, items))

    def keep(self, data: object, function: Callable[..., object], items: Iterable[Item]) -> list[Kept]:
        return list(self.map(data, function, items))

    def map_kept(self, function: Callable[[Kept], Result], kept: Iterable[Kept]) -> Iterator[Result]:
        return map_in_order(function, kept)

    def sum_kept(self, function: Callable[[Kept], Result], kept: Iterable[Kept]) -> Result:
        return map_and_sum(function, kept)

    def call_on_kept(self, function: Callable[[list[Kept]], Result], kept: Sequence[Kept]) -> Result:
        return function(list(kept))

    def fold(
        self,
        data: object,
        prepare: Callable[..., Prepared],
        items: Iterable[Item],
        advance: Callable[[Result, Prepared], Result],
        start: Result,
    ) -> Result:
        return reduce(advance, self.map(data, prepare, items), start)


LOCAL = LocalExecutor()
_active: ContextVar[Executor[Any]] = ContextVar("echolearn-executor", default=LOCAL)


def active_executor() -> Executor[Any]:
    """Return the executor that new datasets are placed on."""
    return _active.get()


@contextmanager
def executing_on(executor: Executor[Any]) -> Iterator[None]:
    """Place new datasets on this executor while the context is open."""
    token = _active.set(executor)
    try:
        yield
    finally:
        _active.reset(token)


def _apply(function: Callable[..., Result], data: object, item: Item) -> Result:
    """Return function(data, *item), where an item that is not a tuple is a single argument."""
    return function(data, *(item if isinstance(item, tuple) else (item,)))
