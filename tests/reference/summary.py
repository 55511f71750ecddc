"""Summaries of whole sequences, errors of rows left out, one at a time, and the mean of readouts of sets of units."""

from itertools import combinations

import numpy as np


def summarize(h, thresholds, washout=0):
    """Return the statistics of the states h (steps, N) of one sequence, statistic after statistic."""
    kept = h[washout:].astype(float)
    shares = [[np.mean([above(s, limit) for s in kept[:, j]]) for j, limit in enumerate(row)] for row in thresholds]
    return np.concatenate([kept.mean(axis=0), kept.std(axis=0), kept.max(axis=0), kept.min(axis=0), kept[-1], *shares])


def above(state, limit):
    """Return 1 for a state above a threshold, 0 for one below, and something between for one within 0.0005 of it."""
    return min(max((state - limit) * 1000 + 0.5, 0), 1)


def delay(x, delays):
    """Return the inputs of each step t: x_{t-d} for each delay d, x_0 before the start."""
    return np.array([np.concatenate([x[max(t - d, 0)] for d in delays]) for t in range(len(x))])


def seen(x, delays):
    """Return the inputs of the units for a series x (steps, n): x and its first differences, each with its delays."""
    changes = np.array([x[t] - x[max(t - 1, 0)] for t in range(len(x))])
    return delay(np.hstack([x, changes]), delays)


def ridge_fit(Z, T, w, ridge):
    """Return V and b that minimise sum_i w_i |Z_i V + b - T_i|^2 + ridge |V|^2."""
    ones = np.hstack([Z, np.ones((len(Z), 1))])
    penalty = ridge * np.eye(ones.shape[1])
    penalty[-1, -1] = 0
    solution = np.linalg.solve(ones.T @ (w[:, None] * ones) + penalty, ones.T @ (w[:, None] * T))
    return solution[:-1], solution[-1]


def left_out(Z, T, w, ridge, blocks=None):
    """Return what each row is given by a fit to all others, or to all other blocks of rows."""
    outputs = np.empty(T.shape)
    for places in np.arange(len(Z))[:, None] if blocks is None else blocks:
        others = ~np.isin(np.arange(len(Z)), places)
        V, b = ridge_fit(Z[others], T[others], w[others], ridge)
        outputs[places] = Z[places] @ V + b
    return outputs


def mean_of_readouts(rows, T, w, ridge):
    """Return the shares (4,) of four sets of units, and their mean outputs (n, n_out), for rows (n, statistics, 4 N).

    Each set has a ridge regression on its own columns, of weighted mean 0 and deviation 1 (less, if a column has one
    below 0.02), and counts by what it misses on rows left out. Rows of weight 0 are not fitted to.
    """
    kept, outputs, residuals = w > 0, [], []
    for part in np.split(rows, 4, axis=2):
        R = part.reshape(len(rows), -1)
        mean = np.average(R, axis=0, weights=w)
        scale = np.sqrt(np.average((R - mean) ** 2, axis=0, weights=w))
        varies = scale > 1e-9 * np.abs(R).max()
        Z = ((R - mean) / np.maximum(scale, 0.02))[:, varies]
        V, b = ridge_fit(Z[kept], T[kept], w[kept], ridge)
        outputs.append(Z @ V + b)
        residuals.append(left_out(Z[kept], T[kept], w[kept], ridge) - T[kept])
    shares = shares_of(residuals, w[kept])
    return shares, sum(share * Y for share, Y in zip(shares, outputs, strict=True))


def shares_of(residuals, w):
    """Return the shares (4,) of the mean with the smallest squared error: the best of all subsets of the sets.

    A fifth of the smallest error, times the sum of squared shares, is added to the error.
    """
    roots = [(np.sqrt(w)[:, None] * missed).ravel() for missed in residuals]
    G = np.array([[one @ other for other in roots] for one in roots])
    G += 0.2 * G.diagonal().min() * np.eye(4)
    found = []
    for some in (list(subset) for count in range(1, 5) for subset in combinations(range(4), count)):
        shares, own = np.zeros(4), np.linalg.solve(G[np.ix_(some, some)], np.ones(len(some)))
        shares[some] = own / own.sum()
        if shares.min() >= 0:
            found.append((shares @ G @ shares, list(shares)))
    return np.array(min(found)[1])
