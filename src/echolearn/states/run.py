"""X, reservoir -> H   (eq. 1).

One long float32 sequence is run as if it were sixteen. It is cut into pieces of L steps that run side by side, the
first from its initial state, the others from zero, which is wrong; but an echo state network forgets where it began.
So each piece is run again from where the one before it ended, and only until it meets its own first run (up to
rounding): from there on the first run was right. A network that does not forget in time is run step by step, and so
are float64 states: they take twice as long to meet in tiles twice as wide, which leaves no gain (measured 1.0 to 1.9).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.execution import threads as engine
from echolearn.reservoir.activations import ACTIVATIONS, activate
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import LANES, Batch, groups, one_hot, pack, unpack
from echolearn.sequences.validation import check_finite, open_sequences, open_values
from echolearn.states import _kernels as kernels
from echolearn.validation.values import check_float_dtype

Array = NDArray[Any]

SHORTEST = 64  # steps of a piece (chosen, not measured)
CHECK = 64  # steps of the second run between two looks whether it has met the first
FRAMES = 8192  # frames of many sequences run at once (never less than one sequence)

_DENSE = 1000  # units up to which a dense W_rec is the faster one in NumPy's step-by-step loops


@dataclass(frozen=True, eq=False)
class States:
    """H (K, N), and F = f(z) (K, N), which the gradient needs; h0 (B, N); X_fb (K, n_out): fed-back targets;
    pieces: the length of those that one sequence was cut into, or 0; directions: of a reservoir with backward units,
    those that run forward and those that run backward (it is they that keep F, h0 and pieces)."""

    H: Array
    F: Array
    h0: Array
    X_fb: Array | None
    pieces: int = 0
    directions: tuple[Direction, ...] = ()


@dataclass(frozen=True, eq=False)
class Direction:
    """The units (N,) that run one way, as a reservoir of their own with their batch and states, all in their own time;
    turn: the rows of a packed matrix in that time, or None for forward."""

    units: Array
    turn: Array | None
    reservoir: Reservoir
    batch: Batch
    states: States

    def own(self, M: Array) -> Array:
        """Columns of these units, and rows in their time, of M (K, N)."""
        columns = M[:, self.units]
        return columns if self.turn is None else columns[self.turn]

    def write(self, H: Array) -> None:
        """Their states into H (K, N). Units side by side go in one slice: eight times as fast as by a mask."""
        states = self.states.H if self.turn is None else self.states.H[self.turn]
        done = 0
        for first, end in np.flatnonzero(np.diff(self.units, prepend=False, append=False)).reshape(-1, 2):
            H[:, first:end] = states[:, done : done + end - first]
            done += end - first


def run(reservoir: Reservoir, batch: Batch, h0: Array | None = None, *, keep_F: bool = True) -> States:
    """The states of a batch, from h0 (B, N) on or else the first state. With feedback, its targets are the teacher.
    Without `keep_F`, F is H.

    Teacher forcing makes the targets of the step before one more input, x_t and t_{t-1} side by side, so W_fb
    acts like W' and is learned by the same formula. (The paper runs its washout with W_fb = 0; here the
    teacher speaks from the first step on, so that the states after the washout know the past targets.)
    """
    if reservoir.backward is not None:
        return _run_both_ways(reservoir, reservoir.backward, batch, h0, keep_F=keep_F)
    dtype = batch.X.dtype
    X_fb = None
    if reservoir.W_fb is not None:
        if batch.T is None:
            raise ValueError("this reservoir has feedback weights W_fb: give the targets T that are fed back.")
        T = batch.T if batch.T.ndim == 2 else one_hot(batch.T, reservoir.W_fb.shape[1], dtype)
        X_fb = batch.before(T)
    F = drive(reservoir, batch.X, X_fb)
    H = np.empty_like(F) if keep_F else F
    if h0 is None:
        h0 = reservoir.initial_states(len(batch.lengths), dtype)
    rest = (reservoir.leak.astype(dtype), ACTIVATIONS[reservoir.activation], batch.active, batch.offsets)
    pieces = 0
    if len(batch.lengths) >= kernels.MANY[dtype.itemsize]:
        kernels.forward_many(*compressed(reservoir.W_rec, dtype), *rest, 1, h0, F, H, keep_F)
    else:
        if len(batch.lengths) == 1:
            pieces = _run_in_pieces(reservoir, batch.X, X_fb, h0, F, H)
        if not pieces:
            kernels.forward_few(*padded(reservoir.W_rec, dtype), *rest, h0, F, H)
    return States(H, F, h0, X_fb, pieces)


def _run_both_ways(reservoir: Reservoir, backward: Array, batch: Batch, h0: Array | None, *, keep_F: bool) -> States:
    """Two networks that do not hear each other; the backward one reads every sequence from its end."""
    H = np.empty((batch.frames, reservoir.N), batch.X.dtype)
    turn = batch.turned()
    directions = []
    for units, rows in ((~backward, None), (backward, turn)):
        if not units.any():
            continue
        part = reservoir.subreservoir(units)
        heard = batch if rows is None else replace(batch, X=batch.X[rows], T=None)
        states = run(part, heard, None if h0 is None else h0[:, units], keep_F=keep_F)
        directions.append(Direction(units, rows, part, heard, states))
        directions[-1].write(H)
    if h0 is None:
        h0 = reservoir.initial_states(len(batch.lengths), H.dtype)
    return States(H, H, h0, None, directions=tuple(directions))


def drive(reservoir: Reservoir, X: Array, X_fb: Array | None, out: Array | None = None) -> Array:
    """W'x + W_fb y + bias; frames are rows."""
    F = np.matmul(X, reservoir.W.astype(X.dtype), out)
    if X_fb is not None:
        assert reservoir.W_fb is not None
        F += X_fb @ reservoir.W_fb.T.astype(X.dtype)
    if reservoir.bias is not None:
        F += reservoir.bias.astype(X.dtype)
    return np.asarray(F)


