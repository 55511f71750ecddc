"""Arrays and facts in one safetensors file, read with suspicion: whole and unchanged, or refused.

docs/format.md specifies the file, its limits and its versions. Nothing in a file is trusted before it is compared with
the file's size and with what the reader expects; nothing is allocated before that, and no code is ever executed. Files
are written beside their final name and moved into place, so that at any moment the old or the new one is there.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save as to_bytes

Array = NDArray[Any]
Facts = dict[str, Any]

FORMAT_VERSION = 2  # what is written; 1 is still read
HEADER_LIMIT = 4 * 2**20  # bytes
VALUES_LIMIT = 250_000  # in a header's JSON: small ones cost Python thirty times their bytes
HISTORY_LIMIT = 500_000  # entries: as rows by name they take ten times their bytes
LEVELS = 20  # of values inside values among the facts
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
WHOLE = ("epoch", "block")  # columns of a history that count
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class ModelFileError(ValueError):
    """The file is not a whole, unchanged echolearn file of the kind asked for."""


@dataclass(frozen=True)
class Entry:
    """An array as the header announces it; its bytes are data[start:stop]."""

    dtype: str
    shape: tuple[int, ...]
    start: int = 0
    stop: int = 0


Check = Callable[[Mapping[str, Entry], Facts], None]


def entries_of(tensors: Mapping[str, Array]) -> dict[str, Entry]:
    """What a header would announce of these arrays (without places)."""
    return {name: Entry(_NAMES[value.dtype.newbyteorder("<").str], value.shape) for name, value in tensors.items()}


def write_tensors(path: Path, tensors: Mapping[str, Array], facts: Facts, kind: str) -> None:
    """One safetensors file: arrays, and plain values with version and checksum, under the name of its kind."""
    plain = {name: as_plain(name, value) for name, value in tensors.items()}
    text = json.dumps(to_json({"format": kind, "format_version": FORMAT_VERSION, **facts}), allow_nan=False)
    digest = _started(text)
    for name, entry in sorted(entries_of(plain).items()):
        _add(digest, name, entry, plain[name])
    content = to_bytes(plain, metadata={kind: text, "sha256": digest.hexdigest()})
    header = content[8 : 8 + int.from_bytes(content[:8], "little")]
    if len(header) > HEADER_LIMIT or _values(header.decode()) > VALUES_LIMIT or _values(text) > VALUES_LIMIT:
        raise ValueError(
            f"{path}: names and settings take {len(header):,} bytes and {_values(text):,} values; a file holds at most "
            f"{HEADER_LIMIT:,} bytes and {VALUES_LIMIT:,} values of them. Use fewer or shorter names."
        )
    write_atomically(path, content)


def as_plain(name: str, value: Array) -> Array:
    """C order and native bytes: safetensors scrambles anything else without a word."""
    value = np.asarray(value)
    if value.dtype.newbyteorder("<").str not in _NAMES:
        raise TypeError(f"{name} is an array of {value.dtype}, which no file can hold; use float64, int64 or bool.")
    return np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("=")).reshape(value.shape)


def write_atomically(path: Path, content: bytes) -> None:
    """Temporary file, fsync, rename, fsync of the folder."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as problem:
        raise OSError(problem.errno, f"cannot write {path}: {problem.strerror}") from problem
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_tensors(path: Path, kind: str, check: Check | None = None) -> tuple[dict[str, Array], Facts]:
    """What `write_tensors` wrote, whole and unchanged. `check` refuses (ValueError) what the header announces, before
    any of it is read."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}.")
    try:
        with path.open("rb") as file:
            entries, metadata, begin = _header(file, path.stat().st_size)
            if kind not in metadata:
                raise ModelFileError(f"{path} is a safetensors file, but not an {kind} file.")
            if not set(metadata) <= {kind, "sha256"}:
                raise ValueError(f"metadata {sorted(set(metadata) - {kind, 'sha256'})!r:.60} that no such file has")
            # Version 1 kept its checksum among the facts, and wrote numbers that are not finite as NaN and Infinity.
            first = "sha256" not in metadata
            facts = _facts(parsed(metadata[kind], strict=not first), path, kind, 1 if first else FORMAT_VERSION)
            if check is not None:
                check(entries, facts)
            tensors, found = _read(file, entries, begin, facts if first else metadata[kind])
            told = facts.pop("sha256", None) if first else metadata["sha256"]
            facts = from_json(facts)
    except (ModelFileError, OSError):
        raise
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as problem:  # of JSON, UTF-8, the check
        raise ModelFileError(f"{path} is damaged, cut short, or not an {kind} file: {problem}") from problem
    if found != told:
        raise ModelFileError(
            f"{path} is damaged: its checksum does not match. Take it from a backup, or save it again."
        )
    return tensors, facts


def _facts(facts: Any, path: Path, kind: str, version: int) -> Facts:
    if not isinstance(facts, dict) or facts.get("format") != kind:
        raise ModelFileError(f"{path} is not an {kind} file: it does not say so.")
    given = facts.get("format_version")
    if type(given) is not int or given != version:
        raise ModelFileError(
            f"{path} has format version {given!r:.20}; this echolearn reads versions 1 to {FORMAT_VERSION}. Install "
            f"the echolearn that wrote it ({facts.get('echolearn')!r:.20}) or newer."
        )
    return facts


def _header(file: BufferedReader, size: int) -> tuple[dict[str, Entry], dict[str, str], int]:
    """Announced arrays, metadata, and where the bytes begin; ValueError where they do not fill the file exactly."""
    length = int.from_bytes(file.read(8), "little")
    if size < 8 or not 2 <= length <= min(HEADER_LIMIT, size - 8):
        raise ValueError(f"a header of {length} bytes in a file of {size} (at most {HEADER_LIMIT} are read)")
    header = parsed(file.read(length).decode("utf-8"), strict=True)
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


def _entry(name: str, about: Any) -> Entry:
    if not isinstance(about, dict) or set(about) != {"dtype", "shape", "data_offsets"}:
        raise ValueError(f"{name!r:.40} is not announced by dtype, shape and data_offsets")
    dtype, shape, places = about["dtype"], about["shape"], about["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ValueError(f"{name!r:.40} has dtype {dtype!r:.20}; expected one of {', '.join(DTYPES)}")
    if not _counts(shape) or len(shape) > 2 or not _counts(places) or len(places) != 2:
        raise ValueError(f"{name!r:.40} has shape {shape!r:.40} at bytes {places!r:.40}")
    if math.prod(shape) * np.dtype(DTYPES[dtype]).itemsize != places[1] - places[0]:
        raise ValueError(f"{name!r:.40} of shape {shape!r:.40} does not take {places!r:.40} bytes")
    return Entry(dtype, tuple(shape), *places)


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**63 for n in value)


def parsed(text: str, *, strict: bool) -> Any:
    """JSON without repeated names, numbers that are not finite (unless not `strict`), or too many values."""
    if _values(text) > VALUES_LIMIT:
        raise ValueError(f"more than {VALUES_LIMIT} values")

    def finite(word: str) -> float:
        if not math.isfinite(float(word)):
            raise ValueError(f"the number {word:.20}")
        return float(word)

    hooks: Any = {"parse_constant": finite, "parse_float": finite} if strict else {}
    return json.loads(text, object_pairs_hook=_unique, **hooks)


def _values(text: str) -> int:
    """At least as many as there are values in this JSON."""
    return 1 + text.count(",") + text.count("[") + text.count("{")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name that appears twice")
    return found


def _read(
    file: BufferedReader, entries: Mapping[str, Entry], begin: int, about: str | Facts
) -> tuple[dict[str, Array], str]:
    """The arrays, and the checksum of all that was read; `about`: the facts, of version 1, or their text."""
    first = isinstance(about, dict)
    digest = _started_1(about) if isinstance(about, dict) else _started(about)
    tensors = {}
    for name in sorted(entries):
        entry = entries[name]
        value = np.empty(entry.shape, DTYPES[entry.dtype])
        file.seek(begin + entry.start)
        if file.readinto(_bytes(value).data) != value.nbytes:
            raise ValueError(f"{name} is cut short")
        if entry.dtype == "BOOL" and (_bytes(value) > 1).any():
            raise ValueError(f"{name} holds truth values that are neither 0 nor 1")
        (_add_1 if first else _add)(digest, name, entry, value)
        tensors[name] = value.astype(value.dtype.newbyteorder("="), copy=False)
    return tensors, digest.hexdigest()


def _bytes(value: Array) -> Array:
    return value.reshape(-1).view(np.uint8)


def _started(text: str) -> Any:
    return hashlib.sha256(text.encode())


def _add(digest: Any, name: str, entry: Entry, value: Array) -> None:
    digest.update(f"\n{name} {entry.dtype} {' '.join(map(str, entry.shape))}\n".encode())
    digest.update(_bytes(value.astype(DTYPES[entry.dtype], copy=False)))


def _started_1(facts: Facts) -> Any:
    plain = {name: value for name, value in facts.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode())


def _add_1(digest: Any, name: str, entry: Entry, value: Array) -> None:
    digest.update(f"{name} {DTYPES[entry.dtype]} {entry.shape}".encode())
    digest.update(_bytes(value))


def to_json(value: Any) -> Any:
    """Plain values that JSON can tell: tuples and numbers that are not finite as objects of one name."""
    if isinstance(value, np.floating):
        value = float(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return to_json(value.tolist())
    if isinstance(value, tuple):
        return {"tuple": [to_json(v) for v in value]}
    if isinstance(value, list):
        return [to_json(v) for v in value]
    if isinstance(value, dict):
        return {name: to_json(v) for name, v in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def from_json(value: Any, levels: int = LEVELS) -> Any:
    """What `to_json` was given (arrays as lists)."""
    if levels == 0:
        raise ValueError(f"values nested deeper than {LEVELS} levels")
    if isinstance(value, list):
        return [from_json(v, levels - 1) for v in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"tuple"} and isinstance(value["tuple"], list):
        return tuple(from_json(v, levels - 1) for v in value["tuple"])
    if set(value) == {"float"} and value["float"] in ("nan", "inf", "-inf"):
        return float(value["float"])
    return {name: from_json(v, levels - 1) for name, v in value.items()}


def table(rows: Sequence[Mapping[str, float]]) -> tuple[dict[str, Array], list[str]]:
    """Rows of numbers by name, not all with the same names, as a matrix (rows, columns) and where it has an entry."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    numbers = [[float(row.get(name, 0)) for name in columns] for row in rows]
    there = [[name in row for name in columns] for row in rows]
    shape = (len(rows), len(columns))
    _check_history(shape)
    return {
        "history": np.array(numbers, np.float64).reshape(shape),
        "history.there": np.array(there, np.bool_).reshape(shape),
    }, columns


def _check_history(shape: tuple[int, ...]) -> None:
    if math.prod(shape) > HISTORY_LIMIT:
        raise ValueError(
            f"a history of {shape} rows and columns; a file holds at most {HISTORY_LIMIT:,} entries of it."
        )


def rows_of(tensors: Mapping[str, Array], columns: Sequence[str]) -> list[dict[str, float]]:
    """What `table` was given."""
    _check_history(tensors["history"].shape)
    for name, column in zip(columns, tensors["history"].T, strict=True):
        if name in WHOLE and not (np.abs(column) < 2**53).all():
            raise ValueError(f"{name} does not count")
    return [
        {name: int(v) if name in WHOLE else v for name, v, given in zip(columns, row, there, strict=True) if given}
        for row, there in zip(tensors["history"].tolist(), tensors["history.there"].tolist(), strict=True)
    ]
