"""Tables as sequences: the rows of a CSV file, or arrays, as a model takes them; targets; answers as rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline

from echolearn.cli.csv_files import MISSING_WORDS, TextTable, looks_like_date, read_dates, read_table
from echolearn.cli.options import TableOptions
from echolearn.display.facts import counted
from echolearn.validation import Array

ARRAY_ENDINGS = (".npy", ".npz")
MAX_GUESSED_CLASSES = 20  # of whole numbers; with more of them, or with others, a target is a value
LONG_STEP = 1.5  # usual steps, from which on there is a gap in time


@dataclass(frozen=True, eq=False)
class FrameFile:
    """The frames of a file, one array (steps, features) per sequence, and `rows`, where they stand in the file.

    names: of the sequences, None where the file is one. keys: columns that tell rows apart, as text, by their names:
    that of the sequences first. features: the names of columns. table: the CSV file. notes: on how it was read."""

    X: list[Array]
    rows: list[Array]
    names: list[str] | None = None
    keys: dict[str, list[str]] = field(default_factory=dict)
    features: list[str] = field(default_factory=list)
    table: TextTable | None = None
    notes: list[str] = field(default_factory=list)


def last_step(model: BaseEstimator) -> BaseEstimator:
    """Return an estimator, or the last step of a Pipeline."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def read_frames(path: Path, model: BaseEstimator | None, how: TableOptions, besides: Iterable[str] = ()) -> FrameFile:
    """Return the frames of a CSV, .npy or .npz file as a model takes them; None: all columns that hold numbers.

    besides: the names of columns that are no features."""
    if path.suffix.lower() in ARRAY_ENDINGS:
        if model is None or how["id"] is not None or how["time"] is not None or list(besides):
            raise ValueError(f"{path} has no columns: targets, --id and --time are for CSV files.")
        return _read_arrays(path, model)
    table = read_table(path, header=how["header"], decimal=how["decimal"])
    named = [name for name in (how["id"], how["time"], *besides) if name is not None]
    others = {table.index(name) for name in named}
    whole = how["id"] is None
    chosen = _number_columns(table, others, whole) if model is None else _feature_columns(table, model, others)
    frames = np.stack([_numbers(table, j) for j in chosen], axis=1)
    texts = table.columns[table.index(how["id"])] if how["id"] is not None else [""] * len(frames)
    names = list(dict.fromkeys(texts))
    rows = [np.flatnonzero(np.array(texts) == name) for name in names]
    if how["time"] is not None:
        rows = _in_order(table, table.index(how["time"]), rows, how["date_order"])
    elif model is None:
        _note_of_time(table, chosen, frames, rows)
    keys = {name: table.columns[table.index(name)] for name in (how["id"], how["time"]) if name is not None}
    features = [table.names[j] for j in chosen]
    one = names if how["id"] is not None else None
    return FrameFile([frames[r] for r in rows], rows, one, keys, features, table, table.notes)


def _numbers(table: TextTable, j: int) -> Array:
    values = table.numbers(j)
    if values is None:
        raise ValueError(table.problem(j))
    return values


def _number_columns(table: TextTable, others: set[int], whole: bool) -> list[int]:
    """Return the columns that hold numbers, with a note on those that do not; whole: the table is one sequence."""
    chosen = [j for j in range(len(table.names)) if j not in others and table.numbers(j) is not None]
    unused = [j for j in range(len(table.names)) if j not in others and j not in chosen]
    if not chosen:
        raise ValueError(
            f"{table.path} has no column of numbers as an input. " + "".join(map(table.problem, unused[:1]))
        )
    for j in unused:
        if all(map(looks_like_date, table.columns[j])):
            table.notes.append(
                f"The column {table.names[j]!r} holds dates. To order rows by it, add --time {table.names[j]}."
            )
        elif sum(table.number(j, text) is None for text in table.columns[j]) < len(table.lines) / 2:
            raise ValueError(f"{table.problem(j)} Or remove the column, if it is not an input.")
        else:
            separates = f" If it separates sequences, add --id {table.names[j]}." if whole else ""
            table.notes.append(f"The column {table.names[j]!r} holds text and is not an input.{separates}")
    return chosen


def _note_of_time(table: TextTable, chosen: Sequence[int], frames: Array, rows: Sequence[Array]) -> None:
    """Add a note on inputs that increase in every row, as a clock does."""
    for k, j in enumerate(chosen):
        if len(frames) > len(rows) and all((np.diff(frames[r, k]) > 0).all() for r in rows):
            name = table.names[j]
            table.notes.append(f"The input {name!r} increases from row to row: if it is the time, add --time {name}.")


