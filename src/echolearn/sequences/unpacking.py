"""X taken out of its container: arrays or lists of arrays, and the form in which answers go back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from scipy import sparse

from echolearn.execution.executor import Remote
from echolearn.sequences.forms import DictForm, Form, TableForm, TablesForm
from echolearn.sequences.tables import ReadTable, id_columns, is_series, is_table, read_series, read_table
from echolearn.validation.array_types import Array

if TYPE_CHECKING:
    import pandas as pd

TENSOR = ("detach", "cpu", "numpy")  # the methods of a tensor of PyTorch


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


def unpack(X: object) -> Unpacked:
    """Return the content of X: of a table, a panel, a dictionary, a tensor, a list of them, or X itself."""
    if isinstance(X, Unpacked):
        return X
    X = _without_column(X)
    if sparse.issparse(X) or (isinstance(X, (list, tuple)) and any(sparse.issparse(x) for x in X)):
        raise TypeError("X is sparse; sequences must be dense arrays: pass X.toarray().")
    if hasattr(X, "data_vars"):
        raise TypeError("X is a Dataset of xarray; pass X.to_dataarray().transpose('time', 'variable').to_numpy().")
    if isinstance(X, Mapping):
        return _of_mapping(X)
    if is_series(X):
        return _of_table(read_series(cast("pd.Series", X)))
    if is_table(X):
        return _of_table(read_table(cast("pd.DataFrame", X)))
    if isinstance(X, (list, tuple)):
        return _of_list(list(X))
    array = as_array(X)
    if isinstance(array, np.ndarray) and array.dtype == object and array.ndim in (1, 2) and array.size:
        return _of_objects(array)
    return Unpacked(array)


def as_array(x: object) -> object:
    """Return a tensor, or another object that NumPy can read, as an array; what it cannot read as it is."""
    if isinstance(x, (np.ndarray, list, tuple, str, bytes, Remote)):
        return x
    if all(hasattr(x, name) for name in TENSOR):
        try:
            return np.asarray(cast("Tensor", x).detach().cpu().numpy())
        except (TypeError, RuntimeError, ValueError) as problem:
            raise TypeError(
                f"NumPy cannot read a tensor of X or y: {problem!s:.120}. Pass x.to_dense().float(), or x.numpy()."
            ) from problem
    if hasattr(x, "__array__") and hasattr(x, "shape"):
        return np.asarray(x)
    return x


class Tensor(Protocol):
    """The part of PyTorch's tensors that is used here."""

    def detach(self) -> Tensor:
        """Return the tensor without gradient."""

    def cpu(self) -> Tensor:
        """Return the tensor in main memory."""

    def numpy(self) -> Array:
        """Return the tensor as an array."""


def _of_table(read: ReadTable) -> Unpacked:
    one = isinstance(read.data, np.ndarray)
    return Unpacked(read.data, read.form, read.features, table=one, timed=read.timed, irregular=read.irregular)


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
        return Unpacked([_numbers(x) for x in parts])
    return Unpacked(parts)


def _is_flat(x: list[object] | tuple[object, ...]) -> bool:
    return len(x) > 0 and all(isinstance(v, (int, float, np.number)) for v in x)


def _numbers(x: object) -> Array:
    return np.asarray(x)


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
                f"X[{i}] is a table of several sequences; expected one sequence in each table of a list. Join them "
                "into one panel with pandas.concat, or pass a list of their sequences."
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
