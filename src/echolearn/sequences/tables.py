"""Tables as users have them: one series, panels with an index (sequence, time), long tables, cells that hold series."""

from __future__ import annotations

import datetime
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from echolearn.exceptions import InputWarning
from echolearn.sequences.answers import Form, RowForm, TableForm
from echolearn.validation import Array, warn_user

if TYPE_CHECKING:
    import pandas as pd


# Names of columns and index levels that say what they are; in lower case, with _ for blanks and hyphens.
SEQUENCE_NAMES = {
    "id", "ids", "case", "case_id", "caseid", "instance", "instances", "instance_id", "series_id", "sequence",
    "sequence_id", "seq_id", "unique_id", "unit_id", "subject_id", "utterance_id", "recording_id", "trial_id",
    "sample_id",
}  # fmt: skip
TIME_NAMES = {
    "time", "times", "timestamp", "timestamps", "datetime", "date", "t", "step", "steps", "timestep", "time_step",
    "timepoint", "timepoints", "time_idx", "time_index", "ds", "reading_id",
}  # fmt: skip
KIND_NAMES = {"dim_id", "variable", "dimension"}  # of the column that names the feature in a molten table
MAX_USUAL_GAPS, MAX_UNUSUAL_SHARE = (
    10.0,
    0.25,
)  # a gap of so many usual ones, or so large a share of unusual ones, is irregular
GAP_TOLERANCE = 0.5  # by which share of the usual gap another one differs


@dataclass(frozen=True, eq=False)
class Unpacked:
    """The content of X.

    data: an array, a list of arrays, or anything else, for `check_sequence` to refuse. form: of the container, if it
    was one. features: the columns of a data frame that are features. table: whether X was one table; timed: whether the
    container says which axis is time. irregular: a remark on the distances of steps in time, or "".
    """

    data: object
    form: Form | None = None
    features: pd.DataFrame | None = None
    table: bool = False
    timed: bool = False
    irregular: str = ""


def is_table(X: object) -> bool:
    """Return whether X is a table with named columns, such as those of pandas and polars."""
    return not isinstance(X, np.ndarray) and hasattr(X, "columns") and hasattr(X, "to_numpy")


def is_series(X: object) -> bool:
    """Return whether X is a Series of pandas."""
    return not is_table(X) and hasattr(X, "to_frame") and hasattr(X, "index") and getattr(X, "ndim", 0) == 1


def read_series(X: pd.Series) -> Unpacked:
    """Return what a Series holds: a panel of one feature, or a series in every cell."""
    if len(X) and X.dtype == object and all(getattr(cell, "ndim", 0) == 2 for cell in X):
        return Unpacked([np.asarray(cell) for cell in X], RowForm(X.index), timed=True)
    if X.index.nlevels == 1 and not _holds_series(X):
        named = len(X) and all(isinstance(label, str) for label in X.index)
        row = ", or X.to_frame().T for one step with the features that its index names" if named else ""
        raise ValueError(
            "X is not an array of shape (steps, features) with finite numbers, but a Series. Expected 2D array, got 1D "
            f"array instead. Reshape your data: pass X.to_frame() for one feature per step{row}."
        )
    return read_table(X.to_frame())


def read_table(X: pd.DataFrame) -> Unpacked:
    """Return the sequences of a table."""
    names = {_plain(name): name for name in X.columns}
    if not hasattr(X, "index"):  # of polars
        return _read_columns(X, names, None)
    if len(X.columns) and len(X) and all(_holds_series(X.iloc[:, j]) for j in range(X.shape[1])):
        return _nested(X)
    if X.index.nlevels > 1:
        return _panel(X)
    return _read_columns(X, names, X.index)


def id_columns(X: pd.DataFrame) -> list[object]:
    """Return the columns of a table whose names say that they are the names of sequences."""
    return [name for name in X.columns if _plain(name) in SEQUENCE_NAMES]


def _plain(name: object) -> str:
    return str(name).strip().lower().replace(" ", "_").replace("-", "_")


def _holds_series(column: pd.Series) -> bool:
    """Return whether the cells of a column are series or arrays."""
    return column.dtype == object and len(column) > 0 and getattr(column.iloc[0], "ndim", 0) == 1


def _nested(X: pd.DataFrame) -> Unpacked:
    """Return the sequences of a table with a series in every cell, as sktime's nested_univ."""
    sequences = []
    for i in range(len(X)):
        cells = [np.asarray(cell) for cell in X.iloc[i]]
        if len({cell.shape for cell in cells}) > 1 or cells[0].ndim != 1:
            shapes = ", ".join(str(cell.shape) for cell in cells)
            raise ValueError(f"row {i} of X holds series of shapes {shapes[:80]}; expected one length in a row.")
        sequences.append(np.stack(cells, axis=1))
    return Unpacked(sequences, RowForm(X.index), X, timed=True)


