"""The fitted deep network: one or several stacks of layers side by side, and one readout of all their features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import DTypeLike

from echolearn.display.facts import counted, one_line
from echolearn.readout.large.sketch import Rows
from echolearn.readout.network import Readout
from echolearn.readout.newton import SoftmaxProblem, minimise
from echolearn.readout.softmax import LOGIT_SPREAD, SOFTMAX_STRENGTHS
from echolearn.readout.solver import ExactFit
from echolearn.readout.statistics import Statistics, statistics_of
from echolearn.readout.view import ReadoutView
from echolearn.reservoir._deep_reservoir import DeepReservoir
from echolearn.sequences.batch import group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.states.closed_loop import Start
from echolearn.states.deep import Features, in_precision, means_of_sequences, run
from echolearn.validation import Array

MAX_FRAMES_PER_GROUP = 4096  # frames that one thread works on at once


@dataclass(frozen=True, eq=False)
class DeepNetwork:
    """Stacks of layers with their readout, the only fitted state of an estimator.

    The networks of an ensemble are stacks whose features stand side by side: a readout whose rows are those of all of
    them, divided by their number, has the mean of their outputs.
    """

    stacks: tuple[DeepReservoir, ...]
    readout: Readout
    per_step: bool = True  # otherwise the readout sees the mean of the features over each sequence
    view: ReadoutView = field(default_factory=ReadoutView)  # every step counts

    def __repr__(self) -> str:
        first, several = self.stacks[0], len(self.stacks)
        facts = [counted(several, "network") if several > 1 else "", counted(first.layers, "layer")]
        facts += [counted(first.units, "unit"), counted(first.n_in, "input")]
        facts.append(counted(self.readout.U.shape[1], "output"))
        return one_line(self, [*facts, "" if self.per_step else "one answer per sequence"])

    @cached_property
    def _weights(self) -> dict[str, list[dict[str, Array]]]:
        """The weights of the stacks by precision, converted at first use."""
        return {}

    def _in_precision(self, dtype: DTypeLike) -> list[dict[str, Array]]:
        name = np.dtype(dtype).name
        if name not in self._weights:
            self._weights[name] = [in_precision(stack, name) for stack in self.stacks]
        return self._weights[name]

    @property
    def N(self) -> int:
        """The number of states of all layers."""
        return sum(stack.N for stack in self.stacks)

    @property
    def size(self) -> int:
        """The number of weights, those of the readout included."""
        return sum(value.size for stack in self.stacks for value in stack.weights.values()) + self.readout.U.size

    @property
    def reservoir(self) -> DeepReservoir:
        """The first stack."""
        return self.stacks[0]

    def features(self, X: Sequence[Array], dtype: DTypeLike, h0: Array | None = None) -> list[Features]:
        """Return the features of sequences, one entry per stack; h0 (B, N): the states before each of them."""
        frames = np.ascontiguousarray(np.concatenate(X), dtype)
        bounds = np.concatenate([[0], np.cumsum([len(x) for x in X])])
        ends = np.cumsum([stack.N for stack in self.stacks])[:-1]
        starts = [None] * len(self.stacks) if h0 is None else np.split(h0, ends, axis=1)
        return [
            run(w, frames, bounds, layers=s.layers, forward_pairs=s.units // 2 - s.backward_pairs, h0=h)
            for s, w, h in zip(self.stacks, self._in_precision(dtype), starts, strict=True)
        ]

    def rows(self, found: Sequence[Features]) -> tuple[Array, Array]:
        """Return what the readout sees, without the intercept: (K, M), or one row per sequence; and the bounds."""
        q, bounds = np.hstack([one.q for one in found]), found[0].bounds
        if self.per_step:
            return q, bounds
        return means_of_sequences(q, bounds), np.arange(len(bounds))

    def outputs(self, data: Dataset, start: Start | None = None) -> list[Array]:
        """Return the outputs, one array per sequence: (steps, n_out), or (1, n_out) for one answer per sequence."""
        U = self.readout.U.astype(data.dtype)

        def outputs_of_group(data: Dataset, which: Array, h0: Array | None) -> list[Array]:
            rows, bounds = self.rows(self.features([data.X[i] for i in which], data.dtype, h0))
            return np.split(rows @ U[:-1] + U[-1], bounds[1:-1])

        return self._by_sequence(data, start, outputs_of_group)

    def states(self, data: Dataset, start: Start | None = None) -> list[Array]:
        """Return the states of all layers after every step, one array (steps, N) per sequence."""

        def states_of_group(data: Dataset, which: Array, h0: Array | None) -> list[Array]:
            found = self.features([data.X[i] for i in which], data.dtype, h0)
            H = np.hstack([layer.h for one in found for layer in one.tape])
            return np.split(H, found[0].bounds[1:-1])

        return self._by_sequence(data, start, states_of_group)

    def end(self, data: Dataset, start: Start | None = None) -> Start:
        """Return where sequences end that start in `start`; what follows them starts there."""

        def ends_of_group(data: Dataset, which: Array, h0: Array | None) -> list[Array]:
            return list(np.hstack([one.ends() for one in self.features([data.X[i] for i in which], data.dtype, h0)]))

        return Start(np.stack(self._by_sequence(data, start, ends_of_group)))

    def _by_sequence(self, data: Dataset, start: Start | None, function: Callable[..., list[Array]]) -> list[Array]:
        """Return function(data, which, h0) of groups of sequences, in the order of the data."""
        groups = list(group_sequences(data.lengths, MAX_FRAMES_PER_GROUP))
        items = [(which, None if start is None else start.h[which]) for which in groups]
        found: list[Array] = [np.empty(0)] * len(data.X)
        for which, some in zip(groups, data.map(function, items), strict=True):
            for i, one in zip(which, some, strict=True):
                found[i] = one
        return found


def _labelled_features(network: DeepNetwork, data: Dataset, which: Array) -> Rows:
    """Return features with a column of ones, targets and their weights, of the steps that count."""
    rows, _ = network.rows(network.features([data.X[i] for i in which], data.dtype))
    T, w = data.joined_targets(which)
    if w is not None:
        rows, T, w = rows[w > 0], T[w > 0], w[w > 0]
    return np.hstack([rows, np.ones((len(rows), 1), rows.dtype)]), T, w


def feature_statistics(network: DeepNetwork, data: Dataset) -> Statistics:
    """Return the statistics of features and targets, from which a readout is solved in closed form (eq. 9)."""

    def statistics_of_group(data: Dataset, which: Array) -> Statistics:
        rows, T, w = _labelled_features(network, data, which)
        return statistics_of(rows, T, data.n_out, w=w)

    return data.sum(statistics_of_group, group_sequences(data.lengths, MAX_FRAMES_PER_GROUP))


def softmax_readout(network: DeepNetwork, fit: ExactFit, data: Dataset, held_out: Dataset | None) -> Readout:
    """Return the softmax readout of layers that stay as they are, started from a ridge readout of the same data.

    Penalties are tried from strong to weak until the cross entropy on held-out data rises; without such data the
    penalty weighs as much as one target.
    """

    def rows_of(data: Dataset) -> list[Rows]:
        groups = group_sequences(data.lengths, MAX_FRAMES_PER_GROUP)
        return list(data.map(partial(_labelled_features, network), groups))

    scale, rows = fit.square / fit.n**2, rows_of(data)
    unseen = None if held_out is None else SoftmaxProblem(rows_of(held_out), 0.0)
    V, best, least = LOGIT_SPREAD * fit.U, network.readout, np.inf
    for strength in SOFTMAX_STRENGTHS if unseen else (1.0,):
        V = minimise(rows, V, strength * scale, fit.preconditioner(strength * scale, np.float64))
        error = unseen.value(V) if unseen else 0.0
        if not error < least:
            break
        best, least = Readout(V, True, fit.ridge, strength * scale), error
    return best
