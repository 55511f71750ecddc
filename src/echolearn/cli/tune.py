"""The command `tune`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from echolearn.cli.errors import RESUME_NOTE
from echolearn.cli.options import (
    FOLDER,
    CorpusOptions,
    corpus_options,
    network_changes,
    network_options,
)


@click.command()
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
