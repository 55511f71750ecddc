"""One line on the screen when the loops are compiled, which happens once per machine and version."""

from __future__ import annotations

from typing import Any

from numba.core import event

from echolearn.display.screen import tell

TEXT = "echolearn: compiling its loops for this machine (once; a few seconds) ..."


class Announcement(event.Listener):
    """A listener to numba that prints `TEXT` when the first of echolearn's functions is not found in the cache.

    numba reports a compilation only if its cache has no result for it.
    """

    def __init__(self) -> None:
        self.made = False

    def on_start(self, compilation: Any) -> None:
        """Print the line, unless it was printed before or the function is someone else's."""
        if not self.made and compilation.data["dispatcher"].py_func.__module__.startswith("echolearn."):
            self.made = True
            tell(TEXT)

    def on_end(self, compilation: object) -> None:
        """Do nothing: the end of a compilation shows itself."""


event.register("numba:compile", Announcement())
