"""Phone label files: TIMIT .PHN, HTK .lab and master label files, Praat TextGrid.

Inside, a segment's times are seconds. Samples (.PHN) and 100 ns units (HTK) survive the way there
and back, because rounding to their grid undoes a double's last-digit error.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from echolearn.speech.audio import RATE
from echolearn.speech.errors import CorpusError, Problem
from echolearn.speech.phones import SILENCES

HTK_UNITS = 10_000_000
TOLERANCE = 0.01  # one frame: hand labels and rounded times disagree by less


class Segment(NamedTuple):
    """A phone (or a state) from start to end, in seconds."""

    start: float
    end: float
    name: str


def read_labels(path: str | Path, rate: int = RATE) -> list[Segment] | list[str]:
    """By the file's ending: .phn, .lab or .TextGrid. A .lab without times is a list of names."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind == ".phn":
        return read_phn(path, rate)
    if kind == ".lab":
        return read_lab(path)
    if kind == ".textgrid":
        return read_textgrid(path)
    raise CorpusError.one(path, f"labels end in {kind or 'nothing'}; expected .phn, .lab or .TextGrid")


def read_phn(path: str | Path, rate: int = RATE) -> list[Segment]:
    """TIMIT: `start end phone` a line, times in samples at `rate`."""
    segments = []
    for number, line in _lines(path):
        fields = line.split()
        if len(fields) != 3 or not (_is_time(fields[0]) and _is_time(fields[1])):
            raise _bad_line(path, number, line, "start end phone, times in samples")
        segments.append(Segment(int(fields[0]) / rate, int(fields[1]) / rate, fields[2]))
    return _some(path, segments)


def write_phn(path: str | Path, segments: Iterable[Segment], rate: int = RATE) -> None:
    rows = [f"{round(s.start * rate)} {round(s.end * rate)} {s.name}\n" for s in segments]
    Path(path).write_text("".join(rows), encoding="utf-8")


def read_lab(path: str | Path) -> list[Segment] | list[str]:
    """HTK: `start end phone` in 100 ns, or one phone a line without times."""
    rows = [line.split() for _, line in _lines(path)]
    if rows and all(len(row) == 1 for row in rows):
        return [row[0] for row in rows]
    segments = [_htk_segment(path, number, line) for number, line in _lines(path)]
    return _some(path, segments)


def write_lab(path: str | Path, segments: Iterable[Segment]) -> None:
    Path(path).write_text("".join(_htk_row(s) for s in segments), encoding="utf-8")


