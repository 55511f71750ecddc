"""Checks of single arguments. Each returns the value in the form that the library computes with, or raises ValueError
with a message that names the argument, what was given and what was expected."""

from __future__ import annotations

import math
import os
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite number that float64 can hold.

    Fractions and decimals are not numbers here: they do not mix with arrays.
    """
    if not isinstance(value, (int, float, np.integer, np.floating)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def check_number(name: str, value: object) -> float:
    """Return a finite number as a float."""
    if not is_number(value):
        raise ValueError(f"{name}={value!r:.80}; expected a finite number.")
    return float(value)


def check_positive(name: str, value: object) -> float:
    """Return a finite number above 0 as a float."""
    if not is_number(value) or not value > 0:
        raise ValueError(f"{name}={value!r:.80}; expected a number > 0.")
    return float(value)


def check_integer(name: str, value: object, minimum: int) -> int:
    """Return an integer of any type, at least `minimum`, as an int."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise ValueError(f"{name}={value!r:.80}; expected a whole number >= {minimum}.")
    return int(value)


def check_boolean(name: str, value: object) -> bool:
    """Return True or False as a bool. Numbers are refused."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r:.80}; expected True or False.")
    return bool(value)


def check_pair(name: str, value: object) -> tuple[Any, Any]:
    """Return the two members (X, y) of a tuple or list."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise ValueError(f"{name}={value!r:.80}; expected a pair (X, y).")
    return value[0], value[1]


def check_path(name: str, value: object) -> Path:
    """Return the path of a file or folder as a Path."""
    if not isinstance(value, (str, PathLike)) or not _is_path_name(str(value)):
        raise ValueError(f"{name}={value!r:.80}; expected the path of a file or folder.")
    return Path(value)


def _is_path_name(path: str) -> bool:
    try:
        return path != "" and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def check_float_dtype(name: str, value: object) -> np.dtype[Any]:
    """Return float32 or float64, given by name, type or dtype, as a dtype."""
    given = value if isinstance(value, (str, np.dtype)) else getattr(value, "__name__", "")
    if str(given) not in ("float32", "float64"):
        raise ValueError(f"{name}={value!r:.80}; expected 'float32' or 'float64'.")
    return np.dtype(str(given))


def as_generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    """Return the generator itself, a new one from a seed, or one that differs every time (None)."""
    if random_state is not None and not isinstance(random_state, np.random.Generator):
        check_integer("random_state", random_state, 0)
    return np.random.default_rng(random_state)


def finite_array(name: str, value: object) -> NDArray[np.float64]:
    """Return a new float64 array of finite numbers, of any shape."""
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
