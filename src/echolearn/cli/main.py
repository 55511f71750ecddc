"""The command `echolearn`: its commands by name, with a line of help. A module is loaded when its command is called."""

from __future__ import annotations

import warnings
from importlib import import_module

import click

from echolearn import __version__
from echolearn.cli.errors import RESUME_NOTE, UserError
from echolearn.exceptions import CorpusError, EspeakError

# The module of each command, and the first sentence of its help, which `echolearn --help` prints.
COMMANDS = {
    "align": (
        "train",
        "Write the state labels of a corpus, by its own GMM-HMM alignment, as an HTK master label file.",
    ),
    "evaluate": ("evaluate", "Print the error of MODEL on the table DATA (.csv), or by frame on a part of a corpus."),
    "export": ("export", "Write MODEL (.safetensors) as an ONNX file, as a header in C, or as a page for the browser."),
    "forecast": ("forecast", "Forecast a column of FILE.csv, which has one row per step."),
    "info": ("info", "Describe MODEL, or the corpus of --corpus; without either, this installation."),
    "page": ("page", "Write MODEL (.safetensors) as one page for the browser, in which it runs."),
    "phones": ("phones", "Recognise the phones of a corpus with fixed and learned networks, from speech to report."),
    "predict": ("predict", "Predict with MODEL: answers for the rows of a table, or states of speech."),
    "recognize": (
        "recognize",
        "Recognise phones and words in RECORDINGS, files or folders, or in a part of a corpus, with MODEL.",
    ),
    "score": ("score", "Print the errors of HYPOTHESIS against REFERENCE: substitutions, deletions and insertions."),
    "serve": ("serve", "Serve MODEL (.safetensors) over HTTP and websockets, until Ctrl-C."),
    "table1": ("table1", "Compute the paper's table, from speech to report."),
    "train": ("train", "Fit a network to the table DATA (.csv), or to a corpus of speech, and save it."),
    "tune": ("tune", "Search settings on a corpus: fit on its training part, score on its validation part."),
}


class LazyGroup(click.Group):
    """The commands of `COMMANDS`; the module of one is imported when it is called or asked for its own help. Warnings
    become one line each; expected errors one message and exit code 2, Ctrl-C one line and exit code 130; other errors
    keep their traceback."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f"echolearn.cli.{COMMANDS[cmd_name][0]}"), cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):  # whole sentences, which click would cut to one line
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        shown: set[str] = set()

        def note(message: Warning | str, *_: object, **__: object) -> None:
            if str(message) not in shown:
                click.echo(f"note: {message}", err=True)
            shown.add(str(message))

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", UserWarning)
                warnings.showwarning = note
                return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, BrokenPipeError):
            raise
        except (KeyboardInterrupt, click.Abort):
            click.echo("\n" + ctx.meta.get(RESUME_NOTE, "stopped."), err=True)
            ctx.exit(130)
        except MemoryError as problem:
            raise UserError(f"not enough memory ({problem}); use fewer hidden units or frames.") from problem
        except ImportError as problem:
            if "echolearn[" not in str(problem):  # not the message on an extra that is missing
                raise
            raise UserError(str(problem)) from problem
        except (ValueError, OSError, CorpusError, EspeakError) as problem:
            raise UserError(_message(problem)) from problem


def _message(problem: Exception) -> str:
    if isinstance(problem, FileNotFoundError) and problem.filename:
        return f"{problem.filename}: there is no such file."
    if isinstance(problem, OSError) and problem.strerror and not problem.filename:
        return problem.strerror
    return str(problem)


@click.group(
    cls=LazyGroup,
    commands=[click.Command(name, help=line) for name, (_, line) in COMMANDS.items()],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="echolearn")
def main() -> None:
    """Train, apply and export echo state networks."""
