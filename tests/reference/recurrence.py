"""The states of a reservoir, one step after another, and networks that receive their own outputs."""

from __future__ import annotations

import numpy as np

ACTIVATIONS = {
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "tanh": np.tanh,
    "relu": lambda z: np.where(z.real > 0, z, 0 * z),
    "identity": lambda z: z,
}


def network(rng, *, N=None, n_in=None, n_out=2, feedback=False, leak=True, bias=True):
    """Draw random weights as a dict, with a sparse W_rec that has at least one cycle."""
    N = N or int(rng.integers(2, 7))
    n_in = n_in or int(rng.integers(1, 4))
    W_rec = 0.5 * rng.normal(size=(N, N)) * (rng.random((N, N)) < 0.6)
    W_rec[0, 0] = 0.3
    return {
        "W": rng.normal(size=(n_in, N)),
        "W_rec": W_rec,
        "bias": rng.normal(size=N) if bias else None,
        "W_fb": rng.normal(size=(N, n_out)) if feedback else None,
        "leak": rng.uniform(0.1, 1, N) if leak else np.ones(N),
    }


def step(w, h, x, activation, y=None):
    """Return the state that follows h by eq. 1 with leak, for the input x and the fed-back output or target y."""
    z = w["W"].T @ x + w["W_rec"] @ h
    if w.get("bias") is not None:
        z = z + w["bias"]
    if y is not None:
        z = z + w["W_fb"] @ y
    return (1 - w["leak"]) * h + w["leak"] * ACTIVATIONS[activation](z)


def states(w, x, activation, t=None, h0=None, cut=()):
    """Return the states N × K of a sequence x (K × n_in), with its targets t fed back if there are feedback weights.

    Before each step in `cut` the state is taken as given: in a complex step its imaginary part is dropped.
    """
    h = np.zeros(w["W"].shape[1]) if h0 is None else h0
    columns = []
    for k in range(len(x)):
        if k in cut:
            h = h.real
        fed_back = t[k - 1] if w.get("W_fb") is not None and k > 0 else None
        h = step(w, h, x[k], activation, fed_back)
        columns.append(h)
    return np.array(columns).T


def states_both_ways(w, backward, x, activation, h0=None, cut=(), cut_backward=()):
    """Return the states N × K where the units in `backward` receive x reversed in time.

    Each direction runs the whole network and keeps its own rows: no unit is connected to one of the other direction.
    """
    forward = states(w, x, activation, None, h0, cut)
    reverse = states(w, x[::-1], activation, None, h0, cut_backward)[:, ::-1]
    return np.where(np.asarray(backward)[:, None], reverse, forward)


def run_with_feedback(w, x, U, activation, *, direct, h0=None, feed_back=lambda y: y):
    """Return the outputs (steps, n_out) of a network whose outputs are fed back.

    U has rows for H, for X (direct) and last for the intercept; `feed_back` turns an output into what is fed back.
    """
    h, y, out = np.zeros(w["W"].shape[1]) if h0 is None else h0, np.zeros(U.shape[1]), []
    for x_t in x:
        h = step(w, h, x_t, activation, y)
        out.append(_output(h, x_t, U, direct))
        y = feed_back(out[-1])
    return np.array(out)


def run_closed_loop(w, h, x, E, U, activation, *, direct, shocks=None):
    """Return one path (steps, dims) of a network whose outputs are its next inputs, beside the exogenous inputs E."""
    out = []
    for t in range(len(E)):
        inputs = np.append(x, E[t])
        h = step(w, h, inputs, activation)
        x = _output(h, inputs, U, direct)
        if shocks is not None:
            x = x + shocks[t]
        out.append(x)
    return np.array(out)


def _output(h, x, U, direct):
    return (np.concatenate([h, x, [1.0]]) if direct else np.append(h, 1.0)) @ U
