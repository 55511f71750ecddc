"""Series as arrays, and arrays as the frames of a panel: what both adapters need of their data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echolearn.validation import Array


def time_first(panel: Array | Sequence[Array]) -> list[Array]:
    """Return one array (n_steps, n_channels) per case of a panel with time last.

    panel: array (n_cases, n_channels, n_steps), or a list of arrays (n_channels, n_steps) of any lengths.
    """
    return [np.ascontiguousarray(np.asarray(case, dtype=np.float64).T) for case in panel]


def one_or_many(values: Array) -> Array:
    """Return a series (n_steps, 1) as (n_steps,), and one with several columns as it is."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def as_columns(values: Array) -> Array:
    """Return a series (n_steps,) as one column; one with several columns as it is."""
    return values[:, None] if values.ndim == 1 else values
