"""dE/dW, dE/dW_rec and the rest, exactly, through the closed-form readout.

E(W, W_rec) = min_U ||H_c U - T||² + mu ||U||²   over the frames that carry a target.

U minimises E for these states, so its own motion with the weights adds nothing to first order (envelope
theorem), and with R = H_c U - T

    dE/dH = 2 R U_h'                                   U_h: the rows of U that act on H,

which is -A' of the paper's eq. 30 for any mu, without its K × K matrix T'T. From there the chain rule runs
back through h_t = (1 - a) h_{t-1} + a f(z_t), z_t = W'x_t + W_rec h_{t-1} + W_fb y_{t-1} + b:

    delta_t = dE/dh_t + (1 - a) delta_{t+1} + W_rec' Z_{t+1},      Z_t = a f'(z_t) delta_t
    dE/dW = Σ x_t Z_t',  dE/dW_rec = Σ Z_t h_{t-1}',  dE/dW_fb = Σ Z_t y_{t-1}',  dE/db = Σ Z_t,
    dE/da = Σ delta_t (f(z_t) - h_{t-1}).

A look-back of m steps cuts time into blocks of m and treats the state before a block as given.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from echolearn.estimators import parameters as settings
from echolearn.execution.threads import one_blas_thread
from echolearn.gradients import as_printed as printed
from echolearn.readout import statistics as readout
from echolearn.reservoir.activations import ACTIVATIONS
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import LANES, Batch, Data, Pooling, Selection, as_classes, block_starts, groups
from echolearn.sequences.validation import check_finite, check_long_enough, open_sequences, open_values
from echolearn.states import _kernels as kernels
from echolearn.states.run import CHECK, FRAMES, States, compressed, met, padded, run, slots
from echolearn.validation.values import check_boolean, check_float_dtype, is_number

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Gradients:
    """Derivatives of E in float64; W_rec's as the values at its non-zero places (CSR order). Additive."""

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
    """dE/dH = 2 R U_h'   R (K, n_out), U_h (N, n_out) -> (K, N)."""
    return np.asarray((2 * R) @ U_h.T)


def through_time(
    reservoir: Reservoir, batch: Batch, states: States, dE_dH: Array, *, lookback: int | None, washout: int
) -> Gradients:
    """The exact gradient for a given dE/dH (K, N), overwritten by Z where it is contiguous and of X's precision.

    Units that run backward do so in a time of their own, from which a look-back cuts its blocks: the first m steps from
    the end of a sequence, and so on.
    """
    if states.directions:
        return _both_ways(reservoir, states, dE_dH, lookback=lookback, washout=washout)
    dtype = batch.X.dtype
    cut = block_starts(len(batch.active), washout, lookback)
    Z = np.ascontiguousarray(dE_dH, dtype=dtype)
    if states.pieces and lookback is None:
        dE_dW_rec, dE_da = _back_in_pieces(reservoir, states, Z)
    elif len(batch.lengths) < kernels.MANY[dtype.itemsize]:
        W_rec, W_rec_T = reservoir.W_rec, reservoir.W_rec.T.tocsr()
        matrices = (padded(W_rec, dtype)[0], *padded(W_rec_T, dtype))
        a, code = reservoir.leak.astype(dtype), ACTIVATIONS[reservoir.activation]
        rest = (a, code, batch.active, batch.offsets, cut, states.h0, states.F, states.H, Z)
        on_slots, dE_da = kernels.backward_few(*matrices, *rest)
        dE_dW_rec = on_slots[slots(W_rec)]
    else:
        ahead = np.zeros((2, *states.h0.shape), dtype)
        kept = (states.h0, states.F, states.H, Z, ahead)
        dE_dW_rec, dE_da = _backward_many(reservoir, dtype)(batch.active, batch.offsets, 1, cut, *kept)
    return Gradients(
        W=(batch.X.T @ Z).astype(np.float64),
        W_rec=dE_dW_rec,
        W_fb=None if states.X_fb is None else (Z.T @ states.X_fb).astype(np.float64),
        bias=None if reservoir.bias is None else Z.sum(axis=0, dtype=np.float64),
        leak=dE_da,
    )


