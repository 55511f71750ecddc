"""Padding: last steps that are NaN or masked in every feature, or lie behind the given lengths, are no steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from echolearn.validation.array_types import Array


def has_padding(X: Sequence[Array], axis: int) -> bool:
    """Return whether some of several cases, an axis before their own, end in NaN or masked entries along an axis."""
    for x in X:
        there = _is_there(x)
        if there is not None and not (there[-1] if axis == 1 else there[:, -1]).any():
            return True
    return False


def steps_there(x: Array) -> int:
    """Return the number of steps of (steps, features) up to the last that is not NaN or masked in every feature."""
    there = _is_there(x)
    if there is None:
        return len(x)
    known = np.flatnonzero(there.any(axis=1))
    return int(known[-1]) + 1 if len(known) else 0


def _is_there(x: Array) -> Array | None:
    """Return where an array has an entry, or None if it has all."""
    if np.ma.is_masked(x):
        return np.asarray(~np.ma.getmaskarray(x) & ~_nan(np.ma.getdata(x)))
    nan = _nan(x)
    return ~nan if nan.any() else None


def _nan(x: Array) -> Array:
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def without_mask(x: Array) -> Array:
    """Return a masked array of which nothing is masked as a plain one."""
    return np.asarray(x) if isinstance(x, np.ma.MaskedArray) and not np.ma.is_masked(x) else x


def check_steps(lengths: ArrayLike, cases: int, steps: int) -> list[int]:
    """Return the given numbers of steps of padded sequences."""
    try:
        given = np.asarray(lengths)
    except ValueError:
        given = np.empty(0)
    whole = given.shape == (cases,) and given.dtype.kind in "iu"
    if not whole or not ((given >= 1) & (given <= steps)).all():
        raise ValueError(
            f"lengths of a 3-D array are the steps of each of its {cases} sequences before the padding, whole numbers "
            f"from 1 to {steps}; given {lengths!r:.80}."
        )
    return [int(n) for n in given]
