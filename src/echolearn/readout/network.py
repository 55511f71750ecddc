"""The fitted network: a reservoir, its readout, and what the readout sees. Everything that is learned is in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from echolearn.display.facts import counted, one_line
from echolearn.readout.statistics import Statistics
from echolearn.readout.summary import both, rows_of
from echolearn.readout.view import MAX_FRAMES_PER_PASS, ReadoutView, frames_at_once, observe, time_chunks
from echolearn.reservoir import Reservoir
from echolearn.reservoir._reservoir import join_reservoirs
from echolearn.sequences.batch import group_sequences, pack, unpack
from echolearn.sequences.dataset import Dataset
from echolearn.states.closed_loop import Start, run_with_feedback
from echolearn.states.run import run, run_to_end
from echolearn.validation import Array

# loss(Y, T) or loss(Y, T, w): the sum of the errors of outputs Y for encoded targets T, weighted by w (K,)
Loss = Callable[..., float]


@dataclass(frozen=True, eq=False)
class Readout:
    """The weights of a readout, and how they were fitted.

    U (M, n_out) has one row per hidden unit (of a summary, per unit and statistic), then one per input if the readout
    sees the inputs; the last row is the intercept, 0 if there is none.
    """

    U: Array
    softmax: bool  # whether the outputs are logits of a softmax
    ridge: float  # the penalty of the ridge readout, from which a softmax readout was started
    strength: float | None = None  # the penalty of the softmax readout
    statistics: Statistics | None = None  # what a ridge readout was solved from, if sequences can be added to it

    def __repr__(self) -> str:
        kind = "softmax" if self.softmax else "ridge regression"
        rows, outputs = self.U.shape
        return one_line(self, (f"{rows} x {outputs} weights", kind, f"ridge {self.ridge:.3g}"))

    @property
    def feed_back(self) -> Callable[[Array], Array]:
        """The function from outputs to what is fed back: probabilities for a softmax, otherwise the same outputs."""
        return probabilities if self.softmax else np.asarray


@dataclass(frozen=True, eq=False)
class Network:
    """A reservoir with its readout, the only fitted state of an estimator."""

    reservoir: Reservoir  # input, recurrent and feedback weights, bias and leak
    readout: Readout  # the weights from states and inputs to outputs
    view: ReadoutView  # which frames the readout was fitted to, and what it sees of them

    def __repr__(self) -> str:
        reservoir, readout = self.reservoir, self.readout
        facts = [counted(reservoir.N, "unit"), counted(reservoir.n_in, "input"), counted(readout.U.shape[1], "output")]
        facts.append("softmax readout" if readout.softmax else "ridge readout")
        facts.append("" if self.view.summary is None else f"one answer per sequence, {self.view.summary}")
        return one_line(self, facts)

    @property
    def N(self) -> int:
        """The number of units."""
        return self.reservoir.N

    @property
    def size(self) -> int:
        """The number of weights, those of the readout included."""
        return int(self.reservoir.W.size + self.reservoir.W_rec.nnz + self.reservoir.N + self.readout.U.size)

    @property
    def per_step(self) -> bool:
        """Whether there is one answer per step; otherwise there is one per sequence."""
        return self.view.summary is None

    def outputs(self, data: Dataset, start: Start | None = None) -> list[Array]:
        """Return H_c U, one array per sequence: (steps, n_out), or (1, n_out) for one answer per sequence.

        The targets of the data are not used. start: where each sequence starts; by default, in the reservoir's initial
        state with nothing fed back.
        """
        reservoir, view, feed_back = self.reservoir, self.view, self.readout.feed_back
        if view.summary is not None:
            U, intercept = self.readout.U[:-1], self.readout.U[-1]
            Y = rows_of(data, view.summary, reservoir, view.washout, both, U=U) + intercept
            return list(Y.astype(data.dtype)[:, None])
        U = self.readout.U.astype(data.dtype)

        def outputs_of_group(data: Dataset, which: Array, start: Start | None) -> list[Array]:
            Y: list[Array] = []
            h0 = None if start is None else start.h
            for steps in time_chunks(reservoir, view, data.lengths[which]):
                batch = pack([data.X[i][steps] for i in which], data.dtype)
                if h0 is not None and len(Y) == 0:
                    h0 = h0[batch.order].astype(data.dtype)
                if reservoir.W_fb is not None:
                    begin = None if start is None else start.of(batch.order)
                    Y_fb, _ = run_with_feedback(reservoir, batch, U, view.direct, feed_back, start=begin)
                    return unpack(batch, Y_fb)
                H, X = run(reservoir, batch, h0, keep_F=False).H, batch.X
                Y.append(apply_readout(H, X if view.direct else X[:, :0], U))
                h0 = H[-1:].copy()
            return unpack(batch, Y[0]) if len(which) > 1 else [np.concatenate(Y)]

        result: list[Array] = [U[:0]] * len(data.X)
        groups = list(group_sequences(data.lengths, frames_at_once(max(reservoir.N, reservoir.n_in))))
        items = [(which, None if start is None else start.of(which)) for which in groups]
        for which, outputs in zip(groups, data.map(outputs_of_group, items), strict=True):
            for i, Y in zip(which, outputs, strict=True):
                result[i] = Y
        return result

    def end(self, data: Dataset, start: Start | None = None) -> Start:
        """Return where sequences end that start in `start`; targets are fed back, or outputs where there are none."""
        reservoir, view, feed_back = self.reservoir, self.view, self.readout.feed_back

        def ends_of_group(data: Dataset, which: Array, start: Start | None) -> Start:
            begin = start
            for steps in time_chunks(reservoir, view, data.lengths[which]):
                if len(data.y):
                    batch = data.batch(which, steps)
                else:
                    batch = pack([data.X[i][steps] for i in which], data.dtype)
                back = np.argsort(batch.order)
                packed = None if begin is None else begin.of(batch.order)
                if reservoir.W_fb is None or batch.T is not None:
                    begin = run_to_end(reservoir, batch, packed).of(back)
                else:
                    begin = run_with_feedback(reservoir, batch, self.readout.U, view.direct, feed_back, start=packed)[
                        1
                    ].of(back)
            assert begin is not None
            return begin

        groups = list(group_sequences(data.lengths, frames_at_once(reservoir.N)))
        found = list(data.map(ends_of_group, [(which, None if start is None else start.of(which)) for which in groups]))
        back = np.argsort(np.concatenate(groups))
        y = None if found[0].y is None else np.concatenate([one.y for one in found if one.y is not None])[back]
        return Start(np.concatenate([one.h for one in found])[back], y)


def apply_readout(H: Array, X: Array, U: Array) -> Array:
    """Return H_c U = [H X 1] U (eq. 2) without building H_c; X has no columns if the readout does not see it."""
    N = H.shape[1]
    Y = H @ U[:N]
    if X.shape[1]:
        Y += X @ U[N:-1]
    Y += U[-1]
    return np.asarray(Y)


def probabilities(logits: Array) -> Array:
    """Return the softmax of each row."""
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return np.asarray(P)


def mean_error(network: Network, data: Dataset, loss: Loss) -> float:
    """Return the mean of loss(Y, T) per target; Y is computed as in a prediction, with its own outputs fed back.

    Where targets have weights w, it is Σ w loss / Σ w, by loss(Y, T, w).
    """
    reservoir, view, U, feed_back = network.reservoir, network.view, network.readout.U, network.readout.feed_back

    def error_of_group(data: Dataset, which: Array) -> tuple[float, float]:
        batch = data.batch(which)
        assert batch.T is not None
        if reservoir.W_fb is None:
            seen = observe(reservoir, view, batch)
            selection, Y, T = seen.selection, seen.H_c @ U.astype(seen.H_c.dtype), seen.T
        else:
            selection = view.select(batch)
            Y, _ = run_with_feedback(reservoir, batch, U, view.direct, feed_back)
            Y, T = selection.take(Y), selection.take(batch.T)
        return sum_of_errors(loss, Y, T, selection.w)

    parts = list(data.map(error_of_group, group_sequences(data.lengths, MAX_FRAMES_PER_PASS)))
    return float(sum(e for e, _ in parts) / sum(n for _, n in parts))


def sum_of_errors(loss: Loss, Y: Array, T: Array, w: Array | None) -> tuple[float, float]:
    """Return the sum of the errors and the number of targets; both weighted by w (K,), if it is not None."""
    return (loss(Y, T), float(len(T))) if w is None else (loss(Y, T, w), float(w.sum()))


def average(networks: Sequence[Network]) -> Network:
    """Return one network whose outputs are the mean of the networks' outputs.

    It has the units of all networks, a block-diagonal W_rec, and the rows of all readouts, divided by the number of
    networks. It has no statistics: those of the networks are of their own states only.
    """
    first, count = networks[0], len(networks)
    reservoir = join_reservoirs([network.reservoir for network in networks])
    readouts = [network.readout.U / count for network in networks]
    units = [network.reservoir.N for network in networks]
    of_H = [U[:N] for U, N in zip(readouts, units, strict=True)]
    rest = np.sum([U[N:] for U, N in zip(readouts, units, strict=True)], axis=0)
    U = np.vstack([*of_H, rest])
    strengths = [network.readout.strength for network in networks]
    strength = None if None in strengths else float(np.mean([s for s in strengths if s is not None]))
    ridge = float(np.mean([network.readout.ridge for network in networks]))
    return replace(first, reservoir=reservoir, readout=Readout(U, first.readout.softmax, ridge, strength))


def hidden_states(network: Network, data: Dataset, start: Start | None = None) -> list[Array]:
    """Return the state after every step, one array (steps, N) per sequence. The targets of the data are not used.

    A network with feedback is fed its own outputs, as in a prediction. start: where each sequence starts; by default,
    in the reservoir's initial state with nothing fed back.
    """
    reservoir, whole, summary = network.reservoir, ReadoutView(), network.view.summary
    fed_back: list[Array] = []
    if reservoir.W_fb is not None:
        fed_back = [network.readout.feed_back(Y) for Y in network.outputs(data, start)]

    def states_of_group(data: Dataset, which: Array, fed_back: list[Array], start: Start | None) -> list[Array]:
        found: list[Array] = []
        h0 = y0 = None
        for steps in time_chunks(reservoir, whole, data.lengths[which]):
            X = [data.X[i] if summary is None else summary.inputs(data.X[i]) for i in which]
            batch = pack([x[steps] for x in X], data.dtype, fed_back or None)
            if start is not None and not found:
                begin = start.of(batch.order)
                h0, y0 = begin.h.astype(data.dtype), begin.y
            H = run(reservoir, batch, h0, keep_F=False, y0=y0).H
            found.append(H)
            h0 = H[-1:].copy()
        return unpack(batch, found[0]) if len(which) > 1 else [np.concatenate(found)]

    result: list[Array] = [np.empty((0, reservoir.N), data.dtype)] * len(data.X)
    groups = list(group_sequences(data.lengths, frames_at_once(reservoir.N)))
    items = [
        (which, [fed_back[i] for i in which] if fed_back else [], None if start is None else start.of(which))
        for which in groups
    ]
    for which, states in zip(groups, data.map(states_of_group, items), strict=True):
        for i, H in zip(which, states, strict=True):
            result[i] = H
    return result
