"""Folding of phones into fewer classes: TIMIT's 61 into 48 or 39, or any map from a file.

The classes are those of K.-F. Lee and H.-W. Hon, "Speaker-independent phone recognition using hidden Markov models",
IEEE Transactions on Acoustics, Speech, and Signal Processing 37(11), 1989. There, models are trained on 48 phones, and
errors are counted in 39.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from echolearn.exceptions import CorpusError
from echolearn.speech.phones import TIMIT_61

LEVELS = ("phone48", "phone39")
_TO_48: dict[str, str | None] = {
    **{"ax-h": "ax", "axr": "er", "em": "m", "eng": "ng", "hv": "hh", "nx": "n", "ux": "uw"},
    **dict.fromkeys(("pcl", "tcl", "kcl"), "cl"),
    **dict.fromkeys(("bcl", "dcl", "gcl"), "vcl"),
    **dict.fromkeys(("h#", "pau"), "sil"),
    "q": None,
}
_TO_39 = {
    **{"ao": "aa", "ax": "ah", "el": "l", "en": "n", "ix": "ih", "zh": "sh"},
    **dict.fromkeys(("cl", "vcl", "epi"), "sil"),
}

PhoneMap = Mapping[str, str | None]


def timit_map(classes: int) -> dict[str, str | None]:
    """Return the map of TIMIT's 61 phones to 48 or 39 classes; the glottal stop ``q`` has none and is left out."""
    if classes not in (48, 39):
        raise ValueError(f"classes is {classes}, expected 48 or 39")
    folded = {phone: _TO_48.get(phone, phone) for phone in TIMIT_61}
    if classes == 48:
        return folded
    return {phone: None if name is None else _TO_39.get(name, name) for phone, name in folded.items()}


def level_map(level: str, phones: Iterable[str]) -> dict[str, str | None]:
    """Return the classes of phones at the level phone48 or phone39; a phone that TIMIT lacks is its own class."""
    if level not in LEVELS:
        raise ValueError(f"level is {level!r}, expected one of {', '.join(LEVELS)}")
    known = timit_map(int(level[-2:]))
    return {phone: known.get(phone, phone) for phone in phones}


def fold(phones: Iterable[str], phone_map: PhoneMap) -> list[str]:
    """Return the classes of a transcript's phones; neighbouring silences become one, other neighbours stay two."""
    found: list[str] = []
    for phone in phones:
        if phone not in phone_map:
            raise ValueError(f"the phone map does not name {phone!r}; add a line for it")
        name = phone_map[phone]
        if name is not None and not (name == "sil" and found and found[-1] == "sil"):
            found.append(name)
    return found


def read_phone_map(path: str | Path) -> dict[str, str | None]:
    """Read a phone map: a phone and its class on every line, or the phone alone, which is left out.

    Of three names (61, 48 and 39 classes, as in Kaldi's recipes) the last is the class. # begins a comment.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError.one(path, f"is not a phone map that can be read ({error})") from error
    found: dict[str, str | None] = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) > 3:
            raise CorpusError.one(path, f"line {number}: {line.strip()!r}; expected a phone and its class")
        if fields[0] in found:
            raise CorpusError.one(path, f"line {number}: {fields[0]} has a class already; keep one of the two lines")
        found[fields[0]] = fields[-1] if len(fields) > 1 else None
    if not found:
        raise CorpusError.one(path, "names no phone; expected a phone and its class on every line")
    return found
