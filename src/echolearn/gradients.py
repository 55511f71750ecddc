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
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from echolearn import kernels, printed, readout, settings
from echolearn.door import check_long_enough, open_sequences, open_values
from echolearn.reservoir import Reservoir
from echolearn.sequences import Batch, Pooling, Selection, block_starts, pack
from echolearn.states import States, compressed, padded, run, slots

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
    """The exact gradient for a given dE/dH (K, N), which is overwritten."""
    dtype = batch.X.dtype
    cut = block_starts(len(batch.active), washout, lookback)
    code = kernels.ACTIVATIONS[reservoir.activation]
    Z = np.ascontiguousarray(dE_dH, dtype=dtype)
    rest = (reservoir.leak.astype(dtype), code, batch.active, batch.offsets, cut, states.h0, states.F, states.H, Z)
    W_rec, W_rec_T = reservoir.W_rec, reservoir.W_rec.T.tocsr()
    if len(batch.lengths) < kernels.MANY:
        on_slots, dE_da = kernels.backward_few(padded(W_rec, dtype)[0], *padded(W_rec_T, dtype), *rest)
        dE_dW_rec = on_slots[slots(W_rec)]
    else:
        dE_dW_rec, dE_da = kernels.backward_many(*compressed(W_rec, dtype)[:2], *compressed(W_rec_T, dtype), *rest)
    return Gradients(
        W=(batch.X.T @ Z).astype(np.float64),
        W_rec=dE_dW_rec,
        W_fb=None if states.X_fb is None else (Z.T @ states.X_fb).astype(np.float64),
        bias=None if reservoir.bias is None else Z.sum(axis=0, dtype=np.float64),
        leak=dE_da,
    )


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
    one row a sequence. `targets="last"` counts only the last frame of each block of `lookback` steps.
    """
    settings.check_each({"lookback": lookback, "targets": targets, "gradient": gradient, "washout": washout})
    if pooling is not None:
        settings.check_each({"pooling": pooling})
    if not np.isfinite(ridge) or ridge < 0:
        raise ValueError(f"ridge={ridge!r}; expected a number >= 0.")
    given = open_sequences(X, n_features=reservoir.n_in)
    check_long_enough(given, washout)
    X, T = given.X, open_values(T, given, per_step=pooling is None)
    batch = pack(X, dtype, T, per_step=pooling is None)
    assert batch.T is not None
    select = Selection(batch, washout=washout, targets=targets, lookback=lookback, pooling=pooling)
    states = run(reservoir, batch)
    H_c = readout.stack(select.take(states.H), select.take(batch.X), direct=direct, intercept=False)
    T_used = select.take(batch.T) if pooling is None else batch.T
    s = readout.sums(H_c, T_used, T_used.shape[1])
    U = readout.solve(s, ridge, intercept=False)
    U_h = U[: select.parts * reservoir.N].astype(dtype)
    dE_dH = select.put(error_wrt_states(readout.residual(H_c @ U.astype(dtype), T_used), U_h))
    g = select_gradient(gradient)(reservoir, batch, states, dE_dH, lookback=lookback, washout=washout)
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
