"""Everything wrong with a corpus, collected before anything is said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike

_SHOWN = 30


@dataclass(frozen=True)
class Problem:
    """One thing wrong, with the file it is wrong in."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


class CorpusError(Exception):
    """A corpus that cannot be used as it is; `problems` holds every reason, each with its file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        shown = [f"  {problem}" for problem in self.problems[:_SHOWN]]
        if count > _SHOWN:
            shown.append(f"  ... and {count - _SHOWN} more, all in the exception's .problems")
        head = "1 problem" if count == 1 else f"{count} problems"
        super().__init__("\n".join([f"the corpus has {head}:", *shown]))

    @classmethod
    def one(cls, file: str | PathLike[str], what: str) -> CorpusError:
        return cls([Problem(str(file), what)])


def raise_any(problems: Iterable[Problem]) -> None:
    """Stop here if anything was found, with all of it."""
    found = tuple(problems)
    if found:
        raise CorpusError(found)
