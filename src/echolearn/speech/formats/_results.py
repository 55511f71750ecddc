"""Results of recognition: the words or phones of a recording with their times, in the form that all writers take.

All formats keep times to 100 ns, the unit of HTK. A result that is written and read again is unchanged if its times are
multiples of that unit, as the times of frames are.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

from echolearn.speech._text import UNPRINTABLE

UNITS_PER_SECOND = 10_000_000  # of 100 ns, in which HTK gives times
MAX_SECONDS = 1e8  # three years: a time beyond it is a damaged number
MAX_OVERLAP_SECONDS = 0.01  # one frame: times that were rounded overlap by less


class TimedToken(NamedTuple):
    """A word, phone or state with its times.

    Parameters
    ----------
    name : str
        The word, phone or state, without blanks.
    start, end : float
        Start and end time in seconds.
    confidence : float or None, default None
        The probability that the token is right, between 0 and 1; None if it is not known.

    Examples
    --------
    >>> TimedToken("yes", 0.1, 0.5).confidence is None
    True
    """

    name: str
    start: float
    end: float
    confidence: float | None = None


@dataclass(frozen=True)
class Recognised:
    """The result of recognition for one recording, or for one channel of it.

    A ValueError names what is wrong: a name that is empty or has blanks, or times that are not finite, negative, out
    of order, or overlap by more than a frame (10 ms).

    Parameters
    ----------
    utterance : str
        Name of the utterance, without blanks. Slashes separate folders.
    tokens : tuple of TimedToken
        The words, or the phones if phones were recognised, in the order of their times.
    phones, states : tuple of TimedToken, default ()
        The phones of the words, and the states of the phones. Only TextGrids and JSON files keep states.
    channel : int, default 1
        The channel of the recording, counted from 1.
    seconds : float or None, default None
        Length of the recording in seconds; by default the end of the last token. TextGrids, STM and JSON files keep it.

    Examples
    --------
    >>> Recognised("ann/u1", (TimedToken("yes", 0.1, 0.5, 0.9),)).end
    0.5
    """

    utterance: str
    tokens: tuple[TimedToken, ...]
    phones: tuple[TimedToken, ...] = ()
    channel: int = 1
    states: tuple[TimedToken, ...] = ()
    seconds: float | None = None

    def __post_init__(self) -> None:
        what = name_problem(self.utterance, "the utterance")
        if what is None and not 1 <= self.channel <= 99:
            what = f"channel is {self.channel}, expected 1 to 99"
        for tokens in (self.tokens, self.phones, self.states):
            problems = (token_problem(before, token) for before, token in itertools.pairwise((None, *tokens)))
            what = what or next((wrong for wrong in problems if wrong), None)
        if what is None and self.seconds is not None:
            what, last = time_problem(self.seconds), self._last_end()
            if what is None and self.seconds < last:
                what = f"it ends at {last} s, after its {self.seconds or 0.0} seconds"
        if what:
            raise ValueError(f"{str(self.utterance)[:60]!r} cannot be a result: {what}")

    def _last_end(self) -> float:
        return max((token.end for token in (*self.tokens, *self.phones, *self.states)), default=0.0)

    @property
    def end(self) -> float:
        """The length of the recording if it is known, otherwise the end of the last token, in seconds."""
        return self._last_end() if self.seconds is None else self.seconds


def name_problem(name: str, of: str) -> str | None:
    """Return why a text cannot be the name of a token or utterance in every format, or None."""
    if not isinstance(name, str) or not name:
        return f"{of} has no name"
    if name.split() != [name] or UNPRINTABLE.search(name):
        return f"{of} is {name[:60]!r}, expected a name without blanks and control characters"
    return None


def time_problem(seconds: float) -> str | None:
    """Return why a number cannot be a time, or None."""
    if not (math.isfinite(seconds) and 0.0 <= seconds <= MAX_SECONDS):
        return f"{seconds!r} is no time; expected 0 to {MAX_SECONDS:g} seconds"
    return None


def token_problem(before: TimedToken | None, token: TimedToken | None) -> str | None:
    """Return why a token cannot follow another one, or None."""
    if token is None:
        return None
    what = name_problem(token.name, "a token") or time_problem(token.start) or time_problem(token.end)
    if what:
        return what
    if token.end < token.start:
        return f"{token.name!r} ends at {token.end:.7g} s, before it starts at {token.start:.7g} s"
    if token.confidence is not None and not 0.0 <= token.confidence <= 1.0:
        return f"the confidence of {token.name!r} is {token.confidence!r}, expected 0 to 1"
    if before is None:
        return None
    if token.start < before.start:
        return (
            f"{token.name!r} starts at {token.start:.7g} s, before {before.name!r} (at {before.start:.7g} s); "
            "expected tokens in the order of their times"
        )
    if before.end - token.start > MAX_OVERLAP_SECONDS + 1e-9:
        return f"{token.name!r} starts at {token.start:.7g} s, while {before.name!r} lasts until {before.end:.7g} s"
    return None


def units_of(seconds: float) -> int:
    """Return a time in units of 100 ns."""
    return round(seconds * UNITS_PER_SECOND)


def decimal_of(units: int) -> str:
    """Return a time in units of 100 ns as decimal seconds, with at least two places."""
    whole, rest = divmod(units, UNITS_PER_SECOND)
    places = f"{rest:07d}".rstrip("0").ljust(2, "0")
    return f"{whole}.{places}"
