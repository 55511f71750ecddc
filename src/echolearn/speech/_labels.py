"""Reading and writing of phone label files: TIMIT .PHN, HTK .lab and master label files, Praat TextGrid.

Times are in seconds after they have been read. Samples (.PHN) and units of 100 ns (HTK) are recovered exactly when they
are written again, because rounding to whole units removes the error in a double's last digit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from echolearn.exceptions import CorpusError
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech._audio import RATE_HZ
from echolearn.speech._text import line_problem, number_of, read_lines
from echolearn.speech.formats._results import UNITS_PER_SECOND, name_problem
from echolearn.speech.formats._textgrid import checked, find_tier, read_tiers

_ENTRY = re.compile(r'"([^"]+)"')


class Segment(NamedTuple):
    """A phone or a state with its times.

    Parameters
    ----------
    start, end : float
        Start and end time in seconds.
    name : str
        The phone or state.

    Examples
    --------
    >>> Segment(0.5, 0.75, "iy").name
    'iy'
    """

    start: float
    end: float
    name: str


def read_labels(path: str | Path, rate: int = RATE_HZ) -> list[Segment] | list[str]:
    """Read the labels of one utterance in the format that the file's ending names.

    Parameters
    ----------
    path : str or Path
        A file that ends in .phn, .lab or .TextGrid, in upper or lower case.
    rate : int, default 16000
        The sampling rate in Hz in which a .phn file gives its times: that of the audio file beside it.

    Returns
    -------
    list of Segment, or list of str
        The phones with their times; their names alone for a .lab file without times.

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


def read_phn(path: str | Path, rate: int = RATE_HZ) -> list[Segment]:
    """Read a label file of TIMIT: `start end phone` on every line, times in samples.

    Parameters
    ----------
    path : str or Path
        The file.
    rate : int, default 16000
        The sampling rate in Hz in which the file gives its times.

    Returns
    -------
    list of Segment
        The phones with their times.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "a.phn").write_text("0 8000 h#\\n8000 12000 iy\\n")
    ...     read_phn(Path(folder) / "a.phn")[1]
    Segment(start=0.5, end=0.75, name='iy')
    """
    segments = []
    for number, line in read_lines(path, "labels"):
        fields = line.split()
        if len(fields) != 3 or not _are_times(fields):
            raise _bad_line(path, number, line, "start end phone, times in samples")
        segments.append(Segment(int(fields[0]) / rate, int(fields[1]) / rate, fields[2]))
    return _not_empty(path, segments)


def write_phn(path: str | Path, segments: Iterable[Segment], rate: int = RATE_HZ) -> None:
    """Write a label file of TIMIT."""
    rows = [f"{round(s.start * rate)} {round(s.end * rate)} {s.name}\n" for s in segments]
    Path(path).write_text("".join(rows), encoding="utf-8")


