"""What the commands share: options, configuration files, the corpus, and errors that people can use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from echolearn.cli import configuration

if TYPE_CHECKING:
    from rich.console import Console

    from echolearn.speech.corpus import Corpus

Command = TypeVar("Command", bound=Callable[..., Any])

# Tables of estimator settings a command's configuration file may have.
TABLES = {"train": ("estimator",), "tune": ("estimator",), "table1": ("paper", "ours")}
CONTINUE = "continue_with"


class Refused(click.ClickException):
    """Something about the input: one message, no traceback."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {self.format_message()}", err=True)


class Friendly(click.Group):
    """Expected errors become one message and exit code 2, Ctrl-C one line and exit code 130."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
            raise
        except (KeyboardInterrupt, click.Abort):
            click.echo("\n" + ctx.meta.get(CONTINUE, "stopped."), err=True)
            ctx.exit(130)
        except MemoryError as problem:
            raise Refused(f"not enough memory ({problem}); use fewer hidden units or frames.") from problem
        except Exception as problem:
            if _expected(problem):
                raise Refused(_words(problem)) from problem
            raise


def _expected(problem: Exception) -> bool:
    from echolearn.speech.errors import CorpusError
    from echolearn.speech.espeak import EspeakError

    return isinstance(problem, (ValueError, OSError, CorpusError, EspeakError))


def _words(problem: Exception) -> str:
    if isinstance(problem, OSError) and problem.strerror and not problem.filename:
        return problem.strerror
    return str(problem)


def _read_config(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    if path is None:
        return
    options = [
        p.name for p in ctx.command.params if isinstance(p, click.Option) and p.name not in (None, "config", "settings")
    ]
    tables = TABLES.get(ctx.command.name or "", ())
    plain, nested = configuration.divided(configuration.read(path), options, tables, str(path))
    ctx.default_map = {**(ctx.default_map or {}), **plain}
    ctx.meta["tables"] = nested


def whole_numbers(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, ...] | None:
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
    return None if text is None else tuple(w.strip() for w in text.split(",") if w.strip())


config_option = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_read_config,
    help="A TOML file with any of these options.",
)


def corpus_options(command: Command) -> Command:
    for option in reversed(
        (
            click.option(
                "--corpus",
                default="synthetic",
                show_default=True,
                help="synthetic, timit:PATH, features:FILE.npz or wav:DIR.",
            ),
            click.option("--frames", type=click.IntRange(min=1000), help="Training frames of the synthetic corpus."),
            click.option(
                "--corpus-seed",
                type=click.IntRange(min=0),
                default=0,
                show_default=True,
                help="Of the synthetic corpus.",
            ),
            click.option(
                "--cache",
                type=click.Path(file_okay=False, path_type=Path),
                help="Where speech, features and alignments are kept.",
            ),
            click.option(
                "--labels",
                type=click.Path(dir_okay=False, path_type=Path),
                help="An HTK master label file instead of the corpus's own labels.",
            ),
            click.option(
                "--normalise",
                type=click.Choice(["utterance", "corpus"]),
                default="utterance",
                show_default=True,
                help="Mean and variance over each utterance, or over the training part.",
            ),
            config_option,
        )
    ):
        command = option(command)
    return command


scheduler_option = click.option(
    "--scheduler", metavar="ADDRESS", help="Work on the Dask cluster of this scheduler, such as tcp://host:8786."
)


def stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def opened_corpus(
    corpus: str,
    frames: int | None,
    corpus_seed: int,
    cache: Path | None,
    labels: Path | None,
    normalise: str,
) -> Corpus:
    from echolearn.cli import progress as display
    from echolearn.speech.corpus import open_corpus

    with display.stages(stderr()) as progress:
        return open_corpus(
            corpus,
            frames=frames,
            seed=corpus_seed,
            cache=cache,
            labels=labels,
            normalise=normalise,
            progress=progress,
        )
