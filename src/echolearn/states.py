"""X, reservoir -> H   (eq. 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn import kernels
from echolearn.reservoir import Reservoir
from echolearn.sequences import Batch, pack, unpack

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class States:
    """H (K, N), and F = f(z) (K, N), which the gradient needs; h0 (B, N); X_fb (K, n_out): fed-back targets."""

    H: Array
    F: Array
    h0: Array
    X_fb: Array | None


def run(reservoir: Reservoir, batch: Batch) -> States:
    """The states of a batch. With feedback, the batch's targets are the teacher.

    Teacher forcing makes the targets of the step before one more input, x_t and t_{t-1} side by side, so W_fb
    acts like W' and is learned by the same formula. (The paper runs its washout with W_fb = 0; here the
    teacher speaks from the first step on, so that the states after the washout know the past targets.)
    """
    dtype = batch.X.dtype
    F = batch.X @ reservoir.W.astype(dtype)
    X_fb = None
    if reservoir.W_fb is not None:
        if batch.T is None:
            raise ValueError("this reservoir has feedback weights W_fb: give the targets T that are fed back.")
        X_fb = batch.before(batch.T)
        F += X_fb @ reservoir.W_fb.T.astype(dtype)
    if reservoir.bias is not None:
        F += reservoir.bias.astype(dtype)
    h0 = first_state(reservoir, len(batch.lengths), dtype)
    H = np.empty_like(F)
    place, value = padded(reservoir.W_rec, dtype)
    code = kernels.ACTIVATIONS[reservoir.activation]
    kernels.forward(
        place, value, reservoir.leak.astype(dtype), code, batch.active, batch.offsets, h0, F, H
    )
    return States(H, F, h0, X_fb)


def first_state(reservoir: Reservoir, sequences: int, dtype: Any) -> Array:
    h0 = np.zeros(reservoir.N) if reservoir.initial_state is None else reservoir.initial_state
    return np.tile(h0.astype(dtype), (sequences, 1))


def padded(W_rec: Any, dtype: Any) -> tuple[Array, Array]:
    """CSR to the kernels' layout: places and values (k, N), column i for row i, padded with zeros."""
    N = W_rec.shape[0]
    position, row = slots(W_rec)
    k = int(np.diff(W_rec.indptr).max(initial=0))
    place = np.zeros((k, N), np.uint32)
    value = np.zeros((k, N), dtype)
    place[position, row] = W_rec.indices
    value[position, row] = W_rec.data
    return place, value


def slots(W_rec: Any) -> tuple[Array, Array]:
    """Where each non-zero of a CSR matrix stands in the padded (k, N) layout."""
    counts = np.diff(W_rec.indptr)
    row = np.repeat(np.arange(W_rec.shape[0]), counts)
    position = np.arange(len(W_rec.data)) - np.repeat(W_rec.indptr[:-1], counts)
    return position, row


def harvest(reservoir: Reservoir, X: Any, T: Any = None, *, dtype: Any = np.float64) -> Any:
    """States of one sequence (steps, n_in) -> (steps, N), or of a list -> a list."""
    single = not isinstance(X, (list, tuple)) and np.ndim(X) == 2
    sequences = [np.asarray(x) for x in ([X] if single else X)]
    T = None if T is None else [np.asarray(t) for t in ([T] if single else T)]
    batch = pack(sequences, dtype, T)
    states = unpack(batch, run(reservoir, batch).H)
    return states[0] if single else states
