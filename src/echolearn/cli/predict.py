"""The command `predict`: answers to the rows of a table, or states of speech."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import click
import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline

from echolearn.cli.corpora import opened_corpus, part_features
from echolearn.cli.csv_files import TextTable, read_table, write_table
from echolearn.cli.options import FILE, CorpusOptions, corpus_options, header_option, part_option
from echolearn.display.facts import counted
from echolearn.estimators import ESNForecaster
from echolearn.exceptions import CorpusError, Problem
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech import Segment, read_audio, write_mlf
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._features import FRAME_SECONDS, WINDOW_SAMPLES
from echolearn.speech._text import raise_any
from echolearn.speech.recognition import Recognizer
from echolearn.speech.recognition._recognizer import StateClassifier, load_any
from echolearn.validation import Array

TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".npy", ".npz")


@click.command()
@click.argument("model", type=FILE)
@click.argument("files", nargs=-1, type=FILE)
@click.option("--out", type=FILE,
              help="Of a table, the CSV file to write.  [default: FILE-predictions.csv] Of speech, FILE.mlf for the "
                   "most likely states or FILE.npz for all probabilities.")  # fmt: skip
@click.option("--sequence-column", metavar="NAME",
              help="The column of a table that separates sequences: rows with the same entry are one, in their order. "
                   "[default: the whole table is one sequence]")  # fmt: skip
@click.option("--probabilities", is_flag=True, help="Of a table: also write the probability of each class.")
@header_option
@corpus_options
@part_option
def predict(
    *,
    model: Path,
    files: tuple[Path, ...],
    out: Path | None,
    sequence_column: str | None,
    probabilities: bool,
    header: bool | None,
    part: str,
    **corpus_settings: Unpack[CorpusOptions],
) -> None:
    """Predict with MODEL: answers for the rows of a table, or states of speech.

    A table is one FILE that ends in .csv, .npy or .npz, with one row per time step. Columns of a CSV file are found by
    the names of the features that MODEL was fitted with, or taken in their order. A model with one answer per step
    writes one line per row, in the order of the rows; a model with one answer per sequence writes one line per
    sequence.

    Of a network for phone states, FILES may be recordings; without FILES, a part of a corpus is predicted.
    """
    tables = [file for file in files if file.suffix.lower() in TABLE_ENDINGS]
    if tables and len(files) > 1:
        raise ValueError(f"{len(files)} files were given; expected one table. Call the command once for each.")
    if tables:
        place = out or tables[0].with_name(f"{tables[0].stem}-predictions.csv")
        _predict_table(model, tables[0], place, sequence_column, header=header, probabilities=probabilities)
    else:
        _predict_speech(model, files, out, part, corpus_settings)


def _predict_table(
    model: Path, file: Path, out: Path, sequence_column: str | None, *, header: bool | None, probabilities: bool
) -> None:
    if out.suffix.lower() != ".csv":
        raise ValueError(f"--out {out}: expected a name that ends in .csv.")
    network = open_network(model)
    frames = read_frames(file, network, sequence_column, header=header)
    for note in frames.notes:
        click.echo(note)
    names, rows = answer(network, frames, probabilities=probabilities)
    per_step = _last(network).per_step_
    if not per_step and frames.names is None:
        click.echo(
            "The model has one answer per sequence, and the whole file was taken as one. If a column separates "
            "sequences, name it: --sequence-column."
        )
    write_table(out, names, rows)
    click.echo(f"written: {out} ({counted(len(rows), 'answer')}, one per {'step' if per_step else 'sequence'})")


def _predict_speech(
    model: Path, audio: tuple[Path, ...], out: Path | None, part: str, corpus_settings: CorpusOptions
) -> None:
    network = open_state_network(model)
    if out is None or out.suffix.lower() not in (".mlf", ".npz"):
        raise ValueError(f"--out {out or ''}: expected a name that ends in .mlf or .npz for the states of speech.")
    if audio:
        names, X = audio_features(audio, recipe_of(model))
    else:
        names, X = part_features(opened_corpus(**corpus_settings), part)
    write_predictions(network, names, X, out)
    click.echo(f"written: {out} ({len(names)} utterances, {sum(map(len, X)):,} frames)")


ARRAY_ENDINGS = (".npy", ".npz")


@dataclass(frozen=True, eq=False)
class FrameFile:
    """The frames of a file, one array (steps, features) per sequence; rows: where they stand in the file. names: of the
    sequences, None where the file is one; column: what separates them; notes: on how the file was read."""

    X: list[Array]
    rows: list[Array]
    names: list[str] | None = None
    column: str = "sequence"
    notes: list[str] = field(default_factory=list)


def open_network(path: Path) -> BaseEstimator:
    """Load an estimator or a pipeline, or the network of a recogniser; ValueError for a forecaster."""
    model = load_any(path)
    network = model.model if isinstance(model, Recognizer) else model
    if isinstance(_last(network), ESNForecaster):
        raise ValueError(
            f"{path} is a forecaster, which continues a series and has no answer for the rows of a file. Use echolearn "
            f"forecast FILE.csv, or in Python echolearn.load({str(path)!r}).predict(steps)."
        )
    return network


def _last(model: BaseEstimator) -> BaseEstimator:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def read_frames(path: Path, model: BaseEstimator, sequence_column: str | None, *, header: bool | None) -> FrameFile:
    """Return the frames of a CSV, .npy or .npz file as a model takes them."""
    if path.suffix.lower() in ARRAY_ENDINGS:
        if sequence_column is not None:
            raise ValueError(f"--sequence-column is for CSV files; in {path}, each 2-D array is a sequence.")
        return _read_arrays(path, model)
    table = read_table(path, header=header)
    chosen = _feature_columns(table, model, sequence_column)
    frames = np.stack([_numbers(table, j) for j in chosen], axis=1)
    if sequence_column is None:
        return FrameFile([frames], [np.arange(len(frames))], notes=table.notes)
    texts = np.array(table.columns[_index(table, sequence_column)])
    names = list(dict.fromkeys(texts.tolist()))
    rows = [np.flatnonzero(texts == name) for name in names]
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


def answer(model: BaseEstimator, frames: FrameFile, *, probabilities: bool) -> tuple[list[str], list[list[str]]]:
    """Return names of columns and, as text, rows of answers: one per row of the file, or one per sequence."""
    labels = is_classifier(_last(model))
    if probabilities and not labels:
        raise ValueError(f"--probabilities: {type(_last(model)).__name__} answers with values, which have none.")
    layout = getattr(_last(model), "layout_", "time_first")
    if layout == "rows":
        raise ValueError("the model was fitted to one series per row (layout='rows'); predict with it in Python.")
    X = [x.T for x in frames.X] if layout == "channels_first" else frames.X
    inputs = X[0] if frames.names is None else X
    per_step = _last(model).per_step_
    values = _table(model.predict(inputs), frames, per_step)
    names = ["prediction"] if values.shape[1] == 1 else [f"prediction_{k + 1}" for k in range(values.shape[1])]
    texts = [[str(v) if labels else f"{v:.8g}" for v in row] for row in values.tolist()]
    if probabilities:
        P = _table(model.predict_proba(inputs), frames, per_step)
        names += [f"probability_{label}" for label in _last(model).classes_]
        texts = [[*row, *(f"{p:.6g}" for p in added)] for row, added in zip(texts, P.tolist(), strict=True)]
    if frames.names is not None:
        which = np.empty(len(texts), int) if per_step else np.arange(len(texts))
        for k, rows in enumerate(frames.rows if per_step else ()):
            which[rows] = k
        names = [frames.column, *names]
        texts = [[frames.names[k], *row] for k, row in zip(which.tolist(), texts, strict=True)]
    return names, texts


def _table(answers: object, frames: FrameFile, per_step: bool) -> Array:
    """Return answers as rows: those of steps in the order of the file, those of sequences in theirs."""
    if not per_step or frames.names is None:
        joined = np.asarray(answers)
    else:
        joined = np.concatenate([np.asarray(part) for part in answers])  # type: ignore[attr-defined]
        joined = joined[np.argsort(np.concatenate(frames.rows))]
    return joined.reshape(len(joined), -1)


def open_state_network(path: Path) -> StateClassifier:
    """Load a network for phone states, or that of a recogniser; ValueError for a network of another kind."""
    model = load_any(path)
    model = model.model if isinstance(model, Recognizer) else model
    if not isinstance(model, StateClassifier) or not model.per_step_ or model.classes_.dtype.kind != "U":
        raise ValueError(
            f"{path} ({type(model).__name__}) is not a network for phone states; make one with: echolearn train. To "
            "predict the rows of a table with it: echolearn predict MODEL FILE.csv"
        )
    return model


def recipe_of(path: Path) -> FeatureRecipe:
    """Return how sound becomes the inputs of a network, as its file says; normalised per utterance, if it does not."""
    model = load_any(path)
    if isinstance(model, Recognizer):
        return model.features
    known = getattr(model, "recipe_", None)
    return FeatureRecipe() if known is None else FeatureRecipe.from_facts(known)


def audio_features(paths: Sequence[Path], recipe: FeatureRecipe) -> tuple[list[str], list[Array]]:
    """Return names and features of audio files; CorpusError lists all problems."""
    X: list[Array] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            samples = read_audio(path)
        except CorpusError as error:
            problems += error.problems
            continue
        if len(samples) < WINDOW_SAMPLES:
            problems.append(Problem(str(path), f"holds {len(samples)} samples, a frame needs {WINDOW_SAMPLES}"))
            continue
        X.append(recipe.of_samples(samples))
    names = [path.with_suffix("").as_posix().lstrip("/.") for path in paths]
    repeated = {name for name in names if names.count(name) > 1}
    problems += [Problem(name, "is given twice; a label file names each utterance once") for name in sorted(repeated)]
    raise_any(problems)
    return names, X


def write_predictions(model: StateClassifier, names: Sequence[str], X: Sequence[Array], out: Path) -> None:
    """Write the probabilities of all states to a .npz file, or the most likely states to an HTK master label file."""
    if out.suffix.lower() == ".npz":
        content = io.BytesIO()
        probabilities = np.concatenate(model.predict_proba(list(X))).astype(np.float32)
        lengths = np.array([len(x) for x in X], dtype=np.int32)
        np.savez_compressed(
            content, posteriors=probabilities, lengths=lengths, utterances=np.array(names), state_names=model.classes_
        )
        write_atomically(out, content.getvalue())
        return
    segments = {name: _segments(states) for name, states in zip(names, model.predict(list(X)), strict=True)}
    write_mlf(out, segments)


def _segments(states: Array) -> list[Segment]:
    """Return one segment per run of equal states, in seconds."""
    edges = np.flatnonzero(np.r_[True, states[1:] != states[:-1], True]).tolist()
    return [Segment(a * FRAME_SECONDS, b * FRAME_SECONDS, str(states[a])) for a, b in itertools.pairwise(edges)]
