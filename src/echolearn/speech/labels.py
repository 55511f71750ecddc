"""Phone label files: TIMIT .PHN, HTK .lab and master label files, Praat TextGrid.

Times are seconds once they are read. Samples (.PHN) and units of 100 ns (HTK) are recovered exactly when they are
written again, because rounding to whole units removes the error in a double's last digit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from echolearn.speech.audio import RATE
from echolearn.speech.errors import CorpusError

HTK_UNITS = 10_000_000  # per second
# A string in quotation marks (which doubles those inside), or a number that is no part of a word or an index.
_TEXTGRID_TOKEN = re.compile(r'"((?:[^"]|"")*)"|(?<![\w.\[])(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w\]])')


class Segment(NamedTuple):
    """A phone or a state with its times.

    Parameters
    ----------
    start : float
        Where it begins, in seconds.
    end : float
        Where it ends, in seconds.
    name : str
        The phone or state.
    """

    start: float
    end: float
    name: str


def read_labels(path: str | Path, rate: int = RATE) -> list[Segment] | list[str]:
    """Read the labels of one utterance in the format that the file's ending names.

    Parameters
    ----------
    path : str or Path
        A file that ends in .phn, .lab or .TextGrid, in upper or lower case.
    rate : int, default 16000
        Samples per second, in which a .phn file counts: the rate of the audio file beside it.

    Returns
    -------
    list of Segment, or list of str
        The phones with their times; their names alone for a .lab file without times.

    Raises
    ------
    CorpusError
        If the file cannot be read, holds no labels or ends in something else.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.lab").write_text("0 5000000 sil\\n5000000 7500000 iy\\n")
    ...     read_labels(Path(folder) / "a.lab")[1]
    Segment(start=0.5, end=0.75, name='iy')
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in READERS:
        raise CorpusError.one(path, f"labels end in {kind or 'nothing'}; expected .phn, .lab or .TextGrid")
    return READERS[kind](path, rate)


def read_phn(path: str | Path, rate: int = RATE) -> list[Segment]:
    """Read a label file of TIMIT: `start end phone` on every line, times in samples.

    Parameters
    ----------
    path : str or Path
        The file.
    rate : int, default 16000
        Samples per second, in which the file counts.

    Returns
    -------
    list of Segment
        The phones with their times.

    Raises
    ------
    CorpusError
        If the file cannot be read, holds no labels or has a line of another form.
    """
    segments = []
    for number, line in _lines(path):
        fields = line.split()
        if len(fields) != 3 or not (_is_time(fields[0]) and _is_time(fields[1])):
            raise _bad_line(path, number, line, "start end phone, times in samples")
        segments.append(Segment(int(fields[0]) / rate, int(fields[1]) / rate, fields[2]))
    return _not_empty(path, segments)


def write_phn(path: str | Path, segments: Iterable[Segment], rate: int = RATE) -> None:
    """Write a label file of TIMIT.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced.
    segments : iterable of Segment
        The phones with their times.
    rate : int, default 16000
        Samples per second, in which the file counts.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_phn(Path(folder) / "a.phn", [Segment(0.0, 0.5, "sil"), Segment(0.5, 0.75, "iy")])
    ...     print((Path(folder) / "a.phn").read_text(), end="")
    ...     read_phn(Path(folder) / "a.phn")[1]
    0 8000 sil
    8000 12000 iy
    Segment(start=0.5, end=0.75, name='iy')
    """
    rows = [f"{round(s.start * rate)} {round(s.end * rate)} {s.name}\n" for s in segments]
    Path(path).write_text("".join(rows), encoding="utf-8")


def read_lab(path: str | Path) -> list[Segment] | list[str]:
    """Read a label file of HTK: `start end phone` in units of 100 ns, or one phone per line without times.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    list of Segment, or list of str
        The phones with their times; their names alone if no line has times.

    Raises
    ------
    CorpusError
        If the file cannot be read, holds no labels or has a line of another form.
    """
    rows = [line.split() for _, line in _lines(path)]
    if rows and all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    segments = [_htk_segment(path, number, line) for number, line in _lines(path)]
    return _not_empty(path, segments)


def read_mlf(path: str | Path) -> dict[str, list[Segment]]:
    """Read a master label file of HTK.

    Parameters
    ----------
    path : str or Path
        The file. State-level output of HVite (`start end s2 score aa`, with the phone on its first state only) is
        read as states `aa_s2`.

    Returns
    -------
    dict of str to list of Segment
        The segments of each utterance. Its name is that of the entry without its ending and a leading `*/`; folders
        are kept.

    Raises
    ------
    CorpusError
        If the file cannot be read, names no utterance or one twice, or has a line of another form.
    """
    found: dict[str, list[Segment]] = {}
    current: list[Segment] | None = None
    phone = ""
    for number, line in _lines(path):
        if line == "#!MLF!#":
            continue
        if line.startswith('"'):
            pattern = line.strip('"').replace("\\", "/")
            name = re.sub(r"\.\w+$", "", pattern).removeprefix("*/").lstrip("/")
            if name in found:
                raise CorpusError.one(path, f"line {number}: {name} appears twice; keep one of the two")
            current = found[name] = []
        elif line == ".":
            current = None
        elif current is None:
            raise _bad_line(path, number, line, 'an utterance name such as "*/name.lab" before its labels')
        else:
            segment = _htk_segment(path, number, line)
            fields = line.split()
            if re.fullmatch(r"s[2-4]", segment.name):
                phone = fields[4] if len(fields) > 4 else phone
                segment = segment._replace(name=f"{phone}_{segment.name}")
            current.append(segment)
    if not found:
        raise CorpusError.one(path, "names no utterance; expected an HTK master label file (#!MLF!#)")
    return found


