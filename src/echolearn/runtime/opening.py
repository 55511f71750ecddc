"""Sequences as they are given: one array, a list of arrays or a 3-D array; and answers back in that form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from echolearn.runtime.plan import Plan
from echolearn.validation import Answers, Array, check_columns


@dataclass(frozen=True, eq=False)
class Given:
    """Checked sequences (steps, features) of floats. kind: "one" array, a "list" of arrays, or a 3-D "stack"."""

    X: list[Array]
    kind: str

    def in_given_form(self, results: list[Array]) -> Answers:
        """Return one array per sequence in the form of X."""
        if self.kind == "one":
            return results[0]
        return np.stack(results) if self.kind == "stack" else results


def open_sequences(X: object, plan: Plan, name: str = "X") -> Given:
    """Check sequences for a plan; raise ValueError or TypeError with a sentence that says what was expected."""
    for table in X if isinstance(X, (list, tuple)) else (X,):
        if hasattr(table, "columns"):
            check_columns(table, plan.feature_names, name)
    parts, kind = _parts(X, plan, name)
    if not parts:
        raise ValueError(f"{name} is empty; expected at least one sequence of shape (steps, {plan.n_features}).")
    gaps = takes_gaps(plan)
    checked = [_sequence(x, name if kind == "one" else f"sequence {i} of {name}", plan) for i, x in enumerate(parts)]
    for i, x in enumerate(checked):
        finite = np.isfinite(x)
        if gaps and kind == "stack" and np.isnan(x[-1]).all():
            raise ValueError(
                f"sequence {i} of {name} ends in NaN, which may be padding. Pass a list of sequences without it."
            )
        if not (finite | np.isnan(x) if gaps else finite).all():
            t = int((~finite).any(axis=1).argmax())
            cure = "" if gaps else " Fill the gap, or fit with missing='carry' or missing='mean'."
            raise ValueError(f"sequence {i} of {name} holds NaN or infinity at step {t}.{cure}")
    return Given(checked, kind)


def takes_gaps(plan: Plan) -> bool:
    """Return whether the first operation of a plan that may not see NaN comes after one that fills gaps."""
    return any(hasattr(operation, "carry") for operation in plan.inputs)


def _parts(X: object, plan: Plan, name: str) -> tuple[list[object], str]:
    """Return the sequences of X with time first, and the form of X."""
    turn = _turn(plan.layout)
    if isinstance(X, (list, tuple)) and X and any(_depth(x) >= (1 if plan.layout == "rows" else 2) for x in X):
        return [turn(np.asarray(x)) for x in X], "list"
    if isinstance(X, (dict, str, bytes)):
        raise TypeError(f"{name} is of type {type(X).__name__}; expected an array, a list of arrays or a 3-D array.")
    array = np.asarray(X)
    if plan.layout == "rows" and array.ndim == 2:
        return [turn(x) for x in array], "stack"
    if array.ndim == 3:
        return [turn(x) for x in array], "stack"
    return ([] if array.size == 0 and array.ndim != 2 else [turn(array)]), "one"


def _depth(x: object) -> int:
    """Return the number of axes of an array, or how deep plain lists are nested."""
    if hasattr(x, "ndim"):
        return int(x.ndim)
    depth = 0
    while isinstance(x, (list, tuple)) and len(x):
        x, depth = x[0], depth + 1
    return depth


def _turn(layout: str) -> Callable[[Array], Array]:
    """Return the function that puts time first in one sequence of this layout."""
    if layout == "channels_first":
        return lambda x: x.T if x.ndim == 2 else x[:, None] if x.ndim == 1 else x
    if layout == "rows":
        return lambda x: x[:, None] if x.ndim == 1 else x.T if x.ndim == 2 and len(x) == 1 else x
    return lambda x: x


def _sequence(x: object, name: str, plan: Plan) -> Array:
    """Return one sequence as floats (steps, n_features)."""
    try:
        found = np.asarray(x)
        if found.dtype.kind not in "fiub":
            found = found.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} does not hold numbers; expected an array (steps, {plan.n_features}).") from None
    if found.ndim != 2 or len(found) == 0 or found.shape[1] != plan.n_features:
        cure = " For one feature per step, pass x[:, None]." if found.ndim == 1 and plan.n_features == 1 else ""
        turned = found.ndim == 2 and len(found) == plan.n_features and plan.layout == "time_first"
        cure = " The other axis has as many: pass its transpose." if turned else cure
        raise ValueError(
            f"{name} has shape {found.shape}; expected (steps, {plan.n_features}) with at least one step, as the model "
            f"was fitted with.{cure}"
        )
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)
