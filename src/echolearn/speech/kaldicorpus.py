"""The corpus ``kaldi:DIR``: data folders of Kaldi with features and alignments, or with audio."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from echolearn.exceptions import CorpusError, Problem
from echolearn.speech.errors import raise_any
from echolearn.speech.folder import PART_FOLDERS, phone_list
from echolearn.speech.formats.datafolder import DataFolder, read_data_folder
from echolearn.speech.formats.kaldi import open_scp, read_ark, read_table
from echolearn.speech.textfile import line_problem
from echolearn.speech.utterances import PARTS, CorpusFiles, Utterance
from echolearn.validation import Array

STATES_FILE = "states.txt"


def read_kaldi_folders(root: str | Path) -> dict[str, DataFolder]:
    """Read the data folders train, valid (or dev, validation) and test; no two of them may name the same utterance."""
    root = Path(root)
    there = sorted(root.iterdir()) if root.is_dir() else []
    named = [path for path in there if path.is_dir() and path.name in PART_FOLDERS]
    paths = {PART_FOLDERS[path.name]: path for path in named}
    if set(paths) != set(PARTS) or len(named) != len(PARTS):
        found = ", ".join(path.name for path in named) or "none of them"
        raise CorpusError.one(root, f"has {found}; expected the data folders train, valid (or dev) and test")
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
    """Read `feats.scp` and the alignments `ali.scp` or `ali.ark` as the arrays of a feature file.

    `states.txt` beside the data folders names the states; without it their numbers are the names.
    """
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
            found = open_scp(folder.path / name) if name == "ali.scp" else read_ark(folder.path / name)
            return {utterance: found[utterance] for utterance in folder.utterances if utterance in found}
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
