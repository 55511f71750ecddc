"""The answers of a saved model to the rows of a file: the work behind `echolearn predict`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline

from echolearn.estimators._forecaster import ESNForecaster
from echolearn.estimators.loading import load
from echolearn.experiments.tables import TextTable, read_table
from echolearn.modelfile.layout import RECOGNIZER
from echolearn.modelfile.reader import file_kind
from echolearn.speech.recognition import load_recognizer
from echolearn.validation import Array

ARRAYS = (".npy", ".npz")


@dataclass(frozen=True, eq=False)
class FrameFile:
    """The frames of a file, one array (steps, features) per sequence.

    rows: where the steps of each sequence stand in the file. names: of the sequences, and column: what separates them;
    None where the file is one sequence. notes: on how the file was read.
    """

    X: list[Array]
    rows: list[Array]
    names: list[str] | None = None
    column: str = "sequence"
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Answered:
    """Rows of answers as text, the names of their columns, and what each answer is for: a step or a sequence."""

    columns: list[str]
    rows: list[list[str]]
    per: str


def open_saved(path: Path) -> BaseEstimator:
    """Load a classifier, regressor, stack or pipeline, or the network of a recogniser."""
    model = load_recognizer(path).model if file_kind(path) == RECOGNIZER else load(path)
    if isinstance(_last(model), ESNForecaster):
        raise ValueError(
            f"{path} is a forecaster, which continues a series and has no answer for the rows of a file. Use echolearn "
            f"forecast FILE.csv, or in Python echolearn.load({str(path)!r}).predict(steps)."
        )
    return model


def _last(model: BaseEstimator) -> BaseEstimator:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def read_frames(
    path: Path, model: BaseEstimator, sequence_column: str | None = None, *, header: bool | None = None
) -> FrameFile:
    """Return the frames of a CSV, .npy or .npz file as a model takes them."""
    if path.suffix.lower() in ARRAYS:
        if sequence_column is not None:
            raise ValueError(f"--sequence-column is for CSV files; in {path}, each 2-D array is a sequence.")
        return _read_arrays(path, model)
    table = read_table(path, header=header)
    chosen = _feature_columns(table, model, sequence_column)
    frames = np.stack([_numbers(table, j) for j in chosen], axis=1)
    if sequence_column is None:
        return FrameFile([frames], [np.arange(len(frames))], notes=table.notes)
    names, which = _groups(table.columns[_index(table, sequence_column)])
    rows = [np.flatnonzero(which == k) for k in range(len(names))]
    return FrameFile([frames[r] for r in rows], rows, names, sequence_column, table.notes)


def _index(table: TextTable, name: str) -> int:
    if name not in table.names:
        raise ValueError(f"{table.path} has no column {name!r}; it has {', '.join(table.names)}.")
    return table.names.index(name)


def _numbers(table: TextTable, j: int) -> Array:
    values = table.numbers(j)
    if values is None:
        raise ValueError(table.problem(j))
    return values


def _groups(texts: Sequence[str]) -> tuple[list[str], Array]:
    """Return the different texts in the order in which they appear, and the number of that of each row."""
    places = {text: k for k, text in enumerate(dict.fromkeys(texts))}
    return list(places), np.array([places[text] for text in texts])


def _feature_columns(table: TextTable, model: BaseEstimator, sequence_column: str | None) -> list[int]:
    """Return the columns of the features: by the names of the fit, or by position where the file has none of them."""
    beside = None if sequence_column is None else _index(table, sequence_column)
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if set(names) & set(table.names):
        missing = [name for name in names if name not in table.names]
        if missing:
            raise ValueError(
                f"{table.path} has no column {', '.join(missing)}; expected the features of the fit: "
                f"{', '.join(names)}. It has {', '.join(table.names)}."
            )
        return [table.names.index(name) for name in names]
    numeric = [j for j in range(len(table.names)) if j != beside and table.numbers(j) is not None]
    expected = model.n_features_in_
    if len(numeric) != expected:
        found = ", ".join(table.names[j] for j in numeric) or "none"
        others = [j for j in range(len(table.names)) if j not in (*numeric, beside)]
        problem = f" {table.problem(others[0])}" if len(numeric) < expected and others else ""
        raise ValueError(
            f"{table.path} has {len(numeric)} columns of numbers ({found}); the model takes {expected} features"
            f"{': ' + ', '.join(names) if names else ''}. Leave out other columns, and name the column that separates "
            f"sequences by --sequence-column.{problem}"
        )
    if names:
        table.notes.append(f"No column has a name of the fit ({', '.join(names)}): they were taken in their order.")
    return numeric


def _read_arrays(path: Path, model: BaseEstimator) -> FrameFile:
    """Return the sequences of a .npy or .npz file: 2-D arrays, or the parts of a 3-D array."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        with path.open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            arrays = dict(stored) if path.suffix.lower() == ".npz" else {"": stored}
    except (ValueError, OSError, EOFError, KeyError, AttributeError) as problem:
        raise ValueError(f"{path} is not a {path.suffix} file of numbers that can be read ({problem}).") from problem
    named: dict[str, Array] = {}
    for name, array in arrays.items():
        if array.ndim == 3:
            named |= {f"{name}{'_' if name else ''}{k}": part for k, part in enumerate(array)}
        else:
            named[name] = array
    for name, array in named.items():
        if array.ndim != 2 or array.dtype.kind not in "fiub" or array.shape[1] != model.n_features_in_:
            where = f"{path}, array {name!r}" if name else str(path)
            raise ValueError(
                f"{where}: {array.dtype} of shape {array.shape}; expected numbers of shape (steps, "
                f"{model.n_features_in_}), or (sequences, steps, {model.n_features_in_})."
            )
    ends = np.cumsum([len(array) for array in named.values()])
    rows = np.split(np.arange(ends[-1]), ends[:-1])
    one = len(named) == 1 and not any(array.ndim == 3 for array in arrays.values())
    return FrameFile(list(named.values()), rows, None if one else list(named))


