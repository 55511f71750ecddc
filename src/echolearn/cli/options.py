"""The options that commands share. Nothing slow is imported here: `echolearn --help` answers at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, cast

import click

from echolearn.cli import configuration

FILE = click.Path(dir_okay=False, path_type=Path)
PATH = click.Path(path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
Command = Callable[..., object]
Decorator = Callable[[Command], Command]
FORCE = "force"  # the key in a context's meta of whether --force was given

# The tables of estimator settings that the configuration file of a command may have.
CONFIG_TABLES = {**dict.fromkeys(("train", "tune", "phones"), ("estimator",)), "table1": ("paper", "ours", "deep")}


class CorpusOptions(TypedDict):
    """The values of `corpus_options`."""

    corpus: str | None
    frames: int | None
    corpus_seed: int
    cache: Path | None
    labels: Path | None
    normalise: str | None
    transcripts: tuple[Path, ...]


def _read_config(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """Make the content of a configuration file the defaults of a command's options, and keep its tables."""
    if path is None:
        return
    named = (str(p.name) for p in ctx.command.params if isinstance(p, click.Option) and p.name)
    options = [name for name in named if name not in ("config", "settings")]
    tables = CONFIG_TABLES.get(ctx.command.name or "", ())
    plain, nested = configuration.options_and_tables(configuration.read(path), options, tables, str(path))
    ctx.default_map = {**(ctx.default_map or {}), **plain}
    ctx.meta["tables"] = nested


def table_settings(ctx: click.Context, table: str, kind: type | None = None) -> configuration.Settings:
    """Return the parameters of a network in a table of the configuration file, {} where there is none."""
    return _estimator_settings(ctx.meta.get("tables", {}).get(table, {}), f"[{table}]", kind)


def _estimator_settings(settings: configuration.Settings, where: str, kind: type | None) -> configuration.Settings:
    from echolearn.estimators import ESNClassifier  # slow, and not needed for --help

    one = (kind or ESNClassifier)()
    return configuration.estimator_settings(settings, one.get_params(deep=False), where, one.groups)


def network_changes(
    ctx: click.Context, epochs: int | None, settings: tuple[str, ...], seed: int, kind: type | None = None
) -> configuration.Settings:
    """Return settings other than the defaults: from options, then the configuration file, then --set.

    kind: the class of which they are, None: ESNClassifier."""
    from echolearn.fitting.parameters import merged_settings  # slow, and not needed for --help

    changes: configuration.Settings = {"random_state": seed}
    if epochs is not None:
        changes |= _estimator_settings({"epochs": epochs}, "--epochs", kind)
    given = _estimator_settings(configuration.assignments(settings), "--set", kind)
    return merged_settings(changes, table_settings(ctx, "estimator", kind), given)


