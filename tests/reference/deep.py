"""Deep networks, from their equations: loops over sequences, layers and steps. Frames are rows.

    x_t = W_0' input_t + b_0
    in each layer: z_t = x_t / rms(x_t)
                   h_t = a R(θ) h_{t-1} + (1 - a) W_in' z_t
                   x_t ← x_t + W_out' relu(h_t + b) + b_out
    q_t = relu(x_t / rms(x_t) + c)

The states of a pair of units are one complex number here, which R(θ) multiplies by exp(iθ).
"""

from __future__ import annotations

import numpy as np

EPSILON = 1e-5  # added to the mean square before its root


def normalized(x):
    """Return x / rms(x)."""
    return x / np.sqrt(np.mean(x * x) + EPSILON)


def scan(a, theta, U, before, forward_pairs):
    """Return the states (steps, 2 m) of one layer over inputs U (steps, 2 m), from the states before them."""
    m, steps = len(a), len(U)
    H = np.zeros((steps, 2 * m))
    for c in range(m):
        order = range(steps) if c < forward_pairs else range(steps - 1, -1, -1)
        h = complex(before[c], before[m + c])
        for t in order:
            h = a[c] * np.exp(1j * theta[c]) * h + (1 - a[c]) * complex(U[t, c], U[t, m + c])
            H[t, c], H[t, m + c] = h.real, h.imag
    return H


def deep(weights, sequences, *, layers, forward_pairs, h0=None, share=0.0, seed=0):
    """Return of each sequence the features (steps, C) and the states of all layers (steps, layers C).

    h0: the states before each sequence; share, seed: of the entries that are left out.
    """
    C, scale, found, first = len(weights["b_0"]), 1 / (1 - share), [], 0
    for i, X in enumerate(sequences):
        rows = range(first, first + len(X))  # of this sequence among the frames of all
        first += len(X)
        states = []
        x = np.array([weights["W_0"].T @ row + weights["b_0"] for row in X])
        for layer in range(1, layers + 1):
            w = {name: weights[f"{layer}/{name}"] for name in ("W_in", "alpha", "theta", "b", "W_out", "b_out")}
            a = 1 / (1 + np.exp(-w["alpha"]))
            U = np.array([w["W_in"].T @ normalized(row) for row in x])
            before = np.zeros(C) if h0 is None else h0[i][(layer - 1) * C : layer * C]
            H = scan(a, w["theta"], U, before, forward_pairs)
            for t, row in enumerate(rows):
                p = np.maximum(H[t] + w["b"], 0) * kept(share, seed, 2 * layer, row, C) * scale
                x[t] += (w["W_out"].T @ p + w["b_out"]) * kept(share, seed, 2 * layer + 1, row, C) * scale
            states.append(H)
        q = [
            np.maximum(normalized(x[t]) + weights["c"], 0) * kept(share, seed, 0, row, C) * scale
            for t, row in enumerate(rows)
        ]
        found.append((np.array(q), np.hstack(states)))
    return found


def kept(share, seed, place, row, columns):
    """Return 1 for the entries of a row that stay, 0 for those that are left out, at one of the places of dropout."""
    start = seed + 0x9E3779B9 * (place + 1) + row * columns
    return np.array([float(murmur((start + c) % 2**32) >= int(share * 2**32)) for c in range(columns)])


def murmur(x):
    """Return the finaliser of MurmurHash3 of 32 bits, in whole numbers of any size."""
    x ^= x >> 16
    x = x * 0x85EBCA6B % 2**32
    x ^= x >> 13
    x = x * 0xC2B2AE35 % 2**32
    return x ^ (x >> 16)


def pooled_mean(q):
    """Return the mean of the features over time, as one row."""
    return np.array([sum(q[t] for t in range(len(q))) / len(q)])
