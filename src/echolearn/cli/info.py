"""The command `info`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from echolearn.cli.options import (
    FILE,
    CorpusOptions,
    corpus_options,
)


@click.command()
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
