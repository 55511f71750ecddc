"""Every warning and every error class of the library.

A class of warnings can be made an error, or silenced, as any other:

>>> import warnings
>>> from echolearn.exceptions import PoorFitWarning
>>> warnings.simplefilter("error", PoorFitWarning)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike

__all__ = [
    "CheckpointError",
    "CheckpointWarning",
    "ClosedLoopWarning",
    "ClusterError",
    "CorpusError",
    "EchoStateWarning",
    "ExportError",
    "ForecastWarning",
    "InputWarning",
    "LayoutWarning",
    "ModelFileError",
    "PoorFitWarning",
    "PoorScoreWarning",
    "ReadoutWarning",
    "TrainingWarning",
]

MAX_PROBLEMS_SHOWN = 30


class InputWarning(UserWarning):
    """Inputs or labels are of a kind or scale that little can be learned from."""


class LayoutWarning(InputWarning):
    """A warning that the axes of X could mean two things: it names the one taken, and how to set the other."""


class PoorFitWarning(UserWarning):
    """A result is no better than a trivial one, lags behind the targets, or suffers from a cold start."""


class PoorScoreWarning(PoorFitWarning):
    """A warning: the answers to the data of `score` are no better than a trivial answer."""


class ReadoutWarning(UserWarning):
    """The equations of the readout are ill-conditioned, or its ridge is so large that most weights are near zero."""


class EchoStateWarning(UserWarning):
    """The reservoir cannot forget its initial state."""


class TrainingWarning(UserWarning):
    """Training did not go as planned: it diverged, and continued with smaller steps or stopped."""


class ForecastWarning(UserWarning):
    """A warning that a closed-loop forecast diverges from the range of its series."""


class ClosedLoopWarning(UserWarning):
    """A network that receives its own outputs has left the range of the values that it was fitted to."""


class CheckpointWarning(UserWarning):
    """A state could not be read; the fit resumes from an older one, or starts anew."""


class ModelFileError(ValueError):
    """The file is not a complete, unchanged echolearn file of the expected kind."""


class CheckpointError(ValueError):
    """The checkpoint belongs to other data or settings, or this version cannot resume from it."""


class ExportError(ValueError):
    """An error: the model, or an option of it, cannot be exported or run by `echolearn.runtime`."""


class ClusterError(ConnectionError):
    """An error: the cluster cannot be reached, has other versions of Python or echolearn, or has failed."""


@dataclass(frozen=True)
class Problem:
    """One problem of a corpus: the file, folder or utterance, and what is wrong, was expected, and can be done."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


class CorpusError(Exception):
    """An error: a corpus or a speech file cannot be used, for one or more reasons.

    Parameters
    ----------
    problems : iterable of Problem
        All problems, which the attribute of this name keeps. The message shows the first 30.

    Examples
    --------
    >>> from echolearn.exceptions import CorpusError, Problem
    >>> print(CorpusError([Problem("a.wav", "is silent"), Problem("b.wav", "is silent")]))
    the corpus has 2 problems:
      a.wav: is silent
      b.wav: is silent
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        shown = [f"  {problem}" for problem in self.problems[:MAX_PROBLEMS_SHOWN]]
        if count > MAX_PROBLEMS_SHOWN:
            shown.append(f"  ... and {count - MAX_PROBLEMS_SHOWN} more, all in the exception's .problems")
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


class EspeakError(RuntimeError):
    """An error: espeak-ng is missing or reports a failure."""


class AbandonedError(Exception):
    """Another network has failed."""
