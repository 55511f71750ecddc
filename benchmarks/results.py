"""What a benchmark found: rows to a table and, with machine, versions and date, to benchmarks/results/NAME.json.

A row is a dict with the keys figure, work, ours, peer, peer_name, unit, ratio, asked, reached. `ours` and `peer` are
numbers in `unit`; `ratio` is how many times better ours is; `asked` says what was to be reached, `reached` whether
it was (None: nothing was asked, or it could not be measured). Other keys go into the file as they are.
"""

import json
import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

FOLDER = Path(__file__).parent / "results"
PACKAGES = ("echolearn", "numpy", "scipy", "numba", "scikit-learn", "torch", "reservoirpy", "PyRCN", "echoes")
KEYS = ("figure", "work", "ours", "peer", "peer_name", "unit", "ratio", "asked", "reached")


def write(name, rows):
    """rows -> results/NAME.json, whole or not at all; returns the path."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    found = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "rows": rows,
    }
    half = path.with_suffix(".part")
    half.write_text(json.dumps(found, indent=1, default=float) + "\n")
    os.replace(half, path)
    return path


def machine():
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_gb": round(psutil.virtual_memory().total / 1e9, 1)}


def versions():
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def table(rows):
    """Rows as aligned text, one line each."""
    cells = [list(KEYS), *([_cell(key, row.get(key)) for key in KEYS] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(KEYS))]
    words = {KEYS.index(key) for key in ("work", "peer_name", "asked")}
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in words else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )


def _cell(key, value):
    if value is None:
        return "-"
    if key == "reached":
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)
