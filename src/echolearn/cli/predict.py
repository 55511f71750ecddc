"""The command `predict`: answers to the rows of a table, or states of speech."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np
from sklearn.base import BaseEstimator

from echolearn.cli.corpora import NO_CORPUS, opened_corpus, part_features
from echolearn.cli.csv_files import write_table
from echolearn.cli.options import (
    FILE,
    CorpusOptions,
    TableOptions,
    corpus_options,
    divided,
    force_option,
    part_option,
    table_options,
)
from echolearn.cli.outputs import claim, report
from echolearn.cli.tables import answer, last_step, read_frames
from echolearn.display.facts import counted
from echolearn.estimators import ESNForecaster
from echolearn.exceptions import CorpusError, Problem
from echolearn.modelfile.atomic import write_atomically
from echolearn.speech import read_audio, write_mlf
from echolearn.speech._corpus import state_segments
from echolearn.speech._feature_recipe import FeatureRecipe
from echolearn.speech._features import WINDOW_SAMPLES
from echolearn.speech._text import raise_any
from echolearn.speech.recognition import Recognizer
from echolearn.speech.recognition._recognizer import StateClassifier, load_any
from echolearn.validation import Array

TABLE_ENDINGS = (".csv", ".tsv", ".txt", ".npy", ".npz")


@click.command()
@click.argument("model", type=FILE)
@click.argument("files", nargs=-1, type=FILE)
@click.option("--out", type=FILE,
              help="For a table, the CSV file to write.  [default: FILE-predictions.csv] For speech, FILE.mlf for the "
                   "most likely states or FILE.npz for all probabilities.")  # fmt: skip
@force_option
@click.option("--probabilities", is_flag=True, help="For a table: also write the probability of each class.")
@table_options
@corpus_options()
@part_option
def predict(
    *, model: Path, files: tuple[Path, ...], out: Path | None, probabilities: bool, part: str, **settings: object
) -> None:
    """Predict with MODEL: answers for the rows of a table, or states of speech.

    A table is one FILE that ends in .csv, .npy or .npz, with one row per time step. Columns of a CSV file are found by
    the names of the features that MODEL was fitted with, or taken in their order. A model with one answer per step
    writes one line per row, in the order of the rows, with its --id and --time; a model with one answer per sequence
    writes one line per sequence.

    For a network of phone states, FILES may be recordings; without FILES, a part of a corpus is predicted.
    """
    how, corpus_settings = divided(settings)
    if not files and corpus_settings["corpus"] is None:
        raise ValueError(NO_CORPUS)
    tables = [file for file in files if file.suffix.lower() in TABLE_ENDINGS]
    if tables and len(files) > 1:
        raise ValueError(f"{len(files)} files were given; expected one table. Call the command once for each.")
    if tables:
        place = out or tables[0].with_name(f"{tables[0].stem}-predictions.csv")
        _predict_table(model, tables[0], place, how, probabilities=probabilities)
    else:
        _predict_speech(model, files, out, part, corpus_settings)


def _predict_table(model: Path, file: Path, out: Path, how: TableOptions, *, probabilities: bool) -> None:
    if out.suffix.lower() != ".csv":
        raise ValueError(f"--out {out}: expected a name that ends in .csv.")
    claim(out)
    network = open_network(model)
    frames = read_frames(file, network, how)
    for note in frames.notes:
        click.echo(note)
    names, rows = answer(network, frames, probabilities=probabilities)
    per_step = last_step(network).per_step_
    if not per_step and frames.names is None:
        click.echo(
            "The model has one answer per sequence, and the whole file was taken as one. If a column separates "
            "sequences, name it: --id."
        )
    write_table(out, names, rows)
    each = f"step; {counted(len(frames.X), 'sequence')}" if per_step else "sequence"
    report(out, f" ({counted(len(rows), 'answer')}, one per {each})")


def _predict_speech(
    model: Path, audio: tuple[Path, ...], out: Path | None, part: str, corpus_settings: CorpusOptions
) -> None:
    network = open_state_network(model)
    if out is None or out.suffix.lower() not in (".mlf", ".npz"):
        raise ValueError(f"--out {out or ''}: expected a name that ends in .mlf or .npz for the states of speech.")
    claim(out)
    if audio:
        names, X = audio_features(audio, recipe_of(model))
    else:
        names, X = part_features(opened_corpus(recipe_of(model), **corpus_settings), part)
    write_predictions(network, names, X, out)
    report(out, f" ({len(names)} utterances, {sum(map(len, X)):,} frames)")


def open_network(path: Path) -> BaseEstimator:
    """Load an estimator or a pipeline, or the network of a recogniser; ValueError for a forecaster."""
    model = load_any(path)
    network = model.model if isinstance(model, Recognizer) else model
    if isinstance(last_step(network), ESNForecaster):
        raise ValueError(
            f"{path} is a forecaster, which continues a series and has no answer for the rows of a file. Use echolearn "
            f"forecast FILE.csv, or in Python echolearn.load({str(path)!r}).predict(horizon)."
        )
    return network


def open_state_network(path: Path) -> StateClassifier:
    """Load a network for phone states, or that of a recogniser; ValueError for a network of another kind."""
    model = load_any(path)
    model = model.model if isinstance(model, Recognizer) else model
    if not isinstance(model, StateClassifier) or not model.per_step_ or model.classes_.dtype.kind != "U":
        raise ValueError(
            f"{path} ({type(model).__name__}) is not a network for phone states; make one with: echolearn train "
            "--corpus ... To predict the rows of a table with it: echolearn predict MODEL FILE.csv"
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
    write_mlf(out, {name: state_segments(y) for name, y in zip(names, model.predict(list(X)), strict=True)})
