"""Where a system starts, and whether it stayed finite."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from echolearn.validation import finite_array

DIVERGED_VALUE = 1e6  # none of the systems here returns from so far away


def check_start(value: ArrayLike, dimensions: int) -> tuple[float, ...]:
    """Return a starting point of so many finite numbers."""
    x = finite_array("start", value)
    if x.shape != (dimensions,):
        raise ValueError(f"start={value!r:.80}; expected {dimensions} finite numbers.")
    return tuple(x.tolist())


def check_bounded(series: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """Return the series (steps, dimensions) if it stayed finite."""
    if not np.isfinite(series).all():
        raise ValueError(
            f"{name} ran off to infinity after {int(np.isfinite(series).all(axis=-1).argmin())} steps: start nearer to "
            "its attractor, use a smaller dt, or the default parameters."
        )
    return series
