"""Deep layers over sequences: features of every frame for the readout, and what the way back needs.

The frames of several sequences are rows one after another. Between the scans over time everything is a matrix product
over all rows at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from echolearn.modelfile.schema import RMS_EPSILON
from echolearn.reservoir._deep_reservoir import DeepReservoir, decay
from echolearn.states import _scans as loops
from echolearn.validation import Array


class Buffers:
    """Arrays that are used again: the memory of one mini-batch serves the next."""

    def __init__(self) -> None:
        self._kept: dict[str, Array] = {}

    def take(self, name: str, rows: int, columns: int, dtype: np.dtype[np.floating]) -> Array:
        """Return an array (rows, columns) with unknown contents, until the name is taken again."""
        kept = self._kept.get(name)
        if kept is None or kept.size < rows * columns or kept.dtype != dtype:
            kept = self._kept[name] = np.empty(int(1.2 * rows * columns), dtype)
        return kept[: rows * columns].reshape(rows, columns)


@dataclass(frozen=True)
class Dropout:
    """The share of entries that are left out while learning, and the seed that decides on which."""

    share: float = 0.0
    seed: int = 0

    def of(self, place: int) -> tuple[int, int]:
        """Return the share in units of 2^-32, and the seed of one of the places where entries are left out."""
        return int(self.share * 2**32), (self.seed + 0x9E3779B9 * (place + 1)) % 2**32

    @property
    def scale(self) -> float:
        """The factor of what stays."""
        return 1 / (1 - self.share)


@dataclass(frozen=True, eq=False)
class LayerTape:
    """The arrays of a layer for its gradient: z (K, C), r = 1 / rms (K,), states h (K, C), p = relu(h + b)."""

    z: Array
    r: Array
    h: Array
    p: Array


@dataclass(frozen=True, eq=False)
class Features:
    """The features of K frames that a readout sees, and the arrays that their gradient needs.

    q (K, C): features; z, r: of the last normalisation; tape: of each layer; bounds (B + 1,): sequence s has the rows
    bounds[s] : bounds[s + 1]; h0 (B, N): the states before each sequence.
    """

    q: Array
    z: Array
    r: Array
    X: Array
    bounds: Array
    h0: Array
    tape: Sequence[LayerTape] = field(default_factory=list)

    def ends(self) -> Array:
        """Return the states (B, N) after the last frame of each sequence."""
        return np.hstack([layer.h[self.bounds[1:] - 1] for layer in self.tape])


def means_of_sequences(q: Array, bounds: Array) -> Array:
    """Return the mean (B, C) of the rows of each sequence."""
    return np.asarray(np.add.reduceat(q, bounds[:-1], axis=0) / np.diff(bounds)[:, None].astype(q.dtype))


def in_precision(reservoir: DeepReservoir, dtype: str) -> dict[str, Array]:
    """Return the weights in the precision of the states."""
    return {name: np.ascontiguousarray(value, dtype) for name, value in reservoir.weights.items()}


def turns(weights: Mapping[str, Array], layer: int) -> tuple[Array, Array, Array]:
    """Return a cos θ, a sin θ and 1 - a of the pairs of a layer, for the scans."""
    theta = weights[f"{layer}/theta"]
    a = decay(weights[f"{layer}/alpha"]).astype(theta.dtype)
    return a * np.cos(theta), a * np.sin(theta), 1 - a


def run(
    weights: Mapping[str, Array],
    X: Array,
    bounds: Array,
    *,
    layers: int,
    forward_pairs: int,
    h0: Array | None = None,
    dropout: Dropout | None = None,
    buffers: Buffers | None = None,
) -> Features:
    """Return the features of frames X (K, n_in); weights and X have one precision."""
    dropout, buffers = dropout or Dropout(), buffers or Buffers()
    dtype, K, C = X.dtype, len(X), len(weights["b_0"])
    number = dtype.type
    scale, eps = number(dropout.scale), number(RMS_EPSILON)
    h0 = np.zeros((len(bounds) - 1, layers * C), dtype) if h0 is None else np.asarray(h0, dtype)

    def take(name: str) -> Array:
        return buffers.take(name, K, C, dtype)

    x, o, b = take("x"), take("o"), weights["b_0"]
    x[:] = 0
    np.matmul(X, weights["W_0"], out=o)
    tape, drop = [], (0, 0)
    for layer in range(1, layers + 1):
        z, r, h, p = take(f"z{layer}"), np.empty(K, dtype), take(f"h{layer}"), take(f"p{layer}")
        loops.add_and_normalize(x, o, b, *drop, scale, eps, z, r)
        np.matmul(z, weights[f"{layer}/W_in"], out=h)
        before = np.ascontiguousarray(h0[:, (layer - 1) * C : layer * C])
        loops.scan(*turns(weights, layer), bounds, before, forward_pairs, h)
        loops.rectify(h, weights[f"{layer}/b"], *dropout.of(2 * layer), scale, p)
        np.matmul(p, weights[f"{layer}/W_out"], out=o)
        tape.append(LayerTape(z, r, h, p))
        b, drop = weights[f"{layer}/b_out"], dropout.of(2 * layer + 1)
    z, r, q = take("z"), np.empty(K, dtype), take("q")
    loops.add_and_normalize(x, o, b, *drop, scale, eps, z, r)
    loops.rectify(z, weights["c"], *dropout.of(0), scale, q)
    return Features(q, z, r, X, bounds, h0, tape)