def _in_order(table: TextTable, j: int, rows: Sequence[Array], order: str | None) -> list[Array]:
    """Return the rows of each sequence in the order of a column of times; two rows of one time are refused."""
    values = table.numbers(j)
    if values is None:
        if not all(map(looks_like_date, table.columns[j])):
            raise ValueError(f"--time {table.names[j]}: the column holds neither numbers nor dates. {table.problem(j)}")
        dates = read_dates(table, j, order)
        if dates is None:
            raise ValueError(f"{table.path}, column {table.names[j]!r}: its dates are written in different ways.")
        values = dates.asi8
    ordered, long = [], 0
    for r in rows:
        by_time = r[np.argsort(values[r], kind="stable")]
        steps = np.diff(values[by_time])
        if not (steps > 0).all():
            i = int(np.flatnonzero(~(steps > 0))[0])
            first, second = (table.lines[by_time[k]] for k in (i, i + 1))
            raise ValueError(
                f"{table.path}, column {table.names[j]!r}: lines {first} and {second} have the same time, or none, in "
                "one sequence. Keep one row per time, or name the column that separates sequences by --id."
            )
        long += int((steps > LONG_STEP * np.median(steps)).sum()) if len(steps) else 0
        ordered.append(by_time)
    if long:
        table.notes.append(f"{counted(long, 'gap')} in {table.names[j]!r}; each row counts as one step.")
    return ordered


