"""Reading of data folders of Kaldi, with tables of recordings, segments, speakers, texts and features."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from echolearn.exceptions import CorpusError, Problem
from echolearn.speech.audio import RATE, read_audio
from echolearn.speech.errors import raise_any
from echolearn.speech.formats.kaldi import ScpArrays, open_scp, plain_file, read_table
from echolearn.speech.formats.results import time_problem
from echolearn.speech.textfile import line_problem, number_of

Value = TypeVar("Value")

_TABLE_FILES = ("wav.scp", "segments", "text", "utt2spk", "feats.scp")


class Stretch(NamedTuple):
    """The part of a recording that is an utterance."""

    recording: str
    start: float
    end: float | None


@dataclass(frozen=True)
class DataFolder:
    """The tables of a data folder of Kaldi, as `read_data_folder` returns them."""

    path: Path
    utterances: tuple[str, ...]
    recordings: dict[str, Path]
    segments: dict[str, Stretch]
    text: dict[str, tuple[str, ...]]
    speakers: dict[str, str]
    features: ScpArrays | None

    def samples(self, utterance: str) -> NDArray[np.float32]:
        """Read the audio of an utterance."""
        stretch = self.segments.get(utterance, Stretch(utterance, 0.0, None))
        if stretch.recording not in self.recordings:
            raise CorpusError.one(self.path, f"has no audio of {utterance!r}; expected a line in wav.scp")
        samples = read_audio(self.recordings[stretch.recording])
        first, last = round(stretch.start * RATE), len(samples) if stretch.end is None else round(stretch.end * RATE)
        if not first < last <= len(samples):
            seconds = f"{stretch.start:.3f} to {last / RATE:.3f} s of {len(samples) / RATE:.3f} s of audio"
            raise CorpusError.one(self.path / "segments", f"{utterance!r} is {seconds}; expected a stretch inside it")
        return samples[first:last]


def read_data_folder(path: str | Path) -> DataFolder:
    """Read a data folder of Kaldi.

    Parameters
    ----------
    path : str or Path
        A folder with `wav.scp` or `feats.scp`, and optionally `segments`, `text` and `utt2spk`. Relative paths in the
        script files are looked for in the working directory, then in the folder.

    Returns
    -------
    DataFolder
        The tables of the folder. Audio and features are read when they are accessed.

    Raises
    ------
    CorpusError
        With all problems: lines that cannot be read, names that occur twice, utterances that one table has and another
        lacks, audio files that do not exist, commands in place of files.

    See Also
    --------
    echolearn.speech.kaldicorpus.read_kaldi_folders : The data folders of a corpus.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from echolearn.speech.formats.kaldi import write_ark
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_ark(f"{folder}/a.ark", {"u1": np.ones((2, 13), np.float32)}, scp=f"{folder}/feats.scp")
    ...     data = read_data_folder(folder)
    ...     data.utterances, data.features["u1"].shape
    (('u1',), (2, 13))
    """
    folder = Path(path)
    if not folder.is_dir():
        raise CorpusError.one(folder, "no such folder; expected a data folder of Kaldi")
    there = {name for name in _TABLE_FILES if (folder / name).is_file()}
    if not there & {"wav.scp", "feats.scp"}:
        raise CorpusError.one(folder, "has neither wav.scp nor feats.scp; expected a data folder of Kaldi")
    problems: list[Problem] = []
    recordings = _table(folder, "wav.scp", there, problems, _audio)
    segments = _table(folder, "segments", there, problems, _stretch)
    text = _table(folder, "text", there, problems, lambda path, number, value: tuple(value.split()))
    speakers = _table(folder, "utt2spk", there, problems, _speaker)
    features = None
    try:
        features = open_scp(folder / "feats.scp") if "feats.scp" in there else None
    except CorpusError as error:
        problems += error.problems
    utterances = tuple(segments or recordings or features or ())
    if not problems:
        tables: dict[str, Mapping[str, object]] = {"text": text, "utt2spk": speakers, "feats.scp": features or {}}
        for name in sorted(there & tables.keys()):
            problems += _differences(folder / name, set(tables[name]), set(utterances))
        lost = [u for u, s in segments.items() if recordings and s.recording not in recordings]
        problems += [Problem(str(folder / "segments"), f"the recording of {u!r} is not in wav.scp") for u in lost]
    raise_any(problems)
    return DataFolder(folder, utterances, recordings, segments, text, speakers or {u: u for u in utterances}, features)


def _table(
    folder: Path,
    name: str,
    there: set[str],
    problems: list[Problem],
    parse: Callable[[Path, int, str], Value],
) -> dict[str, Value]:
    """Return a table of the folder, {} if it is not there; what is wrong is added to the problems."""
    found: dict[str, Value] = {}
    path = folder / name
    try:
        rows = read_table(path, empty=name == "text") if name in there else {}
    except CorpusError as error:
        problems += error.problems
        rows = {}
    for key, (number, value) in rows.items():
        try:
            found[key] = parse(path, number, value)
        except CorpusError as error:
            problems += error.problems
    return found


def _audio(path: Path, number: int, value: str) -> Path:
    file = plain_file(path, number, value)
    if not file.is_file():
        raise line_problem(path, number, f"no such audio file: {str(file)[:200]!r}")
    return file


def _stretch(path: Path, number: int, value: str) -> Stretch:
    fields = value.split()
    times = [number_of(field) for field in fields[1:]]
    if len(fields) != 3 or times[0] is None or times[1] is None:
        raise line_problem(path, number, f"{value[:60]!r}; expected: utterance recording start end, times in seconds")
    start, end = times[0], None if times[1] == -1 else times[1]
    what = time_problem(start) or (time_problem(end) if end is not None else None)
    if what or (end is not None and end <= start):
        raise line_problem(path, number, what or f"ends at {end} s and starts at {start} s; expected an end after it")
    return Stretch(fields[0], start, end)


def _speaker(path: Path, number: int, value: str) -> str:
    if len(value.split()) != 1:
        raise line_problem(path, number, f"{value[:60]!r} is no name of a speaker; expected one without blanks")
    return value


def _differences(path: Path, found: set[str], expected: set[str]) -> list[Problem]:
    """Return a problem for utterances that a table lacks and one for those that others lack."""
    problems = []
    for names, what in ((expected - found, "lacks"), (found - expected, "has the unknown")):
        if names:
            shown = ", ".join(sorted(names)[:5])
            problems.append(Problem(str(path), f"{what} {len(names)} of {len(expected)} utterances: {shown}"))
    return problems
