"""Eq. 1 in NumPy: units that run forward over the frames of one sequence, or of many side by side.

The rows of the default W_rec have ten entries. A gather of the ten states of every unit at once, a product and a sum
over the ten need a few microseconds at any size; a dense product is faster for small networks (measured in
benchmarks/runtime_start.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import DTypeLike

from echolearn.runtime.plan import Layer, Sparse
from echolearn.validation import Array

Product = Callable[[Array], Array]  # from states (N,) or (B, N) to sums of the same shape, which the caller may change


class Units:
    """The units of a layer that run in one direction.

    Parameters
    ----------
    layer : Layer
        The layer.
    which : array of bool of shape (N,)
        Its units that run together; no other one is connected with them.
    dtype : {"float32", "float64"}
        In which they compute.
    """

    def __init__(self, layer: Layer, which: Array, dtype: DTypeLike):
        self.which = which
        self.W = np.ascontiguousarray(layer.W[:, which], dtype)
        self.bias = layer.bias[which].astype(dtype)
        self.leak = layer.leak[which].astype(dtype)
        self.initial_state = layer.initial_state[which].astype(dtype)
        self.W_fb = None if layer.W_fb is None else np.ascontiguousarray(layer.W_fb[:, which], dtype)
        self._leaky = bool((self.leak != 1).any())
        self._activation = layer.activation
        self._one, self._many = recurrence(_submatrix(layer.W_rec, which), dtype)

    def drive(self, x: Array) -> Array:
        """Return what inputs (..., n_in) add to the arguments of the units."""
        z = np.asarray(x @ self.W)
        z += self.bias
        return z

    def advance(self, z: Array, h: Array) -> None:
        """Turn the drive (N,) or (B, N) of a step into its states, in place; h: the states before it."""
        z += self._one(h) if h.ndim == 1 else self._many(h)
        activate(self._activation, z)
        if self._leaky:
            z -= h
            z *= self.leak
            z += h

    def run(self, x: Array, h: Array) -> Array:
        """Return the states (steps, N) over inputs (steps, n_in), from the state h (N,) on."""
        H = self.drive(x)
        for z in H:
            self.advance(z, h)
            h = z
        return H


def activate(name: str, z: Array) -> None:
    """Replace z by f(z)."""
    if name == "tanh":
        np.tanh(z, out=z)
    elif name == "relu":
        np.maximum(z, 0, out=z)
    elif name == "sigmoid":
        z *= 0.5
        np.tanh(z, out=z)
        z *= 0.5
        z += 0.5


def _submatrix(matrix: Sparse, which: Array) -> Sparse:
    """Return the rows and columns of some units, which are connected with one another only."""
    if which.all():
        return matrix
    counts = np.diff(matrix.indptr)
    kept = np.repeat(which, counts)
    numbers = np.cumsum(which) - 1
    if not which[matrix.indices[kept]].all():
        raise ValueError("units that run forward are connected with units that run backward")
    indptr = np.concatenate([[0], np.cumsum(counts[which])])
    return Sparse(indptr, numbers[matrix.indices[kept]], matrix.data[kept])


def recurrence(matrix: Sparse, dtype: DTypeLike) -> tuple[Product, Product]:
    """Return the product of W_rec with the states (N,) of one sequence, and that with those (B, N) of many."""
    N, widest = len(matrix.indptr) - 1, max(1, matrix.widest)
    uneven = widest * N > 4 * len(matrix.data) + 4 * N
    one_dense = uneven or 30_000 + 12 * N * widest > N * N
    many_dense = uneven or 30 * widest > N
    dense = _dense_product(matrix, dtype) if one_dense or many_dense else None
    if one_dense and many_dense and dense is not None:
        return dense, dense
    indices, data = _columns(matrix, widest, dtype)
    one = dense if one_dense and dense is not None else _gather_one(indices, data)
    return one, dense if many_dense and dense is not None else _gather_many(indices, data)


def _columns(matrix: Sparse, widest: int, dtype: DTypeLike) -> tuple[Array, Array]:
    """Return columns and values (widest, N): of the first entries of all rows, the second ones, ...; zeros at ends."""
    counts = np.diff(matrix.indptr)
    rows = np.repeat(np.arange(len(counts)), counts)
    places = np.arange(len(rows)) - matrix.indptr[rows]
    indices, data = np.zeros((widest, len(counts)), np.intp), np.zeros((widest, len(counts)), dtype)
    indices[places, rows], data[places, rows] = matrix.indices, matrix.data
    return indices, data


def _dense_product(matrix: Sparse, dtype: DTypeLike) -> Product:
    counts = np.diff(matrix.indptr)
    transposed = np.zeros((len(counts), len(counts)), dtype)
    np.add.at(transposed, (matrix.indices, np.repeat(np.arange(len(counts)), counts)), matrix.data.astype(dtype))
    return lambda h: np.asarray(h @ transposed)


def _gather_one(indices: Array, data: Array) -> Product:
    def product(h: Array) -> Array:
        taken = h.take(indices)  # new arrays in every call: threads may share a model
        taken *= data
        return np.asarray(np.add.reduce(taken, axis=0))

    return product


def _gather_many(indices: Array, data: Array) -> Product:
    def product(h: Array) -> Array:
        columns = np.ascontiguousarray(h.T)  # so that what is gathered is contiguous
        sums = np.zeros_like(columns)
        for places, weights in zip(indices, data, strict=True):
            sums += weights[:, None] * columns[places]
        return sums.T

    return product
