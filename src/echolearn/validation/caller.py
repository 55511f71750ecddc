"""Where a warning points: at the user's line, not at a line of this library."""

from __future__ import annotations

import inspect


def user_stacklevel() -> int:
    """Return the `stacklevel` with which `warnings.warn`, called beside this function, names the user's line."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("echolearn."):
        frame, level = frame.f_back, level + 1
    return level
