"""CTM and STM files of NIST's scoring tools.

A line of a CTM file is ``utterance channel start duration token [confidence]``, one of an STM file
``file channel speaker start end [<label>] words``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from echolearn.exceptions import CorpusError
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech._text import line_problem, number_of, read_lines
from echolearn.speech.formats._results import (
    MAX_OVERLAP_SECONDS,
    Recognised,
    TimedToken,
    decimal_of,
    name_problem,
    time_problem,
    token_problem,
    units_of,
)

_CHANNEL = re.compile(r"[1-9]\d?", re.ASCII)
_LETTERS = {"A": 1, "B": 2}
_CTM_LINE = "expected: utterance channel start duration token [confidence]"
_STM_LINE = "expected: file channel speaker start end [<label>] words"
_LABEL = re.compile(r"<[^<>]*>")


def write_ctm(path: str | Path, results: Iterable[Recognised]) -> None:
    """Write the tokens of results to a CTM file.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced, completely or not at all.
    results : iterable of Recognised
        The results, one for each utterance and channel. They are sorted by both, as NIST's tools expect. A result
        without tokens becomes a comment.

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
        and 2. A confidence may be missing or NA. A CorpusError names the line of what is wrong, such as tokens that are
        out of order or overlap by more than 10 ms. Alternatives (`<ALT_BEGIN>`) are not accepted.

    Returns
    -------
    list of Recognised
        One result for each utterance and channel, in the order of the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.ctm").write_text("u1 1 0.10 0.40 yes 0.9\\n")
    ...     read_ctm(f"{folder}/a.ctm")[0].tokens
    (TimedToken(name='yes', start=0.1, end=0.5, confidence=0.9),)
    """
    results: dict[tuple[str, int], list[TimedToken]] = {}
    last = None
    for number, line in read_lines(path, "a CTM file"):
        if line.startswith(";;"):
            continue
        key, token = _parsed_token(path, number, line)
        if key in results and key != last:
            what = f"{key[0]!r} occurs again after another utterance; expected its lines next to each other"
            raise line_problem(path, number, what)
        tokens = results.setdefault(key, [])
        what_is_wrong = token_problem(tokens[-1] if tokens else None, token)
        if what_is_wrong:
            raise line_problem(path, number, what_is_wrong)
        tokens.append(token)
        last = key
    if not results:
        raise CorpusError.one(path, f"line 1: the file holds no token; {_CTM_LINE}")
    return [Recognised(utterance, tuple(tokens), channel=channel) for (utterance, channel), tokens in results.items()]


def _channel(path: str | Path, number: int, text: str) -> int:
    if text not in _LETTERS and not _CHANNEL.fullmatch(text):
        raise line_problem(path, number, f"the channel is {text[:20]!r}; expected 1 to 99, A or B")
    return _LETTERS.get(text) or int(text)


def _parsed_token(path: str | Path, number: int, line: str) -> tuple[tuple[str, int], TimedToken]:
    """Return utterance and channel, and the token of a line."""
    fields = line.split()
    if len(fields) not in (5, 6):
        raise line_problem(path, number, f"has {len(fields)} fields; {_CTM_LINE}")
    utterance, channel, start, duration, name = fields[:5]
    which = _channel(path, number, channel)
    for text in (start, duration):
        value = number_of(text)
        if value is None or time_problem(value):
            raise line_problem(path, number, f"{text[:40]!r} is no time in seconds; {_CTM_LINE}")
    confidence = None
    if len(fields) == 6 and fields[5] != "NA":
        confidence = number_of(fields[5])
        if confidence is None:
            raise line_problem(
                path, number, f"{fields[5][:40]!r} is no confidence; expected a number from 0 to 1, or NA"
            )
    end = float(Decimal(start) + Decimal(duration))  # exact, where a sum of doubles would miss the next token's start
    return (utterance, which), TimedToken(name, float(start), end, confidence)


class StmSegment(NamedTuple):
    """A part of a recording with one speaker, and the words that are spoken in it.

    Parameters
    ----------
    file : str
        Name of the recording, without blanks.
    channel : int
        The channel, counted from 1.
    speaker : str
        The speaker.
    start, end : float
        Start and end time in seconds.
    words : tuple of str
        The words; () if there are none.
    label : str, default ""
        A label such as `<o,f0,male>`, by which NIST's tools count errors separately; "" for none.

    Examples
    --------
    >>> StmSegment("call", 1, "ann", 0.5, 1.25, ("yes", "sir")).words
    ('yes', 'sir')
    """

    file: str
    channel: int
    speaker: str
    start: float
    end: float
    words: tuple[str, ...]
    label: str = ""


def write_stm(path: str | Path, segments: Iterable[StmSegment]) -> None:
    """Write an STM file.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced, completely or not at all.
    segments : iterable of StmSegment
        The segments. They are written in the order of file, channel and time; those of one speaker must not overlap.

    Examples
    --------
    >>> import tempfile
    >>> segment = StmSegment("call", 1, "ann", 0.5, 1.25, ("yes", "sir"), "<o,f0>")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_stm(f"{folder}/a.stm", [segment])
    ...     print(Path(folder, "a.stm").read_text(), end="")
    ...     read_stm(f"{folder}/a.stm") == [segment]
    call 1 ann 0.50 1.25 <o,f0> yes sir
    True
    """
    rows = []
    before: StmSegment | None = None
    for segment in sorted(segments, key=lambda s: (s.file, s.channel, s.start)):
        what = _problem(before, segment)
        if what:
            raise ValueError(f"an STM file cannot hold this segment of {segment.file!r}: {what}")
        times = (decimal_of(units_of(segment.start)), decimal_of(units_of(segment.end)))
        fields = [segment.file, str(segment.channel), segment.speaker, *times, segment.label, *segment.words]
        rows.append(" ".join(field for field in fields if field) + "\n")
        before = segment
    write_atomically(Path(path), "".join(rows).encode())


def read_stm(path: str | Path) -> list[StmSegment]:
    """Read an STM file.

    Parameters
    ----------
    path : str or Path
        The file, with comments and channels as in a CTM file. A CorpusError names the line of what is wrong, such as
        segments that are out of order or overlap by more than 10 ms, or alternatives in braces.

    Returns
    -------
    list of StmSegment
        The segments in the order of the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.stm").write_text("call 1 ann 0.50 1.25 yes sir\\n")
    ...     read_stm(f"{folder}/a.stm")[0].words
    ('yes', 'sir')
    """
    segments: list[StmSegment] = []
    finished: set[tuple[str, int]] = set()
    for number, line in read_lines(path, "an STM file"):
        if line.startswith(";;"):
            continue
        segment = _parsed_segment(path, number, line)
        before = segments[-1] if segments else None
        if before is not None and before[:2] != segment[:2]:
            finished.add(before[:2])
        what = _problem(before, segment)
        if what is None and segment[:2] in finished:
            what = f"{segment.file!r} occurs again after another recording; expected its lines next to each other"
        if what:
            raise line_problem(path, number, what)
        segments.append(segment)
    if not segments:
        raise CorpusError.one(path, f"line 1: the file holds no segment; {_STM_LINE}")
    return segments


def _parsed_segment(path: str | Path, number: int, line: str) -> StmSegment:
    fields = line.split()
    if len(fields) < 5:
        raise line_problem(path, number, f"has {len(fields)} fields; {_STM_LINE}")
    file, channel, speaker, start, end, *rest = fields
    which = _channel(path, number, channel)
    times = number_of(start), number_of(end)
    if times[0] is None or times[1] is None:
        text = start if times[0] is None else end
        raise line_problem(path, number, f"{text[:40]!r} is no time in seconds; {_STM_LINE}")
    label = rest.pop(0) if rest and rest[0].startswith("<") and rest[0].endswith(">") else ""
    return StmSegment(file, which, speaker, times[0], times[1], tuple(rest), label)


def _problem(before: StmSegment | None, segment: StmSegment) -> str | None:
    """Return why a segment cannot follow another one, or None."""
    names = [(segment.file, "the file"), (segment.speaker, "the speaker"), *((w, "a word") for w in segment.words)]
    what = next((wrong for name, of in names if (wrong := name_problem(name, of))), None)
    what = what or time_problem(segment.start) or time_problem(segment.end)
    if what:
        return what
    if not 1 <= segment.channel <= 99 or segment.file.startswith(";;"):
        return (
            f"channel {segment.channel} of {segment.file!r}; expected a channel from 1 to 99 and no comment as a name"
        )
    if segment.end <= segment.start:
        return f"it ends at {segment.end:.7g} s and starts at {segment.start:.7g} s; expected an end after the start"
    if segment.label and not (_LABEL.fullmatch(segment.label) and name_problem(segment.label, "") is None):
        return f"the label is {segment.label[:40]!r}; expected <...> without blanks"
    if any(set(word) & set("{}") for word in segment.words):
        return "has alternatives in braces, which are not understood; keep one of them"
    if not segment.label and segment.words and segment.words[0][0] == "<" and segment.words[0][-1] == ">":
        return f"the first word {segment.words[0][:40]!r} looks like a label; write a label in front of it"
    if before is None or before[:2] != segment[:2]:
        return None
    if segment.start < before.start:
        return f"it starts at {segment.start:.7g} s, before the segment above it; expected the order of time"
    if before.speaker == segment.speaker and before.end - segment.start > MAX_OVERLAP_SECONDS + 1e-9:
        return f"it starts at {segment.start:.7g} s, while the segment above it lasts until {before.end:.7g} s"
    return None