def _read_columns(X: pd.DataFrame, names: dict[str, object], index: pd.Index | None) -> Unpacked:
    """Return the sequence of a table, or those of a long table with columns that name sequence and time."""
    ids = id_columns(X)
    times = [name for plain, name in names.items() if plain in TIME_NAMES]
    kinds = [name for plain, name in names.items() if plain in KIND_NAMES]
    if kinds and "value" in names:
        raise ValueError(
            f"X has one row per value, with a column {kinds[0]!r}; expected one column per feature. Pass "
            f"X.pivot(index={[*ids, *times] or ['id', 'time']}, columns={kinds[0]!r}, values={names['value']!r})."
        )
    if len(ids) == 1 and len(times) == 1:
        return _long(X, ids[0], times[0], index)
    if ids:
        dates = [name for j, name in enumerate(X.columns) if holds_dates(column_values(X, j))]
        time = repr(dates[0]) if dates else "<the column of time>"
        raise ValueError(
            f"the column {ids[0]!r} of X looks like the names of sequences, not like a feature. Pass "
            f"X.set_index([{ids[0]!r}, {time}]), or X.set_index([{ids[0]!r}, "
            f"X.groupby({ids[0]!r}).cumcount()]) if rows are in order; rename or drop it if it means something else."
        )
    check_feature_columns(X, times)
    for name in times:
        _warn_of_time_column(X, name)
    if index is None:
        return Unpacked(np.asarray(X.to_numpy()), TableForm([np.arange(len(X))], None, one=True), table=True)
    return _one(X)


def _warn_of_time_column(X: pd.DataFrame, name: object) -> None:
    """Warn of a count of time as a feature."""
    values = np.asarray(X[name])
    if values.dtype.kind in "iuf" and len(values) > 1 and bool((np.diff(values) > 0).all()):
        warn_user(
            f"the column {name!r} of X grows from row to row and was taken as a feature. If it is time, pass "
            f"X.set_index({name!r}).",
            InputWarning,
        )


def table_values(X: pd.DataFrame) -> Array:
    """Return the numbers of a table; missing ones are NaN. What is no number is left for the check of sequences."""
    values = np.asarray(X.to_numpy())
    if values.dtype == object:
        try:
            return np.asarray(X.to_numpy(dtype=np.float64, na_value=np.nan))
        except (TypeError, ValueError):
            return values
    return values


def _one(X: pd.DataFrame) -> Unpacked:
    """Return the sequence of a table, in the order of time if its index says it."""
    dates = _kind(X.index) == "date"
    order = np.arange(len(X))
    irregular = ""
    if dates and len(X):
        ranks, gaps = _ranks(X.index)
        order = _in_time(np.zeros(len(X), int), ranks)
        irregular = _irregular([gaps[ranks[order]]])
    elif _kind(X.index) == "number" and X.index.is_unique and not X.index.is_monotonic_increasing:
        warn_user(
            "the index of X is not in order; its rows were taken as they stand. If the index is time, pass "
            "X.sort_index(), and y in the same order.",
            InputWarning,
        )
    return Unpacked(
        table_values(X)[order], TableForm([order], X.index, one=True), X, table=True, timed=dates, irregular=irregular
    )


def _panel(X: pd.DataFrame) -> Unpacked:
    """Return the sequences of a table with an index (sequence, time)."""
    first, last = X.index.levels[0], X.index.levels[-1]
    named = [_plain(name) in TIME_NAMES for name in X.index.names]
    swapped = named[0] and not named[-1]
    if not any(named):
        swapped = (_kind(first), _kind(last)) in (("date", "number"), ("date", "other"), ("number", "other"))
    if swapped:
        raise ValueError(
            f"the index of X has time first: its levels are {list(X.index.names)}; expected the sequence first and "
            "time last. Pass X.swaplevel().sort_index()."
        )
    codes, ids = X.index.droplevel(-1).factorize()
    return _grouped(X, codes, ids, X.index.get_level_values(-1), X.index)


def _long(X: pd.DataFrame, name: object, time: object, index: pd.Index | None) -> Unpacked:
    """Return the sequences of a table with a column that names the sequence and one for time."""
    if index is None:
        _, first, inverse = np.unique(np.asarray(X[name]), return_index=True, return_inverse=True)
        codes = np.argsort(np.argsort(first))[inverse]
        _, ranks = np.unique(np.asarray(X[time]), return_inverse=True)
        rows = _rows(codes, _in_time(codes, ranks))
        features = [column for column in X.columns if column not in (name, time)]
        check_feature_columns(X[features], grouped=True)
        values = np.asarray(X[features].to_numpy())
        return Unpacked([values[r] for r in rows], TableForm(rows, None), timed=True)
    panel = X.set_index([name, time])
    codes, ids = panel.index.droplevel(-1).factorize()
    return _grouped(panel, codes, ids, panel.index.get_level_values(-1), index)


