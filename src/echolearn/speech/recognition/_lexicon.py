"""Pronunciations of words, in the format of the CMU dictionary.

A line is a word and its phones. Further pronunciations have a number in brackets: ``READ(2)  R EH D``. In a text, a
pronunciation stands for as many words as its head has: an entry `A.M.` is one word, however it is spoken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from echolearn.exceptions import Problem
from echolearn.speech._text import raise_any, read_lines

_VARIANT_WORD = re.compile(r"(?P<word>.+?)\((?P<number>\d+)\)", re.ASCII)
_STRESS_DIGIT = re.compile(r"[012]$")

Pronunciation = tuple[str, ...]


@dataclass(frozen=True)
class Lexicon:
    """A pronunciation dictionary: the phones of words.

    Parameters
    ----------
    pronunciations : dict of str to tuple of tuple of str
        The pronunciations of each word, each a tuple of phones.

    Examples
    --------
    >>> lexicon = Lexicon({"A": (("ah",), ("ey",)), "GO": (("g", "ow"),)})
    >>> lexicon.words, lexicon.phones
    (('A', 'GO'), ('ah', 'ey', 'g', 'ow'))
    """

    pronunciations: Mapping[str, tuple[Pronunciation, ...]]

    @property
    def words(self) -> tuple[str, ...]:
        """All words, in alphabetical order."""
        return tuple(sorted(self.pronunciations))

    @property
    def phones(self) -> tuple[str, ...]:
        """All phones that occur, in alphabetical order."""
        every = (phone for variants in self.pronunciations.values() for variant in variants for phone in variant)
        return tuple(sorted(set(every)))


def restricted(lexicon: Lexicon, words: Iterable[str]) -> Lexicon:
    """Return the lexicon of some words only, all of which it must have."""
    wanted = list(dict.fromkeys(words))
    missing = [word for word in wanted if word not in lexicon.pronunciations]
    if missing:
        shown = ", ".join(missing[:5])
        raise ValueError(f"the lexicon lacks {len(missing)} of {len(wanted)} words: {shown}; add their pronunciations")
    return Lexicon({word: lexicon.pronunciations[word] for word in wanted})


def spelled_in(lexicon: Lexicon, phones: Sequence[str]) -> Lexicon:
    """Return the lexicon in the phones of a model; marks of stress (AH0) and case are dropped where it lacks them."""
    known = {phone: phone for phone in phones}
    folded = {phone.lower(): phone for phone in phones}

    def spelled(phone: str) -> str | None:
        bare = _STRESS_DIGIT.sub("", phone)
        return known.get(phone) or folded.get(phone.lower()) or known.get(bare) or folded.get(bare.lower())

    unknown = [phone for phone in lexicon.phones if spelled(phone) is None]
    if unknown:
        raise ValueError(
            f"the lexicon has phones that the model does not know: {', '.join(unknown)}; expected {', '.join(phones)}"
        )
    return Lexicon(
        {
            word: tuple(dict.fromkeys(tuple(str(spelled(phone)) for phone in variant) for variant in variants))
            for word, variants in lexicon.pronunciations.items()
        }
    )


def read_lexicon(path: str | Path) -> Lexicon:
    """Read a pronunciation dictionary, such as that of CMU.

    Parameters
    ----------
    path : str or Path
        A text file with a word and its phones on every line. Empty lines, and lines that begin with ;;; or #, are
        ignored, and so is the rest of a line after a blank and #. A CorpusError names every wrong line.

    Returns
    -------
    Lexicon
        The pronunciations. A word with several pronunciations has several lines, with or without a number in brackets.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "words.dic").write_text("A  AH\\nA(2)  EY\\nGO  G OW\\n")
    ...     read_lexicon(Path(folder) / "words.dic").pronunciations["A"]
    (('AH',), ('EY',))
    """
    pronunciations: dict[str, tuple[Pronunciation, ...]] = {}
    problems: list[Problem] = []
    for number, line in read_lines(path, "a pronunciation dictionary"):
        fields = re.sub(r"[ \t]#.*", "", line).split()
        if not fields or fields[0].startswith((";;;", "#")):
            continue
        word, phones = fields[0], tuple(fields[1:])
        match = _VARIANT_WORD.fullmatch(word)
        if match:
            word = match["word"]
        what = _wrong(word, phones, pronunciations, is_variant=match is not None)
        if what is None:
            pronunciations[word] = (*pronunciations.get(word, ()), phones)
        else:
            problems.append(Problem(str(path), f"line {number}: {what}"))
    if not pronunciations and not problems:
        problems.append(
            Problem(str(path), "line 1: the file holds no word; expected a word and its phones on every line")
        )
    raise_any(problems)
    return Lexicon(pronunciations)


def _wrong(
    word: str, phones: Pronunciation, pronunciations: Mapping[str, tuple[Pronunciation, ...]], *, is_variant: bool
) -> str | None:
    """Return what is wrong with an entry, or None."""
    if not phones:
        return f"{word!r} has no phones; expected the word and its phones"
    if is_variant and word not in pronunciations:
        return f"a further pronunciation of {word!r}, which has no first one before this line"
    if phones in pronunciations.get(word, ()):
        return f"{word!r} has this pronunciation already"
    return None
