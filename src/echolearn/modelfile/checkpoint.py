"""Checkpoints: all that a fit needs to resume where it was interrupted, to the bit.

A checkpoint is a folder with the newest two states, each a safetensors file with a checksum, written atomically: one
after every epoch and, in long epochs, every five minutes between mini-batches or passes. A description of data and
settings is stored with each state; resuming with others is refused, and the differences are shown.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from echolearn.exceptions import CheckpointError, CheckpointWarning, ModelFileError
from echolearn.modelfile.layout import Facts
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.values import HISTORY_TENSORS, history_rows, history_tensors
from echolearn.modelfile.writer import write_tensors
from echolearn.validation import Array, warn_user

State = tuple[dict[str, Array], Facts]  # arrays by name, and plain values by name
Shape = tuple[int | None, ...]  # None: any length

CHECKPOINT = "echolearn-checkpoint"
STATE_FILES = "state-" + 9 * "[0-9]" + ".safetensors"
KEPT_STATES = 2  # newest states that are not removed
SECONDS_BETWEEN_STATES = 300.0  # inside an epoch, a state is saved after this time

# Called with the file of every state that this thread has saved, which a worker of a cluster sends to the client.
on_save: ContextVar[Callable[[Path], object] | None] = ContextVar("echolearn-on-save", default=None)


class Checkpoint:
    """A folder in which a fit saves its state.

    about: plain values that describe data and settings. A state consists of arrays and plain values, both by name; one
    of the values is the history, a list of rows.
    """

    def __init__(self, folder: Path, about: Facts):
        self.folder, self.about = folder, json.loads(json.dumps(about, default=_plain))
        self.number, self.saved_at = 0, time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, allowed: Mapping[str, Shape]) -> State | None:
        """Return the newest undamaged state, or None; one with arrays of other shapes than allowed is refused."""
        for unfinished in self.folder.glob(".state-*.part"):
            unfinished.unlink(missing_ok=True)  # left by a fit that was killed while it wrote a state
        for path in sorted(self.folder.glob(STATE_FILES), reverse=True):
            try:
                tensors, facts = read_tensors(path, CHECKPOINT)
            except ModelFileError as problem:
                warn_user(f"{problem} The fit resumes from the state before it, if there is one.", CheckpointWarning)
                continue
            with self.restoring():
                self._check_same_fit(facts["about"], path)
                state = _state(tensors, facts)
                for name, value in state[0].items():
                    if not _fits(value.shape, allowed.get(name)):
                        raise ValueError(f"{name} has shape {value.shape}; expected {allowed.get(name)}")
                self.number = int(path.stem.split("-")[1])
                return state
        return None

    def save(self, tensors: dict[str, Array], state: Facts) -> None:
        """Write a state beside the one before it, and remove all older ones."""
        # The order of an array in memory is restored too: the last bits of a product may depend on it.
        turned = [name for name, value in tensors.items() if not value.flags.c_contiguous and value.flags.f_contiguous]
        stored = {name: value.T if name in turned else value for name, value in tensors.items()}
        rows, columns = history_tensors(state["history"])
        plain = {name: value for name, value in state.items() if name != "history"}
        facts = {"about": self.about, "state": json.loads(json.dumps(plain, default=_plain)), "turned": turned}
        self.number += 1
        path = self.folder / f"state-{self.number:09}.safetensors"
        write_tensors(path, {**stored, **rows}, {**facts, "history_columns": columns}, CHECKPOINT)
        for old in self.folder.glob(STATE_FILES):
            if not 0 <= self.number - int(old.stem.split("-")[1]) < KEPT_STATES:
                old.unlink(missing_ok=True)
        self.saved_at = time.monotonic()
        saved = on_save.get()
        if saved is not None:
            saved(path)

    def due(self) -> bool:
        """Return whether the last state is old enough for another one to be saved inside an epoch."""
        return time.monotonic() - self.saved_at >= SECONDS_BETWEEN_STATES

    @contextmanager
    def restoring(self) -> Iterator[None]:
        """Turn errors of the code that restores a state into CheckpointErrors."""
        try:
            yield
        except CheckpointError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            raise CheckpointError(
                f"{self.folder} holds a state that this version cannot resume from ({problem!r:.200}). Use another "
                "checkpoint folder to start anew."
            ) from problem

    def for_stage(self, name: str) -> Checkpoint:
        """Return the checkpoint of another stage of the same fit, in its own folder inside this one."""
        return Checkpoint(self.folder / name, self.about)

    def _check_same_fit(self, then: Facts, path: Path) -> None:
        """Raise a CheckpointError that names the differences, if a state was saved with other data or settings."""
        names = [name for name in {**then, **self.about} if then.get(name) != self.about.get(name)]
        if names:
            changes = "; ".join(f"{n}: {then.get(n)!r} then, {self.about.get(n)!r} now" for n in sorted(names))
            raise CheckpointError(
                f"{path} was written by another fit ({changes}). Use the same data and settings to resume, or another "
                "checkpoint folder to start anew."
            )


def _state(tensors: dict[str, Array], facts: Facts) -> State:
    """Return the state that was saved, from the arrays and facts of its file."""
    state = facts["state"]
    state["history"] = history_rows(tensors, facts["history_columns"])
    arrays = {name: value for name, value in tensors.items() if name not in HISTORY_TENSORS}
    return {name: value.T if name in facts["turned"] else value for name, value in arrays.items()}, state


def _fits(shape: tuple[int, ...], allowed: Shape | None) -> bool:
    """Return whether an array has an allowed shape; allowed: None if no array of its name is."""
    return (
        allowed is not None
        and len(shape) == len(allowed)
        and all(a is None or n == a for n, a in zip(shape, allowed, strict=True))
    )


def _plain(value: object) -> object:
    """Return a value that JSON can write for an array, a generator (its state) or any other object."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, np.random.Generator):
        return [value.bit_generator.state, str(value.bit_generator.seed_seq)]
    return str(value)


def matrix_fingerprint(matrix: ArrayLike | sparse.csr_array) -> str:
    """Return a hash of a dense or sparse matrix."""
    entries = sparse.csr_array(matrix, dtype=np.float64)
    entries.sum_duplicates()
    digest = hashlib.blake2b(repr(entries.shape).encode(), digest_size=16)
    for part in (entries.indptr, entries.indices):
        digest.update(part.astype(np.int64).data)
    digest.update(entries.data.data)
    return digest.hexdigest()


def weights_fingerprint(weights: Mapping[str, Array], use: object) -> str:
    """Return a hash of weights by name, and of `use`, an object whose repr says how they are used."""
    digest = hashlib.blake2b(repr(use).encode(), digest_size=16)
    for name, value in sorted(weights.items()):
        digest.update(name.encode() + np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()
