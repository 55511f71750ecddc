"""The commands `train`, `evaluate` and `align`. Whatever is slow to import is imported when they run."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Unpack

import click

from echolearn.cli.errors import RESUME_NOTE
from echolearn.cli.options import (
    FILE,
    CorpusOptions,
    corpus_options,
    network_changes,
    network_options,
    part_option,
    recognition_options,
    scheduler_option,
)


@click.command()
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


@click.command()
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


@click.command()
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
