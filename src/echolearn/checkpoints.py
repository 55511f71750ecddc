"""The checkpoint: all that learning needs to go on after its last finished epoch, to the bit.

A folder with the newest two states, each a safetensors file with a checksum, written atomically. A fingerprint of
data and settings goes with them: going on with others is refused, and the difference shown.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from echolearn.sequences import Data, groups
from echolearn.storage import ModelFileError, read_tensors, write_tensors

Array = NDArray[Any]
State = tuple[dict[str, Array], dict[str, Any]]

FORMAT = "echolearn-checkpoint"
KEPT = 2
FRAMES = 4096  # that a hash is made of at once


class CheckpointError(ValueError):
    """The checkpoint belongs to other data or settings."""


class Checkpoint:
    """Where a fit keeps its state. `about` describes data and settings, in plain values."""

    def __init__(self, folder: Path, about: dict[str, Any]):
        self.folder, self.about = folder, json.loads(json.dumps(about, default=str))
        folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> State | None:
        """The newest whole state, or None if there is none."""
        for path in sorted(self.folder.glob("epoch-*.safetensors"), reverse=True):
            try:
                tensors, facts = read_tensors(path, FORMAT)
            except ModelFileError:
                continue  # cut off while it was written elsewhere, or damaged: the one before is whole
            self._compare(facts["about"], path)
            return tensors, facts["state"]
        return None

    def save(self, epoch: int, tensors: dict[str, Array], state: dict[str, Any]) -> None:
        path = self.folder / f"epoch-{epoch:06}.safetensors"
        write_tensors(path, tensors, {"about": self.about, "state": state}, FORMAT)
        for old in sorted(self.folder.glob("epoch-*.safetensors"))[:-KEPT]:
            old.unlink(missing_ok=True)

    def inside(self, name: str) -> Checkpoint:
        """One for a later stage of the same fit."""
        return Checkpoint(self.folder / name, self.about)

    def _compare(self, then: dict[str, Any], path: Path) -> None:
        names = [name for name in {**then, **self.about} if then.get(name) != self.about.get(name)]
        if names:
            changes = "; ".join(f"{n}: {then.get(n)!r} then, {self.about.get(n)!r} now" for n in sorted(names))
            raise CheckpointError(
                f"{path} was written by another fit ({changes}). Use the same data and settings to go on, or another "
                "checkpoint folder to start anew."
            )


def under(folder: str, tensors: dict[str, Array]) -> dict[str, Array]:
    """The arrays named "folder/name", by name."""
    return {name.split("/")[1]: value for name, value in tensors.items() if name.startswith(folder + "/")}


def fingerprint(data: Data) -> str:
    """A hash of every frame and target, in order."""
    digests = [b""] * len(data.X)
    items = list(groups(data.lengths, FRAMES))
    for which, some in zip(items, data.each(_digests, items), strict=True):
        for i, digest in zip(which, some, strict=True):
            digests[i] = digest
    return hashlib.blake2b(b"".join(digests), digest_size=16).hexdigest()


def _digests(data: Data, which: Array) -> list[bytes]:
    """Of each sequence with its targets."""
    found = []
    for x, y in ((data.X[i], data.y[i]) for i in which):
        digest = hashlib.blake2b(repr((np.shape(x), np.shape(y))).encode(), digest_size=16)
        digest.update(np.ascontiguousarray(x).data)
        digest.update(np.ascontiguousarray(y).data)
        found.append(digest.digest())
    return found


def matrix_fingerprint(matrix: Any) -> str:
    """A hash of a dense or sparse matrix."""
    entries = sparse.csr_array(matrix, dtype=np.float64)
    entries.sum_duplicates()
    digest = hashlib.blake2b(repr(entries.shape).encode(), digest_size=16)
    for part in (entries.indptr, entries.indices):
        digest.update(part.astype(np.int64).data)
    digest.update(entries.data.data)
    return digest.hexdigest()
