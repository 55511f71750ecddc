"""X and y in the wrong order: the refusal of X is explained by what y holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def explained_swap(X: object, y: object, n_features: int) -> Iterator[None]:
    """Explain the refusal of X where X and y were swapped; n_features: those of the fit."""
    try:
        yield
    except (TypeError, ValueError) as problem:
        if _width(y) != n_features or _width(X) == n_features:
            raise
        if n_features == 1:  # which one is X cannot be known
            kind = TypeError if isinstance(problem, TypeError) else ValueError
            raise kind(f"{problem} If X and y are swapped, call score(X, y).") from problem
        raise ValueError(
            f"X and y are swapped: y has the {n_features} features of the fit, and X has not. Call score(X, y)."
        ) from problem


@contextmanager
def explained_swap_of_fit(X: object, y: object) -> Iterator[None]:
    """Explain the refusal of the data of a fit where X and y were swapped."""
    try:
        yield
    except (TypeError, ValueError) as problem:
        features = _width(y)
        if features is None or features < 2 or _width(X) is not None:
            raise
        if _are_labels(X):
            raise ValueError(
                f"X and y are swapped: X holds labels, and y has {features} features. Call fit(X, y)."
            ) from problem
        kind = TypeError if isinstance(problem, TypeError) else ValueError
        raise kind(f"{problem} If X and y are swapped, call fit(X, y).") from problem


def _are_labels(given: object) -> bool:
    """Return whether an array, or the first entry of a list, holds text, whole numbers or truth values, but no path."""
    first = given[0] if isinstance(given, (list, tuple)) and len(given) else given
    if isinstance(first, str) and ("/" in first or "." in first):
        return False
    try:
        return np.asarray(first).dtype.kind in "USOiub"
    except ValueError:
        return False


def _width(given: object) -> int | None:
    """Return the number of columns of an array or table, or of the first one in a list; None: it has none."""
    first = given[0] if isinstance(given, (list, tuple)) and len(given) else given
    shape: tuple[int, ...] = getattr(first, "shape", ())
    return int(shape[-1]) if len(shape) > 1 else None