def _feature_columns(table: TextTable, model: BaseEstimator, others: set[int]) -> list[int]:
    """Return the columns of the features: by the names of the fit, or by position where the file has none of them."""
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if set(names) & set(table.names):
        missing = [name for name in names if name not in table.names]
        if missing:
            raise ValueError(
                f"{table.path} has no column {', '.join(missing)}; expected the features of the fit: "
                f"{', '.join(names)}. It has {', '.join(table.names)}."
            )
        return [table.names.index(name) for name in names]
    numeric = [j for j in range(len(table.names)) if j not in others and table.numbers(j) is not None]
    expected = model.n_features_in_
    if len(numeric) != expected:
        found = ", ".join(table.names[j] for j in numeric) or "none"
        rest = [j for j in range(len(table.names)) if j not in (*numeric, *others)]
        problem = f" {table.problem(rest[0])}" if len(numeric) < expected and rest else ""
        raise ValueError(
            f"{table.path} has {counted(len(numeric), 'column')} of numbers ({found}); the model takes "
            f"{counted(expected, 'feature')}"
            f"{': ' + ', '.join(names) if names else ''}. Leave out other columns, and name those of sequences and "
            f"times by --id and --time.{problem}"
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
    if len(named) == 1 and not any(array.ndim == 3 for array in arrays.values()):
        return FrameFile(list(named.values()), rows)
    keys = [name for name, array in named.items() for _ in range(len(array))]
    return FrameFile(list(named.values()), rows, list(named), {"sequence": keys})


# ---------------- The column of targets


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels or values: one array or one entry (None, NaN: missing) per sequence; guess: what was assumed."""

    y: list[Array] | Array
    classes: bool
    per_step: bool
    guess: str = ""


def read_targets(frames: FrameFile, name: str, task: str | None) -> Targets:
    """Return the targets of a column to learn from: labels or values, per step or per sequence, as the data decide."""
    table = frames.table
    assert table is not None
    j = table.index(name)
    numbers, guess = table.numbers(j), ""
    if numbers is None and task == "regression":
        raise ValueError(table.problem(j))
    classes = numbers is None or task == "classification"
    if numbers is not None and task is None:
        known = numbers[~np.isnan(numbers)]
        count, whole = len(np.unique(known)), bool((known % 1 == 0).all())
        classes = whole and count <= MAX_GUESSED_CLASSES and 2 * count <= len(known)
        kind, other = ("labels", "regression") if classes else ("values", "classification")
        guess = f"{count} different {'whole ' if whole else ''}numbers were taken as {kind} (else: --task {other})"
    entries = _labels(table.columns[j], numbers) if classes or numbers is None else numbers
    given = [[e for e in entries[r].tolist() if e is not None and e == e] for r in frames.rows]
    if not any(given):
        raise ValueError(f"{table.path}: the column {name!r} is empty; expected targets.")
    per_step = len(frames.rows) < 2 or any(len(set(one)) > 1 for one in given)
    return Targets(_arranged(frames, entries, per_step), classes, per_step, guess)


def targets_for(model: BaseEstimator, frames: FrameFile, name: str) -> list[Array] | Array:
    """Return the targets of a column in the form of a model's answers, to evaluate it."""
    table, last = frames.table, last_step(model)
    assert table is not None
    j = table.index(name)
    if not is_classifier(last):
        return _arranged(frames, _numbers(table, j), last.per_step_)
    entries = _labels(table.columns[j], table.numbers(j) if last.classes_.dtype.kind in "iu" else None)
    found = {label for label in entries.tolist() if label is not None}
    if not found & set(last.classes_.tolist()):
        raise ValueError(
            f"{table.path}: the model knows no label of the column {name!r}; it knows "
            f"{', '.join(map(str, last.classes_[:5]))}, and the column has {', '.join(map(str, sorted(found)[:5]))}."
        )
    return _arranged(frames, entries, last.per_step_)


def _labels(texts: Sequence[str], numbers: Array | None) -> Array:
    """Return labels, whole numbers as such; None where one is missing."""
    whole = numbers is not None and bool((numbers[~np.isnan(numbers)] % 1 == 0).all())
    missing = [text.lower() in MISSING_WORDS for text in texts]
    values: Sequence[object] = [int(v) if v == v else v for v in numbers] if numbers is not None and whole else texts
    labels = [None if gone else value for value, gone in zip(values, missing, strict=True)]
    return np.array(labels, object if any(missing) else None)


def _arranged(frames: FrameFile, entries: Array, per_step: bool) -> list[Array] | Array:
    """Return one array of entries per sequence, or the one entry that all rows of a sequence have."""
    if per_step:
        return [entries[r] for r in frames.rows]
    found = []
    for k, r in enumerate(frames.rows):
        given = list(dict.fromkeys(e for e in entries[r].tolist() if e is not None and e == e))
        if len(given) > 1:
            where = "the file" if frames.names is None else f"the sequence {frames.names[k]!r}"
            raise ValueError(
                f"{where} has the targets {given[0]} and {given[1]}; expected one per sequence. Name the column that "
                "separates sequences by --id."
            )
        found.append(given[0] if given else None if entries.dtype == object else np.nan)
    return np.array(found, entries.dtype)


# ---------------- Answers


def answer(model: BaseEstimator, frames: FrameFile, *, probabilities: bool) -> tuple[list[str], list[list[str]]]:
    """Return names of columns and, as text, rows of keys and answers: one per row of the file, or one per sequence."""
    last = last_step(model)
    labels, per_step = is_classifier(last), last.per_step_
    if probabilities and not labels:
        raise ValueError(f"--probabilities: {type(last).__name__} answers with values, which have none.")
    inputs = inputs_of(model, frames)
    values = _table(model.predict(inputs), frames, per_step)
    names = ["prediction"] if values.shape[1] == 1 else [f"prediction_{k + 1}" for k in range(values.shape[1])]
    texts = [[str(v) if labels else f"{v:.8g}" for v in row] for row in values.tolist()]
    if probabilities:
        P = _table(model.predict_proba(inputs), frames, per_step)
        names += [f"probability_{label}" for label in last.classes_]
        texts = [[*row, *(f"{p:.6g}" for p in added)] for row, added in zip(texts, P.tolist(), strict=True)]
    keys = frames.keys
    if not per_step:
        keys = {} if frames.names is None else {next(iter(frames.keys)): frames.names}
    return [*keys, *names], [[*(key[i] for key in keys.values()), *row] for i, row in enumerate(texts)]


def inputs_of(model: BaseEstimator, frames: FrameFile) -> list[Array]:
    """Return the sequences of a file in the layout of a model's fit."""
    layout = getattr(last_step(model), "layout_", "time_first")
    if layout == "rows":
        raise ValueError("the model was fitted to one series per row (layout='rows'); predict with it in Python.")
    return [x.T for x in frames.X] if layout == "channels_first" else frames.X


def _table(answers: Sequence[Array] | Array, frames: FrameFile, per_step: bool) -> Array:
    """Return answers as rows: those of steps in the order of the file, those of sequences in theirs."""
    if not per_step:
        joined = np.asarray(answers)
    else:
        joined = np.concatenate([np.asarray(part) for part in answers])
        joined = joined[np.argsort(np.concatenate(frames.rows))]
    return joined.reshape(len(joined), -1)
