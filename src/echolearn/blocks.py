"""A large network as several smaller ones, each fitted on its own, then put side by side.

The outputs of k networks have a mean that is itself the output of one network: its W_rec is block diagonal, its units
are theirs, and its readout holds theirs, divided by k. Such blocks overfit less than as many units that learn together,
and cost less: k Gram matrices of (N/k)² instead of one of N².
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from echolearn.progress import say
from echolearn.reservoir import side_by_side
from echolearn.training import History

UNITS = 250  # of a block, where their number is left to us: the best of 150, 250, 350 and 500 on held-out speech


def fit(
    network: Any,
    count: int,
    X: Any,
    y: Any,
    lengths: Any,
    validation: Any,
    callback: Any,
    checkpoint: str | PathLike[str] | None,
) -> bool:
    """True if Ctrl-C ended it early; the blocks fitted so far make the network then."""
    rng = np.random.default_rng(network.random_state)
    parts: list[Any] = []
    interrupted = False
    for number, own in enumerate(np.array_split(np.arange(network.hidden_units), count), 1):
        say(network.verbose, f"block {number}/{count}: {len(own)} units")
        part = clone(network).set_params(hidden_units=len(own), blocks=1, random_state=int(rng.integers(2**31)))
        if network.initial_state is not None:
            part.set_params(initial_state=np.asarray(network.initial_state)[own])
        folder = None if checkpoint is None else Path(checkpoint) / f"block-{number}"
        try:
            part.fit(X, y, lengths=lengths, validation=validation, callback=callback, checkpoint=folder)
        except KeyboardInterrupt:
            if not hasattr(part, "_U"):
                raise
            interrupted = True
        parts.append(part)
        if interrupted:
            break
    adopt(network, parts)
    return interrupted


def adopt(network: Any, parts: list[Any]) -> None:
    """The network becomes what its parts are together."""
    first, count = parts[0], len(parts)
    settings = network.get_params(deep=False)
    network.__dict__.update({name: value for name, value in vars(first).items() if name not in settings})
    network.reservoir_ = side_by_side([part.reservoir_ for part in parts])
    rows = [part._U[: part.hidden_units] / count for part in parts]
    network._U = np.vstack([*rows, sum(part._U[part.hidden_units :] for part in parts) / count])
    network.history_ = _numbered(parts, "history_")
    network.refinement_ = _numbered(parts, "refinement_")
    for name in ("ridge_", "strength_"):
        if hasattr(first, name):
            setattr(network, name, float(np.mean([getattr(part, name) for part in parts])))


def _numbered(parts: list[Any], name: str) -> History:
    return History({"block": number, **row} for number, part in enumerate(parts, 1) for row in getattr(part, name))
