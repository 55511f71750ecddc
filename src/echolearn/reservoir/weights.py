"""Checks of the weights that a reservoir is made of. Each returns a new array, or an error that says what is wrong."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from echolearn.validation import Array, finite_array


def check_matrix(name: str, value: ArrayLike) -> Array:
    """Return a matrix of finite numbers that is not empty."""
    matrix = finite_array(name, value)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} has shape {matrix.shape}; expected a matrix of finite numbers.")
    return matrix


def check_recurrent(W_rec: ArrayLike | sparse.csr_array, W: Array) -> sparse.csr_array:
    """Return W_rec (N, N), sparse and in float64, for input weights W (n_in, N)."""
    if isinstance(W_rec, (sparse.sparray, sparse.spmatrix)):
        if W_rec.ndim != 2 or W_rec.dtype.kind not in "fiub":
            raise ValueError(f"W_rec is sparse, {W_rec.dtype} of shape {W_rec.shape}; expected a matrix of numbers.")
        matrix = sparse.csr_array(W_rec, dtype=np.float64, copy=True)
    else:
        matrix = sparse.csr_array(check_matrix("W_rec", W_rec))
    N = W.shape[1]
    if matrix.shape != (N, N):
        raise ValueError(
            f"W_rec has shape {matrix.shape}, but W with shape {W.shape} (inputs, hidden units) requires ({N}, {N})."
        )
    matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        raise ValueError("W_rec holds NaN or infinity; give finite weights.")
    return matrix


def check_leak(leak: ArrayLike, N: int) -> Array:
    """Return leaks (N,) in (0, 1]."""
    given = finite_array("leak", leak)
    if given.shape not in ((), (1,), (N,)):
        raise ValueError(f"leak has shape {given.shape}; expected one number, or {N}, one per unit.")
    leaks = np.broadcast_to(given, (N,)).copy()
    if not ((leaks > 0) & (leaks <= 1)).all():
        raise ValueError(
            f"leak lies between {leaks.min():g} and {leaks.max():g}; every leak must be in (0, 1] (1: no leak)."
        )
    return leaks


def check_per_unit(name: str, value: ArrayLike, N: int) -> Array:
    """Return finite numbers (N,)."""
    numbers = finite_array(name, value)
    if numbers.shape != (N,):
        raise ValueError(f"{name} has shape {numbers.shape}; expected {N} finite numbers, one per unit.")
    return numbers


def check_feedback(W_fb: ArrayLike, N: int) -> Array:
    """Return W_fb (N, n_out)."""
    matrix = check_matrix("W_fb", W_fb)
    if matrix.shape[0] != N:
        raise ValueError(f"W_fb has shape {matrix.shape}; expected ({N}, outputs), one row per hidden unit.")
    return matrix


def check_backward(backward: ArrayLike, W_rec: sparse.csr_array, *, feedback: bool) -> Array | None:
    """Return which units run backward in time (N,), or None if no unit does."""
    N, given = W_rec.shape[0], np.array(backward)
    if given.shape != (N,) or given.dtype != bool:
        raise ValueError(f"backward has shape {given.shape}; expected {N} times True or False, one per unit.")
    if feedback:
        raise ValueError("feedback comes from the step before; backward units come from the step after. Drop W_fb.")
    into_backward = np.repeat(given, np.diff(W_rec.indptr))
    if (into_backward != given[W_rec.indices]).any():
        raise ValueError("W_rec connects forward and backward units; give it only connections within each kind.")
    return given if given.any() else None
