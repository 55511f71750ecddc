"""What functions of plain arguments ask of them: numbers, seeds, points to start from."""

from __future__ import annotations

import math
import os
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def whole(name: str, value: Any, least: int) -> int:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r:.80}; expected a whole number >= {least}.")
    return int(value)


def positive(name: str, value: Any) -> float:
    if not is_number(value) or not value > 0:
        raise ValueError(f"{name}={value!r:.80}; expected a number > 0.")
    return float(value)


def truth(name: str, value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r:.80}; expected True or False.")
    return bool(value)


def pair(name: str, value: Any) -> tuple[Any, Any]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{name}={value!r:.80}; expected a pair (X, y).")
    return value[0], value[1]


def place(name: str, value: Any) -> Path:
    if not isinstance(value, (str, PathLike)) or not _can_be_named(str(value)):
        raise ValueError(f"{name}={value!r:.80}; expected the path of a file or folder.")
    return Path(value)


def _can_be_named(path: str) -> bool:
    try:
        return path != "" and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def floats(name: str, value: Any) -> Any:
    """float32 or float64."""
    told = value if isinstance(value, (str, np.dtype)) else getattr(value, "__name__", "")
    if str(told) not in ("float32", "float64"):
        raise ValueError(f"{name}={value!r:.80}; expected 'float32' or 'float64'.")
    return np.dtype(value)


def number(name: str, value: Any) -> float:
    if not is_number(value):
        raise ValueError(f"{name}={value!r:.80}; expected a finite number.")
    return float(value)


def is_number(value: Any) -> bool:
    """A finite one that float64 can hold; other kinds (Fraction, Decimal) do not mix with arrays."""
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def generator(random_state: Any) -> np.random.Generator:
    known = random_state is None or isinstance(random_state, np.random.Generator)
    if not known:
        whole("random_state", random_state, 0)
    return np.random.default_rng(random_state)


def start(value: Any, dims: int) -> NDArray[np.float64]:
    x = finite("start", value)
    if x.shape != (dims,):
        raise ValueError(f"start={value!r:.80}; expected {dims} finite numbers.")
    return x


def finite(name: str, value: Any) -> NDArray[np.float64]:
    """A new float64 array of finite numbers."""
    try:
        given = np.asarray(value)
        x = np.array(given, dtype=np.float64) if given.dtype.kind in "fiubO" else None
    except (TypeError, ValueError, OverflowError):
        x = None
    if x is None:
        what = f"an array of {value.dtype}" if isinstance(value, np.ndarray) else f"{value!r:.80}"
        raise ValueError(f"{name} is {what}; expected finite numbers.")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} has shape {x.shape} and holds NaN or infinity; give finite numbers.")
    return x


def bounded(series: NDArray[np.float64], name: str) -> NDArray[np.float64]:
    """The series, if it stayed finite."""
    if not np.isfinite(series).all():
        raise ValueError(
            f"{name} ran off to infinity after {int(np.isfinite(series).all(axis=-1).argmin())} steps: start nearer to "
            "its attractor, use a smaller dt, or the default parameters."
        )
    return series
