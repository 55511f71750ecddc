"""The error with the readout in closed form, derivatives by complex steps, and the paper's printed gradients."""

from __future__ import annotations

import numpy as np

from reference.readout import columns, ridge
from reference.recurrence import states
from reference.selection import kept_steps


def loss(w, X, T, activation, *, ridge_mu, counts=None, **how):
    """Return E = ||U'H_c - T||² + mu ||U||² at the best U; complex-analytic, that is without conjugates.

    counts: the weights of the targets, one array per sequence; a column of weight c counts like c columns.
    """
    H_c, T = columns(w, X, T, activation, **how)
    if counts is not None:
        kept = [kept_steps(len(x), how["washout"], how["lookback"], how["targets"]) for x in X]
        counts = np.concatenate([c[k] for c, k in zip(counts, kept, strict=True)])
        H_c, T = H_c * np.sqrt(counts), T * np.sqrt(counts)
    U = ridge(H_c, T, ridge_mu)
    R = U.T @ H_c - T
    return (R * R).sum() + ridge_mu * (U * U).sum()


def complex_step(w, name, index, loss_of):
    """Return dE/dw[name][index] = Im E(w + ih) / h, which has no cancellation."""
    h = 1e-30
    moved = {k: None if v is None else v.astype(complex) for k, v in w.items()}
    moved[name][index] += 1j * h
    return loss_of(moved).imag / h


def printed(w, X, T, *, ridge_mu, direct, washout, lookback, targets, h0=None):
    """Return dE/dW and dE/dW_rec as the paper prints them (eq. 30, 34, 35, 41, 42), for sigmoid units.

    Blocks of m columns: H_i holds the i-th column of every block, H_0 the state before it; X_i and T_i likewise. With
    targets="last" the error of a block is at its last column, n = m (less in a shorter last block); with "all" the
    formulas are summed over every place n at which there may be an error.
    """
    blocks = _blocks(w, X, T, washout, lookback, h0)
    ends = [(b, n) for b, (_, x, _) in enumerate(blocks) for n in range(1, len(x) + 1)]
    if targets == "last":
        ends = [(b, n) for b, n in ends if n == len(blocks[b][1])]
    A = _error_at_states(blocks, ends, ridge_mu, direct)[:, : len(w["W_rec"])]
    W_rec, dE_dW, dE_dW_rec = w["W_rec"], np.zeros_like(w["W"]), np.zeros_like(w["W_rec"])
    for n in sorted({n for _, n in ends}):
        these = [k for k, end in enumerate(ends) if end[1] == n]
        H = [np.array([blocks[ends[k][0]][0][i] for k in these]).T for i in range(n + 1)]  # H_0 ... H_n
        X_i = [None] + [np.array([blocks[ends[k][0]][1][i] for k in these]).T for i in range(n)]  # X_1 ... X_n
        C = H[n].T * (1 - H[n].T) * A[these]  # eq. 35
        D = C.copy()  # eq. 42
        for i in range(n, 0, -1):
            if i < n:
                C = ((H[i].T * (1 - H[i].T)) @ W_rec.T) * C
                D = H[i].T * (1 - H[i].T) * D
            dE_dW += -(X_i[i] @ C)  # eq. 34
            dE_dW_rec += np.linalg.matrix_power(W_rec, n - i) @ H[i - 1] @ D  # eq. 41
    return dE_dW, dE_dW_rec


def _blocks(w, X, T, washout, lookback, h0):
    """Return (states before and in the block, inputs, targets) of every block, as lists of columns."""
    blocks = []
    for x, t in zip(X, T, strict=True):
        H = states(w, x, "sigmoid", h0=h0)
        all_states = [np.zeros(len(H)) if h0 is None else h0, *H.T]
        m = lookback or len(x) - washout
        for start in range(washout, len(x), m):
            stop = min(start + m, len(x))
            blocks.append((all_states[start : stop + 1], x[start:stop], t[start:stop]))
    return blocks


def _error_at_states(blocks, ends, ridge_mu, direct):
    """Return A of eq. 30 at the ends (block, place), with the ridge in the inverse."""
    H_c = np.array([np.append(blocks[b][0][n], blocks[b][1][n - 1] if direct else []) for b, n in ends]).T
    T = np.array([blocks[b][2][n - 1] for b, n in ends]).T
    F = np.linalg.inv(H_c @ H_c.T + ridge_mu * np.eye(len(H_c)))
    M = T.T @ T
    return 2 * M @ H_c.T @ F - 2 * H_c.T @ F @ H_c @ M @ H_c.T @ F
