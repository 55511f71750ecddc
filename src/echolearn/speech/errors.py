"""One error for all problems of a corpus."""

from __future__ import annotations

from collections.abc import Iterable

from echolearn.exceptions import CorpusError, Problem


def raise_any(problems: Iterable[Problem]) -> None:
    """Raise one `CorpusError` with all problems, if there are any."""
    found = tuple(problems)
    if found:
        raise CorpusError(found)
