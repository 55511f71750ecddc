"""A network that runs on its own outputs, step by step; complex-analytic, that is without conjugates."""

from __future__ import annotations

import numpy as np

FUNCTIONS = {
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "identity": lambda z: z,
}


def driven_states(w, X, activation):
    """Return the state after every row of X, from zero."""
    h, out = np.zeros(len(w["W_rec"]), dtype=w["W"].dtype), []
    for x in X:
        z = w["W"].T @ x + w["W_rec"] @ h + w["bias"]
        h = (1 - w["leak"]) * h + w["leak"] * FUNCTIONS[activation](z)
        out.append(h)
    return np.array(out)


def readout(H, X, T, mu, direct):
    """Return U by the normal equations; its last row is the intercept, which is not penalised."""
    H_c = np.hstack([H, X, np.ones((len(H), 1))] if direct else [H, np.ones((len(H), 1))])
    penalty = np.diag([mu] * (H_c.shape[1] - 1) + [0.0])
    return np.linalg.solve(H_c.T @ H_c + penalty, H_c.T @ T), H_c


def loop_loss(w, all_X, all_T, *, mu, k, washout, direct, activation):
    """Return L: the squared errors of loops of k steps, started every k steps after the washout, divided by k."""
    driven = [driven_states(w, X, activation) for X in all_X]
    rows = [np.concatenate([part[washout:] for part in parts]) for parts in (driven, all_X, all_T)]
    U, _ = readout(*rows, mu, direct)
    total = 0.0
    for H, X, T in zip(driven, all_X, all_T, strict=True):
        for s in range(max(washout, 1), len(T) - k + 1, k):
            h, x = H[s - 1], X[s, : T.shape[1]]
            for j in range(k):
                v = np.concatenate([x, X[s + j, T.shape[1] :]])
                h = (1 - w["leak"]) * h + w["leak"] * FUNCTIONS[activation](w["W"].T @ v + w["W_rec"] @ h + w["bias"])
                x = U.T @ np.concatenate([h, v, [1.0]] if direct else [h, [1.0]])
                total += ((x - T[s + j]) ** 2).sum() / k
    return total


def one_step_loss(w, all_X, all_T, *, mu, washout, direct, activation):
    """Return E = ||H_c U - T||² + mu ||U||² at the best U, the intercept not penalised."""
    driven = [driven_states(w, X, activation) for X in all_X]
    rows = [np.concatenate([part[washout:] for part in parts]) for parts in (driven, all_X, all_T)]
    U, H_c = readout(*rows, mu, direct)
    return ((H_c @ U - rows[2]) ** 2).sum() + mu * (U[:-1] ** 2).sum()
