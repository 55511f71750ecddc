"""Answers to a list of sequences: a list, which says what to do where an array is expected."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import DTypeLike

from echolearn.validation import Answers, Array

if TYPE_CHECKING:
    import pandas as pd


class AnswerList(list[Array]):
    """The answers to a list of sequences, one array each.

    It is a list like any other. Where sequences of different lengths are taken for one array, as scikit-learn's metrics
    do, it raises TypeError with the line that helps: a ValueError is what scikit-learn would hide.
    """

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        try:
            return np.array(list(self), dtype)
        except ValueError as problem:
            raise TypeError(
                "answers to sequences of different lengths are a list of arrays, not one array. In scikit-learn's "
                "functions, use scoring=echolearn.metrics.scorer('f1_macro') in place of scoring='f1_macro', and "
                "cross_val_predict of echolearn.metrics; give metrics *echolearn.metrics.joined(y, answers); elsewhere "
                "join them: numpy.concatenate(answers)."
            ) from problem


# ---------------- What sequences came in, where it was neither an array nor a list of arrays


MAX_LABELS_SHOWN = 5  # labels that an error message lists


def is_pandas(x: object) -> bool:
    """Return whether x is a Series or a DataFrame of pandas."""
    return type(x).__module__.split(".")[0] == "pandas" and hasattr(x, "index") and hasattr(x, "reindex")


def labelled(values: Array, index: pd.Index) -> pd.Series | pd.DataFrame:
    """Return entries (n,) as a Series, rows (n, k) as a DataFrame, with this index; more axes as they are."""
    import pandas as pd

    if values.ndim > 2:
        return values
    return pd.Series(values, index=index) if values.ndim == 1 else pd.DataFrame(values, index=index)


def aligned(y: object, index: pd.Index | None, *, what: str = "X") -> object:
    """Return targets in the order of an index of X: those of pandas by their labels, others as they are.

    Labels that cannot be compared, a plain count 0, 1, ... beside dates or names, mean the order in which they stand.
    """
    if index is None or not is_pandas(y):
        return y
    given = cast("pd.Series", y)
    other = given.index
    if other.equals(index) or len(other) != len(index):
        return given.to_numpy()
    if other.nlevels == index.nlevels and other.is_unique and bool(index.isin(other).all()):
        return given.reindex(index).to_numpy()
    if (_is_count(other) and not _is_integer(index)) or (_is_count(index) and not _is_integer(other)):
        return given.to_numpy()
    raise ValueError(
        f"the index of y is not that of {what}: {_shown(other)} and {_shown(index)}. Pass y.reindex(...) with the "
        f"labels of X, or y.to_numpy() if they stand in the same order.{_unmatched(list(other), list(index), what)}"
    )


def _unmatched(given: Sequence[Hashable], known: Sequence[Hashable], what: str) -> str:
    """Return which labels of y stand for nothing in X, and which of X have no target; at most five each."""
    known_, given_ = set(known), set(given)
    extra = [label for label in dict.fromkeys(given) if label not in known_]
    lacking = [label for label in dict.fromkeys(known) if label not in given_]
    found = [(extra, f"in y but not in {what}"), (lacking, f"in {what} but not in y")]
    return "".join(f" {_listed(labels)}: {where}." for labels, where in found if labels)


def _listed(labels: list[Hashable]) -> str:
    more = f" and {len(labels) - MAX_LABELS_SHOWN} more" if len(labels) > MAX_LABELS_SHOWN else ""
    return ", ".join(f"{label!r:.60}" for label in labels[:MAX_LABELS_SHOWN]) + more


def check_ids(y: object, ids: Sequence[Hashable]) -> None:
    """Refuse a Series of targets whose index names some of the sequences, and others or not all of them."""
    if not is_pandas(y):
        return
    labels = list(cast("pd.Series", y).index)
    if len(labels) == len(ids) or len(set(labels)) < len(labels) or not set(labels) & set(ids):
        return
    if _is_count(cast("pd.Series", y).index) and not set(ids) <= set(labels):
        return  # a plain count that names nothing
    raise ValueError(
        f"y has {len(labels)} entries, but X has {len(ids)} sequences.{_unmatched(labels, ids, 'the sequences of X')} "
        "Pass the targets of the sequences of X, one for each, for example y.loc[names]."
    )


def _is_count(index: pd.Index) -> bool:
    return bool(type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1)


def _is_integer(index: pd.Index) -> bool:
    return index.nlevels == 1 and getattr(index.dtype, "kind", "O") in "iu"


def _shown(index: pd.Index) -> str:
    return f"{index[0]!r:.40} to {index[-1]!r:.40}" if len(index) else "an empty one"


def _length(y: object) -> int:
    """Return the number of entries, or -1 for a single label."""
    try:
        return -1 if isinstance(y, (str, bytes)) else len(cast("Sequence[object]", y))
    except TypeError:
        return -1


@dataclass(frozen=True, eq=False)
class TableForm:
    """The rows of one table are the steps of one or more sequences.

    rows: the positions of each sequence's rows, in the order of time. index: of the rows; ids: of the sequences, if the
    table has any. Both are None for a table without index, whose answers are arrays.
    """

    rows: list[Array]
    index: pd.Index | None
    ids: pd.Index | None = None
    one: bool = False

    @property
    def total(self) -> int:
        """The number of rows."""
        return sum(map(len, self.rows))

    @property
    def names(self) -> list[Hashable] | None:
        """The names of the sequences, if they have any."""
        return None if self.ids is None else list(self.ids)

    def per_step(self, results: list[Array]) -> object:
        """Return one entry or row per row of the table, in its order and with its index."""
        out = np.empty((self.total, *results[0].shape[1:]), np.result_type(*results))
        for rows, result in zip(self.rows, results, strict=True):
            out[rows] = result
        return out if self.index is None else labelled(out, self.index)

    def per_sequence(self, results: Array) -> object:
        """Return one entry or row per sequence, with its id."""
        return results if self.ids is None else labelled(results, self.ids)

    def targets(self, y: object) -> object:
        """Return the targets of each sequence: given per row of the table, or per sequence in order or by id."""
        n = len(self.rows)
        if isinstance(y, Mapping):
            return y if self.ids is None else by_key(y, list(self.ids))
        if _length(y) != self.total or self.total == n:
            if self.ids is not None:
                check_ids(y, list(self.ids))
            return aligned(y, self.ids, what="the sequences of X") if _length(y) == n and not self.one else y
        ordered = aligned(y, self.index)
        values: Array = cast("Array", ordered) if np.ma.is_masked(ordered) else np.asarray(ordered)
        return values[self.rows[0]] if self.one else [values[rows] for rows in self.rows]


@dataclass(frozen=True, eq=False)
class RowForm:
    """Every row of a table is a sequence. index: of the rows."""

    index: pd.Index

    @property
    def names(self) -> list[Hashable] | None:
        """The names of the sequences, if they have any."""
        return list(self.index)

    def per_step(self, results: list[Array]) -> object:
        """Return a Series of arrays, one per row."""
        import pandas as pd

        cells = np.empty(len(results), object)
        cells[:] = results
        return pd.Series(cells, index=self.index)

    def per_sequence(self, results: Array) -> object:
        """Return one entry or row per row."""
        return labelled(results, self.index)

    def targets(self, y: object) -> object:
        """Return the targets in the order of the rows."""
        if isinstance(y, Mapping):
            return by_key(y, list(self.index))
        check_ids(y, list(self.index))
        return aligned(y, self.index)


@dataclass(frozen=True, eq=False)
class TablesForm:
    """A list of tables. forms: of each, or None for what is not a table."""

    forms: list[TableForm | None]

    @property
    def names(self) -> list[Hashable] | None:
        """The names of the sequences, if they have any."""
        return None

    def per_step(self, results: list[Array]) -> object:
        """Return a list with one Series or DataFrame per table."""
        pairs = zip(results, self.forms, strict=True)
        return [result if form is None else form.per_step([result]) for result, form in pairs]

    def per_sequence(self, results: Array) -> object:
        """Return the results as they are."""
        return results

    def targets(self, y: object) -> object:
        """Return the targets of each table, in the order of its steps."""
        if not isinstance(y, (list, tuple)) or len(y) != len(self.forms):
            return y
        return [entry if form is None else form.targets(entry) for entry, form in zip(y, self.forms, strict=True)]


@dataclass(frozen=True, eq=False)
class DictForm:
    """A dictionary of sequences. inside: the form of its values, if they are tables."""

    keys: list[Hashable]
    inside: TablesForm | None = None

    @property
    def names(self) -> list[Hashable] | None:
        """The names of the sequences, if they have any."""
        return list(self.keys)

    def per_step(self, results: list[Array]) -> object:
        """Return a dictionary with the answers to each sequence."""
        inside = results if self.inside is None else cast("list[object]", self.inside.per_step(results))
        return dict(zip(self.keys, inside, strict=True))

    def per_sequence(self, results: Array) -> object:
        """Return a dictionary with one answer per sequence."""
        return dict(zip(self.keys, results, strict=True))

    def targets(self, y: object) -> object:
        """Return the targets in the order of the keys: by key, by the index of a Series, or in order."""
        if is_pandas(y):
            series = cast("pd.Series", y)
            check_ids(y, self.keys)
            if len(series) == len(self.keys) and all(key in series.index for key in self.keys):
                return series.reindex(self.keys).to_numpy()
        listed = by_key(y, self.keys) if isinstance(y, Mapping) else y
        return listed if self.inside is None else self.inside.targets(listed)


def by_key(given: Mapping[Hashable, object], keys: list[Hashable]) -> list[object]:
    """Return the values of a dictionary in the order of keys, which must be its own."""
    if set(given) != set(keys):
        raise ValueError(f"y has other keys than X.{_unmatched(list(given), keys, 'X')} Give the same.")
    return [given[key] for key in keys]


@dataclass(frozen=True, eq=False)
class PaddedForm:
    """Sequences at the start of longer ones, whose last steps are no steps.

    steps: of each sequence with its padding; lengths: without. kind: "stack" for one array of all, "list", or "one".
    inside: the form of a table whose rows are the sequences, or of a dictionary.
    """

    steps: list[int]
    lengths: list[int]
    kind: str
    inside: RowForm | DictForm | None = None

    @property
    def names(self) -> list[Hashable] | None:
        """The names of the sequences, if they have any."""
        return None if self.inside is None else self.inside.names

    def per_step(self, results: list[Array]) -> object:
        """Return masked arrays of the padded length, in which the padding is masked."""
        if isinstance(self.inside, RowForm):
            return self.inside.per_step(results)
        padded = [_padded(result, steps) for result, steps in zip(results, self.steps, strict=True)]
        if self.inside is not None:
            return self.inside.per_step(padded)
        if self.kind == "list":
            return padded
        return padded[0] if self.kind == "one" else np.ma.stack(padded)

    def per_sequence(self, results: Array) -> object:
        """Return one entry or row per sequence."""
        return results if self.inside is None else self.inside.per_sequence(results)

    def targets(self, y: object) -> object:
        """Return targets without those of the padding, whatever stands there."""
        if self.inside is not None:
            y = self.inside.targets(y)
        if self.kind == "one":
            return _cut(y, self.steps[0], self.lengths[0])
        if np.ndim(cast("Array", y)) == 1 if hasattr(y, "ndim") else _length(y) != len(self.steps):
            return y
        parts = list(cast("Sequence[object]", y))
        return [_cut(part, steps, n) for part, steps, n in zip(parts, self.steps, self.lengths, strict=False)]


# Each puts answers into the form in which sequences were given, and targets into a list with one entry per sequence, in
# their order. Targets that do not fit are returned as they are, for `open_targets` to refuse.
Form = TableForm | RowForm | TablesForm | DictForm | PaddedForm


def _cut(part: object, steps: int, length: int) -> object:
    if _length(part) != steps:
        return part
    cut = cast("Array", part)[:length]
    return np.asarray(cut) if isinstance(cut, np.ma.MaskedArray) and not np.ma.is_masked(cut) else cut


def _padded(result: Array, steps: int) -> Array:
    out = np.zeros((steps, *result.shape[1:]), result.dtype)
    out[: len(result)] = result
    mask = np.zeros(out.shape, bool)
    mask[len(result) :] = True
    return np.ma.masked_array(out, mask)


# ---------------- The names of answers that go back as a Series or a data frame


UNNAMED = "prediction"  # the name of a Series of answers where y had none


def target_names(y: object) -> list[str]:
    """Return the name of a Series of targets, or the columns of a data frame of them; [] where they have none."""
    if isinstance(y, (list, tuple)) and y:
        y = y[0]
    if not is_pandas(y):
        return []
    names = list(cast("pd.DataFrame", y).columns) if hasattr(y, "columns") else [cast("pd.Series", y).name]
    return names if all(isinstance(name, str) for name in names) else []


def with_names(answers: Answers, names: Sequence[Hashable]) -> Answers:
    """Return answers whose Series and data frames have these names, as far as their number fits."""
    parts: Sequence[object] = [answers]
    if isinstance(answers, Mapping):
        parts = list(answers.values())
    elif isinstance(answers, list):
        parts = answers
    for part in parts:
        if not is_pandas(part):
            continue
        if not hasattr(part, "columns"):
            if len(names) == 1:
                cast("pd.Series", part).name = names[0]
        elif len(cast("pd.DataFrame", part).columns) == len(names):
            cast("pd.DataFrame", part).columns = list(names)
    return answers
