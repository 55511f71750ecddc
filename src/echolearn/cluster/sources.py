"""Data that never were in this process: files that the workers of a cluster read, dask bags, delayed sequences.

X becomes a list of `RemoteSequence`; y is fetched, to be checked and encoded like any other.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from echolearn._typing import Array
from echolearn.cluster.executor import FRAMES, PARTS, ClusterExecutor, RemoteSequence
from echolearn.execution.executor import active_executor
from echolearn.sequences.batching import group_sequences
from echolearn.sequences.validation import check_sequence

AT_ONCE = 64  # files that one task examines, or delayed sequences that it joins


def is_remote_source(X: Any) -> bool:
    """Return whether X is a list of files, a bag or delayed sequences."""
    return _is_bag(X) or _all(X, _is_path) or _all(X, _is_delayed)


def _is_bag(X: Any) -> bool:
    return hasattr(X, "to_delayed") and not hasattr(X, "shape")  # a dask array is an array


def _all(X: Any, kind: Callable[[Any], bool]) -> bool:
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(map(kind, X))


def _is_path(x: Any) -> bool:
    return isinstance(x, (str, os.PathLike))


def _is_delayed(x: Any) -> bool:
    return hasattr(x, "__dask_graph__")


def open_source(X: Any, y: Any) -> tuple[Any, Any]:
    """Return X and y of a fit. Where y is None it is in X: `y` of each npz file, the second of each pair of a bag."""
    if not is_remote_source(X):
        return X, y
    if _all(X, _is_path):
        y = _read_targets(X) if y is None else _read_targets(y) if _all(y, _is_path) else y
        return _files(X), y
    parts = _parts(X)
    if y is None:
        y = [
            entry for part in [_executor().submit("y", seconds, p) for p in parts] for entry in _executor().result(part)
        ]
        return _listed([_executor().submit("X", firsts, p) for p in parts]), y
    if _all(y, _is_delayed):
        y = [entry for part in _parts(y) for entry in _executor().result(part)]
    return _listed([_executor().submit("X", checked, p) for p in parts]), y


def open_inputs(X: Any) -> Any:
    """Return X of a prediction."""
    if not is_remote_source(X):
        return X
    return _files(X) if _all(X, _is_path) else _listed([_executor().submit("X", checked, p) for p in _parts(X)])


def _executor() -> ClusterExecutor:
    executor = active_executor()
    if not isinstance(executor, ClusterExecutor):
        raise ValueError(
            "X is a list of files, a dask bag or delayed sequences: these are for the workers of a cluster. Work "
            "within echolearn.cluster.on(...), give fit an engine=, or load them as arrays."
        )
    return executor


def _files(paths: Any) -> list[Any]:
    """Return sequences in files; each worker reads its part, and another reads it again if that worker dies."""
    executor = _executor()
    shapes = [s for part in _examine(paths, shapes_of) for s in part]
    lengths = np.array([s[0] for s in shapes])
    out: list[Any] = [None] * len(paths)
    wholes = list(group_sequences(lengths, max(FRAMES, int(lengths.sum()) // PARTS)))
    for k, which in enumerate(wholes):
        names = [os.fspath(paths[i]) for i in which]
        part = executor.submit("read", read, names, slot=executor.slot(k, len(wholes)))
        for index, i in enumerate(which):
            out[i] = RemoteSequence(executor, part, index, shapes[i])
    return out


def _read_targets(paths: Any) -> list[Any]:
    return [y for part in _examine(paths, targets_of) for y in part]


def _examine(paths: Any, function: Callable[[list[str]], Any]) -> list[Any]:
    executor, names = _executor(), [os.fspath(p) for p in paths]
    tasks = [
        executor.submit(function.__name__, function, names[start : start + AT_ONCE])
        for start in range(0, len(names), AT_ONCE)
    ]
    return [executor.result(task) for task in tasks]


def _parts(X: Any) -> list[Any]:
    """Return futures of lists of sequences (or pairs): a bag's own partitions, or groups of delayed sequences."""
    executor = _executor()
    if _is_bag(X):
        return list(executor.client.compute(X.to_delayed()))
    futures = executor.client.compute(list(X))
    return [
        executor.submit("listed", listed, *futures[start : start + AT_ONCE])
        for start in range(0, len(futures), AT_ONCE)
    ]


def _listed(parts: list[Any]) -> list[Any]:
    executor = _executor()
    tasks = [executor.submit("shapes", shapes_in, part) for part in parts]
    shapes = [executor.result(task) for task in tasks]
    return [
        RemoteSequence(executor, part, i, s) for part, of in zip(parts, shapes, strict=True) for i, s in enumerate(of)
    ]


# On the workers


def read(paths: list[str]) -> list[Array]:
    return [check_sequence(_array(path, "X"), path) for path in paths]


def shapes_of(paths: list[str]) -> list[tuple[int, ...]]:
    """Return the shapes of X, from the files' headers."""
    shapes = [_shape(path) for path in paths]
    for path, shape in zip(paths, shapes, strict=True):
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"{path} holds an array of shape {shape}; expected (steps, features).")
    return shapes


def targets_of(paths: list[str]) -> list[Array]:
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
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist on a worker; every worker must see the files under this path.")
    return Path(path)


def checked(X: list[Any]) -> list[Array]:
    return [check_sequence(x, "a sequence of X") for x in X]


def firsts(pairs: list[Any]) -> list[Array]:
    _check_pairs(pairs)
    return checked([x for x, _ in pairs])


def seconds(pairs: list[Any]) -> list[Any]:
    _check_pairs(pairs)
    return [y for _, y in pairs]


def _check_pairs(pairs: list[Any]) -> None:
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"X holds {type(pair).__name__} entries; expected pairs (x, y), or give y.")


def listed(*entries: Any) -> list[Any]:
    return list(entries)


def shapes_in(X: list[Array]) -> list[tuple[int, ...]]:
    return [x.shape for x in X]
