"""The checkpoint: all that learning needs to go on after its last finished epoch, to the bit.

A folder with the newest two states, each a safetensors file with a checksum, written atomically. A fingerprint of
data and settings goes with them: going on with others is refused, and the difference shown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from echolearn.reservoir import Reservoir
from echolearn.sequences import Data
from echolearn.tensorfile import ModelFileError, read_tensors, rows_of, table, write_tensors

Array = NDArray[Any]
State = tuple[dict[str, Array], dict[str, Any]]

FORMAT = "echolearn-checkpoint"
KEPT = 2
FOLDERS = ("weights", "before", "first", "second", "best")  # of arrays that are shaped as the weights are


class CheckpointError(ValueError):
    """The checkpoint belongs to other data or settings."""


class Checkpoint:
    """Where a fit keeps its state. `about` describes data and settings, in plain values."""

    def __init__(self, folder: Path, about: dict[str, Any]):
        self.folder, self.about = folder, json.loads(json.dumps(about, default=str))
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, allowed: Mapping[str, tuple[int, ...]]) -> State | None:
        """The newest whole state, or None if there is none. allowed: the arrays it may have, and their shapes."""
        for path in sorted(self.folder.glob("epoch-*.safetensors"), reverse=True):
            try:
                tensors, facts = read_tensors(path, FORMAT)
            except ModelFileError:
                continue  # cut off while it was written elsewhere, or damaged: the one before is whole
            with self.understood():
                self._compare(facts["about"], path)
                state = facts["state"]
                if "history_columns" in facts:
                    state["history"] = rows_of(tensors, facts["history_columns"])
                tensors = {n: v for n, v in tensors.items() if n not in ("history", "history.there")}
                odd = [name for name, value in tensors.items() if allowed.get(name) != value.shape]
                if odd:
                    raise ValueError(f"{odd[0]} has shape {tensors[odd[0]].shape}; expected {allowed.get(odd[0])}")
                return tensors, state
        return None

    def save(self, epoch: int, tensors: dict[str, Array], state: dict[str, Any]) -> None:
        path = self.folder / f"epoch-{epoch:06}.safetensors"
        history, columns = table(state["history"])
        plain = {name: value for name, value in state.items() if name != "history"}
        facts = {"about": self.about, "state": plain, "history_columns": columns}
        write_tensors(path, {**tensors, **history}, facts, FORMAT)
        for old in sorted(self.folder.glob("epoch-*.safetensors"))[:-KEPT]:
            old.unlink(missing_ok=True)

    @contextmanager
    def understood(self) -> Iterator[None]:
        """Around taking up a state: whatever does not fit there is told as the checkpoint's."""
        try:
            yield
        except CheckpointError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            raise CheckpointError(
                f"{self.folder} holds a state that this version cannot go on from ({problem!r:.200}). Use another "
                "checkpoint folder to start anew."
            ) from problem

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


def shapes_of(reservoir: Reservoir, M: int, n_out: int) -> dict[str, tuple[int, ...]]:
    """The arrays that learning may keep, and their shapes; M: the rows of U."""
    weights = {name: value.shape for name, value in reservoir.weights().items()}
    kept = {f"{folder}/{name}": shape for folder in FOLDERS for name, shape in weights.items()}
    return {**kept, "G": (M, M), **dict.fromkeys(("Q", "U", "V", "velocity", "best_V"), (M, n_out))}


def under(folder: str, tensors: dict[str, Array]) -> dict[str, Array]:
    """The arrays named "folder/name", by name."""
    return {name.split("/")[1]: value for name, value in tensors.items() if name.startswith(folder + "/")}


def fingerprint(data: Data) -> str:
    """A hash of every frame and target, in order."""
    digest = hashlib.blake2b(digest_size=16)
    for x, y in zip(data.X, data.y, strict=True):
        digest.update(repr((np.shape(x), np.shape(y))).encode())
        digest.update(np.ascontiguousarray(x).data)
        digest.update(np.ascontiguousarray(y).data)
    return digest.hexdigest()


def matrix_fingerprint(matrix: Any) -> str:
    """A hash of a dense or sparse matrix."""
    entries = sparse.csr_array(matrix, dtype=np.float64)
    entries.sum_duplicates()
    digest = hashlib.blake2b(repr(entries.shape).encode(), digest_size=16)
    for part in (entries.indptr, entries.indices):
        digest.update(part.astype(np.int64).data)
    digest.update(entries.data.data)
    return digest.hexdigest()
