"""Kaldi archives (ark) and script files (scp): matrices and vectors of floats, and vectors of whole numbers.

An archive holds entries one after another: a name, a space and an object. An object in binary begins with the bytes
0 and B; any other object is text. A script file gives the place of each object as `name file:offset`, with an optional
range of rows and columns, `[first:last]` or `[first:last,first:last]`, whose ends are included.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from echolearn.exceptions import CorpusError
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech._text import line_problem, number_of, read_lines
from echolearn.speech.formats._results import name_problem
from echolearn.validation import Array

_RANGE = re.compile(r"(?P<place>.*)\[(?P<rows>[^\[\],]*)(?:,(?P<columns>[^\[\],]*))?\]")
_BOUNDS = re.compile(r"(\d{1,9}):(\d{1,9})", re.ASCII)
_OFFSET = re.compile(r"(?P<file>.+):(?P<offset>\d{1,15})", re.ASCII)
Bounds = tuple[int, int]
SIZED = np.dtype([("size", "u1"), ("value", "<i4")])  # a whole number in binary, after the number of its bytes
_MAX_NAME_BYTES = 4096
_PLAIN: dict[bytes, tuple[str, int]] = {b"FM ": ("<f4", 2), b"DM ": ("<f8", 2), b"FV ": ("<f4", 1), b"DV ": ("<f8", 1)}
_COMPRESSED = (b"CM ", b"CM2", b"CM3")
_MAX_FLOAT32 = float(np.finfo(np.float32).max)
_INTEGER = re.compile(rb"-?\d{1,10}")


def read_ark(path: str | Path) -> dict[str, Array]:
    """Read all entries of a Kaldi archive.

    Parameters
    ----------
    path : str or Path
        The archive, in text or binary; matrices may be compressed in any of Kaldi's three ways. A CorpusError names the
        offset or line of what is damaged, cut short, not finite or named twice.

    Returns
    -------
    dict of str to array
        A float32 or float64 matrix or vector, or an int32 vector, for each name.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_ark(f"{folder}/a.ark", {"u1": np.ones((2, 3), np.float32)}, scp=f"{folder}/a.scp")
    ...     read_ark(f"{folder}/a.ark")["u1"].shape, open_scp(f"{folder}/a.scp")["u1"].shape
    ((2, 3), (2, 3))
    """
    arrays: dict[str, Array] = {}
    with open_archive(path) as file:
        reader = ArkReader(path, file)
        while not reader.at_end():
            name = reader.name()
            array = reader.object()
            if name in arrays:
                raise reader.problem(f"the entry {name!r} occurs twice; keep one of the two")
            arrays[name] = array
    return arrays


def write_ark(
    path: str | Path,
    arrays: Mapping[str, Array] | Iterable[tuple[str, Array]],
    *,
    scp: str | Path | None = None,
    text: bool = False,
) -> None:
    """Write a Kaldi archive.

    Parameters
    ----------
    path : str or Path
        The archive; one that exists is replaced, completely or not at all.
    arrays : mapping of str to array, or iterable of (str, array)
        Matrices or vectors of finite float32 or float64, or vectors of whole numbers, which are written as int32. A
        name has no blanks and occurs once.
    scp : str or Path, optional
        A script file that is also written. It refers to the archive by `path`.
    text : bool, default False
        Whether to write text, with enough digits for every float32 to be read back exactly. float64 is rounded to
        float32.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_ark(f"{folder}/a.ark", {"u1": np.ones(2, np.float32)}, text=True)
    ...     print(Path(folder, "a.ark").read_text(), end="")
    u1  [ 1 1 ]
    """
    content, lines, seen = bytearray(), [], set()
    for name, array in arrays.items() if isinstance(arrays, Mapping) else arrays:
        what = name_problem(name, "the name of an entry") or _array_problem(array)
        if what or name in seen:
            raise ValueError(f"an archive cannot hold the entry {name!r}: {what or 'it occurs twice'}")
        seen.add(name)
        content += name.encode() + b" "
        lines.append(f"{name} {path}:{len(content)}\n")
        content += _text_of(array) if text else _binary_of(array)
    write_atomically(Path(path), bytes(content))
    if scp is not None:
        write_atomically(Path(scp), "".join(lines).encode())


def _array_problem(array: Array) -> str | None:
    if array.dtype.kind == "f" and array.dtype.itemsize in (4, 8) and array.ndim in (1, 2):
        return None if np.isfinite(array).all() else "it holds NaN or infinity"
    if array.dtype.kind in "iu" and array.ndim == 1:
        small = array.size == 0 or (int(array.min()) >= -(2**31) and int(array.max()) < 2**31)
        return None if small else "a number does not fit into 32 bits"
    return f"it is {array.dtype} {array.shape}; expected floats in one or two dimensions, or whole numbers in one"


def _binary_of(array: Array) -> bytes:
    if array.dtype.kind in "iu":
        row = np.empty(len(array), SIZED)
        row["size"], row["value"] = 4, array
        return b"\0B\4" + len(array).to_bytes(4, "little") + row.tobytes()
    kind = ("D" if array.dtype.itemsize == 8 else "F") + "VM"[array.ndim - 1] + " "
    sizes = b"".join(b"\4" + size.to_bytes(4, "little") for size in array.shape)
    return b"\0B" + kind.encode() + sizes + np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()


def _text_of(array: Array) -> bytes:
    if array.dtype.kind in "iu":
        return (" ".join(str(value) for value in array.tolist()) + "\n").encode()
    rows = [" ".join(f"{value:.9g}" for value in row) for row in np.atleast_2d(np.float32(array)).tolist()]
    if array.ndim == 1:
        return f" [ {rows[0]} ]\n".replace("  ]", " ]").encode()
    return (" [\n  " + "\n  ".join(rows) + " ]\n").encode() if array.size else b" [ ]\n"


class ArkPlace(NamedTuple):
    """Where a script file says that an object is."""

    file: Path
    offset: int | None
    rows: Bounds | None
    columns: Bounds | None


class ScpArrays(Mapping[str, Array]):
    """The arrays of a script file as a mapping; each is read when it is accessed. `open_scp` returns it."""

    def __init__(self, path: str | Path, places: dict[str, tuple[int, ArkPlace]]) -> None:
        self.path, self.places = path, places

    def __getitem__(self, name: str) -> Array:
        number, place = self.places[name]
        try:
            return read_place(place)
        except CorpusError as error:
            raise line_problem(self.path, number, str(error.problems[0])) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


def open_scp(path: str | Path) -> ScpArrays:
    """Open a Kaldi script file of matrices or vectors.

    Parameters
    ----------
    path : str or Path
        The script file. A relative path in it is searched in the working directory, then beside the script file. A
        command (`copy-feats ... |`) is refused, because commands in files are never run.

    Returns
    -------
    ScpArrays
        A mapping of names to arrays, which are read when they are accessed.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_ark(f"{folder}/a.ark", {"u1": np.ones((2, 3), np.float32)}, scp=f"{folder}/a.scp")
    ...     {name: array.shape for name, array in open_scp(f"{folder}/a.scp").items()}
    {'u1': (2, 3)}
    """
    rows = read_table(path).items()
    return ScpArrays(path, {name: (number, _place(path, number, rest)) for name, (number, rest) in rows})


def read_table(path: str | Path, *, empty: bool = False) -> dict[str, tuple[int, str]]:
    """Read a table of Kaldi: a name and a value on every line."""
    values: dict[str, tuple[int, str]] = {}
    for number, line in read_lines(path, "a table of Kaldi"):
        name, *rest = line.split(maxsplit=1)
        if not rest and not empty:
            raise line_problem(path, number, f"{name[:60]!r} stands alone; expected a name and a value")
        if name in values:
            raise line_problem(path, number, f"{name[:60]!r} occurs twice; keep one of the two")
        values[name] = (number, rest[0] if rest else "")
    if not values:
        raise line_problem(path, 1, "the file is empty; expected a name and a value on every line")
    return values


def plain_file(path: str | Path, number: int, text: str) -> Path:
    """Return the file that a line of a script file names."""
    if text.startswith("|") or text.endswith("|") or text == "-":
        what = "a command" if text != "-" else "the standard input"
        raise line_problem(path, number, f"names {what}, {text[:60]!r}, which is never run; write its output to a file")
    named = Path(text)
    try:
        return named if named.is_absolute() or named.exists() else Path(path).parent / named
    except OSError as error:
        raise line_problem(path, number, f"{text[:60]!r} is no file name ({error.strerror})") from error


def _place(path: str | Path, number: int, text: str) -> ArkPlace:
    bounds: list[Bounds | None] = [None, None]
    place, match = text, _RANGE.fullmatch(text)
    if match:
        place = match["place"]
        bounds = [_bounds(path, number, part) for part in (match["rows"], match["columns"] or "")]
    elif text.endswith("]"):
        raise line_problem(
            path, number, f"{text[-40:]!r} is no range; expected [first:last] or [first:last,first:last]"
        )
    at = _OFFSET.fullmatch(place)
    file = plain_file(path, number, at["file"] if at else place)
    return ArkPlace(file, int(at["offset"]) if at else None, *bounds)


def _bounds(path: str | Path, number: int, text: str) -> Bounds | None:
    """Return the first and the last row or column; None for all of them."""
    if text in ("", ":"):
        return None
    match = _BOUNDS.fullmatch(text)
    if not match or int(match[1]) > int(match[2]):
        raise line_problem(path, number, f"{text[:40]!r} is no range; expected first:last, of which both are included")
    return int(match[1]), int(match[2])


def read_place(place: ArkPlace) -> Array:
    """Read the matrix or vector at a place."""
    with open_archive(place.file) as file:
        reader = ArkReader(place.file, file)
        reader.seek(place.offset)
        array = reader.object()
        if place.offset is None and not reader.at_end():
            raise reader.problem("the file continues after its object; expected its end, or an offset in the script")
    for axis, (bounds, what) in enumerate(((place.rows, "rows"), (place.columns, "columns"))):
        if bounds is None:
            continue
        size = array.shape[axis] if axis < array.ndim else 0
        if bounds[1] >= size:
            where = f"at offset {place.offset or 0}"
            raise CorpusError.one(
                place.file, f"{where}: {size} {what}; expected at least {bounds[1] + 1} for the range {bounds}"
            )
        array = array[(slice(None),) * axis + (slice(bounds[0], bounds[1] + 1),)]
    return array


def open_archive(path: str | Path) -> BufferedReader:
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
        content = self.take(math.prod(shape) * dtype.itemsize, f"an array of shape {shape}")
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
            return np.asarray(self.floats([self.closed(first, rest)])[0])
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
    return np.asarray(np.float32(low) + np.float32(span) * np.float32(1 / steps) * codes.astype(np.float32))


def _expanded(codes: Array, quantiles: Array) -> Array:
    """Return the matrix of codes of one byte, shape (columns, rows), between four quantiles of each column."""
    q0, q25, q75, q100 = (quantiles[:, [k]] for k in range(4))
    code = codes.astype(np.float32)
    low = q0 + (q25 - q0) * code * np.float32(1 / 64)
    middle = q25 + (q75 - q25) * (code - 64) * np.float32(1 / 128)
    high = q75 + (q100 - q75) * (code - 192) * np.float32(1 / 63)
    return np.ascontiguousarray(np.where(codes <= 64, low, np.where(codes <= 192, middle, high)).T)
