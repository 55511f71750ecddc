"""The exact gradient: dE/dW, dE/dW_rec and the others, through the closed-form readout.

E(W, W_rec) = min_U ||H_c U - T||² + mu ||U||²   over the frames that carry a target.

U minimises E for these states, so its own change with the weights adds nothing to first order (envelope theorem), and
with R = H_c U - T

    dE/dH = 2 R U_h'                                   U_h: the rows of U that act on H,

which is -A' of the paper's eq. 30 for any mu, without its K × K matrix T'T. From there the chain rule leads back
through h_t = (1 - a) h_{t-1} + a f(z_t), z_t = W'x_t + W_rec h_{t-1} + W_fb y_{t-1} + b:

    delta_t = dE/dh_t + (1 - a) delta_{t+1} + W_rec' Z_{t+1},      Z_t = a f'(z_t) delta_t
    dE/dW = Σ x_t Z_t',  dE/dW_rec = Σ Z_t h_{t-1}',  dE/dW_fb = Σ Z_t y_{t-1}',  dE/db = Σ Z_t,
    dE/da = Σ delta_t (f(z_t) - h_{t-1}).

A look-back of m steps cuts time into blocks of m and treats the state before a block as given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS, activate, is_registered, slope
from echolearn.sequences.batch import Batch
from echolearn.sequences.selection import block_starts
from echolearn.states import _kernels as kernels
from echolearn.states._kernels import compressed, padded, padded_positions
from echolearn.states.chunks import STEPS_PER_COMPARISON, agreement, chunk_count
from echolearn.states.run import States
from echolearn.validation import Array


@dataclass(frozen=True, eq=False)
class Gradients:
    """Derivatives of E in float64, which can be added. That for W_rec has one value per connection, in CSR order."""

    W: Array
    W_rec: Array
    W_fb: Array | None
    bias: Array | None
    leak: Array | None

    def __iadd__(self, other: Gradients) -> Gradients:
        for field in fields(self):
            mine = getattr(self, field.name)
            if mine is not None:
                mine += getattr(other, field.name)
        return self


def error_wrt_states(R: Array, U_h: Array) -> Array:
    """Return dE/dH = 2 R U_h' (eq. 14)   R (K, n_out), U_h (N, n_out) -> (K, N)."""
    return np.asarray((2 * R) @ U_h.T)


def through_time(
    reservoir: Reservoir, batch: Batch, states: States, dE_dH: Array, *, lookback: int | None, washout: int
) -> Gradients:
    """Return the exact gradient for a given dE/dH (K, N), overwritten by Z if it is contiguous and of X's dtype.

    The blocks of a look-back are counted in the time of the units: for backward units, the first block is the last m
    steps of a sequence.
    """
    if states.directions:
        return _both_directions(reservoir, states, dE_dH, lookback=lookback, washout=washout)
    dtype = batch.X.dtype
    cut = block_starts(len(batch.active), washout, lookback)
    Z = np.ascontiguousarray(dE_dH, dtype=dtype)
    if is_registered(reservoir.activation):
        dE_dW_rec, dE_da = _back_registered(reservoir, batch, states, cut, Z)
    elif states.chunk and lookback is None:
        dE_dW_rec, dE_da = _back_in_chunks(reservoir, states, Z)
    elif len(batch.lengths) < kernels.MIN_PARALLEL_SEQUENCES[dtype.itemsize]:
        W_rec, W_rec_T = reservoir.W_rec, reservoir.W_rec.T.tocsr()
        matrices = (padded(W_rec, dtype)[0], *padded(W_rec_T, dtype))
        a, code = reservoir.leak.astype(dtype), ACTIVATIONS[reservoir.activation]
        rows = {"active": batch.active, "offsets": batch.offsets, "cut": cut}
        padded_sums, dE_da = kernels.backward_few(matrices, a, code, **rows, h0=states.h0, F=states.F, H=states.H, D=Z)
        dE_dW_rec = padded_sums[padded_positions(W_rec)]
    else:
        ahead = np.zeros((2, *states.h0.shape), dtype)
        rows = {"active": batch.active, "offsets": batch.offsets, "cut": cut}
        dE_dW_rec, dE_da = _backward_many(reservoir, dtype)(
            **rows, stride=1, h0=states.h0, F=states.F, H=states.H, D=Z, ahead=ahead
        )
    return Gradients(
        W=(batch.X.T @ Z).astype(np.float64),
        W_rec=dE_dW_rec,
        W_fb=None if states.X_fb is None else (Z.T @ states.X_fb).astype(np.float64),
        bias=None if reservoir.bias is None else (np.ones(len(Z), dtype) @ Z).astype(np.float64),
        leak=dE_da,
    )


