"""The transcripts of utterances: phones, checked against the audio and the phone list, and words.

Words come from TIMIT's .wrd and .txt files, or from a list of transcripts, a text file with one utterance per line in
one of two usual forms: Kaldi's `text`, in which the name comes first, and Sphinx's `.transcription`, in which the name
is in brackets at the end.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from echolearn.exceptions import CorpusError, Problem
from echolearn.speech._labels import Segment
from echolearn.speech._phone_set import SILENCES
from echolearn.speech._text import raise_any

Transcript = Sequence[Segment] | Sequence[str]
_TOLERANCE_SECONDS = 0.01  # one frame: hand labels and rounded times disagree by less
Words = tuple[str, ...]
_AT_THE_END = re.compile(r"(?P<words>.*)\((?P<name>[^()\s]+)\)\s*")
_SENTENCE_MARKS = frozenset({"<s>", "</s>"})
_WORD = re.compile(r"[^\W_](?:['’-]?[^\W_])*")


def phone_names(transcript: Transcript) -> list[str]:
    """Return the names of the phones of a transcript, without their times."""
    return [item.name if isinstance(item, Segment) else item for item in transcript]


def check_segments(
    segments: Sequence[Segment], seconds: float, phones: Collection[str], file: str | Path
) -> tuple[list[Segment], list[Problem]]:
    """Return segments that follow one another from 0 to `seconds`, and why they do not cover the audio. Boundaries up
    to a frame (10 ms) apart meet in the middle, and a silence extends to an unlabelled end."""
    known = set(phones)
    problems = [
        Problem(str(file), f"unknown phone {name!r} at {start:.3f} s; expected one of {len(known)} phones")
        for start, _, name in segments
        if name not in known
    ]
    edges = [segments[0].start]
    for before, after in itertools.pairwise(segments):
        apart = after.start - before.end
        if abs(apart) > _TOLERANCE_SECONDS:
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


def unknown_phones(names: Sequence[str], phones: Collection[str], file: str) -> list[Problem]:
    """Return one problem for each phone of a transcript that is not in the phone list."""
    return [
        Problem(file, f"unknown phone {name!r}; expected one of {len(phones)} phones")
        for name in sorted(set(names) - set(phones))
    ]


def too_few_frames(frames: int, names: Sequence[str], file: str) -> list[Problem]:
    """Return a problem if an utterance has fewer frames than phones, so that it cannot be aligned."""
    if names and frames >= len(names):
        return []
    what = f"{frames} frames cannot hold {len(names)} phones; labels and audio do not belong together"
    return [Problem(file, what)]


def _check_ends(segments: Sequence[Segment], seconds: float, file: str | Path) -> list[Problem]:
    problems = []
    first, last = segments[0], segments[-1]
    if last.end > seconds + _TOLERANCE_SECONDS:
        what = f"runs past the audio: {last.name!r} ends at {last.end:.3f} s, the audio at {seconds:.3f} s"
        problems.append(Problem(str(file), f"{what}; labels and audio do not belong together"))
    if seconds - last.end > _TOLERANCE_SECONDS and last.name not in SILENCES:
        what = f"leaves a gap of {(seconds - last.end) * 1000:.0f} ms after {last.name!r} at the end"
        problems.append(Problem(str(file), f"{what}; label the silence there"))
    if first.start > _TOLERANCE_SECONDS and first.name not in SILENCES:
        what = f"leaves a gap of {first.start * 1000:.0f} ms before {first.name!r} at the start"
        problems.append(Problem(str(file), f"{what}; label the silence there"))
    return problems


def read_transcripts(path: str | Path) -> dict[str, Words]:
    """Read ``NAME WORD WORD ...`` or ``WORD WORD ... (NAME)`` on every line; the marks <s> and </s> are left out."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError.one(path, f"is not a list of transcripts that can be read ({error})") from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    at_the_end = bool(numbered) and all(_AT_THE_END.fullmatch(line) for _, line in numbered)
    transcripts: dict[str, Words] = {}
    problems: list[Problem] = []
    for number, line in numbered:
        match = _AT_THE_END.fullmatch(line) if at_the_end else None
        name, words = (match["name"], match["words"].split()) if match else (line.split()[0], line.split()[1:])
        if name in transcripts:
            problems.append(Problem(str(path), f"line {number}: {name} has a transcript already; keep one of the two"))
        transcripts[name] = tuple(word for word in words if word not in _SENTENCE_MARKS)
    if not transcripts:
        problems.append(Problem(str(path), "holds no transcript; expected a name and its words on every line"))
    raise_any(problems)
    return transcripts


def word_file(audio: Path) -> Path | None:
    """Return the .wrd or else the .txt file of the same name as a recording, in either case, or None."""
    stem = audio.with_suffix("")
    if stem.suffix.lower() == ".wav":  # SA1.WAV.wav, a converted copy beside SA1.WAV
        stem = stem.with_suffix("")
    endings = (".wrd", ".WRD", ".txt", ".TXT")
    return next((path for ending in endings if (path := stem.with_suffix(ending)).is_file()), None)


def read_word_file(path: str | Path) -> Words:
    """Read the words of an utterance: `start end word` on every line of a .wrd file, or the sentence of a .txt file,
    which becomes lower case without punctuation, as in .wrd files."""
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
    """Return the words of each utterance: those of the longest name that its own name ends with. Case, and `/`, `-` or
    `_` between the parts of a name, make no difference."""
    known = {_plain(name): words for name, words in transcripts.items()}
    found: dict[str, str] = {}  # the utterance of each name in the list
    missing = []
    for utterance in utterances:
        parts = _plain(utterance).split("_")
        name = next((n for k in range(len(parts)) if (n := "_".join(parts[k:])) in known), None)
        if name is None:
            missing.append(utterance)
        elif name in found:
            what = f"{name!r} fits {found[name]} and {utterance}; write the speaker into the name"
            raise CorpusError.one(file, what)
        else:
            found[name] = utterance
    if missing:
        what = f"has no transcript of {len(missing)} of {len(utterances)} utterances, the first is {missing[0]}"
        raise CorpusError.one(file, what)
    return [known[name] for name in found]


def _plain(name: str) -> str:
    return name.lower().replace("/", "_").replace("-", "_")