def _both_ways(reservoir: Reservoir, states: States, dE_dH: Array, *, lookback: int | None, washout: int) -> Gradients:
    """`through_time` of each direction on its own, put together."""
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
        before = washout if d.turn is None else 0
        g = through_time(d.reservoir, d.batch, d.states, d.own(dE_dH), lookback=lookback, washout=before)
        out.W[:, d.units] = g.W
        out.W_rec[np.repeat(d.units, counts)] = g.W_rec
        for mine, its in ((out.bias, g.bias), (out.leak, g.leak)):
            if mine is not None:
                mine[d.units] = its
    return out


def _backward_many(reservoir: Reservoir, dtype: Any) -> Any:
    """`kernels.backward_many` for these weights."""
    pattern, transpose = compressed(reservoir.W_rec, dtype)[:2], compressed(reservoir.W_rec.T.tocsr(), dtype)
    a, code = reservoir.leak.astype(dtype), ACTIVATIONS[reservoir.activation]
    return partial(kernels.backward_many, *pattern, *transpose, a, code)


def _back_in_pieces(reservoir: Reservoir, states: States, Z: Array) -> tuple[Array, Array]:
    """`through_time` for one sequence that ran in LANES pieces (see `states`): dE/dW_rec, dE/da; Z as in `kernels`.

    The pieces go back side by side as if no error came from the next one. What does come (`ahead`) then goes back by
    itself, and is added, until it has faded: the way back is linear, so nothing is done twice.
    """
    L, (K, N) = states.pieces, Z.shape
    left = K - LANES * L
    backward = _backward_many(reservoir, Z.dtype)
    F, H, Z_cut = (M[left:].reshape(LANES, L, N) for M in (states.F, states.H, Z))
    start = np.concatenate([states.H[left - 1 : left] if left else states.h0, H[:-1, -1]])

    def back(begin: int, end: int, D: Array, ahead: Array) -> tuple[Array, Array]:
        """Over the steps begin ... end of every piece; D (LANES, these steps, N)."""
        steps, before = end - begin, start if begin == 0 else np.ascontiguousarray(H[:, begin - 1])
        seen = (np.ascontiguousarray(M[:, begin:end]).reshape(-1, N) for M in (F, H))
        order = np.full(steps, LANES), np.arange(steps), steps, np.zeros(steps, bool)
        result: tuple[Array, Array] = backward(*order, before, *seen, D.reshape(-1, N), ahead)
        return result

    ahead = np.zeros((2, LANES, N), Z.dtype)
    dE_dW_rec, dE_da = back(0, L, Z_cut, ahead)
    faded = met(Z.dtype) * max(Z.max(), -Z.min())
    first = np.zeros((2, 1, N), Z.dtype)  # what comes to the steps before the first piece
    end = 0
    while True:
        if end == 0:  # on into the piece before
            first += ahead[:, :1]
            ahead = np.concatenate([ahead[:, 1:], np.zeros_like(first)], axis=1)
            end = L
        if not np.abs(ahead).max() > faded:
            break
        begin = max(0, end - CHECK)
        more = np.zeros((LANES, end - begin, N), Z.dtype)
        more_W_rec, more_a = back(begin, end, more, ahead)
        Z_cut[:, begin:end] += more
        dE_dW_rec += more_W_rec
        dE_da += more_a
        end = begin
    if left:
        order = np.ones(left, np.int64), np.arange(left), 1, np.zeros(left, bool)
        more_W_rec, more_a = backward(*order, states.h0, states.F, states.H, Z, first)
        dE_dW_rec += more_W_rec
        dE_da += more_a
    return dE_dW_rec, dE_da


@dataclass(frozen=True, eq=False)
class LossAndGradients:
    """E and its derivatives; `readout` is U (rows of H, then of X), `dE_dW_rec` has W_rec's sparse pattern."""

    loss: float
    readout: Array
    dE_dW: Array
    dE_dW_rec: Any
    dE_dW_fb: Array | None
    dE_dbias: Array | None
    dE_dleak: Array | None


