"""The origin of a result: versions, the commit of the source tree, and the number of threads."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TypedDict

from echolearn import __version__
from echolearn.execution.threads import thread_count


class MadeWith(TypedDict):
    """Versions, commit and threads of a result. commit: None outside a git repository; "+" after it: with changes."""

    echolearn: str
    commit: str | None
    python: str
    numpy: str
    scipy: str
    numba: str
    threads: int
    date: str


def made_with() -> MadeWith:
    """Return what a result that is finished now was made with."""
    return {
        "echolearn": __version__,
        "commit": source_commit(),
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "scipy": importlib.metadata.version("scipy"),
        "numba": importlib.metadata.version("numba"),
        "threads": thread_count(),
        "date": datetime.now(UTC).date().isoformat(),
    }


@cache
def source_commit() -> str | None:
    """Return the commit of the source tree that runs, as it was at the first call; None where there is none.

    A "+" follows it where a file of the package differs from that commit.
    """
    package = Path(__file__).resolve().parent.parent

    def git(*words: str) -> str:
        command = ["git", "-C", str(package), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if git("ls-files", "__init__.py"):  # not a package that is installed inside somebody else's repository
            return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    return None
