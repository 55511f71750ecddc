"""The names of columns: wherever data have names, they must be those of the fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echolearn.validation.array_types import Array


def column_names(X: object) -> list[str] | None:
    """Return the names of the columns of a table, or of the entries of one row of it; None: they have none."""
    if isinstance(X, np.ndarray):
        return None
    index = getattr(X, "index", None) if getattr(X, "ndim", 0) == 1 else None
    names = getattr(X, "columns", None if callable(index) else index)
    listed = [] if names is None else list(names)
    return listed if listed and all(isinstance(name, str) for name in listed) else None


def check_columns(X: object, expected: Sequence[str] | Array | None, name: str = "X") -> None:
    """Raise ValueError if X names its columns otherwise than those of the fit. Arrays are read by position."""
    if expected is None or not len(expected):
        return
    found, wanted = column_names(X), list(expected)
    if found is not None and found != wanted:
        raise ValueError(
            f"{name} has the columns {found!r:.200}; expected those of the fit, in their order: {wanted!r:.200}. "
            f"Select them by name, {name}[columns], or give {name}.to_numpy() to have them read by position."
        )
