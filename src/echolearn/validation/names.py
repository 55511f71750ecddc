"""Checks of names that a user wrote, such as the name of a setting."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def check_name(name: object, known: Iterable[str], where: str) -> None:
    """Raise ValueError unless `name` is one of `known`.

    The message begins with `where` the name was given, and suggests the nearest known name, or lists all of them where
    none is near.
    """
    known = sorted(known)
    if not isinstance(name, str) or name not in known:
        near = difflib.get_close_matches(str(name)[:100], known, 1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."
        raise ValueError(f"{where}: there is no setting {name!r:.80}; {hint}")
