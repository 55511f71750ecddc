"""The exact gradient through deep layers.

The recurrence of a layer is linear, h_t = a R h_{t-1} + (1 - a) u_t for every pair of units, so that the error carried
back is the same scan in the other direction: with δ_t = dE/dh_t, all later steps included,

    δ_t = ∂E/∂h_t + a R' δ_{t+1},        dE/du_t = (1 - a) δ_t.

By a, with u_t = (h_t - a R h_{t-1}) / (1 - a) from the recurrence itself,

    dE/da = Σ_t <δ_t, R h_{t-1} - u_t> = Σ_t <δ_t, R h_{t-1} - h_t> / (1 - a),

and by its logit α, da/dα = a (1 - a), dE/dα = a Σ_t <δ_t, R h_{t-1} - h_t>: no division, and u need not be kept. By the
angle, dR/dθ = J R with J the turn by a right angle: dE/dθ = a Σ_t <δ_t, J R h_{t-1}>. Both are combinations of the sums
<δ_t, h_t>, <δ_t, h_{t-1}> and <δ_t, J h_{t-1}>, since R = cos θ + J sin θ, and J R = J cos θ - sin θ.

Through z = x / rms(x), dE/dx = r (dE/dz - z mean(z dE/dz)) with r = 1 / rms(x). Through relu(h + b) and dropout, errors
pass where the result is positive. Everything else is a matrix product.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from echolearn.states import _scans as loops
from echolearn.states.deep import Buffers, Dropout, Features, turns
from echolearn.validation import Array


def gradients(
    weights: Mapping[str, Array],
    seen: Features,
    dE_dq: Array,
    *,
    forward_pairs: int,
    dropout: Dropout | None = None,
    buffers: Buffers | None = None,
) -> dict[str, Array]:
    """Return dE/dw for each weight by name, from dE/dq (K, C), which is overwritten."""
    dropout, buffers = dropout or Dropout(), buffers or Buffers()
    dtype, (K, C), layers = dE_dq.dtype, dE_dq.shape, len(seen.tape)
    scale = dtype.type(dropout.scale)
    g = {"c": np.zeros(C, dtype)}
    loops.rectify_back(seen.q, scale, dE_dq, g["c"])
    dx, do, d = (buffers.take(name, K, C, dtype) for name in ("dx", "do", "d"))
    dx[:] = 0
    loops.normalize_back(seen.z, seen.r, dE_dq, dx)
    for layer in range(layers, 0, -1):
        tape, W_in, W_out = seen.tape[layer - 1], weights[f"{layer}/W_in"], weights[f"{layer}/W_out"]
        g[f"{layer}/b_out"], g[f"{layer}/b"] = np.zeros(C, dtype), np.zeros(C, dtype)
        loops.drop_back(dx, *dropout.of(2 * layer + 1), scale, do, g[f"{layer}/b_out"])
        g[f"{layer}/W_out"] = tape.p.T @ do
        np.matmul(do, W_out.T, out=d)
        loops.rectify_back(tape.p, scale, d, g[f"{layer}/b"])
        g |= _through_time(weights, layer, seen, d, forward_pairs)
        g[f"{layer}/W_in"] = tape.z.T @ d
        np.matmul(d, W_in.T, out=do)
        loops.normalize_back(tape.z, tape.r, do, dx)
    return {**g, "W_0": seen.X.T @ dx, "b_0": dx.sum(axis=0)}


def _through_time(
    weights: Mapping[str, Array], layer: int, seen: Features, d: Array, forward_pairs: int
) -> dict[str, Array]:
    """Turn dE/dh of each step in d into dE/du, and return those with respect to the logits and angles of a layer."""
    dtype, C = d.dtype, d.shape[1]
    re, im, gain = turns(weights, layer)
    D, carry = np.zeros((3, len(re)), dtype), np.empty(C, dtype)
    h0 = np.ascontiguousarray(seen.h0[:, (layer - 1) * C : layer * C])
    loops.scan_back(re, im, gain, seen.bounds, h0, forward_pairs, seen.tape[layer - 1].h, d, D, carry)
    of_h, of_before, of_turned = D
    dE_dalpha = re * of_before + im * of_turned - (1 - gain) * of_h
    return {f"{layer}/alpha": dE_dalpha, f"{layer}/theta": re * of_turned - im * of_before}
