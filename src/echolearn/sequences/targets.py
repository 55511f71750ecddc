"""Class numbers and the target rows that they stand for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy import sparse

from echolearn.sequences.checks import as_array
from echolearn.sequences.opening import Sequences
from echolearn.sequences.tables import id_columns, is_table
from echolearn.validation import Array, finite_array

if TYPE_CHECKING:
    import pandas as pd


Target = Any  # of one sequence: an array with one entry per step, or a single label, number or row of numbers


def one_hot(labels: Array, classes: int, dtype: DTypeLike) -> Array:
    """Return the target rows (K, classes) that class numbers (K,) stand for."""
    out = np.zeros((len(labels), classes), dtype)
    out[np.arange(len(labels)), labels] = 1
    return out


def without_missing(rows: Array, T: Array) -> Array:
    """Return target rows (K, n_out) with zeros where T has no target: class number -1, or a row with NaN."""
    missing = np.asarray(T < 0 if T.ndim == 1 else np.isnan(T).any(axis=1))
    return np.where(missing[:, None], np.zeros((), rows.dtype), rows)


def as_class_numbers(values: list[Array]) -> list[Array]:
    """Return class numbers if every target row is one-hot, so that products become sums of rows, else the rows."""
    for rows in values:
        if np.count_nonzero(rows) != rows[..., 0].size or not (rows.max(axis=-1) == 1).all():
            return values
    return [rows.argmax(axis=-1) for rows in values]


MARKED = ", or mark them: a classifier leaves out those with the label ignore_label=, which may be float('nan')"


def open_values(
    T: ArrayLike | Sequence[ArrayLike], given: Sequences, per_step: bool, weights: Sequence[Array] | None = None
) -> list[Array]:
    """Check target values; return (steps, n_out) or (n_out,) per sequence, which may be NaN where weights are 0."""
    if not isinstance(T, (list, tuple)) and np.ndim(cast("ArrayLike", T)) == 0:
        raise ValueError(f"T is {T!r:.80}; expected targets in the form of X.")
    several = [T] if given.kind == "one" and per_step else cast("Sequence[object]", T)
    if weights is not None and len(weights) == len(several):
        several = [_zeros_for_missing(t, w) for t, w in zip(several, weights, strict=True)]
    entries = [finite_array("T", t) for t in several]
    if len(entries) != len(given.X):
        raise ValueError(f"T has {len(entries)} entries, but X has {len(given.X)} sequences; expected one each.")
    for i, (t, x) in enumerate(zip(entries, given.X, strict=True)):
        if per_step and (t.ndim not in (1, 2) or len(t) != len(x)):
            raise ValueError(f"T of sequence {i} has shape {t.shape}; expected ({len(x)}, outputs), one row per step.")
        if not per_step and t.ndim != 1:
            raise ValueError(f"T of sequence {i} has shape {t.shape}; expected (outputs,), one row per sequence.")
    return [t[:, None] if per_step and t.ndim == 1 else t for t in entries]


def _zeros_for_missing(t: object, w: Array) -> object:
    """Return the targets of a sequence with zeros for NaN of weight 0; what does not fit is left as it is."""
    try:
        given = np.asarray(t)
    except ValueError:
        return t
    if given.dtype.kind != "f" or given.shape[: w.ndim] != w.shape:
        return t
    counts = (w > 0).reshape(w.shape + (1,) * (given.ndim - w.ndim))
    return np.where(counts | ~np.isnan(given), given, 0.0)


def open_targets(y: object, given: Sequences, *, missing: bool = False) -> tuple[list[Target], bool]:
    """Check targets; return an entry per sequence, and whether they are per step; missing: NaN and None are allowed."""
    columns = list(cast("pd.DataFrame", y).columns) if is_table(y) else []
    if len(columns) > 1 and (ids := id_columns(cast("pd.DataFrame", y))):
        rest = [name for name in columns if name not in ids]
        raise ValueError(
            f"y is a table with the column {ids[0]!r}, which names sequences and is not a target. Pass the column of "
            f"the targets alone, y[{rest[-1] if rest else columns[-1]!r}], in the order of X."
        )
    try:
        return _opened_targets(y, given, missing)
    except ValueError as problem:
        if len(columns) < 2:
            raise
        raise ValueError(
            f"{problem} y is a table with the columns {columns!r:.200}; if one of them is the target, pass "
            f"y[{columns[-1]!r}]."
        ) from problem


def _opened_targets(y: object, given: Sequences, missing: bool) -> tuple[list[Target], bool]:
    if y is None:
        raise ValueError("y is None: this estimator requires y to be passed, but the target y is None.")
    if sparse.issparse(y):
        raise TypeError("y is sparse; pass y.toarray().")
    y = as_array(y if given.form is None else given.form.targets(y))
    if given.kind in ("one", "joined"):
        return _targets_of_one_array(_labels(y, missing), given)
    if not hasattr(y, "__len__") or isinstance(y, (str, bytes, dict, set)) or getattr(y, "shape", True) == ():
        raise ValueError(f"y is {y!r:.80}; expected one entry per sequence.")
    n = len(given.X)
    if len(y) != n:
        steps = int(given.lengths.sum())
        raise ValueError(
            f"y has {len(y)} entries, but X has {n} sequences with {steps} steps in all; "
            f"{_forms_of_targets(len(y), given)}"
        )
    if isinstance(y, np.ndarray) and y.dtype != object and y.ndim == 1:
        return list(_labels(y, missing)), False
    entries = [_labels(entry, missing) for entry in cast("Sequence[object]", y)]
    if all(np.ndim(entry) == 0 for entry in entries):
        return list(_labels([entry[()] for entry in entries], missing)), False
    if any(np.ndim(entry) == 0 for entry in entries):
        raise ValueError("y mixes sequences with a single label and sequences with one label per step; use one form.")
    wrong = [i for i, entry in enumerate(entries) if len(entry) != len(given.X[i])]
    if not wrong:
        return list(entries), True
    rows = _rows_of_labels(y, entries, int(given.lengths.min()))
    if rows is not None:
        return rows, False
    if all(entry.shape == (1,) and entry.dtype.kind != "f" for entry in entries):  # a column of labels
        return list(_labels([entry[0] for entry in entries], missing)), False
    if len({entry.shape for entry in entries}) == 1 and entries[0].ndim == 1 and entries[0].dtype.kind == "f":
        return list(entries), False
    raise ValueError(_wrong_length(entries, given, wrong))


def _wrong_length(entries: Sequence[Array], given: Sequences, wrong: list[int]) -> str:
    """Return the refusal of targets of other lengths than their sequences; wrong: the numbers of these sequences."""
    i, names = wrong[0], given.names
    name = "" if names is None else f" ({names[i]!r:.60})"
    text = (
        f"y[{i}] has {len(entries[i])} entries, but sequence {i}{name} has {len(given.X[i])} steps; expected one label "
        "or value per step, or a single one for the whole sequence."
    )
    if len(wrong) == len(entries) and all(_is_row_of_labels(entry, entries[0]) for entry in entries):
        return (
            f"{text} Give a row of 0 and 1 for each sequence, several labels at once, as an array of shape (1, labels)."
        )
    others = "All others are as long as their sequences. " if len(wrong) == 1 < len(entries) else ""
    return f"{text} {others}Check whether y[{i}] belongs to this sequence, and give it {len(given.X[i])} entries."


def _is_row_of_labels(entry: Array, like: Array) -> bool:
    """Return whether targets may be several labels of a whole sequence: 0 and 1, as many as others have."""
    return entry.shape == like.shape and entry.dtype.kind in "iub" and bool(((entry == 0) | (entry == 1)).all())


def _forms_of_targets(found: int, given: Sequences) -> str:
    """Return which forms y may have beside several sequences; found: how many entries it has."""
    n, total = len(given.X), int(given.lengths.sum())
    forms = (
        f"expected one entry per sequence: {n} labels or values, one for each, or a list of {n} arrays with one label "
        "or value per step."
    )
    if found == total:
        return f"{forms} There are as many steps in all: pass np.split(y, np.cumsum([len(x) for x in X])[:-1])."
    return f"{forms} Look which {'sequence has no label' if found < n else 'label has no sequence'}."


def _rows_of_labels(y: object, entries: Sequence[Array], shortest: int) -> list[Target] | None:
    """Return one row of 0 and 1 per sequence, several labels each, or None for others.

    They come as entries of shape (1, labels), or as one 2-D array whose columns are so few that they cannot be taken
    for the steps of the `shortest` sequence, some of which lack a label.
    """
    widths = {entry.shape for entry in entries}
    marked = len(widths) == 1 and entries[0].ndim == 2 and len(entries[0]) == 1
    plain = isinstance(y, np.ndarray) and y.ndim == 2 and 1 < y.shape[1] <= shortest // 2
    if not (marked or plain) or not all(e.dtype.kind in "iub" and ((e == 0) | (e == 1)).all() for e in entries):
        return None
    return [entry[0] if marked else entry for entry in entries]


def _targets_of_one_array(y: Array, given: Sequences) -> tuple[list[Target], bool]:
    """Return the targets of the sequences of a 2-D array, and whether there is one per step."""
    if y.ndim == 0:
        raise ValueError(f"y is {y.tolist()!r:.80}; expected one label or value per step.")
    total = int(given.lengths.sum())
    if len(y) == total:
        return list(given.parts(y)), True
    if given.kind == "joined" and len(y) == len(given.X):
        return list(y), False
    also = f", or one per sequence ({len(given.X)})" if given.kind == "joined" else ""
    raise ValueError(
        f"y has {len(y)} entries, but X has {total} steps: found input variables with inconsistent numbers of "
        f"samples. Give one label or value per step ({total}){also}.{_long_table_cure(len(y), given)}"
    )


def _long_table_cure(count: int, given: Sequences) -> str:
    """Return how a table of several series is passed, if it is one and a column may hold `count` names of series."""
    if given.form is None:
        return ""
    names = next((j for j, column in enumerate(given.X[0].T) if len(np.unique(column)) == count), None)
    which = "COLUMN_OF_NAMES" if names is None else f"X.columns[{names}]"
    found = "" if names is None else f" Column {names} has {count} different values."
    return f"{found} If X is a long table of several series, pass X.set_index([{which}, COLUMN_OF_TIME])."


def _labels(given: object, missing: bool) -> Array:
    """Return labels or values as an array; NaN and None are refused unless they may stand for missing targets."""
    if np.ma.is_masked(given):
        raise ValueError("y has masked entries; fill or drop the steps that lack a target.")
    try:
        y: Array = np.asarray(as_array(given))
        if y.dtype.kind == "U" and isinstance(given, list) and not all(isinstance(label, str) for label in given):
            y = np.array(given, dtype=object)  # numbers beside text, of which NumPy would make text
    except ValueError:
        raise ValueError(
            f"y has entries of different shapes: {given!r:.80}; expected one label or value each."
        ) from None
    if y.dtype.kind == "f" and not (np.isfinite(y) | (missing & np.isnan(y))).all():
        cure = "" if missing else MARKED
        raise ValueError(f"Input y contains NaN or infinity; remove or fill those entries{cure}.")
    if y.dtype.kind == "O" and any(_is_no_label(e, missing) for e in y.flat):
        cure = "" if missing else MARKED
        raise ValueError(f"Input y contains NaN or infinity or None; remove or fill those entries{cure}.")
    if y.dtype.kind == "c":
        raise ValueError("Complex data not supported: y holds complex numbers.")
    return y


def _is_no_label(value: object, missing: bool) -> bool:
    """Return whether an object is None, NaN or infinity; None and NaN may stand for missing targets."""
    if value is None:
        return not missing
    return isinstance(value, float) and not (math.isfinite(value) or (missing and math.isnan(value)))


def concatenate_targets(y: Sequence[Target], per_step: bool) -> Array:
    """Return the targets of all sequences as one array."""
    try:
        return np.concatenate(y) if per_step else _labels(list(y), missing=True)
    except (TypeError, ValueError):
        shapes = sorted({str(np.shape(entry)[1:] if per_step else np.shape(entry)) for entry in y})
        raise ValueError(f"y has entries of shapes {', '.join(shapes)[:80]}; expected one shape and kind.") from None


# ---------------- The weights of targets that a user gives as `sample_weight`, checked and in the form of the tar


EXPECTED = "one number per sequence, or one per step in the form of y, each >= 0"


def open_weights(given_weights: object, given: Sequences, *, per_step: bool) -> list[Array] | None:
    """Check `sample_weight`; return (steps,) per sequence, a single number repeated, or one number each."""
    if given_weights is None:
        return None
    given_weights = as_array(given_weights if given.form is None else given.form.targets(given_weights))
    if given.kind in ("one", "joined"):
        entries = _of_one_array(_numbers(given_weights), given, per_step)
    else:
        entries = _of_several(given_weights, given)
    for i, (w, x) in enumerate(zip(entries, given.X, strict=True)):
        if w.ndim and (not per_step or w.shape != (len(x),)):
            kind = f"one number, or {len(x)} (one per step)" if per_step else "one number, as y has one entry"
            raise ValueError(f"sample_weight of sequence {i} has shape {w.shape}; expected {kind}.")
        if not (w >= 0).all() or not np.isfinite(w).all():
            raise ValueError(
                f"sample_weight holds {w[~((w >= 0) & np.isfinite(w))].flat[0]}; expected finite numbers >= 0. Use 0 "
                "for targets that do not count."
            )
    if not any(w.any() for w in entries):
        raise ValueError("sample_weight is zero everywhere: nothing would be left to learn from.")
    if not per_step:
        return entries
    return [np.full(len(x), float(w)) if w.ndim == 0 else w for w, x in zip(entries, given.X, strict=True)]


def _numbers(values: object) -> Array:
    """Return weights as an array of float64."""
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"sample_weight is {values!r:.80}; expected {EXPECTED}.") from None


def _of_one_array(w: Array, given: Sequences, per_step: bool) -> list[Array]:
    """Return the weights of the sequences of a 2-D array."""
    total = int(given.lengths.sum())
    if per_step and w.shape == (total,):
        return [np.asarray(part) for part in given.parts(w)]
    if given.kind == "joined" and w.shape == (len(given.X),):
        return list(map(np.asarray, w))
    sequences = f", or {len(given.X)}, one per sequence" if given.kind == "joined" else ""
    raise ValueError(
        f"sample_weight has shape {w.shape}; expected ({total},), one number for each step of X{sequences}."
    )


def _of_several(values: object, given: Sequences) -> list[Array]:
    """Return the weights of a list of sequences: an array (steps,) or a single number each."""
    if not isinstance(values, (list, tuple)) and _numbers(values).ndim == 0:
        raise ValueError(f"sample_weight is {values!r:.80}; expected {EXPECTED}.")
    entries = [_numbers(w) for w in cast("Sequence[object]", values)]
    if len(entries) != len(given.X):
        raise ValueError(
            f"sample_weight has {len(entries)} entries, but X has {len(given.X)} sequences; expected {EXPECTED}."
        )
    return entries
