"""The gradient formulas of the paper as printed (eq. 34, 35, 41, 42), kept for comparison.

They depart from the exact gradient (docs/explanation/derivation.md has a table of measurements): in eq. 35 W_rec'
multiplies the slope σ'_i instead of C_{i+1}; in eq. 41 the leading minus is missing, the result is transposed, and
powers of W_rec are on the wrong side. They have neither leak nor feedback. Here σ' is the slope of the given
activation.
"""

from __future__ import annotations

import numpy as np

from echolearn.gradients.exact import Gradients
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import slope
from echolearn.sequences.batch import Batch
from echolearn.states.run import States
from echolearn.validation import Array


def through_time(
    reservoir: Reservoir, batch: Batch, states: States, dE_dH: Array, *, lookback: int | None, washout: int
) -> Gradients:
    """Return the gradients by eq. 34 and 41, summed over the frames that carry an error.

    dE/dH (K, N) is -A', up to the paper's convention. Frames with an error at place n of their block are the columns of
    H_n; the frames at the places before it are H_{n-1} ... H_1, and the state before the block is H_0.
    """
    if reservoir.W_fb is not None or reservoir.backward is not None or not (reservoir.leak == 1).all():
        raise ValueError(
            "gradient='printed': the paper's formulas have no leak, no feedback and no backward units. Use leak=1, "
            "learning={'learn_leak': False}, feedback=False and bidirectional=False, or gradient='exact'."
        )
    H, X = states.H.astype(np.float64), batch.X.astype(np.float64)
    A = -dE_dH.astype(np.float64)
    slopes = slope(reservoir.activation, H)
    W_rec = reservoir.W_rec
    steps = np.repeat(np.arange(len(batch.active)), batch.active)
    sequence = np.arange(batch.frames) - batch.offsets[steps]
    place = np.maximum(steps - washout, -1) % lookback if lookback else steps
    place = np.where(steps >= washout, place, -1) if lookback else place
    with_error = A.any(axis=1) & (place >= 0)
    dE_dW = np.zeros_like(reservoir.W)
    dE_dW_rec = np.zeros(W_rec.shape)
    dE_db = np.zeros(reservoir.N)
    for n in np.unique(place[with_error]):
        last = np.flatnonzero(with_error & (place == n))
        t, s = steps[last], sequence[last]
        rows = [batch.offsets[t - n + i] + s for i in range(n + 1)]  # frames at places 1 ... n of the paper
        H_0 = np.where((t - n > 0)[:, None], H[batch.offsets[np.maximum(t - n - 1, 0)] + s], states.h0[s])
        # eq. 35:  C_n = σ'_n ∘ A,  C_i = [σ'_i W_rec'] ∘ C_{i+1};   eq. 34:  dE/dW = -Σ X_i C_i
        C = slopes[rows[n]] * A[rows[n]]
        dE_dW -= X[rows[n]].T @ C
        dE_db -= C.sum(axis=0)
        for i in range(n - 1, -1, -1):
            C = (W_rec @ slopes[rows[i]].T).T * C
            dE_dW -= X[rows[i]].T @ C
            dE_db -= C.sum(axis=0)
        # eq. 42:  C_n = σ'_n ∘ A,  C_i = σ'_i ∘ C_{i+1};   eq. 41:  dE/dW_rec = Σ W_rec^{n-i} H_{i-1} C_i
        Cs = [slopes[rows[n]] * A[rows[n]]]
        for i in range(n - 1, -1, -1):
            Cs.append(slopes[rows[i]] * Cs[-1])
        total = np.zeros(W_rec.shape)
        for i, C_i in enumerate(reversed(Cs)):
            before = H_0 if i == 0 else H[rows[i - 1]]
            total = W_rec @ total + before.T @ C_i
        dE_dW_rec += total
    row = np.repeat(np.arange(reservoir.N), np.diff(W_rec.indptr))
    bias = None if reservoir.bias is None else dE_db
    return Gradients(dE_dW, dE_dW_rec[row, W_rec.indices], None, bias, None)
