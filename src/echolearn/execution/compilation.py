"""Loops that numba compiles at their first use and keeps for the next process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def cached_njit(**options: object) -> Callable[[F], F]:
    """Return numba's decorator with a cache; without one where no folder can be written, instead of an error."""

    def compiled(function: F) -> F:
        try:
            loop: F = njit(cache=True, **options)(function)
        except RuntimeError as problem:
            if "no locator available" not in str(problem):
                raise
            loop = njit(**options)(function)
        return loop

    return compiled
