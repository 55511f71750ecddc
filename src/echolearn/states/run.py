"""The states H of a reservoir for its inputs X (eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from echolearn.display.facts import brief
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS, activate, leaky_update
from echolearn.sequences.batch import Batch
from echolearn.sequences.targets import one_hot, without_missing
from echolearn.states import _kernels as kernels
from echolearn.states._kernels import compressed, drive, padded
from echolearn.states.chunks import run_in_chunks
from echolearn.states.closed_loop import Start
from echolearn.validation import Array


@dataclass(frozen=True, eq=False)
class States:
    """H (K, N), and F = f(z) (K, N), which the gradient needs; h0 (B, N); X_fb (K, n_out): the targets fed back.

    chunk: the length of the chunks in which one sequence was run, or 0. directions: the forward and the backward units
    of a reservoir that has backward ones; F, h0 and chunk are then those of each direction's own states.
    """

    H: Array
    F: Array
    h0: Array
    X_fb: Array | None
    chunk: int = 0
    directions: tuple[Direction, ...] = ()

    def __repr__(self) -> str:
        return brief(self)


@dataclass(frozen=True, eq=False)
class Direction:
    """The units of one direction in time, as a reservoir of their own, with its batch and states in its own time.

    units (N,): a mask; order: the rows of a packed matrix in the order of that time, or None for forward.
    """

    units: Array
    order: Array | None
    reservoir: Reservoir
    batch: Batch
    states: States

    def columns_of(self, M: Array) -> Array:
        """Return the columns of M (K, N) that belong to these units, with rows in the order of their time."""
        columns = M[:, self.units]
        return columns if self.order is None else columns[self.order]

    def write(self, H: Array) -> None:
        """Write their states into H (K, N), neighbouring units as one slice: eight times as fast as with a mask."""
        states = self.states.H if self.order is None else self.states.H[self.order]
        done = 0
        for first, end in np.flatnonzero(np.diff(self.units, prepend=False, append=False)).reshape(-1, 2):
            H[:, first:end] = states[:, done : done + end - first]
            done += end - first


def run(
    reservoir: Reservoir, batch: Batch, h0: Array | None = None, *, keep_F: bool = True, y0: Array | None = None
) -> States:
    """Return the states of a batch that starts in h0 (B, N), by default the reservoir's initial state.

    y0 (B, n_out): what is fed back at the first step, by default nothing. Without `keep_F`, F is H.

    With feedback, the targets of the batch are fed back (teacher forcing): those of the
    previous step are further inputs beside x_t, so that W_fb acts like W' and is learned by the same formula. (The
    paper runs its washout with W_fb = 0; here targets are fed back from the first step on, so that the states after
    the washout depend on past targets.) A target that is missing is fed back as zeros.
    """
    if reservoir.backward is not None:
        return _run_both_directions(reservoir, reservoir.backward, batch, h0, keep_F=keep_F)
    dtype = batch.X.dtype
    X_fb = None
    if reservoir.W_fb is not None:
        if batch.T is None:
            raise ValueError("this reservoir has feedback weights W_fb: give the targets T that are fed back.")
        X_fb = batch.before(_fed_back(reservoir.W_fb, batch))
        if y0 is not None:
            X_fb[: len(y0)] = y0
    F = drive(reservoir, batch.X, X_fb)
    if batch.noise is not None:
        F += batch.noise.rows(batch, reservoir.N)
    H = np.empty_like(F) if keep_F else F
    if h0 is None:
        h0 = reservoir.initial_states(len(batch.lengths), dtype)
    if reservoir.activation not in ACTIVATIONS:  # a function of the user
        _run_registered(reservoir, batch, h0, F, H)
        return States(H, F, h0, X_fb)
    units = (reservoir.leak.astype(dtype), ACTIVATIONS[reservoir.activation])
    active, offsets = batch.active, batch.offsets
    chunk = 0
    if len(batch.lengths) >= kernels.MIN_PARALLEL_SEQUENCES[dtype.itemsize]:
        W_rec = compressed(reservoir.W_rec, dtype)
        kernels.forward_many(W_rec, *units, active=active, offsets=offsets, stride=1, h0=h0, F=F, H=H, keep_F=keep_F)
    else:
        if len(batch.lengths) == 1 and batch.noise is None:
            chunk = run_in_chunks(reservoir, batch.X, X_fb, h0, F=F, H=H)
        if not chunk:
            kernels.forward_few(padded(reservoir.W_rec, dtype), *units, active=active, offsets=offsets, h0=h0, F=F, H=H)
    return States(H, F, h0, X_fb, chunk)


def _run_registered(reservoir: Reservoir, batch: Batch, h0: Array, F: Array, H: Array) -> None:
    """Run units whose activation no compiled loop knows, step by step; F has the drive on entry and z afterwards."""
    W_rec, a, h = reservoir.W_rec.astype(F.dtype), reservoir.leak.astype(F.dtype), h0
    for first, live in zip(batch.offsets, batch.active, strict=True):
        rows, h = slice(first, first + live), h[:live]
        z = F[rows] + (W_rec @ h.T).T
        F[rows] = z
        h = leaky_update(h, activate(reservoir.activation, z), a)
        H[rows] = h


def run_to_end(reservoir: Reservoir, batch: Batch, start: Start | None = None) -> Start:
    """Return the states in which the sequences of a batch end, and the targets that are fed back next, if any."""
    h0, y0 = (None, None) if start is None else (start.h.astype(batch.X.dtype), start.y)
    states = run(reservoir, batch, h0, keep_F=False, y0=y0)
    last = batch.offsets[batch.lengths - 1] + np.arange(len(batch.lengths))
    if reservoir.W_fb is None:
        return Start(states.H[last])
    return Start(states.H[last], _fed_back(reservoir.W_fb, batch)[last])


def _fed_back(W_fb: Array, batch: Batch) -> Array:
    """Return the targets of a batch as rows (K, n_out), zeros where they are missing."""
    assert batch.T is not None
    T = batch.T if batch.T.ndim == 2 else one_hot(batch.T, W_fb.shape[1], batch.X.dtype)
    return T if batch.w is None else without_missing(T, batch.T)


def _run_both_directions(
    reservoir: Reservoir, backward: Array, batch: Batch, h0: Array | None, *, keep_F: bool
) -> States:
    """Run two networks without connections between them; the backward one starts at the end of every sequence."""
    H = np.empty((batch.frames, reservoir.N), batch.X.dtype)
    reverse = batch.reversed_rows()
    directions = []
    for units, order in ((~backward, None), (backward, reverse)):
        if not units.any():
            continue
        subreservoir = reservoir.subreservoir(units)
        packed = batch if order is None else replace(batch, X=batch.X[order], T=None)
        states = run(subreservoir, packed, None if h0 is None else h0[:, units], keep_F=keep_F)
        directions.append(Direction(units, order, subreservoir, packed, states))
        directions[-1].write(H)
    if h0 is None:
        h0 = reservoir.initial_states(len(batch.lengths), H.dtype)
    return States(H, H, h0, None, directions=tuple(directions))
