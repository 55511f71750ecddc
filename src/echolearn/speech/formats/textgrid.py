"""Praat TextGrids of words, phones and states, as Praat and the Montreal Forced Aligner write them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from echolearn.exceptions import CorpusError
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech.formats.results import Recognised, TimedToken, decimal_of, units_of
from echolearn.speech.formats.tiers import checked, find_tier, read_tiers

_SILENT_TEXTS = frozenset({"", "sil", "sp", "spn"})
_STRESS_DIGIT = re.compile(r"(?<=[A-Za-z])[012]$")
_TIER_NAMES = ("words", "phones", "states")


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

    Raises
    ------
    ValueError
        If the result ends at 0 seconds, or a token is too short to be an interval.

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


_Row = tuple[int, int, str]


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
        The file, in UTF-8, or in UTF-16 with a byte-order mark.
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

    Raises
    ------
    CorpusError
        With the file and the line, if the file cannot be read, is not a TextGrid, is damaged, has intervals that do not
        follow one another, a text of several words, or no tier with one of these names.

    See Also
    --------
    write_textgrid : Write such a file; it has an example.
    """
    if level not in ("words", "phones"):
        raise ValueError(f"level is {level!r}, expected 'words' or 'phones'")
    tiers = read_tiers(path)
    found = {name: find_tier(path, tiers, name, speaker) for name in _TIER_NAMES[_TIER_NAMES.index(level) :]}
    if not any(found.values()):
        expected = " or ".join(found)
        raise CorpusError.one(path, f"line 1: has interval tiers {[t.name for t in tiers]}; expected {expected}")
    tokens = {}
    for name, tier in found.items():
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
