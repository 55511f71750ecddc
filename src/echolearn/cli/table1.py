"""The command `table1`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Unpack

import click

from echolearn.cli.errors import RESUME_NOTE
from echolearn.cli.options import (
    FOLDER,
    CorpusOptions,
    corpus_options,
    scheduler_option,
    table_settings,
    whole_numbers,
    words,
)


@click.command()
@corpus_options("synthetic")
@click.option("--units", callback=whole_numbers, help="Numbers of hidden units, one row each.  [default: 100,500]")
@click.option("--epochs", type=click.IntRange(min=1), help="Epochs of the paper's columns.  [default: 20]")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="How many seeds to average.")
@click.option("--targets", type=click.Choice(["all", "last"]), default="all", show_default=True,
              help="last: only the last frame of each block has a target, as in the paper.")  # fmt: skip
@click.option("--gradient", type=click.Choice(["exact", "printed"]), default="exact", show_default=True,
              help="printed: the paper's formulas as printed.")  # fmt: skip
@click.option("--columns", callback=words,
              help="Only these columns, such as esn,W_Wrec_m3,ours; or all.  [default: all but ensembles]")  # fmt: skip
@click.option("--level", callback=words, default="state", show_default=True,
              help="What counts as an error, one table each: state, phone48, phone39, segment, "
                   "recognition.")  # fmt: skip
@click.option("--out", type=FOLDER, default=Path("runs/table1"), show_default=True,
              help="The folder for tables, report and finished cells.")  # fmt: skip
@click.option("--full", is_flag=True,
              help="The paper's scale: 1.12 million frames, up to 30,000 units, 40 epochs, all columns.")  # fmt: skip
@click.option("--estimate", is_flag=True, help="Print the estimated time and memory of every cell, and stop.")
@click.option(
    "--force", is_flag=True, help="Compute all cells again, and write also to a folder that holds other files."
)
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
    level: tuple[str, ...],
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
    from echolearn.cli.corpora import opened_corpus
    from echolearn.cli.outputs import claim_folder
    from echolearn.cli.progress import stderr
    from echolearn.cli.run_progress import TABLE1_WORDING, RunLines
    from echolearn.cluster.connection import use_engine
    from echolearn.estimators import DeepESNClassifier
    from echolearn.paper import table1 as experiment
    from echolearn.paper.estimate import CorpusSize
    from echolearn.paper.table1_report import plain_text

    kinds = {"paper": None, "ours": None, "deep": DeepESNClassifier}
    named = {name: table_settings(ctx, name, kind) for name, kind in kinds.items()}
    given = {"units": units, "epochs": epochs, "columns": columns, "seeds": seeds, "targets": targets}
    plan = experiment.plan_of(full=full, gradient=gradient, **given, **named)
    plans = [replace(plan, level=one).check() for one in level]
    if corpus_settings["corpus"] == "synthetic":
        default = experiment.FULL_FRAMES if full else experiment.DEMO_FRAMES
        corpus_settings["frames"] = frames = corpus_settings["frames"] or default
        if estimate:  # the size of synthetic speech is known before it is made
            return click.echo(experiment.estimate_text(plan, CorpusSize.of_synthetic(frames)))
    claim_folder(out, "cells", force=force)
    ctx.meta[RESUME_NOTE] = f"stopped; run the same command again to continue: finished work is kept in {out}."
    with use_engine(scheduler):
        corpus = opened_corpus(**corpus_settings)
        click.echo(experiment.estimate_text(plan, CorpusSize.of(corpus)), err=not estimate)
        for one in [] if estimate else plans:
            first = one is plans[0]
            with RunLines(stderr(), TABLE1_WORDING, known=() if first else corpus.notes) as display:
                table = experiment.run(corpus, one, out, display, force=force and first)
            click.echo(plain_text(table))
            click.echo(f"written: {one.folder(out) / 'report.html'}, table1.md, table1.csv, table1.json")
