"""Writes arrays and facts into one safetensors file (docs/reference/model_file.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from echolearn.modelfile.atomic import write_atomically
from echolearn.modelfile.layout import (
    DTYPE_NAMES,
    FORMAT_VERSION,
    HEADER_LIMIT,
    Checksum,
    Facts,
    entries_of,
    little_endian,
)
from echolearn.modelfile.values import VALUES_LIMIT, count_values, to_json
from echolearn.validation import Array


def write_tensors(path: Path, tensors: Mapping[str, Array], facts: Facts, kind: str) -> None:
    """Write arrays, and plain values with version and checksum under the name of their kind, atomically."""
    stored = {name: storable(name, value) for name, value in tensors.items()}
    text = json.dumps(to_json({"format": kind, "format_version": FORMAT_VERSION, **facts}), allow_nan=False)
    checksum = Checksum(text)
    for name, entry in sorted(entries_of(stored).items()):
        checksum.add(name, entry, stored[name])
    content = to_bytes(stored, metadata={kind: text, "sha256": checksum.hexdigest()})
    header = content[8 : 8 + int.from_bytes(content[:8], "little")]
    values = count_values(text)
    if len(header) > HEADER_LIMIT or count_values(header.decode()) > VALUES_LIMIT or values > VALUES_LIMIT:
        raise ValueError(
            f"{path}: names and settings take {len(header):,} bytes and {values:,} values; a file holds at most "
            f"{HEADER_LIMIT:,} bytes and {VALUES_LIMIT:,} values of them. Use fewer or shorter names."
        )
    write_atomically(path, content)


def to_bytes(tensors: Mapping[str, Array], metadata: Mapping[str, str]) -> bytes:
    """Return arrays and texts as safetensors specifies: a header of a multiple of 8 bytes, then wide numbers first."""
    ordered = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    parts, end = [], 0
    for name in ordered:
        value = tensors[name].astype(little_endian(tensors[name]), copy=False)
        begin, end = end, end + value.nbytes
        about = {"dtype": DTYPE_NAMES[little_endian(value)], "shape": list(value.shape), "data_offsets": [begin, end]}
        header[name] = about
        parts.append(value.tobytes())
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def storable(name: str, value: Array) -> Array:
    """Return an array in C order and native byte order: safetensors writes any other one wrongly, without an error."""
    value = np.asarray(value)
    if little_endian(value) not in DTYPE_NAMES:
        raise TypeError(f"{name} is an array of {value.dtype}, which no file can hold; use float64, int64 or bool.")
    return np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("=")).reshape(value.shape)
