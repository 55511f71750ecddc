"""Snapshots of streams: the running state in one safetensors file, which only the same model takes up again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np

from echolearn.exceptions import ModelFileError
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.writer import write_tensors
from echolearn.validation import Array

SNAPSHOT = "echolearn-stream"
MAY_HAVE_GAPS = "known"  # the array in which NaN stands for what is not known


def fingerprint(*parts: object) -> str:
    """Return a hash of arrays, plain values, and dataclasses, tuples and mappings of them."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
        elif is_dataclass(part) and not isinstance(part, type):
            values = [getattr(part, field.name) for field in fields(part)]
            digest.update(f"{type(part).__name__}{fingerprint(*values)}".encode())
        elif isinstance(part, (tuple, list)):
            digest.update(f"({len(part)}{fingerprint(*part)}".encode())
        elif isinstance(part, Mapping):
            digest.update(f"{sorted(part)!r}{fingerprint(*(part[key] for key in sorted(part)))}".encode())
        else:
            digest.update(f"{part!r}\n".encode())
    return digest.hexdigest()


def write_snapshot(path: Path, arrays: Mapping[str, Array], model: str) -> None:
    """Write the arrays of a running stream, atomically. model: the fingerprint of what runs."""
    write_tensors(path, arrays, {"model": model}, SNAPSHOT)


def read_snapshot(path: Path, like: Mapping[str, Array], model: str) -> dict[str, Array]:
    """Return the arrays of a snapshot; raise ModelFileError unless it is one of this model, with the names, shapes and
    dtypes of `like`, the arrays of a stream of the model."""
    arrays, facts = read_tensors(path, SNAPSHOT)
    if facts.get("model") != model:
        raise ModelFileError(
            f"{path} is the snapshot of another model, or of a stream with other settings (online=, the number of "
            "devices). Resume it with a stream of the model that it was saved from."
        )
    if {name: (a.shape, a.dtype) for name, a in arrays.items()} != {n: (a.shape, a.dtype) for n, a in like.items()}:
        raise ModelFileError(f"{path} does not hold the arrays of a stream of this model.")
    for name, value in arrays.items():
        if value.dtype.kind == "f" and name != MAY_HAVE_GAPS and not np.isfinite(value).all():
            raise ModelFileError(f"{path}: {name} holds NaN or infinity.")
        if value.dtype.kind == "i" and (value < 0).any():
            raise ModelFileError(f"{path}: {name} holds negative counts.")
    return arrays
