"""Kaldi archives (ark) and script files (scp): matrices and vectors of floats, and vectors of whole numbers.

An archive holds entries one after another: a name, a space and an object. An object in binary begins with the bytes
0 and B; any other object is text. A script file gives the place of each object as `name file:offset`, with an optional
range of rows and columns, `[first:last]` or `[first:last,first:last]`, whose ends are included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from echolearn.exceptions import CorpusError
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech.formats.arkreader import SIZED, ArkReader, opened
from echolearn.speech.formats.results import name_problem
from echolearn.speech.textfile import line_problem, read_lines
from echolearn.validation import Array

_RANGE = re.compile(r"(?P<place>.*)\[(?P<rows>[^\[\],]*)(?:,(?P<columns>[^\[\],]*))?\]")
_BOUNDS = re.compile(r"(\d{1,9}):(\d{1,9})", re.ASCII)
_OFFSET = re.compile(r"(?P<file>.+):(?P<offset>\d{1,15})", re.ASCII)

Bounds = tuple[int, int]


def read_ark(path: str | Path) -> dict[str, Array]:
    """Read all entries of a Kaldi archive.

    Parameters
    ----------
    path : str or Path
        The archive, in text or binary; matrices may be compressed in any of Kaldi's three ways.

    Returns
    -------
    dict of str to array
        A float32 or float64 matrix or vector, or an int32 vector, for each name.

    Raises
    ------
    CorpusError
        With the file and the offset or line, if it cannot be read, is damaged or cut short, holds NaN or infinity, or
        has a name twice.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_ark(f"{folder}/a.ark", {"u1": np.ones((2, 3), np.float32)}, scp=f"{folder}/a.scp")
    ...     read_ark(f"{folder}/a.ark")["u1"].shape, open_scp(f"{folder}/a.scp")["u1"].shape
    ((2, 3), (2, 3))
    """
    arrays: dict[str, Array] = {}
    with opened(path) as file:
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
        Matrices or vectors of float32 or float64, or vectors of whole numbers, which are written as int32.
    scp : str or Path, optional
        A script file that is also written. It refers to the archive by `path`.
    text : bool, default False
        Whether to write text, with enough digits for every float32 to be read back exactly. float64 is rounded to
        float32.

    Raises
    ------
    ValueError
        If a name has blanks or occurs twice, or an array has another type or holds NaN or infinity.

    See Also
    --------
    read_ark : Read an archive; it has an example.
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
        The script file. A relative path in it is searched in the working directory, then beside the script file.

    Returns
    -------
    ScpArrays
        A mapping of names to arrays, which are read when they are accessed.

    Raises
    ------
    CorpusError
        With the file and the line, if it cannot be read, has a name twice or a line of another form. A command
        (`copy-feats ... |`) is refused, because commands in files are never run.
    """
    rows = read_table(path).items()
    return ScpArrays(path, {name: (number, _place(path, number, rest)) for name, (number, rest) in rows})


def read_table(path: str | Path, *, empty: bool = False) -> dict[str, tuple[int, str]]:
    """Read a table of Kaldi: a name and a value on every line."""
    found: dict[str, tuple[int, str]] = {}
    for number, line in read_lines(path, "a table of Kaldi"):
        name, *rest = line.split(maxsplit=1)
        if not rest and not empty:
            raise line_problem(path, number, f"{name[:60]!r} stands alone; expected a name and a value")
        if name in found:
            raise line_problem(path, number, f"{name[:60]!r} occurs twice; keep one of the two")
        found[name] = (number, rest[0] if rest else "")
    if not found:
        raise line_problem(path, 1, "the file is empty; expected a name and a value on every line")
    return found


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
    with opened(place.file) as file:
        reader = ArkReader(place.file, file)
        reader.seek(place.offset)
        array = reader.object()
        if place.offset is None and not reader.at_end():
            raise reader.problem("the file goes on after its object; expected its end, or an offset in the script file")
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
