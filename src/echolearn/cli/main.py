"""The command `echolearn`. Whatever is slow to import is imported by the command that needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from echolearn import __version__
from echolearn.cli import configuration
from echolearn.cli.options import (
    CONTINUE,
    TABLES,
    Friendly,
    Refused,
    corpus_options,
    opened_corpus,
    scheduler_option,
    stderr,
    whole_numbers,
    words,
)


@click.group(cls=Friendly, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="echolearn")
def main() -> None:
    """Echo state networks whose weights are all learned."""


@main.command()
@corpus_options
@click.option("--units", callback=whole_numbers, help="Hidden units, one row each.  [default: 100,500]")
@click.option("--epochs", type=click.IntRange(min=1), help="Epochs of the paper's columns.  [default: 20]")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Seeds to average over.")
@click.option("--targets", type=click.Choice(["all", "last"]), default="all", show_default=True,
              help="last: only each block's last frame teaches, as the paper has it.")  # fmt: skip
@click.option("--gradient", type=click.Choice(["exact", "printed"]), default="exact", show_default=True,
              help="printed: the paper's formulas to the letter.")  # fmt: skip
@click.option("--columns", callback=words, help="Only these, such as esn,W_Wrec_m3,ours.  [default: all]")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("runs/table1"),
              show_default=True, help="Where tables, report and finished cells go.")  # fmt: skip
@click.option("--full", is_flag=True, help="The paper's scale: 1.12 million frames, up to 30,000 units, 40 epochs.")
@click.option("--force", is_flag=True, help="Compute everything anew.")
@scheduler_option
@click.pass_context
def table1(
    ctx: click.Context,
    /,
    units: tuple[int, ...] | None,
    epochs: int | None,
    seeds: int,
    targets: str,
    gradient: str,
    columns: tuple[str, ...] | None,
    out: Path,
    full: bool,
    force: bool,
    scheduler: str | None,
    **corpus_words: Any,
) -> None:
    """The paper's table, from speech to report.

    Without options on a small synthetic corpus, in a few minutes. Stopped and started again, it continues.
    """
    console = stderr()
    console.print("echolearn table1", highlight=False)
    from echolearn.cli import progress as display
    from echolearn.estimators.classifier import ESNClassifier
    from echolearn.execution.threads import chosen
    from echolearn.experiments import table1 as experiment
    from echolearn.reporting import table as report

    if corpus_words["corpus"] == "synthetic" and corpus_words["frames"] is None:
        corpus_words["frames"] = experiment.FULL_FRAMES if full else experiment.DEMO_FRAMES
    known = ESNClassifier().get_params(deep=False)
    tables = ctx.meta.get("tables", {})
    own = {t: configuration.estimator_settings(tables.get(t, {}), known, f"[{t}]") for t in TABLES["table1"]}
    plan = experiment.Plan(
        units=units or (experiment.FULL_UNITS if full else experiment.Plan.units),
        epochs=epochs or (experiment.FULL_EPOCHS if full else experiment.Plan.epochs),
        seeds=seeds,
        targets=targets,
        gradient=gradient,
        columns=columns or experiment.Plan.columns,
        paper=own["paper"],
        ours=own["ours"],
    )
    plan.check()
    ctx.meta[CONTINUE] = f"stopped; run the same command again to continue: finished work is kept in {out}."
    with chosen(scheduler):
        corpus = opened_corpus(**corpus_words)
        with display.watch(console, report.TITLES) as watch:
            table = experiment.run(corpus, plan, out, watch, force=force)
    click.echo(report.plain(table))
    click.echo(f"written: {out / 'report.html'}, table1.md, table1.csv, table1.json")


@main.command()
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@corpus_options
@click.option("--units", type=click.IntRange(min=1), default=300, show_default=True, help="Hidden units.")
@click.option("--epochs", type=click.IntRange(min=0), help="[default: as many as the data need]")
@click.option("--paper", is_flag=True, help="Start from the paper's settings instead of our defaults.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any setting of ESNClassifier.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the network.")
@scheduler_option
@click.pass_context
def train(
    ctx: click.Context,
    /,
    model: Path,
    units: int,
    epochs: int | None,
    paper: bool,
    settings: tuple[str, ...],
    seed: int,
    scheduler: str | None,
    **corpus_words: Any,
) -> None:
    """Fit a network to a corpus and save it as MODEL (.safetensors).

    Stopped and started again with the same settings, it goes on where it was, five minutes of work earlier at most.
    """
    from echolearn.estimators.classifier import ESNClassifier
    from echolearn.execution.threads import chosen
    from echolearn.experiments import commands as trained

    changes = _changes(ctx, epochs, settings, seed)
    estimator = (ESNClassifier.paper if paper else ESNClassifier)(units, **changes)
    trained.check_place(model, estimator)
    with chosen(scheduler):
        corpus = opened_corpus(**corpus_words)
        ctx.meta[CONTINUE] = "stopped; run the same command again to continue: its last state is kept beside the model."
        result = trained.train(corpus, estimator, model, stderr())
    click.echo(trained.sentence(result, "test", corpus))
    click.echo(f"written: {model}")


def _changes(ctx: click.Context, epochs: int | None, settings: tuple[str, ...], seed: int) -> dict[str, Any]:
    """Settings other than the defaults: from options, then the configuration file, then --set."""
    from echolearn.estimators.classifier import ESNClassifier

    known = ESNClassifier().get_params(deep=False)
    changes: dict[str, Any] = {"random_state": seed, **({} if epochs is None else {"epochs": epochs})}
    tables = ctx.meta.get("tables", {})
    changes |= configuration.estimator_settings(tables.get("estimator", {}), known, "[estimator]")
    changes |= configuration.estimator_settings(configuration.assignments(settings), known, "--set")
    return changes


@main.command()
@corpus_options
@click.option("--units", type=click.IntRange(min=1), default=100, show_default=True, help="Hidden units.")
@click.option("--epochs", type=click.IntRange(min=0), help="[default: as many as the data need]")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any setting of ESNClassifier.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the network.")
@click.option("--trials", type=click.IntRange(min=1), default=30, show_default=True, help="In all.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("runs/tune"),
              show_default=True, help="Where trials, report and best settings go.")  # fmt: skip
@click.pass_context
def tune(
    ctx: click.Context,
    /,
    units: int,
    epochs: int | None,
    settings: tuple[str, ...],
    seed: int,
    trials: int,
    out: Path,
    **corpus_words: Any,
) -> None:
    """Search settings on a corpus: tried on its training part, scored on its validation part.

    Stopped and started again with the same settings, it continues; with more --trials it searches on.
    """
    from echolearn.estimators.classifier import ESNClassifier
    from echolearn.reporting import tuning_page as tuned

    changes = _changes(ctx, epochs, settings, seed)
    estimator = ESNClassifier(units, **changes)
    corpus = opened_corpus(**corpus_words)
    ctx.meta[CONTINUE] = f"stopped; run the same command again to continue: finished trials are kept in {out}."
    try:
        found = tuned.search(corpus, estimator, out, trials, changes)
    except ImportError as problem:
        raise Refused(str(problem)) from problem
    click.echo(tuned.sentence(found))
    click.echo(f"written: {out / 'report.html'}, best.toml (echolearn train MODEL --config {out / 'best.toml'})")


@main.command()
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@corpus_options
@click.option("--part", type=click.Choice(["train", "valid", "test"]), default="test", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print numbers as JSON.")
def evaluate(model: Path, part: str, as_json: bool, **corpus_words: Any) -> None:
    """State and phone error of MODEL on a part of a corpus, by frame."""
    import json

    from echolearn.experiments import commands as trained

    network = trained.opened(model)
    corpus = opened_corpus(**corpus_words)
    result = trained.evaluate(network, corpus, part)
    click.echo(json.dumps(result, indent=1) if as_json else trained.words(result, part, corpus))


@main.command()
@click.argument("model", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("audio", nargs=-1, type=click.Path(dir_okay=False, path_type=Path))
@corpus_options
@click.option("--part", type=click.Choice(["train", "valid", "test"]), default="test", show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True,
              help="FILE.mlf for the most likely states, FILE.npz for all probabilities.")  # fmt: skip
def predict(model: Path, audio: tuple[Path, ...], part: str, out: Path, **corpus_words: Any) -> None:
    """States of AUDIO files, or of a part of a corpus, as MODEL hears them."""
    from echolearn.experiments import commands as trained

    if out.suffix.lower() not in (".mlf", ".npz"):
        raise ValueError(f"--out {out}: expected a name that ends in .mlf or .npz")
    network = trained.opened(model)
    if audio:
        names, X = trained.heard_files(audio)
    else:
        corpus = opened_corpus(**corpus_words)
        names, X = trained.part_of(corpus, part)
    trained.write_predictions(network, names, X, out)
    click.echo(f"written: {out} ({len(names)} utterances, {sum(map(len, X)):,} frames)")


@main.command()
@corpus_options
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="FILE.mlf to write.")
def align(out: Path, **corpus_words: Any) -> None:
    """State labels of a corpus, by its own GMM-HMM alignment, as an HTK master label file.

    Phones with times are refined; phones without times (.lab files of names alone) are aligned from a flat start.
    """
    from echolearn.experiments import commands as trained

    corpus = opened_corpus(**corpus_words)
    trained.write_alignment(corpus, out)
    click.echo(f"written: {out} ({len(corpus.utterances)} utterances, {sum(corpus.frames.values()):,} frames)")


@main.command()
@click.argument("model", required=False, type=click.Path(dir_okay=False, path_type=Path))
@corpus_options
@click.pass_context
def info(ctx: click.Context, /, model: Path | None, **corpus_words: Any) -> None:
    """What MODEL or the corpus of --corpus is; without either, what this installation has."""
    from echolearn.experiments import commands as trained

    if model is not None:
        click.echo(trained.about_model(trained.opened(model), model))
    elif ctx.get_parameter_source("corpus") is not click.core.ParameterSource.DEFAULT:
        click.echo(trained.about_corpus(opened_corpus(**corpus_words)))
    else:
        click.echo(trained.about_here())


if __name__ == "__main__":
    sys.exit(main())
