"""Weights in C: recurrent ones in groups of four units, and what `numbers="int16"` and `"int8"` mean.

In groups of four, a processor adds four products at once. In whole numbers, every row of a matrix, the weights into one
unit or one output, is a row of whole numbers times one scale: the largest weight of the row is 32767, or 127. The
vector that it is multiplied by (states, inputs, what is fed back) is rounded to 16 bits at every step, the largest of
its numbers to 32767. Products and their sums are exact in whole numbers. Biases, leaks, activations and what follows
the readout are float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echolearn.runtime._layers import Floats, Product, running_network
from echolearn.runtime._opening import decode, encode
from echolearn.runtime._plan import Plan, Sparse
from echolearn.validation import Array

UNITS_PER_GROUP = 4  # what 16 bytes of float hold
MAX_WEIGHTS = {"int8": 127, "int16": 32767}  # whole numbers of weights lie between minus this and this
MAX_STATE = 32767  # the same for states and inputs


@dataclass(frozen=True, eq=False)
class Groups:
    """Compressed rows in groups of four, each as wide as the widest of its rows.

    start (groups + 1,): the first column of each group; order (columns, 4): which entry of the compressed rows stands
    in a place, or -1 where a row has fewer entries than its neighbours.
    """

    start: Array
    order: Array

    def arrange(self, entries: Array) -> Array:
        """Return entries of the compressed rows in their new places, with zeros in between."""
        return np.where(self.order < 0, 0, np.append(entries, 0)[self.order])


def padded(count: int) -> int:
    """Return the number of units in full groups."""
    return -(-count // UNITS_PER_GROUP) * UNITS_PER_GROUP


def in_groups(matrix: Sparse) -> Groups:
    """Return where the entries of a matrix in compressed rows are placed."""
    N = len(matrix.indptr) - 1
    first = np.append(matrix.indptr[:-1], np.zeros(padded(N) - N, int)).reshape(-1, UNITS_PER_GROUP)
    counts = np.append(np.diff(matrix.indptr), np.zeros(padded(N) - N, int)).reshape(-1, UNITS_PER_GROUP)
    widths = counts.max(axis=1)
    columns = [
        np.where(np.arange(width)[:, None] < count, begin + np.arange(width)[:, None], -1)
        for width, count, begin in zip(widths, counts, first, strict=True)
    ]
    return Groups(np.append(0, np.cumsum(widths)), np.concatenate(columns))


def quantize_rows(matrix: Array, numbers: str) -> tuple[Array, Array]:
    """Return whole numbers (rows, columns) and one scale per row, so that their product is near the matrix."""
    scale = _scales(np.abs(matrix).max(axis=1, initial=0.0), numbers)
    return _round_away(matrix / scale[:, None].astype(np.float64), MAX_WEIGHTS[numbers]), scale


def quantize_entries(matrix: Sparse, numbers: str) -> tuple[Array, Array]:
    """Return the entries of compressed rows as whole numbers, and one scale per row."""
    rows, top = matrix.rows, np.zeros(len(matrix.indptr) - 1)
    np.maximum.at(top, rows, np.abs(matrix.data))
    scale = _scales(top, numbers)
    return _round_away(matrix.data / scale[rows].astype(np.float64), MAX_WEIGHTS[numbers]), scale


def _scales(top: Array, numbers: str) -> Array:
    """Return the scale of rows whose largest weights are `top`."""
    return np.where(top > 0, top / MAX_WEIGHTS[numbers], 1.0).astype(np.float32)


def quantize_vectors(x: Array) -> tuple[Array, Array]:
    """Return rows (..., n) in 16 bits, and one scale per row (..., 1), as the exported code computes them."""
    x = x.astype(np.float32)
    top = np.abs(x).max(axis=-1, keepdims=True, initial=0.0)
    with np.errstate(divide="ignore"):
        factor = np.where(top > 0, np.float32(MAX_STATE) / top, np.float32(0)).astype(np.float32)
    return _round_away(x * factor, MAX_STATE), (top / np.float32(MAX_STATE)).astype(np.float32)


def _round_away(values: Array, largest: int) -> Array:
    """Return the nearest whole numbers, halves away from zero, between -largest and largest."""
    rounded = np.trunc(values + np.copysign(values.dtype.type(0.5), values))
    return np.asarray(np.clip(rounded, -largest, largest), np.int64)


class WholeNumbers:
    """The arithmetic of "int16" or "int8": products in whole numbers, all else in float32."""

    def __init__(self, numbers: str):
        self.dtype: np.dtype[np.floating] = np.dtype(np.float32)
        self._numbers = numbers

    def dense(self, matrix: Array) -> Product:
        """Return the product of rows with a matrix (n, m)."""
        weights, scales = quantize_rows(matrix.T, self._numbers)
        return _scaled(lambda q: q @ weights.T, scales)

    def recurrent(self, matrix: Sparse) -> tuple[Product, Product]:
        """Return the product of W_rec with states (..., N), twice."""
        entries, scales = quantize_entries(matrix, self._numbers)
        indices, weights = Sparse(matrix.indptr, matrix.indices, entries).columns(np.int64)
        product = _scaled(lambda q: (q[..., indices] * weights).sum(axis=-2), scales)
        return product, product


def _scaled(product: Product, scales: Array) -> Product:
    def apply(x: Array) -> Array:
        q, scale = quantize_vectors(x)
        return np.asarray(product(q).astype(np.float32) * (scale * scales))

    return apply


def answers_in(plan: Plan, X: Array, numbers: str) -> Array:
    """Return the answers of a plan to one sequence X (steps, features), computed in these numbers."""
    network = running_network(plan, WholeNumbers(numbers) if numbers in MAX_WEIGHTS else Floats(numbers))
    Y, _ = network.outputs_of(encode(plan.inputs, X).astype(network.dtype), network.start())
    return decode(plan.answer, Y)