def met(dtype: Any) -> float:
    """Two runs have met when they differ by this share of the largest number: roundings alone differ so much."""
    return 32 * float(np.finfo(dtype).eps)


def _run_in_pieces(reservoir: Reservoir, X: Array, X_fb: Array | None, h0: Array, F: Array, H: Array) -> int:
    """One sequence in LANES pieces, from its drive F -> their length; or 0, and F still the drive, where it cannot.

    The few steps that are left over when its length is divided come first.
    """
    dtype, (K, N) = X.dtype, F.shape
    L = K // LANES
    # were it alone, a unit would forget its start by a factor 1 - a each step
    forgotten = np.log(met(dtype)) / np.log1p(-min(0.9, reservoir.leak.min()))
    if dtype.itemsize > 4 or max(SHORTEST, 2 * forgotten) > L:
        return 0
    rest = (*compressed(reservoir.W_rec, dtype), reservoir.leak.astype(dtype))
    code = ACTIVATIONS[reservoir.activation]
    left = K - LANES * L
    start = np.zeros((LANES, N), dtype)
    start[:1] = h0
    if left:
        kernels.forward_many(*rest, code, np.ones(left, np.int64), np.arange(left), 1, h0, F, H, F is not H)
        start[0] = H[left - 1]
    X_cut, F_cut, H_cut = (M[left:].reshape(LANES, L, -1) for M in (X, F, H))

    def forward(begin: int, end: int, start: Array) -> Array:
        active = np.full(end - begin, LANES)
        kernels.forward_many(*rest, code, active, np.arange(begin, end), L, start, F[left:], H[left:], F is not H)
        return H_cut[:, end - 1].copy()

    start[1:] = forward(0, L, start)[:-1]
    for begin in range(0, L, CHECK):
        end = min(begin + CHECK, L)
        before = H_cut[:, end - 1].copy()
        fed = None if X_fb is None else X_fb[left:].reshape(LANES, L, -1)[:, begin:end]
        F_cut[:, begin:end] = drive(reservoir, X_cut[:, begin:end], fed)
        start = forward(begin, end, start)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.abs(start - before).max() / np.abs(start).max()
        if apart <= met(dtype) or np.array_equal(start, before):
            return int(L)
        if not np.isfinite(apart) or (2 * end > L and apart > met(dtype) ** 0.5):
            break  # half the way is behind it, but less than half of the forgetting
    F[:] = drive(reservoir, X, X_fb)
    return 0


def compressed(W_rec: Any, dtype: Any) -> tuple[Array, Array, Array]:
    """CSR as the kernels take it: unsigned places need no check for negative ones."""
    return W_rec.indptr.astype(np.uint32), W_rec.indices.astype(np.uint32), W_rec.data.astype(dtype)


def padded(W_rec: Any, dtype: Any) -> tuple[Array, Array]:
    """CSR to the kernels' layout: places and values (k, N), column i for row i, padded with zeros."""
    N = W_rec.shape[0]
    position, row = slots(W_rec)
    k = int(np.diff(W_rec.indptr).max(initial=0))
    place = np.zeros((k, N), np.uint32)
    value = np.zeros((k, N), dtype)
    place[position, row] = W_rec.indices
    value[position, row] = W_rec.data
    return place, value


def slots(W_rec: Any) -> tuple[Array, Array]:
    """Where each non-zero of a CSR matrix stands in the padded (k, N) layout."""
    counts = np.diff(W_rec.indptr)
    row = np.repeat(np.arange(W_rec.shape[0]), counts)
    position = np.arange(len(W_rec.data)) - np.repeat(W_rec.indptr[:-1], counts)
    return position, row