def whole_numbers(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Parse `100,500`."""
    if text is None:
        return None
    try:
        numbers = tuple(int(n.replace("_", "")) for n in str(text).split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise click.BadParameter(f"{text!r}; expected whole numbers with commas between, such as 100,500")
    return numbers


def words(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[str, ...] | None:
    """Parse `esn,ours`."""
    return None if text is None else tuple(w.strip() for w in text.split(",") if w.strip())


def all_of(*options: Decorator) -> Decorator:
    """Return one decorator that gives a command several options, in this order."""

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def _keep_force(ctx: click.Context, parameter: click.Parameter, given: bool) -> None:
    ctx.meta[FORCE] = given


force_option = click.option("--force", is_flag=True, expose_value=False, callback=_keep_force,
                            help="Also replace files that no command of echolearn wrote.")  # fmt: skip


def corpus_options(default: str | None = None) -> Decorator:
    """Return the options that name a corpus, and --config."""
    return all_of(
        click.option("--corpus", default=default, show_default=True,
                     help="The corpus: synthetic, timit:PATH, features:FILE.npz, kaldi:DIR or wav:DIR."),
        click.option("--frames", type=click.IntRange(min=1000),
                     help="The number of training frames of the synthetic corpus."),
        click.option("--corpus-seed", type=click.IntRange(min=0), default=0, show_default=True,
                     help="The seed of the synthetic corpus, and of a split by speakers."),
        click.option("--cache", type=FOLDER, help="The folder that keeps synthetic speech, features and alignments."),
        click.option("--labels", type=FILE, help="An HTK master label file instead of the corpus's own labels."),
        click.option("--normalise", type=click.Choice(["utterance", "corpus", "running"]),
                     help="Normalise mean and variance over each utterance, over the training part, or over the "
                     "utterance so far.  [default: that of the model; for a new model utterance]"),
        click.option("--transcripts", type=FILE, multiple=True, help="A list of what was spoken, NAME WORDS or WORDS "
                     "(NAME) on every line; may be given several times."),
        click.option("--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), is_eager=True,
                     expose_value=False, callback=_read_config, help="A TOML file with any of these options."),
    )  # fmt: skip


def network_options(units: int | None) -> Decorator:
    """Return the options of a network; units: the default, None for that of the kind of network."""
    default = "" if units else "  [default: 300; in every layer of a deep network 128]"
    return all_of(
        click.option("--units", type=click.IntRange(min=1), default=units, show_default=units is not None,
                     help=f"Hidden units.{default}"),
        click.option("--epochs", type=click.IntRange(min=0),
                     help="Epochs of learning.  [default: as many as the data need]"),
        click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
                     help="Any parameter of the network, as learning.step_size=0.01; may be given several times."),
        click.option("--seed", type=int, default=0, show_default=True, help="The seed of the network."),
    )  # fmt: skip


class TableOptions(TypedDict):
    """The values of `table_options`."""

    id: str | None
    time: str | None
    header: bool | None
    decimal: str | None
    date_order: str | None


def divided(settings: dict[str, object]) -> tuple[TableOptions, CorpusOptions]:
    """Return the values of `table_options`, and the others."""
    table = {name: settings.pop(name) for name in TableOptions.__annotations__}
    return cast(TableOptions, table), cast(CorpusOptions, settings)


header_option = click.option("--header/--no-header", default=None,
    help="Whether the first line of a CSV file has the names of the columns.  [default: found]")  # fmt: skip
decimal_option = click.option("--decimal", type=click.Choice([".", ","]),
    help="The mark before the decimals of numbers in a CSV file.  [default: found]")  # fmt: skip
dates_option = click.option("--dates", "date_order", type=click.Choice(["day-first", "month-first"]),
    help="How to read dates such as 01/02/2024.  [default: found, where a day is above 12]")  # fmt: skip
# The options that say how to read a table.
table_options = all_of(
    click.option("--id", metavar="COLUMN", help="The column of a table that separates sequences: rows with the same "
                 "entry are one.  [default: the whole table is one sequence]"),
    click.option("--time", metavar="COLUMN", help="The column of a table by which the rows of a sequence are ordered: "
                 "dates or numbers.  [default: they are in order]"),
    header_option,
    decimal_option,
    dates_option,
)  # fmt: skip
part_option = click.option("--part", type=click.Choice(["train", "valid", "test"]), default="test", show_default=True,
                           help="The part of the corpus.")  # fmt: skip
scheduler_option = click.option(
    "--scheduler", metavar="ADDRESS", help="Work on the Dask cluster of this scheduler, such as tcp://host:8786."
)
# The options that name the words to recognise.
word_options = all_of(
    click.option("--lexicon", type=FILE, help="Pronunciations of words, in the format of the CMU dictionary."),
    click.option("--language-model", type=FILE, help="Which words follow which: an ARPA file."),
)
# The options by which a network becomes a recogniser.
recognition_options = all_of(
    click.option("--for", "purpose", type=click.Choice(["states", "recognition"]), default="states", show_default=True,
                 help="Save a network for states of frames, or a recogniser of phones and words."),
    word_options,
    click.option("--order", type=click.IntRange(1, 5), default=2, show_default=True,
                 help="Order of the n-grams that are learned."),
)  # fmt: skip
