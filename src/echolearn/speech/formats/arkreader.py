"""The objects of a Kaldi archive, read so that a damaged size allocates nothing."""

from __future__ import annotations

import os
import re
from io import BufferedReader
from pathlib import Path
from typing import Any

import numpy as np

from echolearn.exceptions import CorpusError
from echolearn.speech.formats.results import name_problem
from echolearn.speech.textfile import line_problem, number_of
from echolearn.validation import Array

SIZED = np.dtype([("size", "u1"), ("value", "<i4")])  # a whole number in binary, after the number of its bytes
_MAX_NAME_BYTES = 4096
_PLAIN: dict[bytes, tuple[str, int]] = {b"FM ": ("<f4", 2), b"DM ": ("<f8", 2), b"FV ": ("<f4", 1), b"DV ": ("<f8", 1)}
_COMPRESSED = (b"CM ", b"CM2", b"CM3")
_MAX_FLOAT32 = float(np.finfo(np.float32).max)
_INTEGER = re.compile(rb"-?\d{1,10}")


def opened(path: str | Path) -> BufferedReader:
    """Open an archive for reading."""
    try:
        return Path(path).open("rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise CorpusError.one(path, f"cannot be read ({reason}); expected a Kaldi archive, check the path") from error


class ArkReader:
    """A reader of one archive, which compares sizes with that of the file before anything is read or allocated."""

    def __init__(self, path: str | Path, file: BufferedReader) -> None:
        self.path, self.file = path, file
        self.size = os.fstat(file.fileno()).st_size
        self.began = 0  # where the present entry or object begins
        self.text = False  # whether it is text, where lines are counted

    def at_end(self) -> bool:
        return self.file.tell() >= self.size

    def seek(self, offset: int | None) -> None:
        """Go to an object of an archive, which has a name and a space before it; None is the one of the file."""
        if (offset or 0) >= self.size:
            raise CorpusError.one(self.path, f"has {self.size} bytes; expected an object at offset {offset or 0}")
        if offset is not None:
            first = max(0, offset - _MAX_NAME_BYTES)
            self.file.seek(first)
            before = self.file.read(offset - first)
            is_text = self.file.read(2) != b"\0B"
            name = before[:-1].rpartition(b"\n")[2] if is_text else before[-2:-1]
            if before[-1:] != b" " or not name or name.split() != [name]:
                raise CorpusError.one(self.path, f"offset {offset}: no array begins here; write the script file again")
        self.file.seek(offset or 0)

    def name(self) -> str:
        """Read the name of an entry and the space after it."""
        self.began, self.text = self.file.tell(), False
        head = self.file.read(_MAX_NAME_BYTES)
        raw, space, _ = head.partition(b" ")
        try:
            name = raw.decode()
        except UnicodeDecodeError:
            name = ""
        if not space or name_problem(name, "the entry"):
            raise self.problem(f"{bytes(raw[:30])!r} is no name of an entry; expected a name and a space")
        self.file.seek(self.began + len(raw) + 1)
        return name

    def object(self) -> Array:
        """Read a matrix or vector, which must be finite."""
        at = self.file.tell()
        self.began = at
        self.text = self.file.read(2) != b"\0B"
        if self.text:
            self.file.seek(at)
            array = self.text_object()
        else:
            array = self.binary_object()
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise self.problem("the array holds NaN or infinity; expected finite numbers")
        return array

    def binary_object(self) -> Array:
        kind = self.take(3, "the kind of the array")
        if kind in _PLAIN:
            dtype, axes = _PLAIN[kind]
            shape = tuple(self.whole() for _ in range(axes))
            return self.array(shape, np.dtype(dtype))
        if kind[:1] == b"\4":
            self.file.seek(-3, os.SEEK_CUR)
            row = self.array((self.whole(),), SIZED)
            if not (row["size"] == 4).all():
                raise self.problem("a whole number is not of 4 bytes; the vector is damaged")
            return np.asarray(row["value"], np.int32)
        if kind in _COMPRESSED and (kind == b"CM " or self.take(1, "the kind of the array") == b" "):
            return self.compressed(kind)
        expected = "FM, DM, FV, DV, CM, CM2, CM3 or a vector of whole numbers"
        raise self.problem(f"the array is of the kind {kind!r}; expected {expected}")

    def compressed(self, kind: bytes) -> Array:
        low, span = (float(x) for x in np.frombuffer(self.take(8, "the range of values"), "<f4"))
        rows, columns = (int(x) for x in np.frombuffer(self.take(8, "the shape"), "<i4"))
        if not (np.isfinite(low) and np.isfinite(span) and span >= 0 and rows >= 0 and columns >= 0):
            raise self.problem(f"the matrix has {rows} rows, {columns} columns and a range of {span} from {low} on")
        if kind == b"CM2":
            return _scaled(self.array((rows, columns), np.dtype("<u2")), low, span, 65535)
        if kind == b"CM3":
            return _scaled(self.array((rows, columns), np.dtype("u1")), low, span, 255)
        quantiles = self.array((columns, 4), np.dtype("<u2"))
        if (np.diff(quantiles.astype(np.int32)) < 0).any():
            raise self.problem("the quantiles of a column are not in order; the compressed matrix is damaged")
        return _expanded(self.array((columns, rows), np.dtype("u1")), _scaled(quantiles, low, span, 65535))

    def whole(self) -> int:
        """Read the number of rows, columns or entries."""
        raw = self.take(5, "a size")
        if raw[0] != 4 or raw[4] > 127:
            raise self.problem(f"{raw!r} is no number of rows, columns or entries")
        return int.from_bytes(raw[1:], "little")

    def array(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        count = 1
        for size in shape:
            count *= size
        content = self.take(count * dtype.itemsize, f"an array of shape {shape}")
        return np.frombuffer(bytearray(content), dtype).reshape(shape)  # a bytearray, so that users may write to it

    def take(self, count: int, what: str) -> bytes:
        """Read so many bytes, which must be there."""
        left = self.size - self.file.tell()
        content = self.file.read(count) if count <= left else b""
        if len(content) != count:
            raise self.problem(f"{what} takes {count} bytes and {left} are left; the file is cut short or damaged")
        return content

    def text_object(self) -> Array:
        line = self.text_line().strip(b" \t")
        if not line.startswith(b"["):
            return self.integers(line)
        first, closed, rest = line[1:].partition(b"]")
        if closed:
            vector: Array = self.floats([self.closed(first, rest)])[0]
            return vector
        rows = [first] if first.strip(b" \t") else []
        while not closed:
            first, closed, rest = self.text_line().partition(b"]")
            rows.append(self.closed(first, rest) if closed else first)
        return self.floats([row for row in rows if row.strip(b" \t")])

    def closed(self, content: bytes, rest: bytes) -> bytes:
        if rest.strip(b" \t"):
            raise self.problem(f"{rest[:40]!r} follows the bracket ]; expected the end of the line")
        return content

    def text_line(self) -> bytes:
        """Read a line, whose end must be there."""
        line = self.file.readline()
        if not line.endswith(b"\n"):
            raise self.problem("the file ends inside an array; it is cut short")
        return line.removesuffix(b"\n").removesuffix(b"\r")

    def integers(self, line: bytes) -> Array:
        fields = _fields(line)
        wrong = [f for f in fields if not _INTEGER.fullmatch(f) or not -(2**31) <= int(f) < 2**31]
        if wrong:
            raise self.problem(f"{wrong[0][:40]!r} is no whole number of 32 bits; expected those, or an array in [ ]")
        return np.array([int(f) for f in fields], np.int32)

    def floats(self, rows: list[bytes]) -> Array:
        values: list[list[float]] = []
        for row in rows:
            values.append([])
            for field in _fields(row):
                value = number_of(field.decode("ascii", "replace"))
                if value is None or abs(value) > _MAX_FLOAT32:
                    raise self.problem(f"{field[:40]!r} is no finite number of 32 bits")
                values[-1].append(value)
            if len(values[-1]) != len(values[0]):
                raise self.problem(f"a row has {len(values[-1])} numbers, the first one {len(values[0])}")
        return np.array(values, np.float32)

    def problem(self, what: str) -> CorpusError:
        if not self.text:
            return CorpusError.one(self.path, f"offset {self.began}: {what}")
        at = max(self.began, self.file.tell() - 1)
        self.file.seek(0)
        return line_problem(self.path, 1 + self.file.read(at).count(b"\n"), what)


def _fields(line: bytes) -> list[bytes]:
    """Return what spaces and tabs separate; `bytes.split` would split a number at a stray line end, too."""
    return [field for field in line.replace(b"\t", b" ").split(b" ") if field]


def _scaled(codes: Array, low: float, span: float, steps: int) -> Array:
    """Return the values of codes between 0 and `steps`, in the precision that Kaldi computes them in."""
    values: Array = np.float32(low) + np.float32(span) * np.float32(1 / steps) * codes.astype(np.float32)
    return values


def _expanded(codes: Array, quantiles: Array) -> Array:
    """Return the matrix of codes of one byte, shape (columns, rows), between four quantiles of each column."""
    q0, q25, q75, q100 = (quantiles[:, [k]] for k in range(4))
    code = codes.astype(np.float32)
    low = q0 + (q25 - q0) * code * np.float32(1 / 64)
    middle = q25 + (q75 - q25) * (code - 64) * np.float32(1 / 128)
    high = q75 + (q100 - q75) * (code - 192) * np.float32(1 / 63)
    matrix: Array = np.where(codes <= 64, low, np.where(codes <= 192, middle, high)).T
    return np.ascontiguousarray(matrix)
