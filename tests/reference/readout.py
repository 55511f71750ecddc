"""What a readout sees, and readouts in closed form."""

from __future__ import annotations

import numpy as np

from reference.recurrence import states, states_both_ways
from reference.selection import block_cuts, kept_steps


def columns(w, X, T, activation, *, direct, washout, lookback, targets, h0=None, backward=None):
    """Return H_c (M × K) and T (n_out × K) over the frames that carry targets, of all sequences."""
    H_parts, T_parts = [], []
    for x, t in zip(X, T, strict=True):
        cut = block_cuts(len(x), washout, lookback)
        if backward is None:
            H = states(w, x, activation, t, h0, cut)
        else:
            H = states_both_ways(w, backward, x, activation, h0, cut, block_cuts(len(x), 0, lookback))
        seen = [H, x.T] if direct else [H]
        kept = kept_steps(len(x), washout, lookback, targets)
        H_parts.append(np.vstack(seen)[:, kept])
        T_parts.append(t[kept].T)
    return np.hstack(H_parts), np.hstack(T_parts)


def ridge(H_c, T, mu):
    """Return U by eq. 9."""
    return np.linalg.solve(H_c @ H_c.T + mu * np.eye(len(H_c)), H_c @ T.T)


def weighted_ridge(Phi, T, weights, A, U_0):
    """Return argmin_U Σ_k weights_k ||U'phi_k - t_k||² + tr (U - U_0)' A (U - U_0); frames are rows."""
    G, Q = A.copy(), A @ U_0
    for phi, t, w in zip(Phi, T, weights, strict=True):
        G, Q = G + w * np.outer(phi, phi), Q + w * np.outer(phi, t)
    return np.linalg.solve(G, Q)
