"""The validation split: sequences, or their last steps, that the weights do not learn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array

MIN_SEQUENCES_TO_HOLD_OUT = 5  # from this number on, some of them are held out; with fewer, the last steps of each
MIN_STEPS_TO_CUT = 50  # shorter sequences are not cut
MAX_LEAD_IN_STEPS = 300  # steps of a head, at most, from which its tail continues: even slow units have settled by then


@dataclass(frozen=True, eq=False)
class Split:
    """Training data, and held-out data to choose by; refit: whether the final readouts are fitted to both."""

    train: Dataset
    held_out: Dataset | None = None
    refit: bool = True
    cut: Dataset | None = None  # the sequences as they were, where their last steps are held out

    @property
    def whole(self) -> Dataset:
        """The data that the final readouts are fitted to, in sequences that are not cut."""
        return self.everything if self.cut is None else self.cut

    def with_noise(self, deviation: float) -> Split:
        """Return the split with noise in the units where it is learned from, and none where it is held out."""
        if not deviation:
            return self
        cut = None if self.cut is None else replace(self.cut, noise=deviation)
        return replace(self, train=replace(self.train, noise=deviation), cut=cut)

    @property
    def everything(self) -> Dataset:
        """The data that the final readouts are fitted to."""
        if self.held_out is None or not self.refit:
            return self.train
        return self.train.joined_with(self.held_out)


def hold_out(data: Dataset, fraction: float, washout: int, rng: np.random.Generator) -> Split:
    """Hold out a fraction of the sequences, or of the steps of each where there are few, if they can be cut."""
    n = len(data.X)
    if fraction == 0:
        return Split(data)
    if n >= MIN_SEQUENCES_TO_HOLD_OUT:
        order = rng.permutation(n)
        if data.weights is not None:  # sequences without a target are of no use as held-out ones
            empty = data.target_weights(washout) == 0
            order, n = order[np.argsort(empty[order], kind="stable")], n - int(empty.sum())
            if n < 2:
                return Split(data)
        count = min(max(1, round(fraction * n)), n - 1)
        return Split(data.subset(np.sort(order[count:])), data.subset(np.sort(order[:count])))
    if not data.per_step or min(data.lengths) < max(MIN_STEPS_TO_CUT, 4 * washout):
        return Split(data)
    cuts = [int(len(x) * (1 - fraction)) for x in data.X]
    if min(cuts) <= washout or any(c == len(x) for x, c in zip(data.X, cuts, strict=True)):
        return Split(data)
    # A tail begins in its head: those steps carry no target there, they only bring the state to where the head ends.
    head = cut_out(data, [Piece(i, 0, 0, c) for i, c in enumerate(cuts)])
    tails = [Piece(i, max(0, c - MAX_LEAD_IN_STEPS), c, len(data.X[i])) for i, c in enumerate(cuts)]
    tail = cut_out(data, tails)
    if not all(part.target_weights(washout).any() for part in (head, tail)):
        return Split(data)
    return Split(head, tail, cut=data)


# ---------------- Pieces of long sequences


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
