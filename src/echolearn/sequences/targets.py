"""Class numbers and the target rows that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from echolearn.validation.array_types import Array

Target = Any  # of one sequence: an array with one entry per step, or a single label, number or row of numbers


def one_hot(labels: Array, classes: int, dtype: DTypeLike) -> Array:
    """Return the target rows (K, classes) that class numbers (K,) stand for."""
    out = np.zeros((len(labels), classes), dtype)
    out[np.arange(len(labels)), labels] = 1
    return out


def without_missing(rows: Array, T: Array) -> Array:
    """Return target rows (K, n_out) with zeros where T, of class numbers or the rows themselves, has no target.

    There, class numbers are -1 and values are NaN.
    """
    missing = np.asarray(T < 0 if T.ndim == 1 else np.isnan(T).any(axis=1))
    return np.where(missing[:, None], np.zeros((), rows.dtype), rows)


def as_class_numbers(values: list[Array]) -> list[Array]:
    """Return class numbers if every target row is one-hot, else the rows.

    With class numbers, products with targets become sums of rows.
    """
    for rows in values:
        if np.count_nonzero(rows) != rows[..., 0].size or not (rows.max(axis=-1) == 1).all():
            return values
    return [rows.argmax(axis=-1) for rows in values]
