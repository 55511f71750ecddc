"""Reading of text files as numbered lines, with errors that name the line, and one error for all problems.

All readers of text formats use these functions, so that lines and blanks mean the same in all of them: `read_text`
refuses all blanks but spaces and tabs, so that `line.split()` returns the fields of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from echolearn.exceptions import CorpusError, Problem

# Blanks besides space, tab and line ends, control characters, a byte-order mark inside the text, and halves of a
# UTF-16 pair. Python would split lines and words at some of them, and editors show none of them.
UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u2060\u3000\ufeff\ud800-\udfff]"
)
LINE_END = re.compile("\r\n|\r|\n")
# Longer digit strings than any file of speech has; a reader's int() and float() stay quick and finite.
_NUMBER = re.compile(r"[-+]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][-+]?\d{1,3})?", re.ASCII)


def read_lines(path: str | Path, what: str) -> list[tuple[int, str]]:
    """Read the lines of a text file with their numbers; blank lines, and blanks around lines, are left out."""
    lines = LINE_END.split(read_text(path, what))
    return [(number, text) for number, line in enumerate(lines, 1) if (text := line.strip(" \t"))]


def read_text(path: str | Path, what: str) -> str:
    """Read a text in UTF-8, or in UTF-16 with a byte-order mark; `what` describes the expected file in messages."""
    try:
        raw = Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CorpusError.one(
            path, f"cannot be read ({reason}); expected {what}, check path and permissions"
        ) from error
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        before = raw[: error.start].decode(encoding, "ignore")
        number = len(LINE_END.split(before))
        raise line_problem(path, number, f"is not text ({error.reason}); expected {what} in UTF-8") from error
    hidden = UNPRINTABLE.search(text)
    if hidden:
        character = f"the character U+{ord(hidden[0]):04X}"
        number = len(LINE_END.split(text[: hidden.start()]))
        raise line_problem(path, number, f"holds {character}; expected {what} as plain text")
    return text


def line_problem(path: str | Path, number: int, what: str) -> CorpusError:
    """Return an error about one line."""
    return CorpusError.one(path, f"line {number}: {what}")


def number_of(text: str) -> float | None:
    """Return the finite number that a field holds, or None if it holds something else."""
    value = float(text) if _NUMBER.fullmatch(text) else float("inf")
    return value if abs(value) < float("inf") else None


def raise_any(problems: Iterable[Problem]) -> None:
    """Raise one `CorpusError` with all problems, if there are any."""
    faults = tuple(problems)
    if faults:
        raise CorpusError(faults)
