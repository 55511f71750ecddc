"""Stacks: every layer receives the outputs of the one below."""

from __future__ import annotations

import numpy as np

from reference.recurrence import states
from reference.selection import block_cuts


def stack(weights, X, T, activation, *, sees, scales, hows, ridges=None, readouts=None, counts=None):
    """Return, for each layer, H_c (frames with targets are rows), T and U.

    hows: washout, lookback and direct of each layer. T: one target per step. A readout is the ridge solution with a
    free intercept, whose outputs are passed on; or it is given, and the softmax of its outputs is passed on. counts:
    the weights of the targets, in the form of T; the rows of H_c and T are scaled by their roots, or, where readouts
    are given, the rows of T by the weights themselves.
    """
    seen, inputs = [], X
    for number, (w, how) in enumerate(zip(weights, hows, strict=True)):
        H = [states(w, x, activation, cut=block_cuts(len(x), how["washout"], how["lookback"])) for x in inputs]
        full = [[h, x.T] if how["direct"] else [h] for h, x in zip(H, inputs, strict=True)]
        H_c, T_c = _with_targets(full, T, how)
        if counts is not None:
            c = _with_targets(full, [np.asarray(c)[..., None] for c in counts], how)[1]
            H_c, T_c = (np.sqrt(c) * H_c, np.sqrt(c) * T_c) if readouts is None else (H_c, c * T_c)
        U = _readout(H_c, T_c, ridges[number]) if readouts is None else readouts[number]
        seen.append((H_c, T_c, U))
        if number < len(weights) - 1:
            Y = [np.vstack([*f, np.ones((1, len(x)))]).T @ U for f, x in zip(full, X, strict=True)]
            if readouts is not None:
                Y = [np.exp(y) / np.exp(y).sum(axis=1, keepdims=True) for y in Y]
            Y = [y * scales[number] for y in Y]
            beside = {"output": None, "output+input": X, "output+hidden": [h.T for h in H]}[sees]
            inputs = Y if beside is None else [np.hstack(pair) for pair in zip(Y, beside, strict=True)]
    return seen


def _with_targets(full, T, how):
    """Return H_c with a column of ones, and T, at the frames that carry targets; full: states and inputs as columns."""
    washout = how["washout"]
    H = np.vstack([np.vstack(f)[:, washout:].T for f in full])
    return np.hstack([H, np.ones((len(H), 1))]), np.vstack([t[washout:] for t in T])


def _readout(H_c, T, mu):
    """Return the ridge solution; the last row, the intercept, is not penalised."""
    penalty = np.diag(np.append(np.full(H_c.shape[1] - 1, mu), 0))
    return np.linalg.solve(H_c.T @ H_c + penalty, H_c.T @ T)


def stack_loss(weights, X, T, activation, *, ridges, **how):
    """Return E of the top layer, every readout in closed form."""
    H_c, T, U = stack(weights, X, T, activation, ridges=ridges, **how)[-1]
    R = H_c @ U - T
    return (R * R).sum() + ridges[-1] * (U[:-1] * U[:-1]).sum()


def stack_entropy(weights, X, T, activation, *, readouts, own, **how):
    """Return -Σ log softmax(H_c V)[label] of the top layer, plus the share `own` of that of each lower layer."""
    seen = stack(weights, X, T, activation, readouts=readouts, **how)
    losses = [(T * (np.log(np.exp(H_c @ V).sum(axis=1, keepdims=True)) - H_c @ V)).sum() for H_c, T, V in seen]
    return losses[-1] + own * sum(losses[:-1])