def write_mlf(path: str | Path, utterances: Mapping[str, Sequence[Segment]]) -> None:
    """Write a master label file of HTK.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced.
    utterances : mapping of str to sequence of Segment
        The segments of each utterance by its name, which becomes the entry `"*/name.lab"`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_mlf(Path(folder) / "a.mlf", {"u1": [Segment(0.0, 0.5, "sil_s2")]})
    ...     print((Path(folder) / "a.mlf").read_text(), end="")
    #!MLF!#
    "*/u1.lab"
    0 5000000 sil_s2
    .
    """
    entries = ["#!MLF!#\n"]
    for name, segments in utterances.items():
        rows = (f"{round(s.start * HTK_UNITS)} {round(s.end * HTK_UNITS)} {s.name}\n" for s in segments)
        entries += [f'"*/{name}.lab"\n', *rows, ".\n"]
    Path(path).write_text("".join(entries), encoding="utf-8")


def read_textgrid(path: str | Path, tier: str = "phones") -> list[Segment]:
    """Read one interval tier of a Praat TextGrid, in its long or short text form.

    Parameters
    ----------
    path : str or Path
        The file.
    tier : str, default "phones"
        Name of the tier, in any case and also without its last s. If the file has only one interval tier, that one
        is read whatever its name.

    Returns
    -------
    list of Segment
        The intervals. One without text is named `sil`.

    Raises
    ------
    CorpusError
        If the file cannot be read, is damaged or has no such tier.
    """
    tiers = _textgrid_tiers(path, _TEXTGRID_TOKEN.findall(_text(path)))
    wanted = [name for name in tiers if name.lower() in (tier, tier.rstrip("s"))]
    if not wanted and len(tiers) == 1:
        wanted = list(tiers)
    if not wanted:
        raise CorpusError.one(path, f"has interval tiers {sorted(tiers)}; expected one called {tier!r}")
    return _not_empty(path, tiers[wanted[0]])


def _textgrid_tiers(path: str | Path, tokens: list[tuple[str, str]]) -> dict[str, list[Segment]]:
    """Return the interval tiers by name; a token is (string, "") or ("", number)."""
    tiers: dict[str, list[Segment]] = {}
    at = 0
    while at < len(tokens):
        if tokens[at][0] != "IntervalTier":
            at += 1
            continue
        name = tokens[at + 1][0] if at + 1 < len(tokens) else ""
        try:
            count = int(tokens[at + 4][1])
            if not 0 <= 3 * count <= len(tokens):
                raise IndexError(f"{count} intervals")
            rows = [tokens[at + 5 + 3 * k : at + 8 + 3 * k] for k in range(count)]
            tiers[name] = [
                Segment(_seconds(row[0][1]), _seconds(row[1][1]), row[2][0].replace('""', '"').strip() or "sil")
                for row in rows
            ]
        except (ValueError, IndexError) as error:
            what = f"tier {name[:60]!r} is cut short or damaged; export it from Praat again"
            raise CorpusError.one(path, what) from error
        at += 5 + 3 * count
    return tiers


def _seconds(text: str) -> float:
    seconds = float(text)
    if not math.isfinite(seconds):
        raise ValueError(f"{text:.20} seconds")
    return seconds


def _htk_segment(path: str | Path, number: int, line: str) -> Segment:
    fields = line.split()
    if len(fields) < 3 or not (_is_time(fields[0]) and _is_time(fields[1])):
        raise _bad_line(path, number, line, "start end name, times in units of 100 ns")
    return Segment(int(fields[0]) / HTK_UNITS, int(fields[1]) / HTK_UNITS, fields[2])


def _is_time(field: str) -> bool:
    """Return whether a field is digits only, and no more of them than the longest recording needs."""
    return field.isascii() and field.isdigit() and len(field) <= 18


def _text(path: str | Path) -> str:
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise CorpusError.one(path, f"cannot be read ({error.strerror}); check path and permissions") from error
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        raise CorpusError.one(path, f"is not text ({error.reason}); expected phone labels in UTF-8") from error


def _lines(path: str | Path) -> list[tuple[int, str]]:
    """Return the lines that are not blank, with their numbers."""
    rows = ((number, line.strip()) for number, line in enumerate(_text(path).splitlines(), 1))
    return [(number, line) for number, line in rows if line]


def _not_empty(path: str | Path, segments: list[Segment]) -> list[Segment]:
    if not segments:
        raise CorpusError.one(path, "holds no labels; expected at least one phone")
    return segments


def _bad_line(path: str | Path, number: int, line: str, expected: str) -> CorpusError:
    return CorpusError.one(path, f"line {number} is {line[:60]!r}; expected {expected}")


# The readers of one utterance's labels, by the ending of its file.
READERS: dict[str, Callable[[Path, int], list[Segment] | list[str]]] = {
    ".phn": read_phn,
    ".lab": lambda path, rate: read_lab(path),
    ".textgrid": lambda path, rate: read_textgrid(path),
}
