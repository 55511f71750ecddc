"""Reading of the words of utterances: TIMIT's .wrd and .txt files, and lists of transcripts.

A list of transcripts is a text file with one utterance per line, in one of two usual forms: Kaldi's `text`, in which
the name comes first, and Sphinx's `.transcription`, in which the name is in brackets at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from echolearn.speech.errors import CorpusError, Problem, raise_any

Words = tuple[str, ...]

_AT_THE_END = re.compile(r"(?P<words>.*)\((?P<name>[^()\s]+)\)\s*")
_SENTENCE_MARKS = frozenset({"<s>", "</s>"})
_LETTERS = re.compile(r"[^\W_](?:['’-]?[^\W_])*")


def read_transcripts(path: str | Path) -> dict[str, Words]:
    """Read a list of transcripts.

    Parameters
    ----------
    path : str or Path
        A text file with one utterance per line: ``NAME WORD WORD ...``, or ``WORD WORD ... (NAME)`` on every line.

    Returns
    -------
    dict of str to tuple of str
        The words of each utterance. The marks ``<s>`` and ``</s>`` are left out.

    Raises
    ------
    CorpusError
        If the file cannot be read, holds no utterance or names one twice.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "text").write_text("<s> GO ON </s> (an1-ann)\\nYES (an2-ann)\\n")
    ...     read_transcripts(Path(folder) / "text")
    {'an1-ann': ('GO', 'ON'), 'an2-ann': ('YES',)}
    """
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
    """Return the file that holds the words of a recording.

    Parameters
    ----------
    audio : Path
        The recording.

    Returns
    -------
    Path or None
        The file of the same name that ends in .wrd or, without one, in .txt, in upper or lower case; None if there is
        neither.
    """
    stem = audio.with_suffix("")
    if stem.suffix.lower() == ".wav":  # SA1.WAV.wav, a converted copy beside SA1.WAV
        stem = stem.with_suffix("")
    endings = (".wrd", ".WRD", ".txt", ".TXT")
    return next((path for ending in endings if (path := stem.with_suffix(ending)).is_file()), None)


def read_word_file(path: str | Path) -> Words:
    """Read the words of one utterance from a .wrd or .txt file of TIMIT.

    Parameters
    ----------
    path : str or Path
        A .wrd file has ``start end word`` on every line; a .txt file has ``start end`` and a sentence. A .txt file may
        also have the sentence alone.

    Returns
    -------
    tuple of str
        The words. Those of a sentence are in lower case and without punctuation, as in .wrd files.

    Raises
    ------
    CorpusError
        If the file cannot be read, or a line of a .wrd file has another form.
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
    return tuple(_LETTERS.findall(re.sub(r"^\s*\d+\s+\d+\s", "", text).lower()))


def _timed_word(path: Path, number: int, line: str) -> str:
    fields = line.split()
    if len(fields) != 3 or not (fields[0].isdecimal() and fields[1].isdecimal()) or int(fields[0]) > int(fields[1]):
        raise CorpusError.one(path, f"line {number}: {line.strip()!r}; expected the first sample, the last and a word")
    return fields[2]


def match_transcripts(utterances: Sequence[str], transcripts: Mapping[str, Words], file: str | Path) -> list[Words]:
    """Return the words of the utterances of a corpus from lists of transcripts.

    Parameters
    ----------
    utterances : sequence of str
        Names of the utterances.
    transcripts : mapping of str to tuple of str
        Words by name, as `read_transcripts` returns them. A transcript belongs to the utterance of its name.
        Upper and lower case, and `/`, `-` or `_` between the parts of a name, make no difference.
    file : str or Path
        The file that the error names.

    Returns
    -------
    list of tuple of str
        The words of each utterance.

    Raises
    ------
    CorpusError
        If an utterance has no transcript.
    """
    known = {_plain(name): words for name, words in transcripts.items()}
    missing = [name for name in utterances if _plain(name) not in known]
    if missing:
        what = f"has no transcript of {len(missing)} of {len(utterances)} utterances, the first is {missing[0]}"
        raise CorpusError.one(file, what)
    return [known[_plain(name)] for name in utterances]


def _plain(name: str) -> str:
    return name.lower().replace("/", "_").replace("-", "_")
