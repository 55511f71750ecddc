"""Atomic writes: a file is written under a temporary name and moved into place, so that it is never half written."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file: write a temporary one beside it, fsync, rename, and fsync the folder."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with open(temporary, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except OSError as problem:
        raise OSError(problem.errno, f"cannot write {path}: {problem.strerror}") from problem
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(path: Path) -> None:
    """Make the renaming of files in a folder survive a power failure."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
