"""Which sequences, or which of their last steps, learning does not see and is judged by."""

from __future__ import annotations

import numpy as np

from echolearn.sequences.batch import Data

SEQUENCES = 5  # from which some of them are held out; with fewer, the last steps of each
STEPS = 50  # a shorter sequence is not cut


def split(data: Data, fraction: float, washout: int, rng: np.random.Generator) -> tuple[Data, Data | None]:
    """Training and held-out sequences; where sequences are few, the last steps of each are held out."""
    n = len(data.X)
    if fraction == 0:
        return data, None
    if n >= SEQUENCES:
        order = rng.permutation(n)
        count = min(max(1, round(fraction * n)), n - 1)
        return data.subset(np.sort(order[count:])), data.subset(np.sort(order[:count]))
    if not data.per_step or min(data.lengths) < max(STEPS, 4 * washout):
        return data, None
    cuts = [int(len(x) * (1 - fraction)) for x in data.X]
    if min(min(c, len(x) - c) for x, c in zip(data.X, cuts, strict=True)) <= washout:
        return data, None
    head = (
        [x[:c] for x, c in zip(data.X, cuts, strict=True)],
        [y[:c] for y, c in zip(data.y, cuts, strict=True)],
    )
    # the washout of a tail may lie in its head: those steps carry no target, they only bring the state in tune
    tail = (
        [x[c - washout :] for x, c in zip(data.X, cuts, strict=True)],
        [y[c - washout :] for y, c in zip(data.y, cuts, strict=True)],
    )
    return (
        Data(*head, data.classes, data.per_step, data.dtype),
        Data(*tail, data.classes, data.per_step, data.dtype),
    )
