"""Reading of the words of utterances: TIMIT's .wrd and .txt files, and lists of transcripts.

A list of transcripts is a text file with one utterance per line, in one of two usual forms: Kaldi's `text`, in which
the name comes first, and Sphinx's `.transcription`, in which the name is in brackets at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from echolearn.exceptions import CorpusError, Problem
from echolearn.speech.errors import raise_any

Words = tuple[str, ...]

_AT_THE_END = re.compile(r"(?P<words>.*)\((?P<name>[^()\s]+)\)\s*")
_SENTENCE_MARKS = frozenset({"<s>", "</s>"})
_WORD = re.compile(r"[^\W_](?:['’-]?[^\W_])*")


def read_transcripts(path: str | Path) -> dict[str, Words]:
    """Read ``NAME WORD WORD ...`` or ``WORD WORD ... (NAME)`` on every line; the marks <s> and </s> are left out."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError.one(path, f"is not a list of transcripts that can be read ({error})") from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    at_the_end = bool(numbered) and all(_AT_THE_END.fullmatch(line) for _, line in numbered)
    found: dict[str, Words] = {}
    problems: list[Problem] = []
    for number, line in numbered:
        name, words = _name_and_words(line, at_the_end=at_the_end)
        if name in found:
            problems.append(Problem(str(path), f"line {number}: {name} has a transcript already; keep one of the two"))
        found[name] = words
    if not found:
        problems.append(Problem(str(path), "holds no transcript; expected a name and its words on every line"))
    raise_any(problems)
    return found


def _name_and_words(line: str, *, at_the_end: bool) -> tuple[str, Words]:
    match = _AT_THE_END.fullmatch(line) if at_the_end else None
    name, words = (match["name"], match["words"].split()) if match else (line.split()[0], line.split()[1:])
    return name, tuple(word for word in words if word not in _SENTENCE_MARKS)


def word_file(audio: Path) -> Path | None:
    """Return the .wrd or else the .txt file of the same name as a recording, in either case, or None."""
    stem = audio.with_suffix("")
    if stem.suffix.lower() == ".wav":  # SA1.WAV.wav, a converted copy beside SA1.WAV
        stem = stem.with_suffix("")
    endings = (".wrd", ".WRD", ".txt", ".TXT")
    return next((path for ending in endings if (path := stem.with_suffix(ending)).is_file()), None)


def read_word_file(path: str | Path) -> Words:
    """Read the words of one utterance: `start end word` on every line of a .wrd file, or the sentence of a .txt file.

    The words of a sentence are in lower case and without punctuation, as in .wrd files.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError.one(path, f"is not a file of words that can be read ({error})") from error
    if path.suffix.lower() == ".wrd":
        return tuple(
            _timed_word(path, number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()
        )
    return tuple(_WORD.findall(re.sub(r"^\s*\d+\s+\d+\s", "", text).lower()))


def _timed_word(path: Path, number: int, line: str) -> str:
    fields = line.split()
    if len(fields) != 3 or not (fields[0].isdecimal() and fields[1].isdecimal()) or int(fields[0]) > int(fields[1]):
        raise CorpusError.one(path, f"line {number}: {line.strip()!r}; expected the first sample, the last and a word")
    return fields[2]


def match_transcripts(utterances: Sequence[str], transcripts: Mapping[str, Words], file: str | Path) -> list[Words]:
    """Return the words of each utterance; case, and `/`, `-` or `_` between the parts of a name, make no difference."""
    known = {_plain(name): words for name, words in transcripts.items()}
    missing = [name for name in utterances if _plain(name) not in known]
    if missing:
        what = f"has no transcript of {len(missing)} of {len(utterances)} utterances, the first is {missing[0]}"
        raise CorpusError.one(file, what)
    return [known[_plain(name)] for name in utterances]


def _plain(name: str) -> str:
    return name.lower().replace("/", "_").replace("-", "_")
