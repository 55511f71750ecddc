"""What the reader and the writer share: the description of arrays in the header, and the checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from echolearn.validation import Array

Facts = dict[str, Any]  # the plain values of a file, by name
Tensors = dict[str, Array]  # its arrays, by name

FORMAT_VERSION = 2
MODEL = "echolearn-model"  # the kind of file that a network or a pipeline is saved to
RECOGNIZER = "echolearn-recognizer"  # the kind of file that a recogniser of speech is saved to
HEADER_LIMIT = 4 * 2**20  # bytes
DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Entry:
    """The description of an array in the header; its bytes are data[start:stop]."""

    dtype: str
    shape: tuple[int, ...]
    start: int = 0
    stop: int = 0


# raises ValueError if the arrays and values that a header announces are not the expected ones
Check = Callable[[Mapping[str, Entry], Facts], None]


def entries_of(tensors: Mapping[str, Array]) -> dict[str, Entry]:
    """Return the descriptions of arrays, without the positions of their bytes."""
    return {name: Entry(DTYPE_NAMES[little_endian(value)], value.shape) for name, value in tensors.items()}


def little_endian(value: Array) -> str:
    """Return the name that NumPy gives to the dtype of an array, in the byte order of files."""
    return value.dtype.newbyteorder("<").str


def as_bytes(value: Array) -> Array:
    """Return a view of a contiguous array as bytes."""
    return value.reshape(-1).view(np.uint8)


class Checksum:
    """The hash of the text of the facts and of all arrays, which are added in the order of their names."""

    def __init__(self, text: str):
        self._digest = hashlib.sha256(text.encode())

    def add(self, name: str, entry: Entry, value: Array) -> None:
        """Add one array."""
        self._digest.update(f"\n{name} {entry.dtype} {' '.join(map(str, entry.shape))}\n".encode())
        self._digest.update(as_bytes(value.astype(DTYPES[entry.dtype], copy=False)).data)

    def hexdigest(self) -> str:
        """Return the hash of all that was added."""
        return self._digest.hexdigest()
