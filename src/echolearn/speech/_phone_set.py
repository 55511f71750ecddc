"""Phone lists, the three states of every phone, maps of phones to classes, and the phones of espeak-ng.

The 61 TIMIT phones are the first column of Kaldi's egs/timit/s5/conf/phones.60-48-39.map. The American English list has
ARPAbet names, with r-coloured vowels as separate phones because espeak-ng synthesises each as one sound. The 48 and 39
classes are those of K.-F. Lee and H.-W. Hon, "Speaker-independent phone recognition using hidden Markov models", IEEE
Transactions on Acoustics, Speech, and Signal Processing 37(11), 1989: models are trained on 48, and errors counted in
39.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from echolearn.exceptions import CorpusError

_TIMIT = """
    aa ae ah ao aw ax ax-h axr ay b bcl ch d dcl dh dx eh el em en eng epi er ey f g gcl h# hh hv
    ih ix iy jh k kcl l m n ng nx ow oy p pau pcl q r s sh t tcl th uh uw ux v w y z zh
"""
_ENGLISH = """
    sil p b t d k g ch jh f v th dh s z sh zh hh m n ng l r w y dx q
    iy ih eh ae aa ao ah ax uh uw er ey ay oy ow aw ar or ir air ur ia ayr el en
"""
TIMIT_61: tuple[str, ...] = tuple(_TIMIT.split())
ENGLISH: tuple[str, ...] = tuple(_ENGLISH.split())
_SILENCES = ("sil", "h#", "pau", "epi", "sp", "_", "<sil>")
SILENCES = frozenset(_SILENCES) | {name.upper() for name in _SILENCES}
# Phones that begin with a closure; espeak-ng gives the time of their burst.
STOPS = frozenset({"p", "b", "t", "d", "k", "g", "ch", "jh"})
_ESPEAK: dict[str, str] = {
    **{name: name for name in ("p", "b", "t", "d", "k", "g", "f", "v", "s", "z", "m", "n", "l", "r", "w")},
    **{"tS": "ch", "dZ": "jh", "T": "th", "D": "dh", "S": "sh", "Z": "zh", "h": "hh", "N": "ng", "j": "y"},
    **{"t#": "dx", "t2": "t", "*": "dx", "?": "q", "r-": "r", "n-": "en", "@L": "el", "l/": "l", "z/2": "z"},
    **{"i:": "iy", "i": "iy", "I": "ih", "I2": "ih", "I#": "ih", "E": "eh", "E2": "eh", "E#": "eh"},
    **{"a": "ae", "aa": "ae", "A:": "aa", "A": "aa", "0": "aa", "0#": "aa"},
    **{"O": "ao", "O:": "ao", "O2": "ao", "U": "uh", "u:": "uw", "u": "uw"},
    **{"V": "ah", "@": "ax", "@2": "ax", "@5": "ax", "@-": "ax", "a#": "ax"},
    **{"3": "er", "3:": "er", "eI": "ey", "aI": "ay", "OI": "oy", "oU": "ow", "oU#": "ow", "aU": "aw"},
    **{"A@": "ar", "o@": "or", "O@": "or", "i@3": "ir", "e@": "air", "U@": "ur", "i@": "ia"},
    **{"aI3": "ayr", "aI@": "ayr", "_": "sil", "_:": "sil", "_|": "sil", "_!": "sil", "_^": "sil"},
}
_STRESS = "',%=|"
STATES_PER_PHONE = 3
_STATE_NAME = re.compile(r"^(?P<phone>.+?)(?:\[(?P<bracket>[2-4])\]|_s(?P<suffix>[2-4])(?:_1)?)$")
PHONE_LEVELS = ("phone48", "phone39")
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


def fold_espeak(name: str) -> str | None:
    """Return the English phone of a phone of espeak-ng; "" for a mark that modifies the one before, None if unknown."""
    bare = name.lstrip(_STRESS) if name not in _STRESS else ""
    if bare in ("", ";"):
        return ""
    return _ESPEAK.get(bare)


def state_names(phones: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the three states of every phone as HTK writes them, counted from 2: aa_s2, aa_s3, aa_s4."""
    return tuple(f"{phone}_s{state + 2}" for phone in phones for state in range(STATES_PER_PHONE))


def silence_of(phones: Iterable[str]) -> str | None:
    """Return the phone for silence, the first of `sil h# pau epi sp _ <sil>` in either case, or None."""
    known = set(phones)
    spellings = (spelling for name in _SILENCES for spelling in (name, name.upper()))
    return next((spelling for spelling in spellings if spelling in known), None)


def split_state(name: str) -> tuple[str, int | None]:
    """Split the name of a state (aa_s2, aa[2]) into its phone and its number 0, 1 or 2, which is None for a phone."""
    match = _STATE_NAME.match(name)
    if match is None:
        return name, None
    return match["phone"], int(match["bracket"] or match["suffix"]) - 2


def phones_of_states(names: Iterable[str]) -> tuple[str, ...]:
    """Return the phones that these states belong to, each once, in the order of their first state."""
    return tuple(dict.fromkeys(split_state(str(name))[0] for name in names))


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
    if level not in PHONE_LEVELS:
        raise ValueError(f"level is {level!r}, expected one of {', '.join(PHONE_LEVELS)}")
    known = timit_map(int(level[-2:]))
    return {phone: known.get(phone, phone) for phone in phones}


def fold(phones: Iterable[str], phone_map: PhoneMap) -> list[str]:
    """Return the classes of a transcript's phones; neighbouring silences become one, other neighbours stay two."""
    classes: list[str] = []
    for phone in phones:
        if phone not in phone_map:
            raise ValueError(f"the phone map does not name {phone!r}; add a line for it")
        name = phone_map[phone]
        if name is not None and not (name == "sil" and classes and classes[-1] == "sil"):
            classes.append(name)
    return classes


def read_phone_map(path: str | Path) -> dict[str, str | None]:
    """Read a phone map: a phone and its class on every line, or the phone alone, which is left out. Of three names (61,
    48 and 39 classes, as in Kaldi's recipes) the last is the class. # begins a comment."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError.one(path, f"is not a phone map that can be read ({error})") from error
    classes: dict[str, str | None] = {}
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) > 3:
            raise CorpusError.one(path, f"line {number}: {line.strip()!r}; expected a phone and its class")
        if fields[0] in classes:
            raise CorpusError.one(path, f"line {number}: {fields[0]} has a class already; keep one of the two lines")
        classes[fields[0]] = fields[-1] if len(fields) > 1 else None
    if not classes:
        raise CorpusError.one(path, "names no phone; expected a phone and its class on every line")
    return classes
