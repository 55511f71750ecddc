"""Columns of a table that cannot be features: dates, durations and text. Each is refused with the line to write."""

from __future__ import annotations

import datetime
import itertools
from typing import TYPE_CHECKING

import numpy as np

from echolearn.validation.array_types import Array

if TYPE_CHECKING:
    import pandas as pd


def check_feature_columns(X: pd.DataFrame, times: list[object] | None = None, *, grouped: bool = False) -> None:
    """Refuse columns that do not hold numbers, whatever their names are.

    times: the columns whose names say that they are time. grouped: whether the rows are known to be of several
    sequences, so that a column of dates belongs behind the levels of the index.
    """
    columns = {name: column_values(X, j) for j, name in enumerate(X.columns)}
    dates = [name for name, values in columns.items() if holds_dates(values)]
    texts = [name for name, values in columns.items() if name not in dates and _holds_text(values)]
    for name in texts:
        if _repeats(columns[name]):
            raise ValueError(_names_of_sequences(name, [*dates, *(times or [])], columns[name]))
    append = ", append=True" if grouped else ""
    if dates:
        raise ValueError(
            f"the column {dates[0]!r} of X holds dates; features are numbers. Pass X.set_index({dates[0]!r}{append})."
        )
    if texts:
        raise ValueError(_text(texts[0], columns[texts[0]], append))
    for name, values in columns.items():
        if values.dtype.kind == "m":
            raise ValueError(
                f"the column {name!r} of X holds durations; features are numbers. Pass X.set_index({name!r}{append}) "
                f"if it is time, or X.assign(**{{{name!r}: X[{name!r}].dt.total_seconds()}}) if it is a feature."
            )


def date_columns(X: pd.DataFrame) -> list[object]:
    """Return the columns of a table that hold dates."""
    return [name for j, name in enumerate(X.columns) if holds_dates(column_values(X, j))]


def column_values(X: pd.DataFrame, j: int) -> Array:
    """Return the entries of one column; names may occur twice."""
    return np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[X.columns[j]])


def holds_dates(values: Array) -> bool:
    """Return whether the entries of a column are dates: by their type, or as objects."""
    if values.dtype.kind == "M":
        return True
    first = _first_known(values)
    return first is not None and hasattr(first, "year") and hasattr(first, "month")


def _first_known(values: Array) -> object | None:
    """Return the first entry of a column of objects that is there, or None."""
    if values.dtype != object:
        return None
    return next((entry for entry in values.flat if entry is not None and entry == entry), None)


def _holds_text(values: Array) -> bool:
    """Return whether the entries of a column are texts that are not numbers."""
    if values.dtype.kind not in "OUST":
        return False
    return any(isinstance(entry, (str, bytes)) and not _is_number(entry) for entry in values.flat)


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _repeats(values: Array) -> bool:
    """Return whether every entry stands in one run of consecutive rows, as the name of a sequence does.

    There are at least two names, and at least two rows of each on average.
    """
    texts = [str(entry) for entry in values.flat]
    runs = 1 + sum(a != b for a, b in itertools.pairwise(texts))
    return 2 <= runs <= len(texts) // 2 and len(set(texts)) == runs


def _names_of_sequences(name: object, times: list[object], values: Array) -> str:
    """Return the refusal of a column of text that is the name of the sequence of each row."""
    if times:
        how = f"X.set_index([{name!r}, {times[0]!r}])"
    else:
        how = (
            f"X.set_index([{name!r}, <the column of time>]), or X.set_index([{name!r}, "
            f"X.groupby({name!r}).cumcount()]) if rows are in order"
        )
    return (
        f"the column {name!r} of X holds text, {values.flat[0]!r:.40} and others, each in consecutive rows: it "
        f"looks like the names of sequences, not like a feature. Pass {how}."
    )


def _text(name: object, values: Array, append: str) -> str:
    """Return the refusal of a column of text: of dates that were not parsed, or of anything else."""
    first = next(entry for entry in values.flat if isinstance(entry, (str, bytes)) and not _is_number(entry))
    given = f"the column {name!r} of X holds text such as {first!r:.40}; features are numbers."
    try:
        datetime.datetime.fromisoformat(str(first))
    except ValueError:
        return f"{given} Drop it, X.drop(columns={name!r}), or encode it as numbers, for example pandas.get_dummies(X)."
    return (
        f"{given} If these are dates, pass X.assign(**{{{name!r}: pandas.to_datetime(X[{name!r}])}})"
        f".set_index({name!r}{append})."
    )
