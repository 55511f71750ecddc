"""Networks that receive their own outputs. They run step by step, because each output is an input of the next step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import activate, leaky_update
from echolearn.sequences.batch import Batch
from echolearn.validation import Array

MAX_DENSE_LOOP_UNITS = 1000  # units up to which these loops are faster with a dense W_rec


@dataclass(frozen=True, eq=False)
class Start:
    """The start of sequences: the states h (B, N), and the outputs y (B, n_out) that are fed back first, if any."""

    h: Array
    y: Array | None = None

    def of(self, which: Array) -> Start:
        """Return the start of the given sequences."""
        return Start(self.h[which], None if self.y is None else self.y[which])


@dataclass(frozen=True, eq=False)
class Ring:
    """Points on a ring in blocks, each of which one network forecasts from its own points and their neighbours.

    columns (blocks, width): the points that each block sees, its own in the middle; size: how many are its own. A
    series as a whole is one block that sees all of its dimensions.
    """

    columns: Array
    size: int

    @classmethod
    def of(cls, dims: int, size: int, width: int) -> Ring:
        """Return blocks of `size` of the points, each of which sees `width` of them."""
        first = np.arange(0, dims, size) - (width - size) // 2
        return cls((first[:, None] + np.arange(width)) % dims, size)

    def seen(self, x: Array) -> Array:
        """Return what the blocks see of points: (B, dims) -> (B * blocks, width)."""
        return np.asarray(x[:, self.columns].reshape(-1, self.columns.shape[1]))

    def own(self, seen: Array) -> Array:
        """Return all points from what the blocks see of them: (B * blocks, width) -> (B, dims)."""
        first = (self.columns.shape[1] - self.size) // 2
        return seen[:, first : first + self.size].reshape(-1, len(self.columns) * self.size)

    def back(self, dE_dseen: Array) -> Array:
        """Return dE/dY of the points from that of what blocks see of them: the transpose of `seen`."""
        blocks, width = self.columns.shape
        total = np.zeros((len(dE_dseen) // blocks, blocks * self.size))
        for i, column in enumerate(self.columns.T):  # no point twice
            total[:, column] += dE_dseen.reshape(-1, blocks, width)[:, :, i]
        return total


def run_with_feedback(
    reservoir: Reservoir,
    batch: Batch,
    U: Array,
    direct: bool,
    feed_back: Callable[[Array], Array],
    *,
    start: Start | None = None,
) -> tuple[Array, Start]:
    """Return the outputs H_c U (K, n_out) of a network whose outputs are fed back, and where its sequences end.

    `feed_back` turns outputs into what takes the place of the targets that were fed back during the fit. start: of the
    sequences in the order of the batch; by default in the reservoir's initial state, with nothing fed back.
    """
    assert reservoir.W_fb is not None
    dtype = batch.X.dtype
    drive = batch.X @ reservoir.W.astype(dtype)
    if reservoir.bias is not None:
        drive += reservoir.bias.astype(dtype)
    W_rec, W_fb, a = reservoir.W_rec.astype(dtype), reservoir.W_fb.astype(dtype), reservoir.leak.astype(dtype)
    U = np.ascontiguousarray(U, dtype)  # the order in which a saved readout is loaded: the same sums, to the bit
    N = reservoir.N
    h = reservoir.initial_states(len(batch.lengths), dtype) if start is None else start.h.astype(dtype)
    y = np.zeros((len(h), U.shape[1]), dtype) if start is None or start.y is None else start.y.astype(dtype)
    h_end, y_end = h.copy(), y.copy()
    out = np.empty((batch.frames, U.shape[1]), dtype)
    for first, live in zip(batch.offsets, batch.active, strict=True):
        rows = slice(first, first + live)
        h, y = h[:live], y[:live]
        z = drive[rows] + (W_rec @ h.T).T + y @ W_fb.T
        h = leaky_update(h, activate(reservoir.activation, z), a)
        out[rows] = h @ U[:N] + U[-1]
        if direct:
            out[rows] += batch.X[rows] @ U[N:-1]
        y = feed_back(out[rows])
        h_end[:live], y_end[:live] = h, y
    return out, Start(h_end, y_end)


def run_closed_loop(
    reservoir: Reservoir, U: Array, direct: bool, h: Array, x: Array, *, E: Array, shocks: Array | None = None
) -> Array:
    """Return B paths (steps, B, dims) of a network whose output is its next input.

    x_{t+1} = U'[h_{t+1}, x_t, e_{t+1}, 1] + shock, where h_{t+1} is the state after the input [x_t, e_{t+1}].
    h (B, N), x (B, dims): the start of the paths; E (steps, B, inputs): exogenous inputs; shocks (steps, B, dims).
    A network with fewer outputs than dims runs on every block of a `Ring`: h (B * blocks, N).
    """
    out = np.empty((len(E), *x.shape))
    for t, y in enumerate(loop_outputs(reservoir, U, direct, h, x, E=E, shocks=shocks)):
        out[t] = y
    return out


def loop_outputs(
    reservoir: Reservoir, U: Array, direct: bool, h: Array, x: Array, *, E: Array, shocks: Array | None = None
) -> Iterator[Array]:
    """Yield the outputs (B, dims) of `run_closed_loop`, step by step, for callers that may stop early."""
    a, N = reservoir.leak, reservoir.N
    W_rec = reservoir.W_rec.T.toarray() if N <= MAX_DENSE_LOOP_UNITS else reservoir.W_rec.T
    bias = 0.0 if reservoir.bias is None else reservoir.bias
    U = np.ascontiguousarray(U)  # the order in which a saved readout is loaded: the same sums, to the bit
    shape, ring = x.shape, Ring.of(x.shape[1], U.shape[1], reservoir.n_in - E.shape[2])
    for t, e in enumerate(E):
        with np.errstate(over="ignore", invalid="ignore"):  # the caller examines the result
            inputs = np.concatenate([ring.seen(x), np.repeat(e, len(ring.columns), axis=0)], axis=1)
            h = leaky_update(h, activate(reservoir.activation, inputs @ reservoir.W + h @ W_rec + bias), a)
            x = h @ U[:N] + U[-1]
            if direct:
                x += inputs @ U[N:-1]
            x = x.reshape(shape)
            if shocks is not None:
                x += shocks[t]
        yield x
