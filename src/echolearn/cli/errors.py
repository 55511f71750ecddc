"""How a command ends when something goes wrong: one message for expected errors, a traceback for all others."""

from __future__ import annotations

from typing import IO, Any

import click

from echolearn.exceptions import CorpusError

RESUME_NOTE = "resume_note"  # the key in a context's meta of what to print after Ctrl-C


class UserError(click.ClickException):
    """An error of the input: one message, no traceback."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {self.format_message()}", err=True)


class CommandGroup(click.Group):
    """Commands whose expected errors become one message and exit code 2, and Ctrl-C one line and exit code 130."""

    def invoke(self, ctx: click.Context) -> object:
        try:
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
        except (ValueError, OSError, CorpusError) as problem:
            raise UserError(_message(problem)) from problem


def _message(problem: Exception) -> str:
    if isinstance(problem, FileNotFoundError) and problem.filename:
        return f"{problem.filename}: there is no such file."
    if isinstance(problem, OSError) and problem.strerror and not problem.filename:
        return problem.strerror
    return str(problem)
