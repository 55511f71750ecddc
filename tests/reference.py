"""Slow, obvious versions of everything: loops over sequences and steps, in the paper's own layout (columns
are time). Works in complex arithmetic too, so that derivatives can be taken by a complex step."""

from __future__ import annotations

import numpy as np

ACTIVATIONS = {
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
    "relu": lambda z: np.where(z.real > 0, z, 0 * z),
    "identity": lambda z: z,
}


def states(w, x, activation, t=None, h0=None, cut=()):
    """Eq. 1 with leak, one step after another. w: dict of W, W_rec, W_fb, bias, leak. Returns N × K.

    Before each step in `cut` the state is taken as given: in a complex step its imaginary part is dropped.
    """
    f = ACTIVATIONS[activation]
    N = w["W"].shape[1]
    h = np.zeros(N) if h0 is None else h0
    columns = []
    for step in range(len(x)):
        if step in cut:
            h = h.real
        z = w["W"].T @ x[step] + w["W_rec"] @ h
        if w.get("bias") is not None:
            z = z + w["bias"]
        if w.get("W_fb") is not None and step > 0:
            z = z + w["W_fb"] @ t[step - 1]
        h = (1 - w["leak"]) * h + w["leak"] * f(z)
        columns.append(h)
    return np.array(columns).T


def kept_steps(length, washout, lookback, targets):
    if targets == "all":
        return list(range(washout, length))
    blocks = [list(range(washout, length))] if lookback is None else [
        list(range(s, min(s + lookback, length))) for s in range(washout, length, lookback)
    ]
    return [block[-1] for block in blocks]


def block_cuts(length, washout, lookback):
    return () if lookback is None else tuple(range(washout, length, lookback))


def columns(w, X, T, activation, *, direct, washout, lookback, targets, pooling=None, h0=None):
    """H_c (M × K) and T (n_out × K) over all sequences."""
    H_parts, T_parts = [], []
    for x, t in zip(X, T, strict=True):
        H = states(w, x, activation, t, h0, block_cuts(len(x), washout, lookback))
        H_c = np.vstack([H, x.T]) if direct else H
        if pooling == "mean":
            H_parts.append(H_c[:, washout:].mean(axis=1, keepdims=True))
            T_parts.append(t[:, None])
        elif pooling == "last":
            H_parts.append(H_c[:, -1:])
            T_parts.append(t[:, None])
        else:
            kept = kept_steps(len(x), washout, lookback, targets)
            H_parts.append(H_c[:, kept])
            T_parts.append(t[kept].T)
    return np.hstack(H_parts), np.hstack(T_parts)


def ridge(H_c, T, mu):
    """Eq. 9, in the paper's layout."""
    return np.linalg.solve(H_c @ H_c.T + mu * np.eye(len(H_c)), H_c @ T.T)


def loss(w, X, T, activation, *, ridge_mu, **how):
    """E = ||U'H_c - T||² + mu ||U||² at the best U; complex-analytic (no conjugates)."""
    H_c, T = columns(w, X, T, activation, **how)
    U = ridge(H_c, T, ridge_mu)
    R = U.T @ H_c - T
    return (R * R).sum() + ridge_mu * (U * U).sum()


def complex_step(w, name, index, loss_of):
    """dE/dw[name][index] without cancellation: Im E(w + ih)/h."""
    h = 1e-30
    moved = {k: None if v is None else v.astype(complex) for k, v in w.items()}
    moved[name][index] += 1j * h
    return loss_of(moved).imag / h
