"""The statistics of all the data, collected in one pass over the states of one group of sequences after another."""

from __future__ import annotations

import numpy as np

from echolearn.execution.executor import LOCAL
from echolearn.readout.observation import ReadoutView, frames_at_once, stream_rows, time_chunks
from echolearn.readout.statistics import (
    WIDE,
    Statistics,
    add_in_tiles,
    mirror,
    sample_precision,
    statistics_of,
)
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import frames_for_two, group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array


def collect(reservoir: Reservoir, data: Dataset, view: ReadoutView, mu: float = 0.0) -> Statistics:
    """Return G and Q over all the data.

    mu: the ridge, if it is known already; if it is large, the products may be computed in the precision of the states.
    """
    if view.rows(reservoir) > WIDE:
        wide = _collect_wide_here if data.executor is LOCAL else _collect_wide_elsewhere
        result = wide(reservoir, data, view, mu)
        mirror(result.G)
        return result
    n = data.frames

    def part(data: Dataset, which: Array) -> Statistics:
        parts = (
            statistics_of(H_c, T, data.n_out, sample_precision(H_c, n, mu, w), w=w)
            for H_c, T, w in stream_rows(reservoir, data, view, which)
        )
        s = next(parts)
        for more in parts:
            s += more
        return s

    return data.sum(part, group_sequences(data.lengths, frames_for_two(data.lengths, frames_at_once(reservoir.N))))


def _collect_wide_here(reservoir: Reservoir, data: Dataset, view: ReadoutView, mu: float) -> Statistics:
    """Return G and Q, collected in this process: there is a single G, to which all cores add."""
    lengths, n = data.lengths, data.frames
    result = Statistics.zeros(view.rows(reservoir), data.n_out)
    order = np.argsort(-lengths, kind="stable")
    long = sum(len(time_chunks(reservoir, view, lengths[[i]])) > 1 for i in order)
    for i in order[:long]:
        for H_c, T, w in stream_rows(reservoir, data, view, np.array([i])):
            add_in_tiles(result, H_c, T, sample_precision(H_c, n, mu, w), w=w)
    groups = group_sequences(lengths, frames_at_once(reservoir.N), order[long:])
    for H_c, T, w in data.map(lambda data, which: next(stream_rows(reservoir, data, view, which)), groups):
        add_in_tiles(result, H_c, T, sample_precision(H_c, n, mu, w), w=w)
    return result


def _collect_wide_elsewhere(reservoir: Reservoir, data: Dataset, view: ReadoutView, mu: float) -> Statistics:
    """Return G and Q, collected where the data are: one G for each group of sequences, then their sum."""
    M, n = view.rows(reservoir), data.frames

    def part(data: Dataset, which: Array) -> Statistics:
        s = Statistics.zeros(M, data.n_out)
        for H_c, T, w in stream_rows(reservoir, data, view, which):
            add_in_tiles(s, H_c, T, sample_precision(H_c, n, mu, w), w=w)
        return s

    return data.sum(part, group_sequences(data.lengths, frames_at_once(reservoir.N)))
