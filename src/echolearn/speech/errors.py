"""The error that reports all problems of a corpus at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike

_SHOWN = 30


@dataclass(frozen=True)
class Problem:
    """One problem of a corpus.

    Parameters
    ----------
    file : str
        The file or folder, or the name of the utterance.
    what : str
        What is wrong, what was expected and what to do.
    """

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


class CorpusError(Exception):
    """An error: a corpus or a speech file cannot be used, for one or more reasons.

    Parameters
    ----------
    problems : iterable of Problem
        All problems. The message shows the first 30.

    Attributes
    ----------
    problems : tuple of Problem
        All the problems, each with its file.

    Examples
    --------
    >>> error = CorpusError([Problem("a.wav", "is silent"), Problem("b.wav", "is silent")])
    >>> print(error)
    the corpus has 2 problems:
      a.wav: is silent
      b.wav: is silent
    >>> error.problems[1].file
    'b.wav'
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        shown = [f"  {problem}" for problem in self.problems[:_SHOWN]]
        if count > _SHOWN:
            shown.append(f"  ... and {count - _SHOWN} more, all in the exception's .problems")
        lines = [f"the corpus has {count} problems:", *shown]
        super().__init__(str(self.problems[0]) if count == 1 else "\n".join(lines))

    @classmethod
    def one(cls, file: str | PathLike[str], what: str) -> CorpusError:
        """Return the error of a single problem.

        Parameters
        ----------
        file : str or path
            The file.
        what : str
            What is wrong with the file.

        Returns
        -------
        CorpusError
            The error, to be raised by the caller.
        """
        return cls([Problem(str(file), what)])


def raise_any(problems: Iterable[Problem]) -> None:
    """Raise one error with all problems, if there are any.

    Parameters
    ----------
    problems : iterable of Problem
        The problems that were found.

    Raises
    ------
    CorpusError
        If there is at least one problem.
    """
    found = tuple(problems)
    if found:
        raise CorpusError(found)
