"""Series and exogenous inputs as a user gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from echolearn.sequences.opening import Sequences, open_sequences
from echolearn.validation import Array, SequencesLike, check_integer


def inputs_of(z: Array, e: Array) -> Array:
    """Return [x_t, e_{t+1}] for every step but the last: (steps - 1, dims + inputs)."""
    return np.hstack([z[:-1], e[1:]])


def standardised(rows: Sequence[Array], mean: Array, scale: Array) -> list[Array]:
    """Return each array less the mean, over the scale."""
    return [(r - mean) / scale for r in rows]


def time_index(series: object) -> object | None:
    """Return the index of a pandas series or frame, of the first one in a list, or None."""
    first = series[0] if isinstance(series, (list, tuple)) and series else series
    index = getattr(first, "index", None)
    return None if index is None or callable(index) else index


def open_series(series: SequencesLike, name: str, dims: int | None, *, gaps: bool = False) -> tuple[Sequences, bool]:
    """Return one series (steps,) or (steps, dims), or a list of such, as float64; and whether they are 1-D.

    gaps: whether NaN, for a missing value, is allowed.
    """
    try:
        listed = list(series) if isinstance(series, (list, tuple)) else []
        many = any(np.ndim(s) > 0 for s in listed)
        parts = listed if many else [cast("ArrayLike", series)]
        one_value = all(np.ndim(p) == 1 for p in parts)
        columns = [np.asarray(p)[:, None] if np.ndim(p) == 1 else p for p in parts]
        given = open_sequences(columns if many else columns[0], None, dims, "this forecaster", gaps=gaps)
    except (TypeError, ValueError) as problem:
        kind = TypeError if isinstance(problem, TypeError) else ValueError
        raise kind(f"{name}: {problem}") from problem
    return Sequences([x.astype(np.float64) for x in given.X], given.kind), one_value


def check_runs_down(given: Sequences) -> None:
    """Refuse series of one row, which is one step; given: series to fit."""
    if given.lengths.max() == 1 and given.X[0].shape[1] > 1:
        raise ValueError(
            f"series has one row of {given.X[0].shape[1]} values: one step. Time runs down the rows; expected an array "
            "of shape (steps,) or (steps, dims). Pass series.T."
        )


def check_steps_ahead(steps: object, *, updates: bool = True) -> None:
    """Refuse a number of steps to forecast that is none; updates: whether the forecaster takes in further values."""
    shape = getattr(steps, "shape", None)
    if shape or isinstance(steps, (list, tuple)):
        given = f"an array of shape {shape}" if shape else f"a list of {len(cast('list[object]', steps))} entries"
        more = "; to take in values that follow the training series, call update(data) first" if updates else ""
        raise ValueError(
            f"steps is {given}; expected a whole number, how many values to forecast, for example predict(10). To "
            f"forecast what follows other data, call predict(10, warm_up=data){more}."
        )
    check_integer("steps", steps, 1)


def open_exogenous(exogenous: SequencesLike, lengths: Array, width: int | None, many: bool) -> list[Array]:
    """Return exogenous rows, one array (length, inputs) per series; without any, arrays with no columns."""
    if exogenous is None:
        if width:
            raise ValueError(f"this forecaster was fitted with {width} exogenous inputs: give exogenous= for them too.")
        return [np.empty((n, 0)) for n in lengths]
    if width == 0:
        raise ValueError("exogenous is given, but this forecaster was fitted without. Leave it out, or fit with it.")
    given, _ = open_series(exogenous, "exogenous", width)
    if (given.kind != "one") != many or len(given.X) != len(lengths):
        found = "one array" if given.kind == "one" else f"a list of {len(given.X)}"
        wanted = f"a list of {len(lengths)}" if many else "one array"
        raise ValueError(f"exogenous is {found}; expected {wanted}, as the series were when fitting.")
    for i, (e, n) in enumerate(zip(given.X, lengths, strict=True)):
        if len(e) != n:
            raise ValueError(f"exogenous of series {i} has {len(e)} rows; expected {n}, one per step.")
    return given.X