def _grouped(X: pd.DataFrame, codes: Array, ids: pd.Index, times: pd.Index, index: pd.Index) -> Unpacked:
    """Return the sequences of a table; codes: the number of the sequence of each row."""
    if (codes < 0).any():
        raise ValueError("the index of X lacks the name of a sequence in some rows; drop or name them.")
    check_feature_columns(X, grouped=True)
    if _kind(times) == "other":  # names: no order but that of the rows
        rows, irregular = _rows(codes, np.argsort(codes, kind="stable")), ""
    else:
        ranks, gaps = _ranks(times)
        rows = _rows(codes, _in_time(codes, ranks))
        irregular = _irregular([gaps[ranks[r]] for r in rows])
    values, ids = table_values(X), ids.set_names(X.index.names[:-1])
    return Unpacked([values[r] for r in rows], TableForm(rows, index, ids), X, timed=True, irregular=irregular)


def _rows(codes: Array, order: Array) -> list[Array]:
    """Return the positions of the rows of each sequence; order: all rows, sequence after sequence."""
    return np.split(order, np.cumsum(np.bincount(codes))[:-1]) if len(codes) else []


def _kind(index: pd.Index) -> str:
    """Return what the labels of an index are: "date", "number" or "other"."""
    if type(index).__name__ in ("DatetimeIndex", "PeriodIndex", "TimedeltaIndex"):
        return "date"
    if getattr(index, "inferred_type", "") in ("date", "datetime", "datetime64", "period"):
        return "date"
    return "number" if getattr(index.dtype, "kind", "O") in "iuf" else "other"


def _ranks(times: pd.Index) -> tuple[Array, Array]:
    """Return the rank of each label in time, and the times by rank as numbers (or ranks, where they are none)."""
    try:
        ranks, unique = times.factorize(sort=True)
    except TypeError:
        raise ValueError("the times in the index of X cannot be compared; give dates or numbers of one kind.") from None
    if (ranks < 0).any():
        raise ValueError("the index of X has rows without a time; drop or date them.")
    try:
        return ranks, np.asarray(unique.astype("int64" if _kind(times) == "date" else "float64"), float)
    except (TypeError, ValueError):
        return ranks, np.arange(len(unique), dtype=float)


def _in_time(codes: Array, ranks: Array) -> Array:
    """Return the positions of all rows, sequence after sequence in the order of time; warn if it is another one."""
    order = np.lexsort((ranks, codes))
    same = (np.diff(codes[order]) == 0) & (np.diff(ranks[order]) == 0)
    if same.any():
        raise ValueError(
            f"X has two rows for one time of a sequence, row {order[:-1][same][0]} and row {order[1:][same][0]}; "
            "expected one. Average them (X.groupby(level=X.index.names).mean()), or name the sequences apart."
        )
    if not np.array_equal(order, np.argsort(codes, kind="stable")):
        warn_user(
            "the rows of X are not in the order of time; they were sorted. Answers come in the order of X's rows.",
            InputWarning,
        )
    return order


def _irregular(times: list[Array]) -> str:
    """Return a remark on times with gaps that differ much, or ""."""
    gaps = np.concatenate([np.diff(t) for t in times]) if times else np.empty(0)
    if len(gaps) < 2:
        return ""
    usual = float(np.median(gaps))
    unusual = float(np.mean(np.abs(gaps - usual) > GAP_TOLERANCE * usual))
    if gaps.max() <= MAX_USUAL_GAPS * usual and unusual <= MAX_UNUSUAL_SHARE:
        return ""
    return (
        f"the steps of X are not evenly spaced: {unusual:.0%} of the gaps in time differ from the usual one, the "
        f"longest is {gaps.max() / usual:.3g} times as long. A network takes one step like another. Resample first, "
        "for example with X.resample(...).mean(), or give the gap as a feature."
    )


# ---------------- Columns of a table that cannot be features


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


def column_values(X: pd.DataFrame, j: int) -> Array:
    """Return the entries of one column; names may occur twice."""
    return np.asarray(X.iloc[:, j] if hasattr(X, "iloc") else X[X.columns[j]])


def holds_dates(values: Array) -> bool:
    """Return whether the entries of a column are dates: by their type, or as objects."""
    if values.dtype.kind == "M":
        return True
    known = (entry for entry in values.flat if entry is not None and not isinstance(entry, float))
    first = next(known, None) if values.dtype == object else None
    return hasattr(first, "year") and hasattr(first, "month")


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
    """Return whether entries are like names of sequences: each in one run of rows, at least two on average."""
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
        f"the column {name!r} of X holds text, {str(values.flat[0])!r:.40} and others, each in consecutive rows: it "
        f"looks like the names of sequences, not like a feature. Pass {how}."
    )


def _text(name: object, values: Array, append: str) -> str:
    """Return the refusal of a column of text: of dates that were not parsed, or of anything else."""
    first = next(entry for entry in values.flat if isinstance(entry, (str, bytes)) and not _is_number(entry))
    given = f"the column {name!r} of X holds text such as {str(first)!r:.40}; features are numbers."
    try:
        datetime.datetime.fromisoformat(str(first))
    except ValueError:
        return f"{given} Drop it, X.drop(columns={name!r}), or encode it as numbers, for example pandas.get_dummies(X)."
    return (
        f"{given} If these are dates, pass X.assign(**{{{name!r}: pandas.to_datetime(X[{name!r}])}})"
        f".set_index({name!r}{append})."
    )
