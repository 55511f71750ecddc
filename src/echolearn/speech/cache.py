"""The cache folder of corpora, in which entries appear complete or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from echolearn.exceptions import CorpusError, Problem

_DISK_FULL_ERRORS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def default_cache() -> Path:
    """Return the folder of the variable ECHOLEARN_CACHE or, without it, `echolearn` in the user's cache folder."""
    given = os.environ.get("ECHOLEARN_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "echolearn"


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that is renamed to `folder` if the block succeeds and removed if it fails.

    If another process completes the same folder first, that one is kept: equal names mean equal content.
    """
    parent = folder.parent
    building: Path | None = None
    try:
        parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=parent))
        yield building
        building.chmod(0o755)
        try:
            building.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    except OSError as error:
        raise CorpusError([_problem(error, parent)]) from error
    finally:
        if building is not None:
            shutil.rmtree(building, ignore_errors=True)


def _problem(error: OSError, parent: Path) -> Problem:
    file, why = str(error.filename or parent), os.strerror(error.errno) if error.errno else str(error)
    if error.errno in _DISK_FULL_ERRORS:
        return Problem(file, f"the disk is full or the file too large for it ({why}); free some space")
    return Problem(
        file,
        f"the cache folder {parent} cannot be written ({why}); "
        "choose another with cache=... or the variable ECHOLEARN_CACHE",
    )
