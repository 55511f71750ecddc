"""The figures of the long campaigns: printed as a table, and kept in reliability/results with date and commit."""

from __future__ import annotations

import datetime
import json
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def commit() -> str:
    """Return the commit, "with changes" if its sources or campaigns have any; "unknown" outside of a repository."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=HERE.parent, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--", "src", "reliability/*.py")
    return (git("rev-parse", "HEAD") or "unknown") + (" with changes" if changed else "")


STARTED_AT = commit()  # a campaign takes long, and the tree may move on


def keep(name: str, figures: dict[str, Any]) -> None:
    """Write the figures, with versions, date, commit and arguments, to reliability/results/NAME.json."""
    packages = ("echolearn", "numpy", "scipy", "numba", "scikit-learn")
    about = {
        "date": datetime.date.today().isoformat(),
        "commit": STARTED_AT,
        "arguments": sys.argv[1:],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        **{package: version(package) for package in packages},
    }
    path = HERE / "results" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"versions": about, **figures}, indent=1) + "\n", encoding="utf-8")
    print(f"written: reliability/results/{path.name}")


def show(title: str, columns: tuple[str, ...], rows: dict[str, dict[str, Any]]) -> None:
    """Print one line per row, columns right-aligned; a missing entry is 0."""
    cells = [["", *columns], *([name, *(_formatted(row.get(c, 0)) for c in columns)] for name, row in rows.items())]
    widths = [max(len(line[k]) for line in cells) for k in range(len(columns) + 1)]
    print(f"\n{title}")
    for line in cells:
        print("  ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]))


def _formatted(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
