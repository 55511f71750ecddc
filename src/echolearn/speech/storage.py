"""What to say when the cache cannot be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from echolearn.speech.problems import Problem

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def default_cache() -> Path:
    """$ECHOLEARN_CACHE, or echolearn's folder in the user's cache."""
    given = os.environ.get("ECHOLEARN_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "echolearn"


def storage_problem(error: OSError, home: Path) -> Problem:
    file, why = str(error.filename or home), os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _FULL:
        return Problem(file, f"the disk is full or the file too large for it ({why}); free some space")
    return Problem(
        file,
        f"the cache folder {home} cannot be written ({why}); "
        "choose another with cache=... or the variable ECHOLEARN_CACHE",
    )
