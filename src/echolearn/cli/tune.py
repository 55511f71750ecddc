"""The command `tune`: a search for settings on a corpus."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Unpack

import click

from echolearn.cli.corpora import opened_corpus
from echolearn.cli.errors import RESUME_NOTE
from echolearn.cli.options import (
    FOLDER,
    FORCE,
    CorpusOptions,
    corpus_options,
    force_option,
    network_changes,
    network_options,
)
from echolearn.cli.outputs import claim_folder
from echolearn.estimators import ESNClassifier
from echolearn.modelfile.atomic import write_atomically
from echolearn.paper.fits import check_network, warnings_as_notes
from echolearn.paper.parts import CorpusParts
from echolearn.speech import Corpus
from echolearn.tuning import _search
from echolearn.tuning._results import Tuning


@click.command()
@corpus_options()
@network_options(units=100)
@click.option("--trials", type=click.IntRange(min=1), default=30, show_default=True, help="Trials in all.")
@click.option("--out", type=FOLDER, default=Path("runs/tune"), show_default=True,
              help="The folder for trials, report and best settings.")  # fmt: skip
@force_option
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
    _search.import_optuna()  # refuses now rather than after the corpus is opened
    changes = network_changes(ctx, epochs, settings, seed)
    estimator = ESNClassifier(units, **changes)
    claim_folder(out, "trials.sqlite", force=ctx.meta[FORCE])
    corpus = opened_corpus(**corpus_settings)
    ctx.meta[RESUME_NOTE] = f"stopped; run the same command again to continue: finished trials are kept in {out}."
    result = tune_on_corpus(corpus, estimator, out, trials, changes)
    click.echo(result.summary())
    click.echo(f"written: {out / 'report.html'}, best.toml; a model with these settings:")
    click.echo(_train_command(corpus_settings, out))


def _train_command(corpus_settings: CorpusOptions, out: Path) -> str:
    """Return the command, quoted for a shell, that trains a model on this corpus with the settings that were found."""
    words = ["echolearn", "train"]
    for name, value in corpus_settings.items():
        for one in value if isinstance(value, tuple) else (value,):
            words += [f"--{name.replace('_', '-')}", str(one)] if one else []
    return shlex.join([*words, "--config", str(out / "best.toml"), "--out", str(out / "model.safetensors")])


def tune_on_corpus(
    corpus: Corpus, estimator: ESNClassifier, out: Path, trials: int, chosen: Mapping[str, object]
) -> Tuning:
    """Fit trials on the training part, score them on the validation part, and write the result to the folder `out`.
    `chosen` are the settings that the user chose; `best.toml` repeats them beside those that were found."""
    check_network(estimator)
    parts = CorpusParts.load(corpus)
    if not parts.valid_known[0]:
        raise ValueError(f"{corpus.name}: every validation utterance has states that no training frame has.")
    out.mkdir(parents=True, exist_ok=True)
    with warnings_as_notes(lambda text: print(text, file=sys.stderr, flush=True)):
        found = _search.tune(
            estimator,
            *parts.train,
            validation=parts.valid_known,
            trials=trials,
            storage=out / "trials.sqlite",
            refit=False,
            random_state=0,
            verbose=1,
        )
    best = {**chosen, **found.best_settings}
    write_atomically(out / "best.toml", as_toml(estimator.hidden_units, best).encode())
    found.report(out / "report.html", corpus.name)
    return found


def as_toml(units: int, settings: Mapping[str, object]) -> str:
    """Return a configuration file for `echolearn train --config`."""
    flat: dict[str, object] = {}
    for name, value in settings.items():
        inside = value if isinstance(value, Mapping) else {}
        flat |= {f"{name}.{key}": entry for key, entry in inside.items()} or {name.replace("__", "."): value}
    texts = {name: json.dumps("none" if value is None else value) for name, value in flat.items()}
    lines = [f"{name} = {text}" for name, text in sorted(texts.items())]
    return "\n".join([f"units = {units}", "", "[estimator]", *lines, ""])
