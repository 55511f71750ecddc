"""X as the user gave it: taken out of its container, with time first, checked."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, NoReturn, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from echolearn.execution.executor import Remote
from echolearn.sequences.answers import AnswerList, DictForm, Form, TableForm, TablesForm
from echolearn.sequences.checks import Places, as_array, check_sequence
from echolearn.sequences.layouts import arrange
from echolearn.sequences.tables import Unpacked, id_columns, is_series, is_table, read_series, read_table
from echolearn.validation import Answers, Array, SequencesLike

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Sequences:
    """Checked sequences: X, one array (steps, n_in) each, and the form in which they were given.

    kind: "one" (a 2-D array), "list", "stack" (a 3-D array) or "joined" (a 2-D array with lengths). form: of another
    container, in which answers go back.
    """

    X: list[Array]
    kind: Literal["one", "list", "stack", "joined"]
    form: Form | None = None

    @property
    def lengths(self) -> Array:
        """The number of steps of each sequence."""
        return np.array([len(x) for x in self.X])

    @property
    def names(self) -> list[Hashable] | None:
        """The names of the sequences, if they have any."""
        return None if self.form is None else self.form.names

    def in_given_form(self, results: list[Array]) -> Answers:
        """Return results, one array per sequence, in the form in which the sequences were given."""
        if self.form is not None:
            return cast("Answers", self.form.per_step(results))
        if self.kind == "list":
            return AnswerList(results)
        if self.kind == "stack":
            return np.stack(results)
        return results[0] if self.kind == "one" else np.concatenate(results)

    def per_sequence(self, results: Array) -> Answers:
        """Return results, one entry or row per sequence, in the form in which the sequences were given."""
        return results if self.form is None else cast("Answers", self.form.per_sequence(results))

    def split(self, y: Answers) -> list[Array]:
        """Return a y with one entry per step, in the form of the sequences, as one array per sequence."""
        return self.parts(y if self.form is None else cast("Answers", self.form.targets(y)))

    def parts(self, y: Answers) -> list[Array]:
        """Return a y with one entry per step, already out of its container, as one array per sequence."""
        if self.kind == "one":
            return [np.asarray(y)]
        if self.kind == "joined":
            return np.split(np.asarray(y), np.cumsum(self.lengths)[:-1])
        return list(y)


def open_sequences(
    X: SequencesLike,
    lengths: ArrayLike | None = None,
    n_features: int | None = None,
    owner: str = "this network",
    *,
    gaps: bool = False,
    layout: str = "time_first",
) -> Sequences:
    """Check sequences: a 2-D array (steps, features), a list of them, a 3-D array, or a 2-D array with `lengths`.

    They may be in other containers (`unpack`), and in another layout (`layouts.choose_layout`). n_features: the number
    of features that the `owner` expects, if it is known. gaps: whether NaN is allowed.
    """
    unpacked = unpack(X)
    if unpacked.form is None and layout == "time_first" and lengths is None and is_plain_list(unpacked.data):
        checked = [check_sequence(x, f"sequence {i}", gaps=gaps, number=i) for i, x in enumerate(unpacked.data)]
        given = Sequences(checked, "list")
    else:
        given = _arranged_sequences(unpacked, lengths, n_features, gaps=gaps, layout=layout)
    widths = {x.shape[1] for x in given.X}
    if len(widths) > 1:
        turned = len({len(x) for x in given.X}) == 1
        cure = " Their first axes are of one length: if these are channels, pass [x.T for x in X]." if turned else ""
        raise ValueError(f"sequences have different numbers of features, {sorted(widths)}; expected one number.{cure}")
    if n_features is not None and widths != {n_features}:
        _refuse_width(given, n_features, owner, layout)
    return given


def is_plain_list(X: object) -> TypeGuard[list[Array]]:
    """Return whether X is a list of 2-D arrays of floats, in which there is no container to open."""
    arrays = isinstance(X, list) and len(X) > 0 and all(type(x) is np.ndarray for x in X)
    return arrays and all(x.ndim == 2 and x.dtype.kind == "f" for x in X)  # type: ignore[attr-defined]


def _arranged_sequences(
    unpacked: Unpacked, lengths: ArrayLike | None, n_features: int | None, *, gaps: bool, layout: str
) -> Sequences:
    """Return checked sequences out of any container, with time first."""
    arranged = arrange(unpacked, layout, lengths, n_features)
    data, lengths = arranged.data, arranged.lengths
    check = partial(check_sequence, gaps=gaps, places=Places(_columns(unpacked, layout), arranged.form))
    if arranged.form is None:
        _refuse_one_axis(data, n_features, layout)
    given = _remote_sequences(data) or _several_sequences(data, lengths, check) or _one_array(data, lengths, check)
    return given if arranged.form is None else replace(given, form=arranged.form)


def _refuse_one_axis(data: object, n_features: int | None, layout: str) -> None:
    """Refuse numbers along one axis: one series of one feature, or one frame of a network that is fitted."""
    numbers = isinstance(data, (list, tuple)) and len(data) and all(isinstance(v, (int, float)) for v in data)
    x = np.asarray(data) if numbers else data
    if not isinstance(x, np.ndarray) or x.ndim != 1 or x.dtype.kind not in "fiub" or layout == "rows":
        return
    given = f"X has shape {x.shape}; expected (steps, {n_features or 'features'}): Expected 2D array, got 1D array."
    if n_features is None or n_features == 1:
        raise ValueError(f"{given} Reshape your data: for one series of one feature, pass X[:, None].")
    if len(x) == n_features:
        raise ValueError(
            f"{given} Reshape your data: for one step, pass X[None]. To give one step after another to a network that "
            "keeps its state, use esn.stream() and stream.predict(x)."
        )
    raise ValueError(f"{given} Reshape your data: give the {n_features} features of the fit at each step, as columns.")


def _columns(unpacked: Unpacked, layout: str) -> list[Hashable] | None:
    """Return the names of the features of a data frame, if X was one."""
    steps = unpacked.features is None or (layout == "rows" and unpacked.table)  # its columns are steps
    return None if steps else list(cast("pd.DataFrame", unpacked.features).columns)


def _refuse_width(given: Sequences, n_features: int, owner: str, layout: str) -> NoReturn:
    """Refuse sequences with another number of features than the owner expects."""
    turned = all(len(x) == n_features for x in given.X)
    found = "first" if layout == "channels_first" else "last"
    how = {"one": "X.T", "stack": "X.transpose(0, 2, 1)"}.get(given.kind, "[x.T for x in X]")
    cure = f" The other axis has {n_features}: pass {how}." if turned and given.form is None else ""
    raise ValueError(
        f"X has {given.X[0].shape[1]} features, but {owner} is expecting {n_features} features as input: the ones it "
        f"was fitted with, along the {found} axis, time along the {'last' if found == 'first' else 'first'}.{cure}"
    )


def _remote_sequences(X: object) -> Sequences | None:
    """Return sequences on a cluster, which were checked there, or None for others."""
    return Sequences(X, "list") if isinstance(X, list) and len(X) and isinstance(X[0], Remote) else None


def _several_sequences(X: object, lengths: ArrayLike | None, check: Callable[..., Array]) -> Sequences | None:
    """Return the sequences of a list or a 3-D array, or None for others."""
    if not _is_several(X):
        return None
    assert isinstance(X, (np.ndarray, list, tuple))
    if lengths is not None:
        raise ValueError("lengths goes with one 2-D array of joined sequences; X is already a list of sequences.")
    if len(X) == 0:
        raise ValueError("X is an empty list; expected at least one sequence of shape (steps, features).")
    stack = isinstance(X, np.ndarray) and X.dtype != object
    checked = [check(x, f"sequence {i}", number=i) for i, x in enumerate(X)]
    return Sequences(checked, "stack" if stack else "list")


def _one_array(X: object, lengths: ArrayLike | None, check: Callable[..., Array]) -> Sequences:
    """Return the sequence, or the joined sequences, of a 2-D array."""
    whole = check(X, "X")
    if lengths is None:
        return Sequences([whole], "one")
    return Sequences(np.split(whole, _ends(lengths, len(whole))[:-1]), "joined")


def _is_several(X: object) -> bool:
    """Return whether X is a list of sequences or a 3-D array, rather than one 2-D array."""
    if isinstance(X, np.ndarray):
        return X.ndim == 3 or (X.dtype == object and X.ndim == 1 and len(X) > 0 and np.ndim(X[0]) == 2)
    if isinstance(X, (list, tuple)):
        return len(X) == 0 or any(np.ndim(x) >= 2 if hasattr(x, "ndim") else _depth(x) >= 2 for x in X)
    return False


def _depth(x: object) -> int:
    """Return how deep plain lists are nested; NumPy refuses to make an array of ragged ones."""
    depth = 0
    while isinstance(x, (list, tuple)) and len(x):
        x, depth = x[0], depth + 1
    return depth


def _ends(lengths: ArrayLike, total: int) -> Array:
    """Return the end of each of the joined sequences."""
    try:
        given = np.asarray(lengths)
    except ValueError:
        given = np.empty(0)
    whole = given.ndim == 1 and given.dtype.kind in "iu" and not (given < 1).any()
    if not whole or sum(given.tolist()) != total:
        added = f" with sum {sum(given.tolist())}" if whole else ""
        raise ValueError(
            f"lengths must be positive whole numbers that add up to the {total} rows of X; "
            f"given {lengths!r:.80}{added}."
        )
    return np.cumsum(given)


def unpack(X: object) -> Unpacked:
    """Return the content of X: of a table, a panel, a dictionary, a tensor, a list of them, or X itself."""
    if isinstance(X, Unpacked):
        return X
    if is_plain_list(X):
        return Unpacked(X)
    X = _without_column(X)
    if sparse.issparse(X) or (isinstance(X, (list, tuple)) and any(sparse.issparse(x) for x in X)):
        raise TypeError("X is sparse; sequences must be dense arrays: pass X.toarray().")
    if hasattr(X, "data_vars"):
        raise TypeError("X is a Dataset of xarray; pass X.to_dataarray().transpose('time', 'variable').to_numpy().")
    if isinstance(X, Mapping):
        return _of_mapping(X)
    if is_series(X):
        return read_series(cast("pd.Series", X))
    if is_table(X):
        return read_table(cast("pd.DataFrame", X))
    if isinstance(X, (list, tuple)):
        return _of_list(list(X))
    array = as_array(X)
    if isinstance(array, np.ndarray) and array.dtype == object and array.ndim in (1, 2) and array.size:
        return _of_objects(array)
    return Unpacked(array)


def _of_mapping(X: Mapping[object, object]) -> Unpacked:
    """Return the sequences of a dictionary, in its order."""
    if not len(X):
        raise ValueError("X is an empty dictionary; expected at least one sequence of shape (steps, features).")
    found = _of_list(list(X.values()), plain=False)
    form = found.form if isinstance(found.form, TablesForm) else None
    return Unpacked(found.data, DictForm(list(X), form), timed=found.timed, irregular=found.irregular)


def _of_list(X: list[object], *, plain: bool = True) -> Unpacked:
    """Return the content of a list; plain: whether lists of numbers in it may be the rows of one array."""
    if not X or isinstance(X[0], Remote):
        return Unpacked(X)
    if any(is_table(x) or is_series(x) for x in X):
        return _of_tables(X)
    parts = [as_array(x) for x in X]
    if all(isinstance(x, (list, tuple)) and _is_flat(x) for x in parts):
        lengths = {len(cast("list[object]", x)) for x in parts}
        if len(lengths) == 1 and plain:
            return Unpacked(X)
        return Unpacked([np.asarray(x) for x in parts])
    return Unpacked(parts)


def _is_flat(x: list[object] | tuple[object, ...]) -> bool:
    return len(x) > 0 and all(isinstance(v, (int, float, np.number)) for v in x)


def _of_tables(X: list[object]) -> Unpacked:
    """Return the sequences of a list of data frames or Series, one each."""
    data: list[object] = []
    forms: list[TableForm | None] = []
    irregular, columns, first = "", None, None
    for i, x in enumerate(X):
        if is_series(x) and cast("pd.Series", x).index.nlevels == 1:
            x = cast("pd.Series", x).to_frame(name="value")
        if not is_table(x):
            data.append(as_array(x))
            forms.append(None)
            continue
        ids = id_columns(cast("pd.DataFrame", x))
        if ids:
            raise ValueError(
                f"X[{i}] has a column {ids[0]!r}, which looks like the name of the sequence, not like a feature. Pass "
                f"[x.drop(columns={ids[0]!r}) for x in X]; rename the column if it means something else."
            )
        read = read_table(cast("pd.DataFrame", x))
        if not isinstance(read.data, np.ndarray) or not isinstance(read.form, TableForm):
            raise ValueError(
                f"X[{i}] is a table whose index or columns name sequences; expected one sequence without a name in "
                "each table of a list. Join them into one panel with pandas.concat; where a list is needed, as for "
                "cross_val_score, pass [x.droplevel(0) for x in X]."
            )
        names = list(cast("pd.DataFrame", x).columns)
        if columns is None:
            columns, first = names, None if is_series(X[i]) else cast("pd.DataFrame", x)
        if names != columns:
            raise ValueError(
                f"X[{i}] has the columns {names!r:.80}, but the first table has {columns!r:.80}; expected the same in "
                "the same order. Pass [x[columns] for x in X]."
            )
        data.append(read.data)
        forms.append(read.form)
        irregular = irregular or read.irregular
    named = None if None in forms else first
    return Unpacked(data, TablesForm(forms), named, timed=None not in forms, irregular=irregular)


def _of_objects(X: Array) -> Unpacked:
    """Return the sequences in an array of objects: one per entry, or one feature of it."""
    if X.ndim == 1:
        several = hasattr(X[0], "__len__") and not isinstance(X[0], (str, bytes))
        return _of_list(list(X), plain=False) if several else Unpacked(X)
    if not all(np.ndim(cell) == 1 if hasattr(cell, "ndim") else isinstance(cell, (list, tuple)) for cell in X.flat):
        return Unpacked(X)
    rows = [[np.asarray(cell) for cell in row] for row in X]
    for i, row in enumerate(rows):
        if len({cell.shape for cell in row}) > 1:
            raise ValueError(f"row {i} of X holds series of different lengths; expected one length in a row.")
    return Unpacked([np.stack(row, axis=1) for row in rows], timed=True)


def _without_column(X: object) -> object:
    """Return the sequences of an object array of one column, the only form that scikit-learn's ensembles can sample."""
    column = isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2 and X.shape[1] == 1 and len(X) > 0
    return X[:, 0] if column and np.ndim(X[0, 0]) == 2 else X  # type: ignore[index]


