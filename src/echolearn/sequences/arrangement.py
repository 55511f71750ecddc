"""Unpacked data with time along the first axis of each sequence, and without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from echolearn.sequences.forms import DictForm, Form, PaddedForm, RowForm, TableForm
from echolearn.sequences.layouts import flat_series
from echolearn.sequences.padding import check_steps, steps_there, without_mask
from echolearn.sequences.unpacking import Unpacked
from echolearn.validation.array_types import Array


@dataclass(frozen=True, eq=False)
class Arranged:
    """Data with time first: a 2-D array, a list of them, or a 3-D array; and the lengths of joined ones."""

    data: object
    form: Form | None
    lengths: ArrayLike | None


def arrange(given: Unpacked, layout: str, lengths: ArrayLike | None, n_features: int | None) -> Arranged:
    """Return unpacked data with time first. n_features: if it is known."""
    data, form = given.data, given.form
    if isinstance(data, list) and data and all(isinstance(x, (list, tuple)) for x in data) and layout != "time_first":
        data = _as_matrix(data)
    if not given.timed:
        if layout == "rows":
            data, form = _rows(data, form)
        elif layout == "channels_first" and not given.table:
            data = _turned(data)
        elif (series := flat_series(data)) is not None:
            data = _columns_or_steps(series, as_steps=n_features != 1 and not isinstance(form, DictForm))
    return _without_padding(data, form, lengths)


def _as_matrix(data: list[object]) -> object:
    try:
        return np.asarray(data)
    except ValueError:
        return data


def _columns_or_steps(series: list[Array], *, as_steps: bool) -> object:
    """Return 1-D arrays as univariate sequences; those of one length, as_steps, as the steps of one sequence."""
    if as_steps and len({len(x) for x in series}) == 1:
        return np.stack(series)
    return [x[:, None] for x in series]


def _turned(data: object) -> object:
    """Return sequences (channels, steps) as (steps, channels)."""
    if isinstance(data, np.ndarray):
        return np.swapaxes(data, -1, -2) if data.ndim in (2, 3) else data
    if isinstance(data, list):
        return [_turned_one(x) for x in data]
    return data


def _turned_one(x: object) -> object:
    if isinstance(x, (list, tuple)):
        x = _as_matrix(cast("list[object]", x))
    if not isinstance(x, np.ndarray):
        return x
    return x.T if x.ndim == 2 else x[:, None] if x.ndim == 1 else x


def _rows(data: object, form: Form | None) -> tuple[object, Form | None]:
    """Return the rows of a 2-D array, or 1-D series, as univariate sequences."""
    if isinstance(data, np.ndarray) and data.ndim == 1 and data.dtype != object:
        raise ValueError(
            f"X is not an array of shape (steps, features) with finite numbers: it has shape {data.shape}. Expected 2D "
            "array, got 1D array instead. Reshape your data: pass X[None, :] for one series per row."
        )
    if isinstance(data, np.ndarray) and data.ndim == 2:
        if data.shape[1] == 1 and len(data) > 1:
            raise ValueError(
                f"X has shape {data.shape}: one step in each row, where layout='rows' expects a series. Pass X.T for "
                "one series."
            )
        if isinstance(form, TableForm):
            back = np.argsort(form.rows[0])  # rows that were sorted by an index of dates are no steps
            return data[back][:, :, None], None if form.index is None else RowForm(form.index)
        return data[:, :, None], form
    if isinstance(data, np.ndarray) and data.ndim == 3:
        if 1 not in data.shape[1:]:
            raise _not_univariate(data.shape[1:])
        return (data if data.shape[2] == 1 else np.swapaxes(data, 1, 2)), form
    if isinstance(data, list):
        return [_row(x) for x in data], form
    return data, form


def _row(x: object) -> object:
    """Return a series (steps,), (steps, 1) or (1, steps) as a sequence of one feature."""
    if not isinstance(x, np.ndarray):
        return x
    if x.ndim == 2 and x.size and 1 not in x.shape:
        raise _not_univariate(x.shape)
    return x[:, None] if x.ndim == 1 else x.T if x.ndim == 2 and x.shape[0] == 1 else x


def _not_univariate(shape: tuple[int, ...]) -> ValueError:
    """Return the refusal of sequences with several features."""
    return ValueError(
        f"layout='rows' is for univariate series, one per row of X; a sequence of X has shape {shape}. If X has "
        "several features, fit with layout='time_first' or layout='channels_first'."
    )


def _without_padding(data: object, form: Form | None, lengths: ArrayLike | None) -> Arranged:
    """Return data without the steps that are padding."""
    if isinstance(data, np.ndarray) and data.ndim == 3 and data.dtype != object and data.shape[1]:
        if lengths is None:
            steps = [steps_there(x) for x in data]
        else:
            steps = check_steps(lengths, len(data), data.shape[1])
        return _cut(cast("Sequence[Array]", data), steps, form, "stack")
    masked_list = isinstance(data, list) and any(np.ma.is_masked(x) and np.ndim(x) == 2 for x in data)
    if masked_list:
        listed = cast("list[Array]", data)
        steps = [steps_there(x) if np.ma.is_masked(x) and np.ndim(x) == 2 else len(x) for x in listed]
        found = _cut(listed, steps, form, "list")
        return Arranged(found.data, found.form, lengths)
    if isinstance(data, np.ndarray) and data.ndim == 2 and np.ma.is_masked(data) and lengths is None:
        found = _cut([data], [steps_there(data)], form, "one")
        return Arranged(cast("list[Array]", found.data)[0], found.form, None)
    return Arranged(data, form, lengths)


def _cut(X: Sequence[Array], steps: list[int], form: Form | None, kind: str) -> Arranged:
    """Return sequences without the steps behind the given ones."""
    full = [len(x) for x in X]
    if 0 in steps:
        raise ValueError(
            f"Found array with 0 sample(s): sequence {steps.index(0)} is nothing but padding (NaN or masked); drop it."
        )
    if steps == full:
        return Arranged(X if form is None else list(X), form, None)
    inside = form if isinstance(form, (RowForm, DictForm)) else None
    cut = [without_mask(x[:n]) for x, n in zip(X, steps, strict=True)]
    return Arranged(cut, PaddedForm(full, steps, kind, inside), None)