def harvest(reservoir: Reservoir, X: Any, T: Any = None, *, dtype: Any = np.float64) -> Any:
    """States of one sequence (steps, n_in) -> (steps, N), or of a list -> a list."""
    dtype, given = check_float_dtype("dtype", dtype), open_sequences(X, n_features=reservoir.n_in)
    targets = None if T is None else open_values(T, given, per_step=True)
    out: list[Any] = [None] * len(given.X)
    lengths = np.array([len(x) for x in given.X])

    def part(which: Array) -> tuple[Array, list[Array]]:
        X = [given.X[i] for i in which]
        if targets is None and side_by_side(reservoir, lengths[which], dtype):
            states = run_in_place(reservoir, X, dtype)
        else:
            batch = pack(X, dtype, None if targets is None else [targets[i] for i in which])
            states = unpack(batch, run(reservoir, batch, keep_F=False).H)
        for H in states:
            check_finite(H, "states")
        return which, states

    with engine.one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        for which, states in engine.each(part, groups(lengths, FRAMES)):
            for i, H in zip(which, states, strict=True):
                out[i] = H
    return given.answer(out)


def side_by_side(reservoir: Reservoir, lengths: Array, dtype: np.dtype[Any]) -> bool:
    """Whether sequences are many, and of lengths so alike, that they may as well lie one after another, with gaps."""
    one_way = reservoir.backward is None and reservoir.W_fb is None
    return (
        one_way and len(lengths) >= kernels.MANY[dtype.itemsize] and len(lengths) * lengths.max() < 1.5 * lengths.sum()
    )


def run_in_place(reservoir: Reservoir, X: list[Array], dtype: Any) -> list[Array]:
    """States of sequences, longest first. Not packed by steps: what the loops write is what is handed out."""
    L, N = len(X[0]), reservoir.N
    F = np.empty((len(X) * L, N), dtype)
    out = [F[b * L : b * L + len(x)] for b, x in enumerate(X)]
    for x, part in zip(X, out, strict=True):
        drive(reservoir, x.astype(dtype, copy=False), None, part)
    active = np.searchsorted(-np.array([len(x) for x in X]), -np.arange(L), side="left")
    a, code = reservoir.leak.astype(dtype), ACTIVATIONS[reservoir.activation]
    h0 = reservoir.initial_states(len(X), dtype)
    kernels.forward_many(*compressed(reservoir.W_rec, dtype), a, code, active, np.arange(L), L, h0, F, F, False)
    return out


def free_run(reservoir: Reservoir, batch: Batch, U: Array, direct: bool, fed_back: Any) -> Array:
    """Outputs H_c U (K, n_out) of a network with feedback on its own: step by step, since each output is the
    next step's input. `fed_back` turns outputs into what the teacher's targets stood for."""
    assert reservoir.W_fb is not None
    dtype = batch.X.dtype
    f = partial(activate, reservoir.activation)
    drive = batch.X @ reservoir.W.astype(dtype)
    if reservoir.bias is not None:
        drive += reservoir.bias.astype(dtype)
    W_rec, W_fb, a = reservoir.W_rec.astype(dtype), reservoir.W_fb.astype(dtype), reservoir.leak.astype(dtype)
    U = U.astype(dtype)
    N = reservoir.N
    h = reservoir.initial_states(len(batch.lengths), dtype)
    y = np.zeros((len(h), U.shape[1]), dtype)
    out = np.empty((batch.frames, U.shape[1]), dtype)
    for first, live in zip(batch.offsets, batch.active, strict=True):
        rows = slice(first, first + live)
        h, y = h[:live], y[:live]
        h = (1 - a) * h + a * f(drive[rows] + (W_rec @ h.T).T + y @ W_fb.T)
        out[rows] = h @ U[:N] + U[-1]
        if direct:
            out[rows] += batch.X[rows] @ U[N:-1]
        y = fed_back(out[rows])
    return out


def closed_loop(
    reservoir: Reservoir, U: Array, direct: bool, h: Array, x: Array, E: Array, shocks: Array | None = None
) -> Array:
    """B paths of a network whose output is its next input: x_{t+1} = U'[h_{t+1}, x_t, e_{t+1}, 1] + shock, h_{t+1} the
    state after the input [x_t, e_{t+1}]. Returns (steps, B, dims).

    h (B, N), x (B, dims): where the paths start; E (steps, B, inputs), shocks (steps, B, dims).
    """
    f, a, N = partial(activate, reservoir.activation), reservoir.leak, reservoir.N
    W_rec = reservoir.W_rec.T.toarray() if N <= _DENSE else reservoir.W_rec.T
    bias = 0.0 if reservoir.bias is None else reservoir.bias
    U = np.ascontiguousarray(U)  # a saved readout comes back in this order: the same sums, to the bit
    out = np.empty((len(E), *x.shape))
    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks at what comes out
        for t, e in enumerate(E):
            heard = np.concatenate([x, e], axis=1)
            h = (1 - a) * h + a * f(heard @ reservoir.W + h @ W_rec + bias)
            x = h @ U[:N] + U[-1]
            if direct:
                x += heard @ U[N:-1]
            if shocks is not None:
                x += shocks[t]
            out[t] = x
    return out
