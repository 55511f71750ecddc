"""A large network as several smaller ones, each fitted on its own, then put side by side.

The outputs of k networks have a mean that is itself the output of one network: its W_rec is block diagonal, its units
are theirs, and its readout holds theirs, divided by k. Such blocks overfit less than as many units that learn together,
and cost less: k Gram matrices of (N/k)² instead of one of N², and cores that need not wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from echolearn.execution.threads import CLUSTER, each, one_blas_thread, sent
from echolearn.reservoir.combination import join_reservoirs
from echolearn.sequences.batch import Pooling, parts_of
from echolearn.sequences.validation import open_targets
from echolearn.training.loop import History
from echolearn.training.progress import say

Array = NDArray[Any]

UNITS = 250  # of a block by default: on held-out speech 2 × 250 beat 1 × 500, and 1 × 300 beat 3 × 100


class Abandoned(Exception):
    """Another block has failed."""


def fit(
    network: Any,
    count: int,
    X: Any,
    y: Any,
    lengths: Any,
    validation: Any,
    callback: Callable[[dict[str, float]], object] | None,
    checkpoint: str | PathLike[str] | None,
) -> bool:
    """Each block on one core, from end to end. True if Ctrl-C ended it early; what was learned by then is kept."""
    parts = drawn(network, count)
    if CLUSTER.get() is not None:  # every block works with the same data there
        given = network._open(X, lengths, fitting=True)
        X, y, lengths = sent(given.X), open_targets(y, given)[0], None
    running, stop, failed = [Lock() for _ in parts], Event(), Event()

    def fit_part(number: int) -> None:
        def told(row: dict[str, float]) -> object:
            if failed.is_set():
                raise Abandoned
            if stop.is_set():
                raise KeyboardInterrupt
            return None if callback is None else callback({"block": number, **row})

        folder = None if checkpoint is None else Path(checkpoint) / f"block-{number}"
        with running[number - 1]:
            if stop.is_set():
                return
            try:
                parts[number - 1].fit(X, y, lengths=lengths, validation=validation, callback=told, checkpoint=folder)
            except KeyboardInterrupt:
                stop.set()  # said by a callback; the other blocks end too
        say(network.verbose, f"block {number} of {count}: done")

    with one_blas_thread():
        try:
            deque(each(fit_part, range(1, count + 1)), maxlen=0)
        except BaseException as problem:
            stop.set()
            if not isinstance(problem, KeyboardInterrupt):
                failed.set()
            for lock in running:
                lock.acquire()  # until the block has ended; after Ctrl-C with a readout for what it has learned
            if failed.is_set():
                raise
    fitted = [part for part in parts if hasattr(part, "_U")]
    if not fitted:
        raise KeyboardInterrupt
    adopt(network, fitted)
    return stop.is_set()


def drawn(network: Any, count: int) -> list[Any]:
    """The blocks, each with its share of the units and a seed of its own."""
    seeds = np.random.default_rng(network.random_state).integers(2**31, size=count)
    parts: list[Any] = []
    for units, seed in zip(np.array_split(np.arange(network.hidden_units), count), seeds, strict=True):
        part = clone(network).set_params(hidden_units=len(units), blocks=1, random_state=int(seed))
        part.set_params(verbose=0 if parts else network.verbose)  # the first speaks for all
        part._of = count
        if network.initial_state is not None:
            part.set_params(initial_state=np.asarray(network.initial_state)[units])
        parts.append(part)
    return parts


def adopt(network: Any, parts: list[Any]) -> None:
    """The network becomes what its parts are together."""
    first, count = parts[0], len(parts)
    settings = network.get_params(deep=False)
    network.__dict__.update({name: value for name, value in vars(first).items() if name not in settings})
    network.reservoir_ = join_reservoirs([part.reservoir_ for part in parts])
    network._U = _together(
        [part._U / count for part in parts], [part.reservoir_.N for part in parts], first._task.pooling
    )
    network._sums = None  # each part had its own, of its own states
    vars(network).pop("_of", None)
    network.history_ = _numbered(parts, "history_")
    network.refinement_ = _numbered(parts, "refinement_")
    for name in ("ridge_", "strength_"):
        if hasattr(first, name):
            setattr(network, name, float(np.mean([getattr(part, name) for part in parts])))


def _together(readouts: list[Array], units: list[int], pooling: Pooling | None) -> Array:
    """The rows of H of all readouts, span of time by span, above the sum of their other rows."""
    spans = parts_of(pooling)
    of_H = [U[: spans * N].reshape(spans, N, -1) for U, N in zip(readouts, units, strict=True)]
    rest = np.sum([U[spans * N :] for U, N in zip(readouts, units, strict=True)], axis=0)
    return np.vstack([np.concatenate(of_H, axis=1).reshape(-1, rest.shape[1]), rest])


def _numbered(parts: list[Any], name: str) -> History:
    return History({"block": number, **row} for number, part in enumerate(parts, 1) for row in getattr(part, name))
