"""The command `echolearn`. Whatever is slow to import is imported by the command that needs it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Unpack

import click

from echolearn import __version__
from echolearn.cli.errors import RESUME_NOTE, CommandGroup
from echolearn.cli.exporting import export
from echolearn.cli.forecasting import forecast
from echolearn.cli.options import (
    FILE,
    CorpusOptions,
    corpus_options,
    network_changes,
    network_options,
    part_option,
    recognition_options,
    scheduler_option,
    table_settings,
    whole_numbers,
    words,
)
from echolearn.cli.paging import explore, page
from echolearn.cli.phones import phones
from echolearn.cli.predicting import predict
from echolearn.cli.recognition import recognize, score
from echolearn.cli.serving import serve

FOLDER = click.Path(file_okay=False, path_type=Path)


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="echolearn")
def main() -> None:
    """Echo state networks whose weights are all learned."""


main.add_command(explore)
main.add_command(export)
main.add_command(forecast)
main.add_command(page)
main.add_command(phones)
main.add_command(predict)
main.add_command(recognize)
main.add_command(score)
main.add_command(serve)


@main.command()
@corpus_options
@click.option("--units", callback=whole_numbers, help="Numbers of hidden units, one row each.  [default: 100,500]")
@click.option("--epochs", type=click.IntRange(min=1), help="Epochs of the paper's columns.  [default: 20]")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many seeds to average.")
@click.option("--targets", type=click.Choice(["all", "last"]), default="all", show_default=True,
              help="last: only the last frame of each block has a target, as in the paper.")  # fmt: skip
@click.option("--gradient", type=click.Choice(["exact", "printed"]), default="exact", show_default=True,
              help="printed: the paper's formulas as printed.")  # fmt: skip
@click.option("--columns", callback=words,
              help="Only these columns, such as esn,W_Wrec_m3,ours; or all.  [default: all but ensembles]")  # fmt: skip
@click.option("--level", type=click.Choice(["state", "phone48", "phone39", "segment", "recognition"]), default="state",
              show_default=True, help="What counts as an error; kept networks are not fitted again.")  # fmt: skip
@click.option("--out", type=FOLDER, default=Path("runs/table1"), show_default=True,
              help="The folder for tables, report and finished cells.")  # fmt: skip
@click.option("--full", is_flag=True,
              help="The paper's scale: 1.12 million frames, up to 30,000 units, 40 epochs, all columns.")  # fmt: skip
@click.option("--estimate", is_flag=True, help="Print the estimated time and memory of every cell, and stop.")
@click.option("--force", is_flag=True, help="Compute all cells again.")
@scheduler_option
@click.pass_context
def table1(
    ctx: click.Context,
    /,
    *,
    units: tuple[int, ...] | None,
    epochs: int | None,
    seeds: int,
    targets: str,
    gradient: str,
    columns: tuple[str, ...] | None,
    level: str,
    out: Path,
    full: bool,
    estimate: bool,
    force: bool,
    scheduler: str | None,
    **corpus_settings: Unpack[CorpusOptions],
) -> None:
    """Compute the paper's table, from speech to report.

    Without options it takes a few minutes on a small synthetic corpus. The same command resumes a run that was stopped.
    """
    click.echo("echolearn table1", err=True)  # the imports take seconds
    from echolearn.cli import progress
    from echolearn.cli.corpora import opened_corpus
    from echolearn.cluster.connection import use_engine
    from echolearn.experiments import plan as plans
    from echolearn.experiments import table1 as experiment
    from echolearn.experiments.estimate import CorpusSize, estimate_text
    from echolearn.reporting.table import plain_text

    if corpus_settings["corpus"] == "synthetic" and corpus_settings["frames"] is None:
        corpus_settings["frames"] = plans.FULL_FRAMES if full else plans.DEMO_FRAMES
    named = (plans.full_plan if full else plans.quick_plan)(units, epochs, columns)
    paper, ours = (table_settings(ctx, name) for name in ("paper", "ours"))
    plan = replace(named, seeds=seeds, targets=targets, gradient=gradient, level=level, paper=paper, ours=ours)
    plan.check()
    frames = corpus_settings["frames"] if corpus_settings["corpus"] == "synthetic" else None
    if estimate and frames is not None:  # the size of synthetic speech is known before it is made
        click.echo(estimate_text(plan, CorpusSize.of_synthetic(frames)))
        return
    ctx.meta[RESUME_NOTE] = f"stopped; run the same command again to continue: finished work is kept in {out}."
    with use_engine(scheduler):
        corpus = opened_corpus(**corpus_settings)
        if estimate or full:
            click.echo(estimate_text(plan, CorpusSize.of(corpus)), err=not estimate)
        if estimate:
            return
        with progress.table_progress(progress.stderr()) as display:
            table = experiment.run(corpus, plan, out, display, force=force)
    click.echo(plain_text(table))
    click.echo(f"written: {out / 'report.html'}, table1.md, table1.csv, table1.json")


@main.command()
@click.argument("model", type=FILE)
@corpus_options
@network_options(units=300)
@click.option("--paper", is_flag=True, help="Start from the paper's settings instead of our defaults.")
@recognition_options
@scheduler_option
@click.pass_context
def train(
    ctx: click.Context,
    /,
    *,
    model: Path,
    units: int,
    epochs: int | None,
    settings: tuple[str, ...],
    seed: int,
    paper: bool,
    purpose: str,
    lexicon: Path | None,
    language_model: Path | None,
    order: int,
    scheduler: str | None,
    **corpus_settings: Unpack[CorpusOptions],
) -> None:
    """Fit a network to a corpus and save it as MODEL (.safetensors).

    With --for recognition, MODEL is a recogniser: it has the network and what turns its states into phones and words.

    The same command resumes a fit that was stopped. At most five minutes of work are lost.
    """
    from echolearn.cli.corpora import opened_corpus
    from echolearn.cli.progress import FitDisplay, stderr
    from echolearn.cluster.connection import use_engine
    from echolearn.estimators.classifier import ESNClassifier
    from echolearn.experiments import commands, recognition

    changes = network_changes(ctx, epochs, settings, seed)
    estimator = (ESNClassifier.paper if paper else ESNClassifier)(units, **changes)
    commands.check_training(model, estimator)
    how = recognition.settings_for(purpose, lexicon, language_model, order)
    with use_engine(scheduler):
        corpus = opened_corpus(**corpus_settings)
        if how is not None:
            recognition.words_for(corpus, how)  # refuses before the fit what would fail after it
        ctx.meta[RESUME_NOTE] = (
            "stopped; run the same command again to continue: its last state is kept beside the model."
        )
        with FitDisplay(stderr()) as display:
            made_of = None if how is None else partial(recognition.recognizer_for, corpus, how, display.stage)
            result = commands.train(corpus, estimator, model, display, made_of)
    click.echo(commands.training_summary(result, corpus))
    if how is not None:
        click.echo(recognition.recognition_summary(recognition.open_recognizer(model), corpus))
    click.echo(f"written: {model}")


@main.command()
@corpus_options
@network_options(units=100)
@click.option("--trials", type=click.IntRange(min=1), default=30, show_default=True, help="Trials in all.")
@click.option("--out", type=FOLDER, default=Path("runs/tune"), show_default=True,
              help="The folder for trials, report and best settings.")  # fmt: skip
@click.pass_context
def tune(
    ctx: click.Context,
    /,
    *,
    units: int,
    epochs: int | None,
    settings: tuple[str, ...],
    seed: int,
    trials: int,
    out: Path,
    **corpus_settings: Unpack[CorpusOptions],
) -> None:
    """Search settings on a corpus: fit on its training part, score on its validation part.

    The same command resumes a search that was stopped; with more --trials it continues a finished one.
    """
    from echolearn.cli.corpora import opened_corpus
    from echolearn.estimators.classifier import ESNClassifier
    from echolearn.experiments.corpus_tuning import tune_on_corpus

    changes = network_changes(ctx, epochs, settings, seed)
    estimator = ESNClassifier(units, **changes)
    corpus = opened_corpus(**corpus_settings)
    ctx.meta[RESUME_NOTE] = f"stopped; run the same command again to continue: finished trials are kept in {out}."
    found = tune_on_corpus(corpus, estimator, out, trials, changes)
    click.echo(found.summary())
    click.echo(f"written: {out / 'report.html'}, best.toml (echolearn train MODEL --config {out / 'best.toml'})")


@main.command()
@click.argument("model", type=FILE)
@corpus_options
@part_option
@click.option("--json", "as_json", is_flag=True, help="Print numbers as JSON.")
def evaluate(*, model: Path, part: str, as_json: bool, **corpus_settings: Unpack[CorpusOptions]) -> None:
    """Print the state and phone error of MODEL on a part of a corpus, by frame."""
    from echolearn.cli.corpora import opened_corpus
    from echolearn.experiments import commands

    network = commands.load_model(model)
    result = commands.evaluate(network, opened_corpus(**corpus_settings), part)
    click.echo(json.dumps(result.as_json(), indent=1) if as_json else result.as_text())


@main.command()
@corpus_options
@click.option("--out", type=FILE, required=True, help="FILE.mlf to write.")
def align(*, out: Path, **corpus_settings: Unpack[CorpusOptions]) -> None:
    """Write the state labels of a corpus, by its own GMM-HMM alignment, as an HTK master label file.

    Phones with times are refined; phones without times (.lab files of names alone) are aligned from a flat start.
    """
    from echolearn.cli.corpora import opened_corpus
    from echolearn.experiments import commands

    corpus = opened_corpus(**corpus_settings)
    commands.write_alignment(corpus, out)
    click.echo(f"written: {out} ({len(corpus.utterances)} utterances, {sum(corpus.frames.values()):,} frames)")


@main.command()
@click.argument("model", required=False, type=FILE)
@corpus_options
@click.pass_context
def info(ctx: click.Context, /, *, model: Path | None, **corpus_settings: Unpack[CorpusOptions]) -> None:
    """Describe MODEL, or the corpus of --corpus; without either, this installation.

    MODEL is any file of a saved estimator, stack, pipeline or recogniser. Printed are its kind, its size, its features
    and classes, its readout, its training, its settings, and the version that saved it.
    """
    from echolearn.cli.corpora import opened_corpus
    from echolearn.estimators.loading import load
    from echolearn.experiments import descriptions, model_descriptions, recognition

    if model is not None:
        if recognition.is_recognizer(model):
            click.echo(descriptions.describe_recognizer(recognition.open_recognizer(model), model))
        else:
            click.echo(model_descriptions.describe_model(load(model), model))
        click.echo(model_descriptions.describe_file(model))
    elif ctx.get_parameter_source("corpus") is not click.core.ParameterSource.DEFAULT:
        click.echo(descriptions.describe_corpus(opened_corpus(**corpus_settings)))
    else:
        click.echo(descriptions.describe_installation())