def read_mlf(path: str | Path) -> dict[str, list[Segment]]:
    """HTK master label file: utterance (`"*/name.lab"` -> `name`, folders kept) -> segments.

    State-level output of HVite (`start end s2 score aa`, the phone on its first state only) is
    read as states `aa_s2`.
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
    parts = ["#!MLF!#\n"]
    for name, segments in utterances.items():
        parts += [f'"*/{name}.lab"\n', *(_htk_row(s) for s in segments), ".\n"]
    Path(path).write_text("".join(parts), encoding="utf-8")


def read_textgrid(path: str | Path, tier: str = "phones") -> list[Segment]:
    """Praat, long or short text form: the tier called `phones` or `phone`, else the only interval tier."""
    tokens = re.findall(r'"((?:[^"]|"")*)"|(?<![\w.\[])(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w\]])', _text(path))
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
    wanted = [name for name in tiers if name.lower() in (tier, tier.rstrip("s"))]
    if not wanted and len(tiers) == 1:
        wanted = list(tiers)
    if not wanted:
        raise CorpusError.one(path, f"has interval tiers {sorted(tiers)}; expected one called {tier!r}")
    return _some(path, tiers[wanted[0]])


def write_textgrid(path: str | Path, segments: Sequence[Segment], tier: str = "phones") -> None:
    low, high = (segments[0].start, segments[-1].end) if segments else (0.0, 0.0)
    rows = [
        'File type = "ooTextFile"',
        'Object class = "TextGrid"',
        "",
        f"{low!r}",
        f"{high!r}",
        "<exists>",
        "1",
    ]
    rows += ['"IntervalTier"', f'"{tier}"', f"{low!r}", f"{high!r}", str(len(segments))]
    for segment in segments:
        quoted = segment.name.replace('"', '""')
        rows += [f"{segment.start!r}", f"{segment.end!r}", f'"{quoted}"']
    Path(path).write_text("\n".join(rows) + "\n", encoding="utf-8")


def checked(
    segments: Sequence[Segment], seconds: float, phones: Iterable[str], file: str | Path
) -> tuple[list[Segment], list[Problem]]:
    """Segments that cover 0 to `seconds` without overlap or gap, and every reason why they do not.

    A disagreement of up to one frame (10 ms) is closed halfway. An unlabelled beginning or end next
    to a silence joins that silence.
    """
    known = set(phones)
    problems = [
        Problem(str(file), f"unknown phone {name!r} at {start:.3f} s; expected one of {len(known)} phones")
        for start, _, name in segments
        if name not in known
    ]
    edges = [segments[0].start]
    for before, after in itertools.pairwise(segments):
        apart = after.start - before.end
        if abs(apart) > TOLERANCE:
            what = "a gap" if apart > 0 else "an overlap"
            problems.append(
                Problem(
                    str(file),
                    f"{what} of {abs(apart) * 1000:.0f} ms between {before.name!r} (ends {before.end:.3f} s) "
                    f"and {after.name!r} (starts {after.start:.3f} s); segments must follow one another",
                )
            )
        edges.append((before.end + after.start) / 2)
    edges.append(segments[-1].end)
    problems += _check_ends(segments, seconds, file)
    edges[0], edges[-1] = 0.0, seconds
    for k, (start, end) in enumerate(itertools.pairwise(edges)):
        if end < start and not problems:
            problems.append(Problem(str(file), f"{segments[k].name!r} ends at {end:.3f} s before it starts"))
    whole = [Segment(start, end, segment.name) for segment, start, end in zip(segments, edges, edges[1:], strict=False)]
    return whole, problems


def _check_ends(segments: Sequence[Segment], seconds: float, file: str | Path) -> list[Problem]:
    problems = []
    first, last = segments[0], segments[-1]
    if last.end > seconds + TOLERANCE:
        what = f"runs past the audio: {last.name!r} ends at {last.end:.3f} s, the audio at {seconds:.3f} s"
        problems.append(Problem(str(file), f"{what}; labels and audio do not belong together"))
    if seconds - last.end > TOLERANCE and last.name not in SILENCES:
        what = f"leaves a gap of {(seconds - last.end) * 1000:.0f} ms after {last.name!r} at the end"
        problems.append(Problem(str(file), f"{what}; label the silence there"))
    if first.start > TOLERANCE and first.name not in SILENCES:
        what = f"leaves a gap of {first.start * 1000:.0f} ms before {first.name!r} at the start"
        problems.append(Problem(str(file), f"{what}; label the silence there"))
    return problems


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
    """Digits, and no more of them than the longest recording has use for."""
    return field.isascii() and field.isdigit() and len(field) <= 18


def _htk_row(segment: Segment) -> str:
    return f"{round(segment.start * HTK_UNITS)} {round(segment.end * HTK_UNITS)} {segment.name}\n"


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
    rows = ((number, line.strip()) for number, line in enumerate(_text(path).splitlines(), 1))
    return [(number, line) for number, line in rows if line]


def _some(path: str | Path, segments: list[Segment]) -> list[Segment]:
    if not segments:
        raise CorpusError.one(path, "holds no labels; expected at least one phone")
    return segments


def _bad_line(path: str | Path, number: int, line: str, expected: str) -> CorpusError:
    return CorpusError.one(path, f"line {number} is {line[:60]!r}; expected {expected}")
