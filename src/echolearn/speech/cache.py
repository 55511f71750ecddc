"""The cache: folders that appear complete or not at all, and what to say when they cannot be written."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from echolearn.speech.errors import CorpusError, Problem

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def default_cache() -> Path:
    """$ECHOLEARN_CACHE, or echolearn's folder in the user's cache."""
    given = os.environ.get("ECHOLEARN_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "echolearn"


@contextmanager
def built_beside(folder: Path) -> Iterator[Path]:
    """A temporary folder to fill, which becomes `folder` if all goes well and disappears if not.

    If somebody else finished the same folder meanwhile, theirs stays: equal names mean equal content.
    """
    home = folder.parent
    building: Path | None = None
    try:
        home.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=home))
        yield building
        building.chmod(0o755)
        try:
            building.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    except OSError as error:
        raise CorpusError([_problem(error, home)]) from error
    finally:
        if building is not None:
            shutil.rmtree(building, ignore_errors=True)


def _problem(error: OSError, home: Path) -> Problem:
    file, why = str(error.filename or home), os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _FULL:
        return Problem(file, f"the disk is full or the file too large for it ({why}); free some space")
    return Problem(
        file,
        f"the cache folder {home} cannot be written ({why}); "
        "choose another with cache=... or the variable ECHOLEARN_CACHE",
    )
