"""Messages to the user: into the output of a cell where a Jupyter kernel runs, otherwise to stderr.

IPython is never imported here: where a kernel runs, it is loaded already. What a kernel prints to stderr is shown in
red, as if something were wrong; so nothing of echolearn goes there.
"""

from __future__ import annotations

import sys
from html import escape
from typing import Any

STYLE = "font-size: 90%; opacity: 0.75; white-space: pre-wrap"


def in_notebook() -> bool:
    """Return whether the code runs in a kernel, whose outputs may be HTML; the shell of IPython is none."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel")


def on_terminal() -> bool:
    """Return whether lines can be rewritten in place."""
    return not in_notebook() and sys.stderr.isatty()


def tell(text: str) -> None:
    """Show a line of text: in a notebook in the output of the cell, otherwise on stderr."""
    if in_notebook():
        Area().show(f'<div style="{STYLE}">{escape(text)}</div>', text)
    else:
        print(text, file=sys.stderr, flush=True)


class Area:
    """A place in the output of a notebook's cell whose content can be replaced."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, html: str, text: str) -> None:
        """Show HTML, or the text where a front end shows none."""
        content = {"text/html": html, "text/plain": text}
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)
