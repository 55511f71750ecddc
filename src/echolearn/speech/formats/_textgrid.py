"""Praat TextGrids of words, phones and states, as Praat and the Montreal Forced Aligner write them.

Praat itself reads every number, string and <flag> that stands free and ignores the rest, so that a damaged number
shifts all that follow. Here the words between the values must be those of the long form, or there must be none.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from echolearn.exceptions import CorpusError
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech._text import LINE_END, line_problem, number_of, read_text
from echolearn.speech.formats._results import Recognised, TimedToken, decimal_of, name_problem, time_problem, units_of

_BOUNDARY_TOLERANCE_SECONDS = 0.001  # boundaries may disagree by it, because tools round them differently
_PIECE = re.compile(
    r'(?P<string>"(?:[^"]|"")*"(?=\s|$))|(?P<flag><\w*>(?=\s|$))|(?P<number>[-+.\d][^\s"]*)|(?P<word>[^\s"]+)|(?P<quote>")'
)
_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_CUT = "the tier is cut short or damaged; export it from Praat again"
_SILENT_TEXTS = frozenset({"", "sil", "sp", "spn"})
_STRESS_DIGIT = re.compile(r"(?<=[A-Za-z])[012]$")
_TIER_NAMES = ("words", "phones", "states")
_Row = tuple[int, int, str]


def write_textgrid(path: str | Path, result: Recognised, *, level: str = "words") -> None:
    """Write one result of recognition as a TextGrid.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced, completely or not at all.
    result : Recognised
        The result. Its tokens, its phones and its states become a tier each, if there are any. Time without a token
        becomes an empty interval. Confidences are left out, because the format has none.
    level : {"words", "phones"}, default "words"
        Name of the tier of the tokens.

    Examples
    --------
    >>> import tempfile
    >>> result = Recognised("u1", (TimedToken("yes", 0.0, 0.5),), seconds=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_textgrid(f"{folder}/u1.TextGrid", result)
    ...     read_textgrid(f"{folder}/u1.TextGrid") == result
    True
    """
    write_atomically(Path(path), textgrid_of(result, level=level).encode())


def textgrid_of(result: Recognised, *, level: str = "words") -> str:
    """Return the text of a TextGrid."""
    if level not in ("words", "phones") or (level == "phones" and result.phones):
        raise ValueError(f"level is {level!r}; expected 'words', or 'phones' for a result without further phones")
    end = units_of(result.end)
    if end <= 0:
        raise ValueError(f"a TextGrid cannot hold the result of {result.utterance!r}: it ends at 0 seconds")
    named = {level: result.tokens, "phones": result.phones, "states": result.states}
    if level == "phones":
        named["phones"] = result.tokens
    tiers = {name: _tiled(name, tokens, end) for name, tokens in named.items() if tokens or name == level}
    return "\n".join(_lines(tiers, end)) + "\n"


def _tiled(tier: str, tokens: Sequence[TimedToken], end: int) -> list[_Row]:
    """Return intervals that cover everything from 0 to the end, in units of 100 ns."""
    rows: list[_Row] = []
    at = 0
    for token in tokens:
        start, stop = max(units_of(token.start), at), units_of(token.end)
        if stop <= start:
            raise ValueError(f"tier {tier!r} cannot hold {token.name!r} at {token.start:.7g} s: it has no length")
        if start > at:
            rows.append((at, start, ""))
        rows.append((start, stop, token.name.replace('"', '""')))
        at = stop
    return rows if at == end else [*rows, (at, end, "")]


def _lines(tiers: dict[str, list[_Row]], end: int) -> Iterator[str]:
    yield from ('File type = "ooTextFile"', 'Object class = "TextGrid"', "")
    yield from (f"xmin = {decimal_of(0)}", f"xmax = {decimal_of(end)}", "tiers? <exists>", f"size = {len(tiers)}")
    yield "item []:"
    for k, (name, rows) in enumerate(tiers.items(), 1):
        yield from (f"    item [{k}]:", '        class = "IntervalTier"', f'        name = "{name}"')
        yield from (f"        xmin = {decimal_of(0)}", f"        xmax = {decimal_of(end)}")
        yield f"        intervals: size = {len(rows)}"
        for i, (start, stop, text) in enumerate(rows, 1):
            yield f"        intervals [{i}]:"
            yield from (f"            xmin = {decimal_of(start)}", f"            xmax = {decimal_of(stop)}")
            yield f'            text = "{text}"'


def read_textgrid(
    path: str | Path,
    *,
    utterance: str | None = None,
    level: str = "words",
    speaker: str | None = None,
    drop_stress: bool = False,
    silences: bool = False,
) -> Recognised:
    """Read the words, phones and states of a TextGrid.

    Parameters
    ----------
    path : str or Path
        The file, in UTF-8, or in UTF-16 with a byte-order mark. A CorpusError names the line of what is damaged.
    utterance : str, optional
        Name of the utterance. By default it is the name of the file without its ending.
    level : {"words", "phones"}, default "words"
        The tier whose intervals become the tokens. With "phones" a tier of words is ignored.
    speaker : str, optional
        The speaker, in a file whose tiers are called `speaker - words` and `speaker - phones` as the Montreal Forced
        Aligner writes them for several speakers. It is not needed if there is only one speaker.
    drop_stress : bool, default False
        Whether to drop the digit that marks stress at the end of a phone (`AH0`).
    silences : bool, default False
        Whether to keep intervals called sil, sp and spn. Empty intervals are left out in any case.

    Returns
    -------
    Recognised
        The tokens of the tiers `words`, `phones` and `states`. Upper and lower case, and a missing last s of the name
        of a tier, make no difference. A tier that is missing gives no tokens.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_textgrid(f"{folder}/u1.TextGrid", Recognised("u1", (TimedToken("yes", 0.0, 0.5),), seconds=1.0))
    ...     read_textgrid(f"{folder}/u1.TextGrid").tokens[0].end
    0.5
    """
    if level not in ("words", "phones"):
        raise ValueError(f"level is {level!r}, expected 'words' or 'phones'")
    tiers = read_tiers(path)
    chosen = {name: find_tier(path, tiers, name, speaker) for name in _TIER_NAMES[_TIER_NAMES.index(level) :]}
    if not any(chosen.values()):
        expected = " or ".join(chosen)
        raise CorpusError.one(path, f"line 1: has interval tiers {[t.name for t in tiers]}; expected {expected}")
    tokens = {}
    for name, tier in chosen.items():
        intervals = [i for i in (tier.intervals if tier else ()) if i.text]
        kept = [i for i in intervals if silences or i.text.lower() not in _SILENT_TEXTS]
        named = [TimedToken(i.text, i.start, i.end) for i in checked(path, kept)]
        if drop_stress and name != "words":
            named = [token._replace(name=_STRESS_DIGIT.sub("", token.name)) for token in named]
        tokens[name] = tuple(named)
    ends = [tier.intervals[-1].end for tier in tiers if tier.intervals]
    return Recognised(
        utterance or Path(path).stem,
        tokens[level],
        tokens["phones"] if level == "words" else (),
        states=tokens["states"],
        seconds=max(ends),
    )


class TierInterval(NamedTuple):
    """An interval of a tier as it stands in the file."""

    start: float
    end: float
    text: str
    line: int


class Tier(NamedTuple):
    """An interval tier."""

    name: str
    intervals: tuple[TierInterval, ...]


def checked(path: str | Path, intervals: Iterable[TierInterval]) -> list[TierInterval]:
    """Return intervals after comparing their texts with what a name may be."""
    rows = list(intervals)
    for interval in rows:
        what = name_problem(interval.text, "the text")
        if what:
            raise line_problem(path, interval.line, what)
    return rows


def find_tier(path: str | Path, tiers: Sequence[Tier], name: str, speaker: str | None = None) -> Tier | None:
    """Return the tier of a name, or None if there is none."""
    wanted = (name, name.removesuffix("s"))
    if speaker is None:
        fitting = [tier for tier in tiers if tier.name.lower().rpartition(" - ")[2].strip() in wanted]
    else:
        fitting = [t for t in tiers if t.name.lower() in [f"{speaker.lower()} - {w}" for w in wanted]]
    if len(fitting) > 1:
        names = ", ".join(repr(tier.name) for tier in fitting)
        raise CorpusError.one(path, f"line 1: several tiers fit {name!r}: {names}; name the speaker, or remove others")
    return fitting[0] if fitting else None


def read_tiers(path: str | Path) -> list[Tier]:
    """Read all interval tiers of a TextGrid."""
    return _Reader(path, read_text(path, "a Praat TextGrid")).tiers()


class _Reader:
    """Reads the values of one file in order, and names the file and the line in every error."""

    def __init__(self, path: str | Path, text: str) -> None:
        self.path = path
        self.lines = [0, *(end.end() for end in LINE_END.finditer(text))]
        self.pieces = _PIECE.finditer(text)
        self.at = 0
        self.long: bool | None = None  # whether the values have words before them; None in the header

    def tiers(self) -> list[Tier]:
        kind = self.string("Filetype=")
        if kind not in ("ooTextFile", "ooTextFile short"):
            raise self.problem(f'the file type is {kind[:40]!r}; expected "ooTextFile" of a Praat TextGrid')
        if self.string("Objectclass=") != "TextGrid":
            raise self.problem('the file holds another object; expected a "TextGrid"')
        bounds = self.times("xmin=")
        if self.value("flag", "tiers?") != "<exists>":
            raise self.problem("the TextGrid has no tiers; expected <exists>")
        count = self.whole("size=")
        tiers = [self.tier(k, bounds) for k in range(1, count + 1)]
        for piece in self.pieces:
            self.at = piece.start()
            raise self.problem(f"the file continues after its {count} tiers; expected its end")
        intervals = [tier for tier in tiers if tier is not None]
        if not intervals:
            raise self.problem("the TextGrid has no interval tier; expected at least one")
        return intervals

    def tier(self, k: int, whole: tuple[float, float]) -> Tier | None:
        """Read one tier; None if it is one of points."""
        kind = self.string(f"item[]:item[{k}]:class=" if k == 1 else f"item[{k}]:class=")
        if kind not in ("IntervalTier", "TextTier"):
            raise self.problem(f"the tier is of the kind {kind[:40]!r}; expected IntervalTier or TextTier")
        name, bounds = self.string("name="), self.times("xmin=")
        self.compare(bounds[0], whole[0], "start of the tier", "start of the TextGrid")
        self.compare(bounds[1], whole[1], "end of the tier", "end of the TextGrid")
        if kind == "IntervalTier":
            return Tier(name, self.intervals(bounds))
        for i in range(1, self.whole("points:size=") + 1):
            self.seconds(f"points[{i}]:number=", f"points[{i}]:time=")
            self.string("mark=")
        return None

    def intervals(self, bounds: tuple[float, float]) -> tuple[TierInterval, ...]:
        rows: list[TierInterval] = []
        at = bounds[0]
        for k in range(1, self.whole("intervals:size=") + 1):
            start = self.seconds(f"intervals[{k}]:xmin=")
            self.compare(start, at, "start of the interval", "end of the one before" if rows else "start of the tier")
            end = self.end_of(start)
            text = self.string("text=").strip()
            rows.append(TierInterval(start, end, text, self.line()))
            at = end
        if not rows:
            raise self.problem("the tier has no intervals; expected at least one")
        self.compare(at, bounds[1], "end of the last interval", "end of the tier")
        return tuple(rows)

    def times(self, label: str) -> tuple[float, float]:
        """Read a start and an end."""
        start = self.seconds(label)
        return start, self.end_of(start)

    def end_of(self, start: float) -> float:
        end = self.seconds("xmax=")
        if not start < end:
            raise self.problem(f"ends at {end:.7g} s and starts at {start:.7g} s; expected an end after the start")
        return end

    def compare(self, value: float, expected: float, what: str, other: str) -> None:
        if abs(value - expected) > _BOUNDARY_TOLERANCE_SECONDS + 1e-9:
            apart = f"the {what} is {value:.7g} s, the {other} {expected:.7g} s"
            raise self.problem(f"{apart}; expected intervals that follow one another")

    def seconds(self, *labels: str) -> float:
        text = self.value("number", *labels)
        value = number_of(text)
        if value is None or time_problem(value):
            raise self.problem(f"{text[:40]!r} is no time in seconds; expected a number from 0 on")
        return value

    def whole(self, label: str) -> int:
        text = self.value("number", label)
        if not _COUNT.fullmatch(text):
            raise self.problem(f"{text[:40]!r} is no number of tiers, intervals or points; {_CUT}")
        return int(text)

    def string(self, label: str) -> str:
        return self.value("string", label)[1:-1].replace('""', '"')

    def value(self, kind: str, *labels: str) -> str:
        """Return the next value, which has one of the labels before it in the long form and nothing in the short."""
        words = ""
        for piece in self.pieces:
            self.at = piece.start()
            if piece.lastgroup == "word" and any(label.startswith(words + piece[0]) for label in labels):
                words += piece[0]
            elif piece.lastgroup == kind and words in ("", *labels) and (self.long is None or self.long == bool(words)):
                if kind == "number":
                    self.long = bool(words)
                return piece[0]
            else:
                expected = f"{labels[0]!r} and a {kind}" if self.long in (None, True) else f"a {kind}"
                raise self.problem(f"found {(words + ' ' + piece[0]).strip()[:60]!r}; expected {expected}; {_CUT}")
        raise self.problem(f"the file ends here; {_CUT}")

    def line(self) -> int:
        return bisect_right(self.lines, self.at)

    def problem(self, what: str) -> CorpusError:
        return line_problem(self.path, self.line(), what)
