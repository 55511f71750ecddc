"""Pieces of long sequences: steps that carry targets, and steps before them that only settle the state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from echolearn.sequences.dataset import Dataset
from echolearn.validation.array_types import Array


@dataclass(frozen=True)
class Piece:
    """The steps from `start` to before `stop` of one sequence; only those from `counts` on carry targets."""

    sequence: int
    start: int
    counts: int
    stop: int


def cut_out(data: Dataset, pieces: Sequence[Piece]) -> Dataset:
    """Return a dataset of pieces; the targets of steps that only settle the state have weight 0."""
    X = [data.X[p.sequence][p.start : p.stop] for p in pieces]
    y = [data.y[p.sequence][p.start : p.stop] for p in pieces]
    if data.weights is None and all(p.counts == p.start for p in pieces):
        return replace(data, X=X, y=y)
    weighted = replace(data, X=X, y=y, weights=[_weights(data, p) for p in pieces])
    return data.executor.place_weights(weighted)


def _weights(data: Dataset, piece: Piece) -> Array:
    """Return the weights of the targets of a piece."""
    if data.weights is None:
        weights = np.ones(piece.stop - piece.start)
    else:
        weights = np.array(data.weights[piece.sequence][piece.start : piece.stop], dtype=np.float64)
    weights[: piece.counts - piece.start] = 0
    return weights


def cut_into_windows(data: Dataset, steps: int, lead_in: int, washout: int) -> Dataset:
    """Return long sequences as windows of about `steps` steps with targets, each with steps before it to settle.

    Every target after the washout is in exactly one window; a window has up to `lead_in` steps before its first target.
    """
    pieces = []
    for i, n in enumerate(data.lengths):
        count = max(1, round((n - washout) / steps))
        bounds = washout + (n - washout) * np.arange(count + 1) // count
        for first, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            pieces.append(Piece(i, max(0, first - max(lead_in, washout)), first, stop))
    return cut_out(data, pieces)
