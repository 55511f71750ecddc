"""Sums whose order of addition depends on the number of terms alone, so that their bits do not depend on timing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

Term = TypeVar("Term")

TERMS_PER_NODE = 4  # terms that one node of the tree adds, from left to right


def tree_sum(terms: Iterable[Term]) -> Term:
    """Return the sum of the terms, added in a fixed tree: each node adds ARITY neighbours into the first of them.

    Only one partial sum exists on each level of the tree. The terms need `+=`; without any, the result is None.
    """
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
