"""Data that never were in this process: files that the workers of a cluster read, dask bags, delayed sequences.

X becomes a list of `RemoteSequence`; y is fetched, to be checked and encoded like any other.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from echolearn.cluster.executor import ClusterExecutor, Future, RemoteSequence
from echolearn.cluster.worker import Entry, listed
from echolearn.execution.executor import active_executor
from echolearn.sequences.checks import check_sequence
from echolearn.sequences.opening import is_bag, is_delayed, is_list_of, is_path
from echolearn.validation import Array

Source = Any  # what a user gives as X or y: files, a dask bag, delayed sequences, or arrays in any form
Result = TypeVar("Result")

FILES_PER_TASK = 64  # files that one task examines, or delayed sequences that it joins


def open_source(X: Source, y: Source) -> tuple[Source, Source]:
    """Return the remote sequences and fetched targets of a fit; y is in X, in npz files or pairs, if it is None."""
    if is_list_of(X, is_path):
        y = _read_targets(X) if y is None else _read_targets(y) if is_list_of(y, is_path) else y
        return _files(X), y
    executor, parts = _executor(), _parts(X)
    if y is None:
        targets = [executor.submit("y", seconds, part) for part in parts]
        inputs = [executor.submit("X", firsts, part) for part in parts]
        return _sequences(inputs), [entry for part in targets for entry in executor.result(part)]
    if is_list_of(y, is_delayed):
        y = [entry for part in _parts(y) for entry in executor.result(part)]
    return _sequences([executor.submit("X", checked, part) for part in parts]), y


def open_inputs(X: Source) -> Source:
    """Return X of a prediction from a remote source as remote sequences."""
    if is_list_of(X, is_path):
        return _files(X)
    return _sequences([_executor().submit("X", checked, part) for part in _parts(X)])


def _executor() -> ClusterExecutor:
    """Return the cluster in use, or refuse a remote source without one."""
    executor = active_executor()
    if not isinstance(executor, ClusterExecutor):
        raise ValueError(
            "X is a list of files, a dask bag or delayed sequences: these are for the workers of a cluster. Work "
            "within echolearn.cluster.on(...), give fit an engine=, or load them as arrays."
        )
    return executor


def _files(paths: Sequence[str]) -> list[RemoteSequence]:
    """Return sequences in files; each worker reads its part, and another reads it again if that worker dies."""
    executor = _executor()
    shapes = [shape for part in _examine(paths, shapes_of) for shape in part]

    def make(which: Array, slot: str) -> Future:
        return executor.submit("read", read, [os.fspath(paths[i]) for i in which], slot=slot)

    return executor.place_parts(shapes, make)


def _read_targets(paths: Sequence[str]) -> list[Array]:
    """Return the targets in files, fetched from the workers that read them."""
    return [y for part in _examine(paths, targets_of) for y in part]


def _examine(paths: Sequence[str], function: Callable[[list[str]], Result]) -> list[Result]:
    """Return function(paths) of every FILES_PER_TASK paths, computed on the workers."""
    executor, names = _executor(), [os.fspath(path) for path in paths]
    tasks = [
        executor.submit(function.__name__, function, names[start : start + FILES_PER_TASK])
        for start in range(0, len(names), FILES_PER_TASK)
    ]
    return [executor.result(task) for task in tasks]


def _parts(X: Source) -> list[Future]:
    """Return futures of lists of sequences (or pairs): a bag's own partitions, or groups of delayed sequences."""
    executor = _executor()
    if is_bag(X):
        return list(executor.client.compute(X.to_delayed()))
    futures = executor.client.compute(list(X))
    return [
        executor.submit("listed", listed, *futures[start : start + FILES_PER_TASK])
        for start in range(0, len(futures), FILES_PER_TASK)
    ]


def _sequences(parts: list[Future]) -> list[RemoteSequence]:
    """Return the sequences of parts, whose shapes are fetched."""
    executor = _executor()
    tasks = [executor.submit("shapes", shapes_in, part) for part in parts]
    return [
        RemoteSequence(executor, part, i, shape)
        for part, task in zip(parts, tasks, strict=True)
        for i, shape in enumerate(executor.result(task))
    ]


# On the workers


def read(paths: list[str]) -> list[Array]:
    """Return the sequences in files."""
    return [check_sequence(_array(path, "X"), path) for path in paths]


def shapes_of(paths: list[str]) -> list[tuple[int, ...]]:
    """Return the shapes of the sequences in files, from the headers alone."""
    shapes = [_shape(path) for path in paths]
    for path, shape in zip(paths, shapes, strict=True):
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{path} holds an array of shape {shape}; expected (steps, features).")
    return shapes


def targets_of(paths: list[str]) -> list[Array]:
    """Return the targets in files."""
    return [_array(path, "y") for path in paths]


def _array(path: str, name: str) -> Array:
    """Return the array in an npy file, or the one of this name in an npz file."""
    found = np.load(_existing(path), allow_pickle=False)
    if isinstance(found, np.ndarray):
        return found
    with found:
        if name not in found.files:
            raise ValueError(f"{path} holds {found.files}; expected an array named {name}.")
        return np.asarray(found[name])


def _shape(path: str) -> tuple[int, ...]:
    """Return the shape of the array in an npy file, or of X in an npz file."""
    if _existing(path).suffix != ".npz":
        return tuple(np.load(path, mmap_mode="r", allow_pickle=False).shape)
    with zipfile.ZipFile(path) as archive:
        if "X.npy" not in archive.namelist():
            raise ValueError(f"{path} holds {archive.namelist()}; expected an array named X.")
        with archive.open("X.npy") as file:
            version = np.lib.format.read_magic(file)
            head = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape: tuple[int, ...] = head[version](file)[0]
            return shape


def _existing(path: str) -> Path:
    """Return the path of a file that exists on this worker."""
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist on a worker; every worker must see the files under this path.")
    return Path(path)


def checked(X: list[Entry]) -> list[Array]:
    """Return checked sequences."""
    return [check_sequence(x, "a sequence of X") for x in X]


def firsts(pairs: list[Entry]) -> list[Array]:
    """Return the sequences of pairs (x, y), checked."""
    _check_pairs(pairs)
    return checked([x for x, _ in pairs])


def seconds(pairs: list[Entry]) -> list[Entry]:
    """Return the targets of pairs (x, y)."""
    _check_pairs(pairs)
    return [y for _, y in pairs]


def _check_pairs(pairs: list[Entry]) -> None:
    """Refuse entries that are not pairs (x, y)."""
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"X holds {type(pair).__name__} entries; expected pairs (x, y), or give y.")


def shapes_in(X: list[Array]) -> list[tuple[int, ...]]:
    """Return the shapes of sequences."""
    return [x.shape for x in X]
