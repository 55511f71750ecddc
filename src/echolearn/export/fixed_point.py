"""Whole numbers for weights and states: what `numbers="int16"` and `"int8"` mean.

Every row of a matrix, the weights into one unit or one output, is a row of whole numbers times one scale: the largest
weight of the row is 32767, or 127. The vector that it is multiplied by (states, inputs, what is fed back) is rounded to
16 bits at every step, the largest of its numbers to 32767. Products and their sums are exact in whole numbers. Biases,
leaks, activations and what follows the readout are float32.
"""

from __future__ import annotations

import numpy as np

from echolearn.validation import Array

LARGEST = {"int8": 127, "int16": 32767}  # whole numbers of weights lie between minus this and this
FULL = 32767  # the same for states and inputs


def quantize_rows(matrix: Array, numbers: str) -> tuple[Array, Array]:
    """Return whole numbers (rows, columns) and one scale per row, so that their product is near the matrix."""
    full = LARGEST[numbers]
    top = np.abs(matrix).max(axis=1, initial=0.0)
    scale = np.where(top > 0, top / full, 1.0).astype(np.float32)
    return round_away(matrix / scale[:, None].astype(np.float64), full), scale


def quantize_entries(indptr: Array, data: Array, numbers: str) -> tuple[Array, Array]:
    """Return the entries of compressed rows as whole numbers, and one scale per row."""
    full, rows = LARGEST[numbers], np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    top = np.zeros(len(indptr) - 1)
    np.maximum.at(top, rows, np.abs(data))
    scale = np.where(top > 0, top / full, 1.0).astype(np.float32)
    return round_away(data / scale[rows].astype(np.float64), full), scale


def quantize_vectors(x: Array) -> tuple[Array, Array]:
    """Return the rows of x (K, n) in 16 bits, and one scale per row (K, 1), as the exported code computes them."""
    x = x.astype(np.float32)
    top = np.abs(x).max(axis=1, keepdims=True, initial=0.0)
    with np.errstate(divide="ignore"):
        factor = np.where(top > 0, np.float32(FULL) / top, np.float32(0)).astype(np.float32)
    scale = (top / np.float32(FULL)).astype(np.float32)
    return round_away(x * factor, FULL), scale


def round_away(values: Array, full: int) -> Array:
    """Return the nearest whole numbers, halves away from zero, between -full and full."""
    rounded = np.trunc(values + np.copysign(values.dtype.type(0.5), values))
    return np.asarray(np.clip(rounded, -full, full), np.int64)
