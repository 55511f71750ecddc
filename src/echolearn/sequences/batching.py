"""Which sequences are processed together: groups of a pass over the data, mini-batches, and shares of a mini-batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from echolearn.validation.array_types import Array

SMALL = 2**17  # states of a mini-batch (frames times units) below which one thread alone is faster than two
REST = 3  # sequences; fewer would be a noisy update, and would need loops of their own (`states._kernels.MANY`)
BATCHES = 8  # mini-batches; with fewer of them, one update less in each epoch would be missed
LANES = 16  # sequences that the compiled loops of `states` run in parallel, one per element of a vector


def group_sequences(lengths: Array, frames: int, order: Array | None = None) -> Iterator[Array]:
    """Yield the indices of sequences in groups of at most `frames` frames, or of one longer sequence.

    Without an order, the longest come first, so that the sequences of a group end at about the same step. A group of
    more than LANES sequences has a multiple of LANES: a few more would take as long as another LANES.
    """
    order = np.argsort(-lengths, kind="stable") if order is None else order
    start = 0
    while start < len(order):
        total = np.cumsum(lengths[order[start:]])
        fit = max(1, int(np.searchsorted(total, frames, side="right")))
        stop = start + (fit if fit < LANES else fit - fit % LANES)
        yield order[start:stop]
        start = stop


def frames_for_two(lengths: Array, most: int) -> int:
    """Return how many frames a group may have, at most `most`, so that two cores have a share of small data.

    It does not depend on the number of cores that there are: neither do the bits of the sums.
    """
    return int(min(most, max(lengths.max(), np.ceil(lengths.sum() / 2))))


def draw_minibatches(lengths: Array, size: int, rng: np.random.Generator) -> list[Array]:
    """Draw mini-batches of `size` sequences, in random order; fewer than REST that remain join the batch before.

    The sequences of a mini-batch have similar lengths: those that run in parallel then end at about the same step.
    """
    order = np.argsort(lengths * rng.uniform(0.9, 1.1, len(lengths)))
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    if len(batches) > BATCHES and len(batches[-1]) < min(size, REST):
        batches[-2:] = [np.concatenate(batches[-2:])]
    return [batches[i] for i in rng.permutation(len(batches))]


def split_minibatch(which: Array, lengths: Array, parts: int, units: int) -> list[Array]:
    """Return the sequences `which` of a mini-batch in `parts` shares for as many threads, or in one if it is small.

    The shares depend on the data alone, so that the bits of a fit do not depend on the number of threads.
    """
    small = lengths[which].sum() * units < SMALL
    return split_evenly(which, lengths, 1 if small else parts)


def split_evenly(which: Array, lengths: Array, parts: int) -> list[Array]:
    """Return the sequences `which` of a mini-batch in `parts` shares of about equal work, the longest first."""
    by_length = which[np.argsort(-lengths[which], kind="stable")]
    return [by_length[i::parts] for i in range(min(parts, len(which)))]
