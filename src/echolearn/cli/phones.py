"""The command `echolearn phones`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import click

from echolearn.cli.errors import RESUME_NOTE
from echolearn.cli.options import FOLDER, CorpusOptions, corpus_options, network_changes, network_options, words

DEFAULT_SYSTEMS = "fixed,learned,bidirectional,deep"
LEVEL_OPTIONS = {"39": "phone39", "48": "phone48", "corpus": "corpus"}
DEFAULT_FRAMES = 60_000  # of the synthetic corpus


@click.command()
@corpus_options("synthetic")
@network_options(units=300)
@click.option(
    "--systems", callback=words, default=DEFAULT_SYSTEMS, show_default=True, help="Which systems, in this order."
)
@click.option("--order", type=click.IntRange(1, 5),
              help="The order of the phone n-gram.  [default: 2 or 3, by the phone error on valid]")  # fmt: skip
@click.option("--level", type=click.Choice(list(LEVEL_OPTIONS)),
              help="Score 39 or 48 classes of phones (Lee and Hon), or those of the corpus.  "
              "[default: 39 for TIMIT, else corpus]")  # fmt: skip
@click.option("--out", type=FOLDER, default=Path("runs/phones"), show_default=True,
              help="The folder for tables, report and networks.")  # fmt: skip
@click.option("--estimate", is_flag=True, help="Print the estimated time and memory of every system, and stop.")
@click.option(
    "--force", is_flag=True, help="Compute all systems again, and write also to a folder that holds other files."
)
@click.pass_context
def phones(
    ctx: click.Context,
    /,
    *,
    units: int,
    epochs: int | None,
    settings: tuple[str, ...],
    seed: int,
    systems: tuple[str, ...],
    order: int | None,
    level: str | None,
    out: Path,
    estimate: bool,
    force: bool,
    **corpus_settings: Unpack[CorpusOptions],
) -> None:
    """Recognise the phones of a corpus with fixed and learned networks, from speech to report.

    Each system is fitted on train; its decoder is learned from the training labels and tuned on valid; test is decoded
    once. The same command resumes a run that was stopped.
    """
    click.echo("echolearn phones", err=True)  # the imports take seconds
    from echolearn.cli.corpora import opened_corpus
    from echolearn.cli.outputs import claim_folder
    from echolearn.cli.progress import stderr
    from echolearn.cli.run_progress import PHONES_WORDING, RunLines
    from echolearn.paper import phones as experiment
    from echolearn.paper.estimate import CorpusSize
    from echolearn.paper.phone_report import plain_text
    from echolearn.paper.phone_scoring import default_level
    from echolearn.paper.phones import PhonePlan, estimate_text

    changes = network_changes(ctx, epochs, settings, seed)
    seed = changes.pop("random_state")
    chosen = default_level(corpus_settings["corpus"] or "") if level is None else LEVEL_OPTIONS[level]
    plan = PhonePlan(systems=systems, units=units, order=order, level=chosen, seed=seed, changes=changes)
    plan.check()
    if corpus_settings["corpus"] == "synthetic":
        corpus_settings["frames"] = frames = corpus_settings["frames"] or DEFAULT_FRAMES
        if estimate:  # the size of synthetic speech is known before it is made
            click.echo(estimate_text(plan, CorpusSize.of_synthetic(frames)))
            return
    claim_folder(out, "systems", force=force)
    ctx.meta[RESUME_NOTE] = f"stopped; run the same command again to continue: finished work is kept in {out}."
    corpus = opened_corpus(**corpus_settings)
    click.echo(estimate_text(plan, CorpusSize.of(corpus)), err=not estimate)
    if estimate:
        return
    with RunLines(stderr(), PHONES_WORDING) as display:
        table = experiment.run(corpus, plan, out, display, force=force)
    click.echo(plain_text(table))
    click.echo(f"written: {out / 'report.html'}, phones.md, phones.json")
