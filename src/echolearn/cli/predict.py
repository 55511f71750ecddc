"""The command `predict`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from echolearn.cli.options import FILE, CorpusOptions, corpus_options, header_option, part_option

TABLES = (".csv", ".tsv", ".txt", ".npy", ".npz")


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
    tables = [file for file in files if file.suffix.lower() in TABLES]
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
    from echolearn.experiments import model_answers
    from echolearn.experiments.tables import write_table

    if out.suffix.lower() != ".csv":
        raise ValueError(f"--out {out}: expected a name that ends in .csv.")
    network = model_answers.open_saved(model)
    frames = model_answers.read_frames(file, network, sequence_column, header=header)
    for note in frames.notes:
        click.echo(note)
    answered = model_answers.answer(network, frames, probabilities=probabilities)
    if answered.per == "sequence" and frames.names is None:
        click.echo(
            "The model has one answer per sequence, and the whole file was taken as one. If a column separates "
            "sequences, name it: --sequence-column."
        )
    write_table(out, answered.columns, answered.rows)
    count = len(answered.rows)
    click.echo(f"written: {out} ({count:,} answer{'s' * (count != 1)}, one per {answered.per})")


def _predict_speech(
    model: Path, audio: tuple[Path, ...], out: Path | None, part: str, corpus_settings: CorpusOptions
) -> None:
    from echolearn.cli.corpora import opened_corpus
    from echolearn.experiments import commands

    network = commands.load_model(model)
    if out is None or out.suffix.lower() not in (".mlf", ".npz"):
        raise ValueError(f"--out {out or ''}: expected a name that ends in .mlf or .npz for the states of speech.")
    if audio:
        names, X = commands.audio_features(audio, commands.recipe_of(model))
    else:
        names, X = commands.part_features(opened_corpus(**corpus_settings), part)
    commands.write_predictions(network, names, X, out)
    click.echo(f"written: {out} ({len(names)} utterances, {sum(map(len, X)):,} frames)")