def answer(model: BaseEstimator, frames: FrameFile, *, probabilities: bool = False) -> Answered:
    """Return the answers of a model, as its `predict` gives them: one per row, or one per sequence."""
    labels = is_classifier(_last(model))
    if probabilities and not labels:
        raise ValueError(f"--probabilities: {type(_last(model)).__name__} answers with values, which have none.")
    layout = getattr(_last(model), "layout_", "time_first")
    if layout == "rows":
        raise ValueError("the model was fitted to one series per row (layout='rows'); predict with it in Python.")
    X = [x.T for x in frames.X] if layout == "channels_first" else frames.X
    given = X[0] if frames.names is None else X
    per_step = _last(model).per_step_
    values = _table(model.predict(given), frames, per_step)
    names = ["prediction"] if values.shape[1] == 1 else [f"prediction_{k + 1}" for k in range(values.shape[1])]
    texts = [[str(v) if labels else f"{v:.8g}" for v in row] for row in values.tolist()]
    if probabilities:
        P = _table(model.predict_proba(given), frames, per_step)
        names += [f"probability_{label}" for label in _last(model).classes_]
        texts = [[*row, *(f"{p:.6g}" for p in added)] for row, added in zip(texts, P.tolist(), strict=True)]
    if frames.names is not None:
        which = np.empty(len(texts), int) if per_step else np.arange(len(texts))
        for k, rows in enumerate(frames.rows if per_step else ()):
            which[rows] = k
        names = [frames.column, *names]
        texts = [[frames.names[k], *row] for k, row in zip(which.tolist(), texts, strict=True)]
    return Answered(names, texts, "step" if per_step else "sequence")


def _table(answers: object, frames: FrameFile, per_step: bool) -> Array:
    """Return answers as rows: those of steps in the order of the file, those of sequences in theirs."""
    if not per_step or frames.names is None:
        joined = np.asarray(answers)
    else:
        joined = np.concatenate([np.asarray(part) for part in answers])  # type: ignore[attr-defined]
        joined = joined[np.argsort(np.concatenate(frames.rows))]
    return joined.reshape(len(joined), -1)
