"""What the generators ask of their arguments and of their results."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


def whole(name: str, value: Any, least: int) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r}; expected a whole number >= {least}.")
    return int(value)


def positive(name: str, value: Any) -> float:
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < math.inf:
        raise ValueError(f"{name}={value!r}; expected a number > 0.")
    return float(value)


def start(value: Any, dims: int) -> NDArray[np.float64]:
    x = np.asarray(value, dtype=np.float64)
    if x.shape != (dims,) or not np.isfinite(x).all():
        raise ValueError(f"start={value!r}; expected {dims} finite numbers.")
    return x


def bounded(series: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """The series, if it stayed finite."""
    if not np.isfinite(series).all():
        raise ValueError(
            f"{name} ran off to infinity after {int(np.isfinite(series).all(axis=-1).argmin())} steps: start nearer to "
            "its attractor, use a smaller dt, or the default parameters."
        )
    return series
