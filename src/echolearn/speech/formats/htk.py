"""Feature files of HTK, which have a header of 12 bytes and one vector per frame, all big-endian."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from echolearn.modelfile.atomic import write_atomically
from echolearn.speech.errors import CorpusError
from echolearn.speech.textfile import read_bytes
from echolearn.validation.array_types import Array

# The kinds by their numbers; "" for those whose frames are no vectors of floats.
KINDS = ("", "LPC", "LPREFC", "LPCEPSTRA", "LPDELCEP", "", "MFCC", "FBANK", "MELSPEC", "USER", "", "PLP")
QUALIFIERS = {"E": 0o100, "N": 0o200, "D": 0o400, "A": 0o1000, "C": 0o2000, "Z": 0o4000, "K": 0o10000, "0": 0o20000}
QUALIFIERS |= {"V": 0o40000, "T": 0o100000}
_COMPRESSED, _CHECKSUM, _CODEBOOK = QUALIFIERS["C"], QUALIFIERS["K"], QUALIFIERS["V"]
_BASE = 0o77  # the bits that are no qualifiers
_HEADER = struct.Struct(">iihH")
_UNITS = 10_000_000  # per second
_TOP = 32767


@dataclass(frozen=True)
class HtkFeatures:
    """The content of a feature file of HTK.

    Parameters
    ----------
    values : array of shape (n_frames, n_columns), float32
        The features.
    kind : str, default "USER"
        The kind of the features with its qualifiers, such as `MFCC_E_D_A`.
    frame_seconds : float, default 0.01
        Time from one frame to the next.
    """

    values: Array
    kind: str = "USER"
    frame_seconds: float = 0.01


def read_htk(path: str | Path, *, ignore_checksum: bool = False) -> HtkFeatures:
    """Read a feature file of HTK.

    Parameters
    ----------
    path : str or Path
        The file. Compressed files (`_C`) are expanded.
    ignore_checksum : bool, default False
        Whether to read a file with a checksum (`_K`) without verifying it. HTK does not document how it is computed,
        so
        that such a file is refused by default. HCopy writes no checksum with SAVEWITHCRC = F.

    Returns
    -------
    HtkFeatures
        The features. The qualifiers `_C` and `_K`, which describe the file, are removed from their kind.

    Raises
    ------
    CorpusError
        If the file cannot be read, its header does not fit its size, it holds samples or codes instead of features,
        or NaN or infinity.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_htk(f"{folder}/a.mfc", HtkFeatures(np.ones((2, 13), np.float32), "MFCC_E"))
    ...     found = read_htk(f"{folder}/a.mfc")
    >>> found.values.shape, found.kind, found.frame_seconds
    ((2, 13), 'MFCC_E', 0.01)
    """
    content = read_bytes(path, "a feature file of HTK")
    if len(content) < _HEADER.size:
        raise CorpusError.one(path, f"has {len(content)} bytes; expected the 12 of the header of HTK and features")
    frames, period, size, code = _HEADER.unpack_from(content)
    if code & _BASE >= len(KINDS) or not KINDS[code & _BASE] or code & _CODEBOOK:
        raise CorpusError.one(path, f"is of the kind {code:o} (octal); expected features such as MFCC, FBANK or USER")
    if code & _CHECKSUM and not ignore_checksum:
        what = "has a checksum (_K), which cannot be verified; write it with SAVEWITHCRC = F, or ignore the checksum"
        raise CorpusError.one(path, what)
    compressed = bool(code & _COMPRESSED)
    least, width = (5, 2) if compressed else (1, 4)
    expected = _HEADER.size + frames * size + 2 * bool(code & _CHECKSUM)
    if frames < least or period <= 0 or size <= 0 or size % width or expected != len(content):
        what = f"{frames} frames of {size} bytes, one every {period} units of 100 ns"
        raise CorpusError.one(path, f"promises {what}, and has {len(content)} bytes; it is cut short or damaged")
    body = content[_HEADER.size : _HEADER.size + frames * size]
    with np.errstate(all="ignore"):
        values = _expanded(body, size // 2) if compressed else np.frombuffer(body, ">f4").reshape(frames, size // 4)
        values = values.astype(np.float32)
    if not np.isfinite(values).all():
        raise CorpusError.one(path, "holds NaN or infinity; expected finite features")
    return HtkFeatures(values, _kind_of(code & ~(_COMPRESSED | _CHECKSUM)), period / _UNITS)


def _expanded(body: bytes, columns: int) -> Array:
    """Return the features of a compressed file: (code + B) / A, where A and B come first."""
    A, B = np.frombuffer(body, ">f4", 2 * columns).reshape(2, columns)
    codes = np.frombuffer(body, ">i2", offset=8 * columns).reshape(-1, columns)
    values: Array = (codes.astype(np.float32) + B) / A
    return values


def write_htk(path: str | Path, features: HtkFeatures) -> None:
    """Write a feature file of HTK.

    Parameters
    ----------
    path : str or Path
        The file; one that exists is replaced, completely or not at all.
    features : HtkFeatures
        The features. With the qualifier `_C` in their kind they are compressed to 16 bits per number.

    Raises
    ------
    ValueError
        If the features are not finite numbers of shape (n_frames, n_columns), the kind is not one of HTK's, or
        their size does not fit into the header.
    """
    values = np.asarray(features.values, np.float32)
    code, period = _code_of(features.kind), round(features.frame_seconds * _UNITS)
    compressed = bool(code & _COMPRESSED)
    if values.ndim != 2 or 0 in values.shape or not np.isfinite(values).all():
        raise ValueError(f"features are of shape {values.shape}; expected finite numbers, (n_frames, n_columns)")
    frames, size = len(values) + 4 * compressed, values.shape[1] * (2 if compressed else 4)
    if frames >= 2**31 or size >= 2**15 or not 0 < period < 2**31:
        raise ValueError(f"{frames} frames of {size} bytes every {features.frame_seconds} s: too much for the header")
    body = _packed(values) if compressed else values.astype(">f4").tobytes()
    write_atomically(Path(path), _HEADER.pack(frames, period, size, code) + body)


def _packed(values: Array) -> bytes:
    """Return the content of a compressed file, as the HTK Book defines A and B; a constant column has A = 1."""
    low, high = values.min(axis=0).astype(float), values.max(axis=0).astype(float)
    flat = high <= low
    span = np.where(flat, 1.0, high - low)
    A = np.where(flat, 1.0, 2 * _TOP / span).astype(">f4")
    B = np.where(flat, low, (high + low) * _TOP / span).astype(">f4")
    codes = np.clip(np.rint(values * A.astype(float) - B.astype(float)), -_TOP, _TOP)
    return b"".join(part.tobytes() for part in (A, B, codes.astype(">i2")))


def _kind_of(code: int) -> str:
    return "_".join([KINDS[code & _BASE], *(letter for letter, bit in QUALIFIERS.items() if code & bit)])


def _code_of(kind: str) -> int:
    base, *letters = kind.split("_")
    code = KINDS.index(base) if base in KINDS and base else -1
    if code < 0 or not set(letters) <= QUALIFIERS.keys() - {"K", "V"}:
        raise ValueError(f"kind is {kind!r}; expected one such as MFCC_E_D_A, FBANK or USER, without _K and _V")
    return code | sum(QUALIFIERS[letter] for letter in set(letters))
