"""Arrays and facts from one safetensors file, which is refused unless it is complete and unchanged.

docs/reference/model_file.md specifies the file, its limits and its versions. Nothing in a file is trusted before it has
been compared with the size of the file and with what the caller expects; nothing is allocated before that, and no code
is executed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import TypeGuard

import numpy as np

from echolearn.exceptions import ModelFileError
from echolearn.modelfile.layout import DTYPES, FORMAT_VERSION, HEADER_LIMIT, Check, Checksum, Entry, Facts, as_bytes
from echolearn.modelfile.values import from_json, parse_json
from echolearn.validation import Array

# The first bytes of files that people take for model files.
OTHER_FILES = {
    b"\x93NUMPY": "an array of NumPy (.npy)",
    b"PK\x03\x04": "a ZIP archive (such as .npz, .keras or a file of PyTorch)",
    b"\x80": "a pickle (such as of joblib)",
    b"\x89HDF": "an HDF5 file",
    b"RIFF": "a WAV recording",
}


def read_tensors(path: Path, kind: str, check: Check | None = None) -> tuple[dict[str, Array], Facts]:
    """Return the arrays and facts that `write_tensors` wrote.

    check: is called before any array is read, and raises ValueError if the header is not the expected one. Raises
    FileNotFoundError if there is no file, ModelFileError if it is damaged, incomplete, or of another kind or version.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}.")
    try:
        with path.open("rb") as file:
            entries, metadata, begin = _read_header(file, path.stat().st_size)
            if kind not in metadata:
                raise ModelFileError(f"{path} is a safetensors file, but not an {kind} file.")
            if set(metadata) != {kind, "sha256"}:
                raise ValueError(f"metadata {sorted(metadata)!r:.60}; expected {kind} and sha256")
            facts = _facts(parse_json(metadata[kind]), path, kind)
            if check is not None:
                check(entries, facts)
            checksum = Checksum(metadata[kind])
            tensors = _read_arrays(file, entries, begin, checksum)
            facts = from_json(facts)
    except (ModelFileError, OSError):
        raise
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as problem:  # of JSON, UTF-8, the check
        other = _other_kind(path)
        if other is not None:
            raise ModelFileError(
                f"{path} is {other} and not a model file; expected a file that the save method of an estimator, "
                "echolearn.save or `echolearn train` wrote (.safetensors)."
            ) from problem
        raise ModelFileError(f"{path} is damaged, cut short, or not an {kind} file: {problem}") from problem
    if checksum.hexdigest() != metadata["sha256"]:
        raise ModelFileError(
            f"{path} is damaged: its checksum does not match. Take it from a backup, or save it again."
        )
    return tensors, facts


def _other_kind(path: Path) -> str | None:
    """Return what a file is that has no header of safetensors; None if that cannot be known."""
    with path.open("rb") as file:
        head = file.read(1000)
    if head[8:9] == b"{":  # a header begins here
        return None
    found = next((name for beginning, name in OTHER_FILES.items() if head.startswith(beginning)), None)
    named_so = path.suffix == ".safetensors"  # then it is one that was damaged
    is_text = len(head) > 0 and not named_so and all(byte >= 32 or byte in b"\t\n\r" for byte in head)
    return found or ("a text file (such as CSV)" if is_text else None)


def file_kind(path: Path) -> str | None:
    """Return the kind of file that the header names, before anything else is looked at; None if it names none."""
    try:
        return next((name for name in _metadata(path) if name != "sha256"), None)
    except (OSError, ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None


def saved_by(path: Path) -> str:
    """Return the version of echolearn that wrote a file, as its header says; `of unknown version` if it does not."""
    facts = parse_json(next(text for name, text in _metadata(path).items() if name != "sha256"))
    version = facts.get("echolearn") if isinstance(facts, dict) else None
    return version if isinstance(version, str) else "of unknown version"


def _metadata(path: Path) -> dict[str, str]:
    with path.open("rb") as file:
        return _read_header(file, path.stat().st_size)[1]


def _read_header(file: BufferedReader, size: int) -> tuple[dict[str, Entry], dict[str, str], int]:
    """Return arrays' descriptions, metadata and where the bytes begin; ValueError unless they fill the file exactly."""
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or not 2 <= length <= min(HEADER_LIMIT, size - 8):
        raise ValueError(f"a header of {length} bytes in a file of {size} (at most {HEADER_LIMIT} are read)")
    header = parse_json(file.read(length).decode("utf-8"))
    if not isinstance(header, dict):
        raise ValueError("the header is not an object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError("the metadata are not texts by name")
    entries = {name: _entry(name, about) for name, about in header.items()}
    end = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].stop)):
        if entry.start != end:
            raise ValueError(f"{name} begins at byte {entry.start}; expected {end}, where the array before it ends")
        end = entry.stop
    if end != size - 8 - length:
        raise ValueError(f"the arrays take {end} bytes, and {size - 8 - length} are there")
    return entries, metadata, 8 + length


def _entry(name: str, about: object) -> Entry:
    """Return the description of one array; raise ValueError if it is not a possible one."""
    if not isinstance(about, dict) or set(about) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{name!r:.40} is not announced by dtype, shape and data_offsets")
    dtype, shape, places = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"{name!r:.40} has dtype {dtype!r:.20}; expected one of {', '.join(DTYPES)}")
    if not _are_counts(shape) or len(shape) > 2 or not _are_counts(places) or len(places) != 2:
        raise ValueError(f"{name!r:.40} has shape {shape!r:.40} at bytes {places!r:.40}")
    if math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize != places[1] - places[0]:
        raise ValueError(f"{name!r:.40} of shape {shape!r:.40} does not take {places!r:.40} bytes")
    return Entry(dtype, tuple(shape), *places)


def _are_counts(value: object) -> TypeGuard[list[int]]:
    """Return whether a value is a list of integers from 0 on."""
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)


def _facts(facts: object, path: Path, kind: str) -> Facts:
    """Return the facts; raise ModelFileError unless they are of this kind and version."""
    if not isinstance(facts, dict) or facts.get("format") != kind:
        raise ModelFileError(f"{path} is not an {kind} file: its facts name another format, or none.")
    version = facts.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version!r:.20}; this echolearn reads version {FORMAT_VERSION}. Install "
            f"the echolearn that wrote it ({facts.get('echolearn')!r:.20}) or newer."
        )
    return facts


def _read_arrays(
    file: BufferedReader, entries: Mapping[str, Entry], begin: int, checksum: Checksum
) -> dict[str, Array]:
    """Return the arrays, and add them to the checksum."""
    tensors = {}
    for name in sorted(entries):
        entry = entries[name]
        value = np.empty(entry.shape, DTYPES[entry.dtype])
        file.seek(begin + entry.start)
        if file.readinto(as_bytes(value).data) != value.nbytes:
            raise ValueError(f"{name} is cut short")
        if entry.dtype == "BOOL" and (as_bytes(value) > 1).any():
            raise ValueError(f"{name} holds truth values that are neither 0 nor 1")
        checksum.add(name, entry, value)
        tensors[name] = value.astype(value.dtype.newbyteorder("="), copy=False)
    return tensors
