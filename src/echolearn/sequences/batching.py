"""Which sequences are worked on together: groups for one pass, mini-batches, and the parts that threads share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from echolearn._typing import Array

LANES = 16  # sequences that the compiled loops of `states` run side by side


def group_sequences(lengths: Array, frames: int, order: Array | None = None) -> Iterator[Array]:
    """Yield indices of sequences in groups of at most `frames` frames (at least one sequence), for one pass.

    Sorted by length unless an order is given, so that the sequences of a group end at about the same step. Where more
    than LANES fit, their number is a multiple of it: that many run side by side, and a few more take as long as LANES.
    """
    order = np.argsort(-lengths, kind="stable") if order is None else order
    start = 0
    while start < len(order):
        total = np.cumsum(lengths[order[start:]])
        fit = max(1, int(np.searchsorted(total, frames, side="right")))
        stop = start + (fit if fit < LANES else fit - fit % LANES)
        yield order[start:stop]
        start = stop


def draw_minibatches(lengths: Array, size: int, rng: np.random.Generator) -> list[Array]:
    """Draw mini-batches of `size` sequences of similar length, in random order.

    Sequences that run side by side and end together waste no work.
    """
    order = np.argsort(lengths * rng.uniform(0.9, 1.1, len(lengths)))
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def split_evenly(which: Array, lengths: Array, parts: int) -> list[Array]:
    """Return the sequences of a mini-batch in `parts` shares of about equal work, each sorted by length."""
    by_length = which[np.argsort(-lengths[which], kind="stable")]
    return [by_length[i::parts] for i in range(min(parts, len(which)))]
