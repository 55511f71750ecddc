"""Reading of features and labels from one .npz file, for features that another program computed."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path

import numpy as np

from echolearn.exceptions import CorpusError, Problem
from echolearn.execution.memory import available_memory
from echolearn.speech._feature_recipe import NORMALISATIONS
from echolearn.speech._features import CEPSTRA, CONTEXT_FRAMES, FEATURE_COLUMNS, FrameList, normalised, with_differences
from echolearn.speech._sources.utterances import PARTS
from echolearn.speech._text import raise_any
from echolearn.validation import Array

ARRAYS = ("features", "labels", "lengths", "utterances", "speakers", "split", "state_names")


def read_feature_file(path: str | Path, normalise: str = "utterance") -> tuple[FrameList, dict[str, Array], str]:
    """Read an .npz file without pickle; return prepared features, all its arrays, and a note on the preparation."""
    path = Path(path)
    arrays = _load(path)
    features, note = prepare_arrays(arrays, str(path), normalise)
    return features, arrays, note


def prepare_arrays(arrays: dict[str, Array], file: str, normalise: str = "utterance") -> tuple[FrameList, str]:
    """Return the features of the arrays of a feature file, prepared, and a note: 13 columns are MFCC and get
    differences, normalisation and context, 39 the last two; others are used as they are."""
    missing = [name for name in ARRAYS if name not in arrays]
    if missing:
        raise CorpusError.one(file, f"lacks the arrays {', '.join(missing)}; expected {', '.join(ARRAYS)}")
    raise_any(Problem(file, what) for what in _shape_problems(arrays) or _value_problems(arrays))
    raw, lengths = np.asarray(arrays["features"], dtype=np.float32), arrays["lengths"].tolist()
    width = raw.shape[1]
    if width not in (CEPSTRA, FEATURE_COLUMNS):
        return FrameList.of_lengths(raw, lengths, context=1), f"{width} features, used as they are"
    ready = np.empty((len(raw), FEATURE_COLUMNS), dtype=np.float32)
    for start, end in FrameList.of_lengths(raw, lengths).bounds:
        rows = raw[start:end]
        rows = with_differences(rows) if width == CEPSTRA else rows
        ready[start:end] = normalised(rows) if normalise == "utterance" else rows
    features = FrameList.of_lengths(ready, lengths)
    if normalise != "utterance":
        train = np.flatnonzero(arrays["split"] == "train").tolist()
        features = features.scaled_like(train, running=normalise == "running")
    done = "13 MFCC with differences" if width == CEPSTRA else "39 features"
    return features, f"{done}, {NORMALISATIONS[normalise]}, context of {CONTEXT_FRAMES}"


def _load(path: Path) -> dict[str, Array]:
    """Read the arrays that are there; others in the file are left unread."""
    if not path.is_file():
        raise CorpusError.one(path, "no such feature file; expected an .npz file")
    try:
        with zipfile.ZipFile(path) as archive:
            members = set(archive.namelist())
            return {name: _array(archive, f"{name}.npy") for name in ARRAYS if f"{name}.npy" in members}
    except (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        what = f"is not a feature file that can be read ({error}); expected .npz without Python objects"
        raise CorpusError.one(path, what) from error


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    """Read one array after comparing what its header promises with the archive and with the free memory."""
    info = archive.getinfo(name)
    with archive.open(info) as file:
        version = np.lib.format.read_magic(file)
        if version > (2, 0):
            raise ValueError(f"{name} is of format {version}")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(file)
        if dtype.hasobject:
            raise ValueError(f"{name} holds Python objects")
        size, have = math.prod(shape) * dtype.itemsize, available_memory()
        if min(shape, default=0) < 0 or size != info.file_size - file.tell():
            raise ValueError(f"{name} promises {dtype} {shape}, and {info.file_size} bytes are there")
        if have is not None and size > have:
            raise ValueError(f"{name} takes {size / 1e9:.1f} GB, and {have / 1e9:.1f} GB of memory are free")
        content = file.read()  # to the end, where the archive's checksum is compared
    if len(content) != size:
        raise ValueError(f"{name} is cut short")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if by_columns else "C")


def _shape_problems(arrays: dict[str, Array]) -> list[str]:
    faults = []
    features, labels, lengths = arrays["features"], arrays["labels"], arrays["lengths"]
    if features.ndim != 2 or features.dtype.kind not in "fiu" or 0 in features.shape:
        faults.append(f"features is {features.dtype} {features.shape}, expected numbers of shape (frames, columns)")
    for name in ("labels", "lengths"):
        if arrays[name].ndim != 1 or arrays[name].dtype.kind not in "iu":
            faults.append(f"{name} is {arrays[name].dtype} {arrays[name].shape}, expected whole numbers, 1-D")
    for name in ("utterances", "speakers", "split", "state_names"):
        if arrays[name].ndim != 1 or arrays[name].dtype.kind != "U":
            faults.append(f"{name} is {arrays[name].dtype} {arrays[name].shape}, expected text, 1-D")
    if faults:
        return faults
    if len(labels) != len(features):
        faults.append(f"labels has {len(labels)} rows, features {len(features)}; expected one label per frame")
    total = sum(lengths.tolist())
    if total != len(features) or (lengths < 1).any():
        faults.append(f"lengths sum to {total}, features has {len(features)} rows; all must be used")
    for name in ("utterances", "speakers", "split"):
        if len(arrays[name]) != len(lengths):
            faults.append(f"{name} has {len(arrays[name])} entries, lengths {len(lengths)}; expected one each")
    return faults


def _value_problems(arrays: dict[str, Array]) -> list[str]:
    faults = []
    features, labels, names = arrays["features"], arrays["labels"], arrays["state_names"]
    with np.errstate(over="ignore"):
        rows = np.flatnonzero(~np.isfinite(features.astype(np.float32)).all(axis=1))
    if len(rows):
        which = arrays["utterances"][np.searchsorted(np.cumsum(arrays["lengths"]), rows[0], side="right")]
        faults.append(f"{len(rows)} frames hold NaN or infinity, the first is row {rows[0]} (utterance {which})")
    if len(names) > np.iinfo(np.int16).max:
        faults.append(f"state_names has {len(names)} names; expected at most {np.iinfo(np.int16).max}")
    if labels.min() < 0 or labels.max() >= len(names):
        faults.append(f"labels run from {labels.min()} to {labels.max()}, state_names has {len(names)} names")
    split = set(arrays["split"].tolist())
    if not split <= set(PARTS):
        faults.append(f"split holds {sorted(split - set(PARTS))}; expected only train, valid and test")
    elif split != set(PARTS):
        faults.append(f"split names only {sorted(split)}; expected utterances of train, valid and test")
    if len(set(arrays["utterances"].tolist())) != len(arrays["utterances"]):
        faults.append("utterances names one utterance twice; expected each once")
    return faults
