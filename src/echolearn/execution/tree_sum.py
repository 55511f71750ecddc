"""Sums whose order of addition depends on the number of terms alone, so that their bits do not depend on timing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

ARITY = 4  # terms that one node of the tree adds, from left to right


def tree_sum(terms: Iterable[Any]) -> Any:
    """Return the sum of the terms, added in a fixed tree: each node adds ARITY neighbours into the first of them.

    Only one partial sum waits on each level of the tree. The terms need `+=`; without any, the result is None.
    """
    waiting: list[list[Any]] = []  # [sum, how many terms it holds] of the unfinished node of each level

    def add(term: Any, level: int) -> None:
        if level == len(waiting):
            waiting.append([term, 1])
        elif waiting[level][1] == 0:
            waiting[level] = [term, 1]
        else:
            waiting[level][0] += term
            waiting[level][1] += 1
        if waiting[level][1] == ARITY:
            whole = waiting[level][0]
            waiting[level] = [None, 0]
            add(whole, level + 1)

    for term in terms:
        add(term, 0)
    level = 0
    while level < len(waiting):
        term, count = waiting[level]
        if count and not any(more for _, more in waiting[level + 1 :]):
            return term
        if count:
            waiting[level] = [None, 0]
            add(term, level + 1)
        level += 1
    return None