def _back_registered(reservoir: Reservoir, batch: Batch, states: States, cut: Array, Z: Array) -> tuple[Array, Array]:
    """Return dE/dW_rec and dE/da of units whose activation no compiled loop knows; Z has dE/dH on entry."""
    a, W_rec = reservoir.leak.astype(Z.dtype), reservoir.W_rec.astype(Z.dtype)
    pattern = reservoir.W_rec.tocoo()
    dE_dW_rec, dE_da = np.zeros(len(pattern.data)), np.zeros(reservoir.N)
    ahead = np.zeros_like(states.h0)  # the error that comes from the next step, zero for sequences that have ended
    for t in range(len(batch.active) - 1, -1, -1):
        first, live = batch.offsets[t], batch.active[t]
        rows = slice(first, first + live)
        before = states.h0[:live] if t == 0 else states.H[batch.offsets[t - 1] : batch.offsets[t - 1] + live]
        delta, z = Z[rows] + ahead[:live], states.F[rows]
        error = a * slope(reservoir.activation, z) * delta
        dE_dW_rec += (error[:, pattern.row] * before[:, pattern.col]).sum(axis=0, dtype=np.float64)
        dE_da += (delta * (activate(reservoir.activation, z) - before)).sum(axis=0, dtype=np.float64)
        Z[rows] = error
        ahead[:live] = 0.0 if cut[t] else (1 - a) * delta + (W_rec.T @ error.T).T
    return dE_dW_rec, dE_da


def _both_directions(
    reservoir: Reservoir, states: States, dE_dH: Array, *, lookback: int | None, washout: int
) -> Gradients:
    """Return the gradients of both directions, each computed by itself."""
    counts = np.diff(reservoir.W_rec.indptr)
    N = reservoir.N
    out = Gradients(
        W=np.empty_like(reservoir.W),
        W_rec=np.empty_like(reservoir.W_rec.data),
        W_fb=None,
        bias=None if reservoir.bias is None else np.empty(N),
        leak=np.empty(N),
    )
    for d in states.directions:
        before = washout if d.order is None else 0
        g = through_time(d.reservoir, d.batch, d.states, d.columns_of(dE_dH), lookback=lookback, washout=before)
        out.W[:, d.units] = g.W
        out.W_rec[np.repeat(d.units, counts)] = g.W_rec
        for joined, part in ((out.bias, g.bias), (out.leak, g.leak)):
            if joined is not None:
                joined[d.units] = part
    return out


def _backward_many(reservoir: Reservoir, dtype: DTypeLike) -> Callable[..., tuple[Array, Array]]:
    """Return `kernels.backward_many` for these weights."""
    pattern, transpose = compressed(reservoir.W_rec, dtype)[:2], compressed(reservoir.W_rec.T.tocsr(), dtype)
    a, code = reservoir.leak.astype(dtype), ACTIVATIONS[reservoir.activation]
    return partial(kernels.backward_many, (*pattern, *transpose), a, code)


def _back_in_chunks(reservoir: Reservoir, states: States, Z: Array) -> tuple[Array, Array]:
    """Return dE/dW_rec and dE/da of one sequence that ran in chunks (see `states/chunks.py`).

    Z (K, N) has dE/dH on entry. All chunks are first processed in parallel as if no error came from the next chunk. The
    error that does come (`ahead`) is then carried back by itself and added, until it has faded: the way back is linear,
    so nothing is computed twice.
    """
    L, (K, N), chunks = states.chunk, Z.shape, chunk_count(Z.dtype)
    left = K - chunks * L
    backward = _backward_many(reservoir, Z.dtype)
    F, H, Z_cut = (M[left:].reshape(chunks, L, N) for M in (states.F, states.H, Z))
    start = np.concatenate([states.H[left - 1 : left] if left else states.h0, H[:-1, -1]])

    def back(begin: int, end: int, D: Array, ahead: Array) -> tuple[Array, Array]:
        """Carry the error D (chunks, steps, N) back over the steps from begin to before end of every chunk."""
        steps, before = end - begin, start if begin == 0 else np.ascontiguousarray(H[:, begin - 1])
        f, h = (np.ascontiguousarray(M[:, begin:end]).reshape(-1, N) for M in (F, H))
        rows = {"active": np.full(steps, chunks), "offsets": np.arange(steps), "cut": np.zeros(steps, bool)}
        return backward(**rows, stride=steps, h0=before, F=f, H=h, D=D.reshape(-1, N), ahead=ahead)

    ahead = np.zeros((2, chunks, N), Z.dtype)
    dE_dW_rec, dE_da = back(0, L, Z_cut, ahead)
    faded = agreement(Z.dtype) * max(Z.max(), -Z.min())
    first = np.zeros((2, 1, N), Z.dtype)  # the error that reaches the steps before the first chunk
    end = 0
    while True:
        if end == 0:  # continue in the previous chunk
            first += ahead[:, :1]
            ahead = np.concatenate([ahead[:, 1:], np.zeros_like(first)], axis=1)
            end = L
        if not np.abs(ahead).max() > faded:
            break
        begin = max(0, end - STEPS_PER_COMPARISON)
        more = np.zeros((chunks, end - begin, N), Z.dtype)
        more_W_rec, more_a = back(begin, end, more, ahead)
        Z_cut[:, begin:end] += more
        dE_dW_rec += more_W_rec
        dE_da += more_a
        end = begin
    if left:
        rows = {"active": np.ones(left, np.int64), "offsets": np.arange(left), "cut": np.zeros(left, bool)}
        more_W_rec, more_a = backward(**rows, stride=1, h0=states.h0, F=states.F, H=states.H, D=Z, ahead=first)
        dE_dW_rec += more_W_rec
        dE_da += more_a
    return dE_dW_rec, dE_da
