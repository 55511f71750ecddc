"""Which axis of X is time: what the user says by `layout`, or what shapes and targets decide.

Where they leave two readings, the data are refused with both lines that decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from echolearn.exceptions import InputWarning, LayoutWarning
from echolearn.execution.executor import Remote
from echolearn.sequences.answers import DictForm, Form, PaddedForm, RowForm, TableForm
from echolearn.sequences.checks import as_array
from echolearn.sequences.tables import Unpacked
from echolearn.validation import Array, warn_user

LAYOUTS = ("auto", "time_first", "channels_first", "rows")


def choose_layout(
    given: Unpacked, y: object, layout: str, lengths: ArrayLike | None = None, *, series: bool = False
) -> str:
    """Return the layout of a fit: "time_first", "channels_first" or "rows"; series: one target per series."""
    if given.irregular:
        warn_user(given.irregular, InputWarning)
    data = given.data
    if layout != "auto":
        if layout == "channels_first" and (given.timed or given.table):
            raise ValueError("layout='channels_first', but X is a table: its rows are steps. Use layout='time_first'.")
        return layout
    if given.timed or (isinstance(data, list) and len(data) and isinstance(data[0], Remote)):
        return "time_first"
    targets = as_array(y if given.form is None else given.form.targets(y))
    if (flat := flat_series(data)) is not None:
        return _layout_of_series(flat, targets, series or isinstance(given.form, DictForm))
    if (cases := _cases(data)) is not None:
        return _layout_of_cases(cast("Sequence[Array]", cases), targets, series)
    table = np.asarray(data) if _is_matrix(data) else data
    if isinstance(table, np.ndarray) and table.ndim == 2 and lengths is None:
        return _layout_of_matrix(table, targets, series)
    return "time_first"


def flat_series(data: object) -> list[Array] | None:
    """Return the series of a list in which all are 1-D arrays, or None."""
    if isinstance(data, list) and data and all(isinstance(x, np.ndarray) and x.ndim == 1 for x in data):
        return data if all(x.dtype.kind in "fiub" for x in data) else None
    return None


def _cases(data: object) -> list[Array] | Array | None:
    """Return a 3-D array or a list of 2-D ones, or None for others."""
    if isinstance(data, np.ndarray):
        return data if data.ndim == 3 and data.dtype != object and len(data) else None
    if isinstance(data, list) and data:
        parts = [x if isinstance(x, np.ndarray) else None for x in data]
        if all(x is not None and x.ndim == 2 for x in parts):
            return cast("list[Array]", parts)
    return None


def _is_matrix(data: object) -> bool:
    """Return whether data is a list of equally long lists of numbers."""
    if not isinstance(data, list) or not data or not isinstance(data[0], (list, tuple)):
        return False
    flat = all(isinstance(row, (list, tuple)) and not any(hasattr(v, "__len__") for v in row) for row in data)
    return flat and len({len(row) for row in data}) == 1


def _entry_steps(y: object, n: int) -> list[int] | None:
    """Return how many entries the targets of each of n sequences have, or None for a single one each."""
    if isinstance(y, np.ndarray) and y.dtype != object:
        return [y.shape[1]] * n if y.ndim > 1 and len(y) == n else None
    if not isinstance(y, (list, tuple, np.ndarray)) or len(y) != n:
        return None
    lengths = [_count(as_array(entry)) for entry in y]
    return None if -1 in lengths else lengths


def _count(y: object) -> int:
    """Return the number of entries, or -1 for what has none."""
    single = isinstance(y, (str, bytes)) or getattr(y, "shape", None) == () or not hasattr(y, "__len__")
    return -1 if single else len(cast("Sequence[object]", y))


def _layout_of_cases(X: Sequence[Array], y: object, series: bool) -> str:
    """Return the layout of several 2-D sequences: by targets per step, by lengths, or by shape and padding."""
    steps, shapes = None if series else _entry_steps(y, len(X)), [x.shape for x in X]
    if steps is not None:
        first = all(n == shape[0] for n, shape in zip(steps, shapes, strict=True))
        turned = all(n == shape[1] for n, shape in zip(steps, shapes, strict=True))
        last = turned and len({shape[0] for shape in shapes}) == 1  # of a channel each
        if first and last and shapes[0][0] > 1:
            _warn_of_two_readings(shapes[0])
        # a row of values or labels per sequence may be as long as it has features
        if first or (last and _may_be_rows(y) and shapes[0][1] < shapes[0][0]):
            return "time_first"
        if last:
            return "channels_first"
    rows, columns = ({shape[axis] for shape in shapes} for axis in (0, 1))
    if len(rows) > 1 or len(columns) > 1:
        return "channels_first" if len(rows) == 1 else "time_first"
    A, B = shapes[0]
    if not series:
        return "time_first"  # targets of whole series, or of other steps than X has: they are refused
    if A == 1 < B:
        return "channels_first"  # one step each is no time
    along_first, along_last = has_padding(X, 1), has_padding(X, 2)
    if A >= B and (along_first or not along_last):
        return "time_first"
    if along_last and not along_first and A < B:
        return "channels_first"
    raise ValueError(
        f"X has {len(X)} sequences of shape {shapes[0]}: {A} steps with {B} features, or {B} steps with {A} channels? "
        f"Set layout='time_first' or layout='channels_first'."
    )


def _may_be_rows(y: object) -> bool:
    """Return whether targets are real numbers, or 0 and 1: rows of them may belong to steps or to whole sequences."""
    try:
        entries = [np.asarray(as_array(entry)) for entry in cast("Sequence[object]", y)]
    except ValueError:
        return False  # ragged: they are refused
    return all(e.dtype.kind == "f" or (e.dtype.kind in "iub" and bool(((e == 0) | (e == 1)).all())) for e in entries)


def _layout_of_matrix(X: Array, y: object, series: bool) -> str:
    """Return the layout of a 2-D array: steps of one sequence, or one series per row."""
    n, m = X.shape
    count = _count(y)
    if series and count == n:
        return "rows"
    if count == m != n:
        raise ValueError(
            f"y has {m} entries, but X has {n} rows: found input variables with inconsistent numbers of samples. "
            + (
                "Pass X.T for one series per row."
                if series
                else "Time runs along the first axis: pass X.T, or set layout='channels_first'."
            )
        )
    return "time_first"


def _layout_of_series(X: list[Array], y: object, series: bool) -> str:
    """Return "rows" for a list of 1-D series, unless they may be the steps of one sequence."""
    n, m = len(X), len(X[0])
    if any(len(x) != m for x in X) or _entry_steps(y, n) is not None:
        return "rows"
    if _count(y) == m != n:
        raise ValueError(
            f"X has {n} series of {m} steps, and y {m} entries; expected {n}, one per series. If the entries of X are "
            "features, pass numpy.column_stack(list(X)), of a dictionary numpy.column_stack(list(X.values()))."
        )
    if series:
        return "rows"
    raise ValueError(
        f"X is a list of {n} arrays of shape {X[0].shape}: {n} univariate series, or {n} steps of one sequence? Use "
        "SeriesClassifier or SeriesRegressor for series with one target each, or pass numpy.array(X) for one sequence."
    )


def warn_of_more_features_than_steps(X: Sequence[Array]) -> None:
    """Warn of several sequences of one shape that are wider than they are long, where nothing else tells their axes."""
    shape = X[0].shape
    if len(X) > 1 and 1 < shape[0] < shape[1] and all(x.shape == shape for x in X):
        warn_user(
            f"X has {len(X)} sequences of shape {shape}, which were taken as {MEANING['time_first']}. If they are "
            f"{MEANING['channels_first']}, pass [x.T for x in X].",
            LayoutWarning,
        )


MEANING = {
    "time_first": "time first, (n_steps, n_features)",
    "channels_first": "channels first, (n_channels, n_steps)",
    "rows": "one univariate series per row",
}


def _warn_of_two_readings(shape: tuple[int, ...]) -> None:
    """Warn that time_first was taken where channels_first is possible, too."""
    warn_user(
        f"X has sequences of shape {shape}, which was taken as {MEANING['time_first']}. Set layout='time_first' to "
        f"confirm it, or layout='channels_first' if it is {MEANING['channels_first']}.",
        LayoutWarning,
    )


# ---------------- Padding


def has_padding(X: Sequence[Array], axis: int) -> bool:
    """Return whether some of several cases, an axis before their own, end in NaN or masked entries along an axis."""
    for x in X:
        there = _is_there(x)
        if there is not None and not (there[-1] if axis == 1 else there[:, -1]).any():
            return True
    return False


def steps_there(x: Array) -> int:
    """Return the number of steps of (steps, features) up to the last that is not NaN or masked in every feature."""
    there = _is_there(x)
    if there is None:
        return len(x)
    known = np.flatnonzero(there.any(axis=1))
    return int(known[-1]) + 1 if len(known) else 0


def _is_there(x: Array) -> Array | None:
    """Return where an array has an entry, or None if it has all."""
    if np.ma.is_masked(x):
        return np.asarray(~np.ma.getmaskarray(x) & ~_nan(np.ma.getdata(x)))
    nan = _nan(x)
    return ~nan if nan.any() else None


def _nan(x: Array) -> Array:
    return np.isnan(x) if x.dtype.kind == "f" else np.zeros(x.shape, bool)


def without_mask(x: Array) -> Array:
    """Return a masked array of which nothing is masked as a plain one."""
    return np.asarray(x) if isinstance(x, np.ma.MaskedArray) and not np.ma.is_masked(x) else x


def check_steps(lengths: ArrayLike, cases: int, steps: int) -> list[int]:
    """Return the given numbers of steps of padded sequences."""
    try:
        given = np.asarray(lengths)
    except ValueError:
        given = np.empty(0)
    whole = given.shape == (cases,) and given.dtype.kind in "iu"
    if not whole or not ((given >= 1) & (given <= steps)).all():
        raise ValueError(
            f"lengths of a 3-D array are the steps of each of its {cases} sequences before the padding, whole numbers "
            f"from 1 to {steps}; given {lengths!r:.80}."
        )
    return [int(n) for n in given]


# ---------------- Unpacked data with time along the first axis of each sequence, and without padding


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
            data = turned(data)
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


def turned(data: object) -> object:
    """Return sequences (channels, steps) as (steps, channels), or the other way round."""
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
