"""Summaries of whole sequences, and errors of rows left out, one at a time."""

import numpy as np


def summarize(h, thresholds, washout=0, backward=()):
    """Return the statistics of the states h (steps, N) of one sequence, statistic after statistic."""
    kept = h[washout:].astype(float)
    last = kept[-1].copy()
    for unit in np.flatnonzero(backward):
        last[unit] = h[0, unit]
    shares = [[np.mean(h[washout:, j] > limit) for j, limit in enumerate(limits)] for limits in thresholds]
    return np.concatenate([kept.mean(axis=0), kept.std(axis=0), kept.max(axis=0), kept.min(axis=0), last, *shares])


def delay(x, delays):
    """Return the inputs of each step t: x_{t-d} for each delay d, x_0 before the start."""
    return np.array([np.concatenate([x[max(t - d, 0)] for d in delays]) for t in range(len(x))])


def ridge_fit(Z, T, w, ridge):
    """Return V and b that minimise sum_i w_i |Z_i V + b - T_i|^2 + ridge |V|^2."""
    ones = np.hstack([Z, np.ones((len(Z), 1))])
    penalty = ridge * np.eye(ones.shape[1])
    penalty[-1, -1] = 0
    solution = np.linalg.solve(ones.T @ (w[:, None] * ones) + penalty, ones.T @ (w[:, None] * T))
    return solution[:-1], solution[-1]


def left_out(Z, T, w, ridge):
    """Return what each row is given by a fit to all others."""
    outputs = []
    for i in range(len(Z)):
        others = np.arange(len(Z)) != i
        V, b = ridge_fit(Z[others], T[others], w[others], ridge)
        outputs.append(Z[i] @ V + b)
    return np.array(outputs)