def loss_and_gradients(
    reservoir: Reservoir,
    X: Any,
    T: Any,
    *,
    ridge: float,
    lookback: int | None = None,
    targets: str = "all",
    gradient: str = "exact",
    direct: bool = True,
    washout: int = 0,
    pooling: Pooling | None = None,
    dtype: Any = np.float64,
) -> LossAndGradients:
    """E = min_U ||H_c U - T||² + ridge ||U||² and its gradients, for one sequence or a list of them.

    X: (steps, n_in) or a list; T alike with n_out columns, or with `pooling` ("last", "mean", a number of parts)
    one row a sequence. `targets="last"` counts only the last frame of each block of `lookback` steps. Two passes over
    groups of sequences, on all cores: the states of one group are all that is ever held.
    """
    settings.check_each({"lookback": lookback, "targets": targets, "gradient": gradient, "washout": washout})
    if pooling is not None:
        settings.check_each({"pooling": pooling})
    if not is_number(ridge) or ridge < 0:
        raise ValueError(f"ridge={ridge!r:.80}; expected a number >= 0.")
    check_boolean("direct", direct)
    dtype = check_float_dtype("dtype", dtype)
    given = open_sequences(X, n_features=reservoir.n_in)
    check_long_enough(given, washout)
    values = open_values(T, given, per_step=pooling is None)
    n_out = values[0].shape[-1]
    data = Data(given.X, as_classes(values), n_out, pooling is None, dtype)
    parts, frames = list(groups(data.lengths, FRAMES)), int(data.lengths.sum())

    def seen(data: Data, which: Array) -> tuple[Batch, Selection, States, list[Array], Array]:
        """What the readout sees, H and with `direct` X, and T, at the frames that carry targets."""
        batch = data.batch(which)
        assert batch.T is not None
        select = Selection(batch, washout=washout, targets=targets, lookback=lookback, pooling=pooling)
        states = run(reservoir, batch)
        columns = [select.take(states.H, reservoir.backward), *[select.take(batch.X)] * direct]
        return batch, select, states, columns, select.take(batch.T) if pooling is None else batch.T

    def sums(data: Data, which: Array) -> readout.Sums:
        *_, columns, T = seen(data, which)
        H_c = np.hstack(columns)
        return readout.sums(H_c, T, n_out, readout.sample_precision(H_c, frames, ridge))

    def slope(data: Data, which: Array) -> Gradients:
        batch, select, states, columns, T = seen(data, which)
        U_h, *U_x = np.split(U.astype(dtype), [columns[0].shape[1]] * direct)
        Y = columns[0] @ U_h
        for X, U_of_X in zip(columns[1:], U_x, strict=True):
            Y += X @ U_of_X
        dE_dH = select.put(error_wrt_states(readout.residual(Y, T), U_h), reservoir.backward)
        gradients: Gradients = select_gradient(gradient)(
            reservoir, batch, states, dE_dH, lookback=lookback, washout=washout
        )
        return gradients

    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        s = data.total(sums, parts)
        check_finite(s.G, "sums of states and targets")
        check_finite(s.Q, "sums of states and targets")
        U = readout.solve(s, ridge, intercept=False)
        g = data.total(slope, parts)
    for sort in (g.W, g.W_rec):
        check_finite(sort, "gradients")
    pattern = (g.W_rec, reservoir.W_rec.indices, reservoir.W_rec.indptr)
    return LossAndGradients(
        loss=readout.loss(s, U, ridge, intercept=False),
        readout=U,
        dE_dW=g.W,
        dE_dW_rec=sparse.csr_array(pattern, shape=reservoir.W_rec.shape),
        dE_dW_fb=g.W_fb,
        dE_dbias=g.bias,
        dE_dleak=g.leak,
    )


def select_gradient(name: str) -> Any:
    """ "exact", or the paper's formulas as "printed"."""
    return through_time if name == "exact" else printed.through_time