def read_lab(path: str | Path) -> list[Segment] | list[str]:
    """Read a label file of HTK: `start end phone` in units of 100 ns, or one phone per line without times."""
    lines = read_lines(path, "labels")
    rows = [line.split() for _, line in lines]
    if rows and all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    return _not_empty(path, [_htk_segment(path, number, line) for number, line in lines])


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

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_mlf(Path(folder) / "a.mlf", {"u1": [Segment(0.0, 0.5, "sil")]})
    ...     read_mlf(Path(folder) / "a.mlf")
    {'u1': [Segment(start=0.0, end=0.5, name='sil')]}
    """
    lines = read_lines(path, "labels")
    if not lines or lines[0][1] != "#!MLF!#":
        found_there = repr(lines[0][1][:40]) if lines else "nothing"
        raise line_problem(path, 1, f"{found_there}; expected #!MLF!# of an HTK master label file")
    utterances: dict[str, list[Segment]] = {}
    current: list[Segment] | None = None
    phone = ""
    for number, line in lines[1:]:
        if line.startswith('"'):
            if current is not None:
                raise _bad_line(path, number, line, "labels, or a line with a full stop before the next utterance")
            name, phone = _entry_name(path, number, line), ""
            if name in utterances:
                raise line_problem(path, number, f"{name} appears twice; keep one of the two")
            current = utterances[name] = []
        elif current is None:
            raise _bad_line(path, number, line, 'an utterance name such as "*/name.lab" before its labels')
        elif line == ".":
            current = None
        else:
            segment, phone = _state_of(path, number, line, phone)
            if current and segment.start < current[-1].start:
                raise _bad_line(path, number, line, "labels in the order of their times")
            current.append(segment)
    if current is not None:
        raise line_problem(path, lines[-1][0], "the file ends inside an utterance; expected a line with a full stop")
    if not utterances:
        raise line_problem(path, 1, 'the file names no utterance; expected one such as "*/name.lab" and its labels')
    return utterances


def _entry_name(path: str | Path, number: int, line: str) -> str:
    match = _ENTRY.fullmatch(line)
    name = re.sub(r"\.\w+$", "", match[1].replace("\\", "/")).removeprefix("*/").lstrip("/") if match else ""
    if name_problem(name, "the utterance"):
        raise _bad_line(path, number, line, 'an utterance name such as "*/name.lab"')
    return name


def _state_of(path: str | Path, number: int, line: str, phone: str) -> tuple[Segment, str]:
    """Return the segment of a line, a state of HVite with the phone that it belongs to, and that phone."""
    segment, fields = _htk_segment(path, number, line), line.split()
    if not re.fullmatch(r"s[2-4]", segment.name):
        return segment, phone
    phone = fields[4] if len(fields) > 4 else phone
    if not phone:
        raise _bad_line(path, number, line, "the name of the phone after the score of its first state")
    return segment._replace(name=f"{phone}_{segment.name}"), phone


def write_mlf(path: str | Path, utterances: Mapping[str, Sequence[Segment]]) -> None:
    """Write a master label file of HTK.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced, completely or not at all.
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
        wrong = [name_problem(name, "an utterance"), *(name_problem(s.name, "a label") for s in segments)]
        if any(wrong) or '"' in name:
            raise ValueError(
                f"{name!r}: {next(filter(None, wrong), 'a name with quotation marks cannot be in an MLF')}"
            )
        rows = (f"{round(s.start * UNITS_PER_SECOND)} {round(s.end * UNITS_PER_SECOND)} {s.name}\n" for s in segments)
        entries += [f'"*/{name}.lab"\n', *rows, ".\n"]
    write_atomically(Path(path), "".join(entries).encode())


def read_textgrid(path: str | Path, tier: str = "phones") -> list[Segment]:
    """Read one interval tier of a Praat TextGrid, in its long or short text form."""
    tiers = read_tiers(path)
    chosen = find_tier(path, tiers, tier) or (tiers[0] if len(tiers) == 1 else None)
    if chosen is None:
        names = sorted(tier.name for tier in tiers)
        raise line_problem(path, 1, f"the file has interval tiers {names}; expected one called {tier!r}")
    intervals = checked(path, (i if i.text else i._replace(text="sil") for i in chosen.intervals))
    return [Segment(i.start, i.end, i.text) for i in intervals]


def _htk_segment(path: str | Path, number: int, line: str) -> Segment:
    fields = line.split()
    if len(fields) < 3 or not _are_times(fields) or (len(fields) > 3 and number_of(fields[3]) is None):
        raise _bad_line(path, number, line, "start end name, times in units of 100 ns, and perhaps a score")
    return Segment(int(fields[0]) / UNITS_PER_SECOND, int(fields[1]) / UNITS_PER_SECOND, fields[2])


def _are_times(fields: list[str]) -> bool:
    """Return whether the first two fields are digits only, no more of them than needed, and in order."""
    times = fields[:2]
    digits = all(field.isascii() and field.isdigit() and len(field) <= 18 for field in times)
    return digits and int(times[0]) <= int(times[1])


def _not_empty(path: str | Path, segments: list[Segment]) -> list[Segment]:
    if not segments:
        raise line_problem(path, 1, "the file holds no labels; expected at least one phone")
    return segments


def _bad_line(path: str | Path, number: int, line: str, expected: str) -> CorpusError:
    return CorpusError.one(path, f"line {number} is {line[:60]!r}; expected {expected}")


# The readers of one utterance's labels, by the ending of its file.
READERS: dict[str, Callable[[Path, int], list[Segment] | list[str]]] = {
    ".phn": read_phn,
    ".lab": lambda path, rate: read_lab(path),
    ".textgrid": lambda path, rate: read_textgrid(path),
}
