"""The weights of a reservoir in the layouts of the compiled loops, and the drive of its units."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from echolearn.reservoir import Reservoir
from echolearn.validation import Array


def drive(reservoir: Reservoir, X: Array, X_fb: Array | None, out: Array | None = None) -> Array:
    """Return W'x + W_fb y + bias of every frame (K, N): the argument of the activation in eq. 1 without W_rec h."""
    F = np.matmul(X, reservoir.W.astype(X.dtype), out)
    if X_fb is not None:
        assert reservoir.W_fb is not None
        F += X_fb @ reservoir.W_fb.T.astype(X.dtype)
    if reservoir.bias is not None:
        F += reservoir.bias.astype(X.dtype)
    return np.asarray(F)


def compressed(W_rec: sparse.csr_array, dtype: DTypeLike) -> tuple[Array, Array, Array]:
    """Return indptr, indices and data for the kernels; unsigned indices need no check for negative ones."""
    return W_rec.indptr.astype(np.uint32), W_rec.indices.astype(np.uint32), W_rec.data.astype(dtype)


def padded(W_rec: sparse.csr_array, dtype: DTypeLike) -> tuple[Array, Array]:
    """Return a CSR matrix as indices and values (k, N), whose column i has its row i, padded with zeros."""
    N = W_rec.shape[0]
    position, row = padded_positions(W_rec)
    k = int(np.diff(W_rec.indptr).max(initial=0))
    place = np.zeros((k, N), np.uint32)
    value = np.zeros((k, N), dtype)
    place[position, row] = W_rec.indices
    value[position, row] = W_rec.data
    return place, value


def padded_positions(W_rec: sparse.csr_array) -> tuple[Array, Array]:
    """Return the position in the padded (k, N) layout of each non-zero of a CSR matrix."""
    counts = np.diff(W_rec.indptr)
    row = np.repeat(np.arange(W_rec.shape[0]), counts)
    position = np.arange(len(W_rec.data)) - np.repeat(W_rec.indptr[:-1], counts)
    return position, row
