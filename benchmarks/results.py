"""The results of benchmarks: rows as a table and, with machine, versions and date, in benchmarks/results/NAME.json.

A row is a dict with the keys figure, work, ours, peer, peer_name, unit, ratio, required, reached. `ours` and `peer` are
numbers in `unit`; `ratio` is how many times better ours is; `required` is the goal and `reached` whether it is met
(None: there is none, or it could not be measured). Further keys are written to the file as they are.
"""

import inspect
import json
import os
import platform
import subprocess
import uuid
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

FOLDER = Path(__file__).parent / "results"
PROCESS = uuid.uuid4().hex[:12]  # what this process has written, it may replace
PACKAGES = (
    *("echolearn", "numpy", "scipy", "numba", "scikit-learn", "torch", "reservoirpy", "PyRCN", "echoes"),
    *("aeon", "reservoir-computing", "statsmodels", "pandas"),
)
ESTIMATORS = (
    *("ESNClassifier", "ESNRegressor", "ESNForecaster", "SeriesClassifier", "SeriesRegressor"),
    *("DeepESNClassifier", "DeepESNRegressor"),
)
# Settings that estimators no longer have, with the value, as text, that stands for what they do now.
FORMER = {"plasticity": "None", "noise": "0.0", "pooling": "'auto'"}
# keys of a row that the table shows, and their headings
HEADINGS = {
    "figure": "figure",
    "work": "work",
    "ours": "ours",
    "peer": "peer",
    "peer_name": "name of peer",
    "unit": "unit",
    "ratio": "ratio",
    "required": "required",
    "reached": "reached",
}


def write(name, rows, **facts):
    """Write rows to results/NAME.json, completely or not at all, and return the path.

    Figures that the file already has and that are not among the new rows stay in it, under "superseded", with the
    commit and the date that they came with. A program may write as often as it likes: what it has written itself is
    replaced.
    """
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    former = json.loads(path.read_text()) if path.exists() else {}
    rows = json.loads(json.dumps(rows, default=float))  # as they will be read
    found = {
        "date": now(),
        "commit": commit(),
        "process": PROCESS,
        "machine": machine(),
        "versions": versions(),
        "defaults": defaults(),
        **facts,
        "rows": rows,
        "superseded": superseded(former, rows),
    }
    replace_file(path, found)
    return path


def superseded(former, rows):
    """Return the earlier results that a file keeps when new rows are written."""
    kept = former.get("superseded", [])
    lost = [row for row in former.get("rows", []) if row not in rows]
    if not lost or former.get("process") == PROCESS:
        return kept
    return [*kept, {key: value for key, value in former.items() if key not in ("superseded", "rows")} | {"rows": lost}]


def defaults():
    """Return the defaults of the estimators, as text; the tests compare them with those that result files have."""
    import echolearn  # here, so that the processes of other libraries do without it
    from echolearn.fitting.parameters import GroupedSettings, flat_settings

    def settings(kind):
        parameters = {p.name: p.default for p in inspect.signature(kind).parameters.values()}
        found = flat_settings(kind()) if issubclass(kind, GroupedSettings) else parameters
        return {name: repr(value) for name, value in found.items() if value is not inspect.Parameter.empty}

    return {name: settings(getattr(echolearn, name)) for name in ESTIMATORS}


def now():
    """Return the date and time."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def commit():
    """Return the commit of the code, with a plus sign if files under src/ or benchmarks/ differ from it."""
    git = ["git", "-C", str(FOLDER.parent)]
    found = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    paths = ("../src", ".", ":(exclude)results")
    status = subprocess.run([*git, "status", "--porcelain", "--", *paths], capture_output=True, text=True).stdout
    return (found or None) if not status.strip() else f"{found}+"


def replace_file(path, content):
    """Write content as JSON, completely or not at all."""
    unfinished = path.with_suffix(".part")
    unfinished.write_text(json.dumps(content, indent=1, default=float) + "\n")
    os.replace(unfinished, path)


def machine():
    """Return the processor, the number of cores and the memory of this machine."""
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"cpu": cpu, "cores": os.cpu_count(), "memory_gb": round(psutil.virtual_memory().total / 1e9, 1)}


def versions():
    """Return the versions of Python and of the packages compared; None: not installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def table(rows):
    """Return rows as aligned text, one line each."""
    cells = [list(HEADINGS.values()), *([_cell(key, row.get(key)) for key in HEADINGS] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    text = [key in ("work", "peer_name", "required") for key in HEADINGS]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if is_text else cell.rjust(width)
            for cell, width, is_text in zip(line, widths, text, strict=True)
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
