"""The checkpoint: all that learning needs to go on where it was cut off, to the bit.

A folder with the newest two states, each a safetensors file with a checksum, written atomically: one after every epoch
and, in long ones, every five minutes between mini-batches or passes. A fingerprint of data and settings goes with
them: going on with others is refused, and the difference shown.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from echolearn.modelfile.tensors import ModelFileError, read_tensors, rows_of, table, write_tensors
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Data, groups, shuffled
from echolearn.validation.caller import user_stacklevel

Array = NDArray[Any]
State = tuple[dict[str, Array], dict[str, Any]]
Shape = tuple[int | None, ...]

FORMAT = "echolearn-checkpoint"
STATES = "state-" + 9 * "[0-9]" + ".safetensors"
KEPT = 2
# of arrays that are shaped as the weights are
FOLDERS = ("weights", "before", "first", "second", "reservoir", "began", "best", "safe")
SECONDS = 300.0  # after so long inside an epoch a state is kept
FRAMES = 4096  # that a hash is made of at once


class CheckpointError(ValueError):
    """The checkpoint belongs to other data or settings."""


class CheckpointWarning(UserWarning):
    """A state could not be read; an older one, or none, is gone on from."""


class Checkpoint:
    """Where a fit keeps its state. `about` describes data and settings, in plain values."""

    def __init__(self, folder: Path, about: dict[str, Any]):
        self.folder, self.about = folder, json.loads(json.dumps(about, default=_plain))
        self.number, self.kept_at = 0, time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, allowed: Mapping[str, Shape]) -> State | None:
        """The newest whole state, or None if there is none. allowed: the arrays it may have, and their shapes."""
        for half in self.folder.glob(".state-*.part"):
            half.unlink(missing_ok=True)  # of a fit that was killed while it wrote
        for path in sorted(self.folder.glob(STATES), reverse=True):
            try:
                tensors, facts = read_tensors(path, FORMAT)
            except ModelFileError as problem:
                _say(f"{problem} The state before it is gone on from, if there is one.")
                continue
            with self.understood():
                self._compare(facts["about"], path)
                state = facts["state"]
                if facts["format_version"] > 1:  # version 1 kept it in the state
                    state["history"] = rows_of(tensors, facts["history_columns"])
                tensors = {n: v for n, v in tensors.items() if n not in ("history", "history.there")}
                tensors = {n: v.T if n in facts["turned"] else v for n, v in tensors.items()}
                for name, value in tensors.items():
                    if not _fits(value.shape, allowed.get(name)):
                        raise ValueError(f"{name} has shape {value.shape}; expected {allowed.get(name)}")
                self.number = int(path.stem.split("-")[1])
                return tensors, state
        return None

    def save(self, tensors: dict[str, Array], state: dict[str, Any]) -> None:
        """Beside the state it goes on from; all others are removed."""
        # An array that lies column by column comes back so: the last bits of a product may depend on it.
        turned = [name for name, value in tensors.items() if not value.flags.c_contiguous and value.flags.f_contiguous]
        stored = {name: value.T if name in turned else value for name, value in tensors.items()}
        history, columns = table(state["history"])
        plain = {name: value for name, value in state.items() if name != "history"}
        facts = {"about": self.about, "state": json.loads(json.dumps(plain, default=_plain)), "turned": turned}
        self.number += 1
        path = self.folder / f"state-{self.number:09}.safetensors"
        write_tensors(path, {**stored, **history}, {**facts, "history_columns": columns}, FORMAT)
        for old in self.folder.glob(STATES):
            if not 0 <= self.number - int(old.stem.split("-")[1]) < KEPT:
                old.unlink(missing_ok=True)
        self.kept_at = time.monotonic()

    def due(self) -> bool:
        """Whether the last state is so old that one is worth its writing inside an epoch."""
        return time.monotonic() - self.kept_at >= SECONDS

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


def shapes_of(reservoir: Reservoir, M: int, n_out: int) -> dict[str, Shape]:
    """The arrays that learning may keep, and their shapes; M: the rows of U, None: any length."""
    weights: dict[str, Shape] = {name: value.shape for name, value in reservoir.weights().items()}
    kept = {f"{folder}/{name}": shape for folder in FOLDERS for name, shape in weights.items()}
    like_U = dict.fromkeys(("Q", "U", "held", "solved", "V", "velocity", "best_V"), (M, n_out))
    sketch = {"sketch/V": (M - 1, None), "sketch/values": (None,), "sketch/mean": (M - 1,), "sketch/recent": (None, M)}
    return {**kept, "G": (M, M), **like_U, **sketch}


def _fits(shape: tuple[int, ...], wanted: Shape | None) -> bool:
    return (
        wanted is not None
        and len(shape) == len(wanted)
        and all(w is None or n == w for n, w in zip(shape, wanted, strict=True))
    )


def _plain(value: Any) -> Any:
    """What JSON has no word for; a generator by where it stands."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, np.random.Generator):
        return [value.bit_generator.state, str(value.bit_generator.seed_seq)]
    return str(value)


def _say(text: str) -> None:
    warnings.warn(text, CheckpointWarning, stacklevel=user_stacklevel())


@dataclass
class Midway:
    """An epoch of mini-batches that is under way: which they are, how many are done, and the error so far over n
    targets. before: the random state that their order was drawn from."""

    batches: list[Array]
    before: Any
    done: int = 0
    error: float = 0.0
    n: float = 0.0

    @classmethod
    def begun(cls, lengths: Array, size: int, rng: np.random.Generator) -> Midway:
        before = rng.bit_generator.state
        return cls(shuffled(lengths, size, rng), before)

    def facts(self) -> dict[str, Any]:
        return {"before": self.before, "done": self.done, "error": self.error, "n": self.n}

    @classmethod
    def resumed(cls, facts: dict[str, Any], lengths: Array, size: int, rng: np.random.Generator) -> Midway:
        """rng is left where the order was drawn."""
        rng.bit_generator.state = facts["before"]
        midway = cls.begun(lengths, size, rng)
        midway.done, midway.error, midway.n = int(facts["done"]), float(facts["error"]), float(facts["n"])
        if not midway.between:
            raise ValueError(f"{midway.done} of {len(midway.batches)} mini-batches are done")
        return midway

    def add(self, error: float, n: float) -> None:
        """One more mini-batch is done."""
        self.done, self.error, self.n = self.done + 1, self.error + error, self.n + n

    @property
    def between(self) -> bool:
        """Whether there are mini-batches left. After the last one the epoch's end is as near as a state."""
        return 0 < self.done < len(self.batches)


def filed(folder: str, values: dict[str, Array]) -> dict[str, Array]:
    """Arrays by name as "folder/name"."""
    return {f"{folder}/{name}": value for name, value in values.items()}


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


def weights_fingerprint(reservoir: Reservoir, more: Any) -> str:
    """A hash of all weights, and of how else they are used."""
    digest = hashlib.blake2b(repr(more).encode(), digest_size=16)
    for name, value in sorted(reservoir.weights().items()):
        digest.update(name.encode() + np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()
