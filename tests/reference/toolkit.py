"""Products of delayed inputs, and states of an edge-of-stability network, term by term."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np


def nvar_features(X, delays, stride, degrees):
    """Return all monomials of the delayed inputs, one step and one product at a time."""
    rows = []
    for t in range((delays - 1) * stride, len(X)):
        values = [v for j in range(delays) for v in X[t - j * stride]]
        rows.append([np.prod(chosen) for degree in degrees for chosen in combinations_with_replacement(values, degree)])
    return np.array(rows)


def es2n_states(reservoir, rotation, share, X):
    """Return h_t = share tanh(W'x + W_rec h + b) + (1 - share) O h, unit by unit."""
    N, W_rec = reservoir.N, reservoir.W_rec.toarray()
    h, out = np.zeros(N), []
    for x in X:
        new = np.empty(N)
        for i in range(N):
            z = reservoir.W[:, i] @ x + W_rec[i] @ h + reservoir.bias[i]
            new[i] = share * np.tanh(z) + (1 - share) * (rotation[i] @ h)
        h = new
        out.append(h)
    return np.array(out)
