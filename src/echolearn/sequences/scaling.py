"""The means and scales by which the columns of a table are standardised."""

from __future__ import annotations

import numpy as np

from echolearn.validation.array_types import Array

LARGEST = 1e290  # largest number that is standardised: forecasts and sums of such numbers stay finite


def mean_and_scale(table: Array, name: str) -> tuple[Array, Array]:
    """Return the mean and the standard deviation of each column; the scale of a constant column is 1.

    The square of 1e200 is infinite and that of 1e-200 is zero, so the numbers are first divided by a power of two that
    brings them near 1.
    """
    table = table.astype(np.float64)
    peak = np.abs(table).max(axis=0)
    if (peak > LARGEST).any():
        raise ValueError(f"{name} holds {peak.max():.3g}, so large that float64 has no room for sums; scale it first.")
    power = np.frexp(peak)[1]
    near_one = np.ldexp(table, -power)
    mean, scale = near_one.mean(axis=0), near_one.std(axis=0)
    return np.ldexp(mean, power), np.where(scale > 1e-12 * np.abs(mean), np.ldexp(scale, power), 1.0)