def check_has_time(given: Sequences) -> None:
    """Refuse data in which every sequence has a single step."""
    if given.lengths.max() == 1:
        raise ValueError(
            f"every sequence has one step (n_samples = {len(given.X)}): there is no time in this data. Time runs "
            "along the first axis of each (steps, features) array. If it runs along the last, set "
            "layout='channels_first'."
        )


def check_long_enough(given: Sequences, washout: int) -> None:
    """Refuse sequences of which the washout leaves nothing."""
    short = np.flatnonzero(given.lengths <= washout)
    if len(short):
        raise ValueError(
            f"washout={washout}, but sequence {short[0]} has {given.lengths[short[0]]} steps and nothing of it would "
            "be left. Use a smaller washout, or drop sequences that short."
        )


def is_remote_source(X: object) -> bool:
    """Return whether X is a list of files, a dask bag or a list of delayed sequences: data for a cluster."""
    return is_bag(X) or is_list_of(X, is_path) or is_list_of(X, is_delayed)


def is_bag(X: object) -> bool:
    """Return whether X is a dask bag; a dask array is an array."""
    return hasattr(X, "to_delayed") and not hasattr(X, "shape")


def is_list_of(X: object, kind: Callable[[object], bool]) -> bool:
    """Return whether X is a list, not empty, of entries of this kind."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(map(kind, X))


def is_path(x: object) -> bool:
    """Return whether x names a file."""
    return isinstance(x, (str, os.PathLike))


def is_delayed(x: object) -> bool:
    """Return whether x is a delayed value of dask."""
    return hasattr(x, "__dask_graph__")
