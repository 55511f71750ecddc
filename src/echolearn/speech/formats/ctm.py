"""CTM files of NIST's scoring tools, with ``utterance channel start duration token [confidence]`` on every line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from echolearn.exceptions import CorpusError
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech.formats.results import (
    Recognised,
    TimedToken,
    decimal_of,
    time_problem,
    token_problem,
    units_of,
)
from echolearn.speech.textfile import line_problem, number_of, read_lines

_CHANNEL = re.compile(r"[1-9]\d?", re.ASCII)
_LETTERS = {"A": 1, "B": 2}
_EXPECTED = "expected: utterance channel start duration token [confidence]"


def write_ctm(path: str | Path, results: Iterable[Recognised]) -> None:
    """Write the tokens of results to a CTM file.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced, completely or not at all.
    results : iterable of Recognised
        The results. They are sorted by utterance and channel, as NIST's tools expect. A result without tokens
        becomes a comment.

    Raises
    ------
    ValueError
        If an utterance and channel occur twice, or a name begins like a comment.

    Examples
    --------
    >>> import tempfile
    >>> result = Recognised("u1", (TimedToken("yes", 0.1, 0.5, 0.9), TimedToken("sir", 0.5, 1.25)))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_ctm(f"{folder}/a.ctm", [result])
    ...     print(Path(folder, "a.ctm").read_text(), end="")
    ...     read_ctm(f"{folder}/a.ctm") == [result]
    u1 1 0.10 0.40 yes 0.9
    u1 1 0.50 0.75 sir
    True
    """
    rows, seen = [], set()
    for result in sorted(results, key=lambda result: (result.utterance, result.channel)):
        key = (result.utterance, result.channel)
        if key in seen or result.utterance.startswith(";;"):
            why = "it occurs twice" if key in seen else "its name begins like a comment"
            raise ValueError(f"a CTM file cannot hold the result of {result.utterance!r}: {why}")
        seen.add(key)
        rows += [_row(result, token) for token in result.tokens] or [
            f";; {result.utterance} {result.channel}: nothing\n"
        ]
    write_atomically(Path(path), "".join(rows).encode())


def _row(result: Recognised, token: TimedToken) -> str:
    start, end = units_of(token.start), units_of(token.end)
    fields = [result.utterance, str(result.channel), decimal_of(start), decimal_of(end - start), token.name]
    if token.confidence is not None:
        fields.append(f"{token.confidence:.6g}")
    return " ".join(fields) + "\n"


def read_ctm(path: str | Path) -> list[Recognised]:
    """Read results of recognition from a CTM file.

    Parameters
    ----------
    path : str or Path
        The file. Lines that begin with ;; are comments. A channel is a number from 1 to 99, or A or B, which are 1
        and 2. A confidence may be missing or NA.

    Returns
    -------
    list of Recognised
        One result for each utterance and channel, in the order of the file.

    Raises
    ------
    CorpusError
        With the file and the line, if it cannot be read, holds no token, has a line of another form, tokens that are
        out of order or overlap by more than 10 ms, lines of an utterance that are not next to each other, or a time
        or confidence that is not valid. Alternatives (`<ALT_BEGIN>`) are not accepted.

    See Also
    --------
    write_ctm : Write such a file; it has an example.
    echolearn.speech.formats.writing.write_results : Write results in any format.
    """
    found: dict[tuple[str, int], list[TimedToken]] = {}
    last = None
    for number, line in read_lines(path, "a CTM file"):
        if line.startswith(";;"):
            continue
        key, token = _parsed(path, number, line)
        if key in found and key != last:
            what = f"{key[0]!r} occurs again after another utterance; expected its lines next to each other"
            raise line_problem(path, number, what)
        tokens = found.setdefault(key, [])
        what_is_wrong = token_problem(tokens[-1] if tokens else None, token)
        if what_is_wrong:
            raise line_problem(path, number, what_is_wrong)
        tokens.append(token)
        last = key
    if not found:
        raise CorpusError.one(path, f"line 1: the file holds no token; {_EXPECTED}")
    return [Recognised(utterance, tuple(tokens), channel=channel) for (utterance, channel), tokens in found.items()]


def _parsed(path: str | Path, number: int, line: str) -> tuple[tuple[str, int], TimedToken]:
    """Return utterance and channel, and the token of a line."""
    fields = line.split()
    if len(fields) not in (5, 6):
        raise line_problem(path, number, f"has {len(fields)} fields; {_EXPECTED}")
    utterance, channel, start, duration, name = fields[:5]
    if channel not in _LETTERS and not _CHANNEL.fullmatch(channel):
        raise line_problem(path, number, f"the channel is {channel[:20]!r}; expected 1 to 99, A or B")
    for text in (start, duration):
        value = number_of(text)
        if value is None or time_problem(value):
            raise line_problem(path, number, f"{text[:40]!r} is no time in seconds; {_EXPECTED}")
    confidence = None
    if len(fields) == 6 and fields[5] != "NA":
        confidence = number_of(fields[5])
        if confidence is None:
            raise line_problem(
                path, number, f"{fields[5][:40]!r} is no confidence; expected a number from 0 to 1, or NA"
            )
    end = float(Decimal(start) + Decimal(duration))  # exact, where a sum of doubles would miss the next token's start
    key = (utterance, _LETTERS[channel] if channel in _LETTERS else int(channel))
    return key, TimedToken(name, float(start), end, confidence)
