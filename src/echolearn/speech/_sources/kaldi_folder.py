"""Data folders of Kaldi: tables of recordings, segments, speakers, texts and features; the corpus ``kaldi:DIR``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from echolearn.exceptions import CorpusError, Problem
from echolearn.speech._audio import RATE_HZ, read_audio
from echolearn.speech._sources.folder import PART_FOLDERS, phone_list
from echolearn.speech._sources.utterances import PARTS, CorpusFiles, Utterance
from echolearn.speech._text import line_problem, number_of, raise_any
from echolearn.speech.formats._kaldi import ScpArrays, open_scp, plain_file, read_ark, read_table
from echolearn.speech.formats._results import time_problem
from echolearn.validation import Array

Value = TypeVar("Value")
_TABLE_FILES = ("wav.scp", "segments", "text", "utt2spk", "feats.scp")
STATES_FILE = "states.txt"


class Stretch(NamedTuple):
    """The part of a recording that is an utterance."""

    recording: str
    start: float  # seconds
    end: float | None  # None for the end of the recording


@dataclass(frozen=True)
class DataFolder:
    """The tables of a data folder of Kaldi, as `read_data_folder` returns them."""

    path: Path
    utterances: tuple[str, ...]  # in the order of `segments`, or of `wav.scp`, or of `feats.scp`
    recordings: dict[str, Path]  # from `wav.scp`; {} without it, as in the other tables
    segments: dict[str, Stretch]  # without it recordings are utterances
    text: dict[str, tuple[str, ...]]
    speakers: dict[str, str]  # without `utt2spk` each utterance has a speaker of its own name
    features: ScpArrays | None  # from `feats.scp`, read when they are accessed

    def samples(self, utterance: str) -> NDArray[np.float32]:
        """Read the audio of an utterance."""
        stretch = self.segments.get(utterance, Stretch(utterance, 0.0, None))
        if stretch.recording not in self.recordings:
            raise CorpusError.one(self.path, f"has no audio of {utterance!r}; expected a line in wav.scp")
        samples = read_audio(self.recordings[stretch.recording])
        first = round(stretch.start * RATE_HZ)
        last = len(samples) if stretch.end is None else round(stretch.end * RATE_HZ)
        if not first < last <= len(samples):
            seconds = f"{stretch.start:.3f} to {last / RATE_HZ:.3f} s of {len(samples) / RATE_HZ:.3f} s of audio"
            raise CorpusError.one(self.path / "segments", f"{utterance!r} is {seconds}; expected a stretch inside it")
        return samples[first:last]


def read_data_folder(path: str | Path) -> DataFolder:
    """Read a data folder of Kaldi.

    A CorpusError lists all problems: lines that cannot be read, names that occur twice, utterances that one table has
    and another lacks, audio files that do not exist, commands in place of files.

    Parameters
    ----------
    path : str or Path
        A folder with `wav.scp` or `feats.scp`, and optionally `segments`, `text` and `utt2spk`. Relative paths in the
        script files are looked for in the working directory, then in the folder.

    Returns
    -------
    DataFolder
        The tables of the folder. Audio and features are read when they are accessed.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from echolearn.speech.formats import write_ark
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_ark(f"{folder}/a.ark", {"u1": np.ones((2, 13), np.float32)}, scp=f"{folder}/feats.scp")
    ...     data = read_data_folder(folder)
    ...     data.utterances, data.features["u1"].shape
    (('u1',), (2, 13))
    """
    folder = Path(path)
    if not folder.is_dir():
        raise CorpusError.one(folder, "no such folder; expected a data folder of Kaldi")
    present = {name for name in _TABLE_FILES if (folder / name).is_file()}
    if not present & {"wav.scp", "feats.scp"}:
        raise CorpusError.one(folder, "has neither wav.scp nor feats.scp; expected a data folder of Kaldi")
    problems: list[Problem] = []
    recordings = _table(folder, "wav.scp", present, problems, _audio)
    segments = _table(folder, "segments", present, problems, _stretch)
    text = _table(folder, "text", present, problems, lambda path, number, value: tuple(value.split()))
    speakers = _table(folder, "utt2spk", present, problems, _speaker)
    features = None
    try:
        features = open_scp(folder / "feats.scp") if "feats.scp" in present else None
    except CorpusError as error:
        problems += error.problems
    utterances = tuple(segments or recordings or features or ())
    if not problems:
        tables: dict[str, Mapping[str, object]] = {"text": text, "utt2spk": speakers, "feats.scp": features or {}}
        for name in sorted(present & tables.keys()):
            problems += _differences(folder / name, set(tables[name]), set(utterances))
        lost = [u for u, s in segments.items() if recordings and s.recording not in recordings]
        problems += [Problem(str(folder / "segments"), f"the recording of {u!r} is not in wav.scp") for u in lost]
    raise_any(problems)
    return DataFolder(folder, utterances, recordings, segments, text, speakers or {u: u for u in utterances}, features)


def _table(
    folder: Path, name: str, present: set[str], problems: list[Problem], parse: Callable[[Path, int, str], Value]
) -> dict[str, Value]:
    """Return a table of the folder, {} if it is not there; what is wrong is added to the problems."""
    values: dict[str, Value] = {}
    path = folder / name
    try:
        rows = read_table(path, empty=name == "text") if name in present else {}
    except CorpusError as error:
        problems += error.problems
        rows = {}
    for key, (number, value) in rows.items():
        try:
            values[key] = parse(path, number, value)
        except CorpusError as error:
            problems += error.problems
    return values


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


def _differences(path: Path, named: set[str], expected: set[str]) -> list[Problem]:
    """Return a problem for utterances that a table lacks and one for those that others lack."""
    problems = []
    for names, what in ((expected - named, "lacks"), (named - expected, "has the unknown")):
        if names:
            shown = ", ".join(sorted(names)[:5])
            problems.append(Problem(str(path), f"{what} {len(names)} of {len(expected)} utterances: {shown}"))
    return problems


def read_kaldi_folders(root: str | Path) -> dict[str, DataFolder]:
    """Read the data folders train, valid (or dev, validation) and test; no two of them may name the same utterance."""
    root = Path(root)
    entries = sorted(root.iterdir()) if root.is_dir() else []
    named = [path for path in entries if path.is_dir() and path.name in PART_FOLDERS]
    paths = {PART_FOLDERS[path.name]: path for path in named}
    if set(paths) != set(PARTS) or len(named) != len(PARTS):
        names = ", ".join(path.name for path in named) or "none of them"
        raise CorpusError.one(root, f"has {names}; expected the data folders train, valid (or dev) and test")
    folders: dict[str, DataFolder] = {}
    problems: list[Problem] = []
    for part in PARTS:
        try:
            folders[part] = read_data_folder(paths[part])
        except CorpusError as error:
            problems += error.problems
    raise_any(problems)
    seen: dict[str, str] = {}
    for part, folder in folders.items():
        problems += [Problem(str(folder.path), f"{u!r} is in {seen[u]}, too") for u in folder.utterances if u in seen]
        seen |= dict.fromkeys(folder.utterances, part)
    raise_any(problems)
    return folders


def read_aligned_features(root: str | Path) -> dict[str, Array]:
    """Read `feats.scp` and alignments as the arrays of a feature file; `states.txt`, if there, names the states."""
    root = Path(root)
    problems: list[Problem] = []
    rows: list[tuple[str, str, str, Array, Array]] = []
    for part, folder in read_kaldi_folders(root).items():
        if folder.features is None:
            problems.append(Problem(str(folder.path), "has no feats.scp; give labels= to compute features from audio"))
            continue
        aligned = _alignments(folder)
        for utterance in folder.utterances:
            features, labels = folder.features[utterance], aligned.get(utterance)
            what = _mismatch(features, labels)
            if what or labels is None:
                problems.append(Problem(str(folder.path), f"{utterance!r} {what}"))
            else:
                rows.append((utterance, folder.speakers[utterance], part, features, labels))
    widths = {row[3].shape[1] for row in rows}
    if len(widths) > 1:
        problems.append(Problem(str(root), f"has features of {sorted(widths)} columns; expected one number of them"))
    raise_any(problems)
    labels = np.concatenate([row[4] for row in rows])
    return {
        "features": np.concatenate([row[3] for row in rows]).astype(np.float32),
        "labels": labels,
        "lengths": np.array([len(row[4]) for row in rows]),
        "utterances": np.array([row[0] for row in rows]),
        "speakers": np.array([row[1] for row in rows]),
        "split": np.array([row[2] for row in rows]),
        "state_names": np.array(_state_names(root, int(labels.max()) + 1)),
    }


def _alignments(folder: DataFolder) -> dict[str, Array]:
    for name in ("ali.scp", "ali.ark"):
        if (folder.path / name).is_file():
            arrays = open_scp(folder.path / name) if name == "ali.scp" else read_ark(folder.path / name)
            return {utterance: arrays[utterance] for utterance in folder.utterances if utterance in arrays}
    raise CorpusError.one(folder.path, "has neither ali.scp nor ali.ark; expected one whole number per frame")


def _mismatch(features: Array, labels: Array | None) -> str | None:
    """Return why features and labels of an utterance do not fit, or None."""
    if labels is None:
        return "has no alignment"
    if features.ndim != 2 or features.dtype.kind != "f" or 0 in features.shape:
        return f"has features {features.dtype} {features.shape}; expected a matrix"
    if labels.dtype.kind != "i" or labels.shape != (len(features),):
        return f"has labels {labels.dtype} {labels.shape} for {len(features)} frames; expected one whole number each"
    return None


def _state_names(root: Path, count: int) -> list[str]:
    path = root / STATES_FILE
    if not path.is_file():
        return [str(k) for k in range(count)]
    names: dict[int, str] = {}
    table = read_table(path)
    for name, (number, value) in table.items():
        if not (value.isascii() and value.isdigit()) or int(value[:9]) >= len(table) or int(value[:9]) in names:
            expected = f"one of the numbers 0 to {len(table) - 1}, each of them once"
            raise line_problem(path, number, f"the number of {name[:40]!r} is {value[:40]!r}; expected {expected}")
        names[int(value)] = name
    return [names[k] for k in range(len(table))]


def find_kaldi(root: str | Path) -> CorpusFiles:
    """Find the audio of the data folders of a corpus whose labels are in a master label file."""
    root = Path(root)
    utterances: list[Utterance] = []
    for part, folder in read_kaldi_folders(root).items():
        if not folder.recordings or folder.segments:
            what = "has segments; write each utterance to a file of its own" if folder.segments else "has no wav.scp"
            raise CorpusError.one(folder.path, what)
        utterances += [Utterance(u, folder.speakers[u], part, folder.recordings[u], None) for u in folder.utterances]
    return CorpusFiles(utterances, lambda used: phone_list(root, used))


def transcripts_of(root: str | Path) -> tuple[str, ...]:
    """Return the paths of the files `text` if all data folders have one, otherwise ()."""
    files = [path / "text" for path in sorted(Path(root).iterdir()) if path.name in PART_FOLDERS]
    return tuple(str(file) for file in files) if all(file.is_file() for file in files) else ()
