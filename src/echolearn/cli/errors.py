"""The error of a command that has one message, and the key of what to print after Ctrl-C."""

from __future__ import annotations

from typing import IO, Any

import click

RESUME_NOTE = "resume_note"  # the key in a context's meta of what to print after Ctrl-C


class UserError(click.ClickException):
    """An error of the input: one message, no traceback."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {self.format_message()}", err=True)
