"""Shared by the modules of tables: their register, the result files, and the form of numbers and tables."""

import json
import statistics
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
TABLES = {}


def table(function):
    """Register a table under the name of its function."""
    TABLES[function.__name__.replace("_", "-")] = function
    return function


def load(name, folder=None):
    """Return a result file, {} if there is none."""
    path = (folder or RESULTS) / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def markdown(heads, rows):
    """Return a table. A head that begins with > stands above a column of numbers."""
    line = "|".join("---:" if head.startswith(">") else "---" for head in heads)
    texts = [[head.lstrip(">") for head in heads], *rows]
    body = ["| " + " | ".join(map(str, cells)) + " |" for cells in texts]
    return "\n".join([body[0], f"|{line}|", *body[1:]])


def spread(summary, digits=1):
    """Return a mean with the least and the most, of what `contest_plan.summarise` returns."""
    return f"{summary['mean']:.{digits}f} ({summary['least']:.{digits}f} to {summary['most']:.{digits}f})"


def reached(value):
    """Return yes, or no in bold; nothing where no goal was set."""
    return "" if value is None else "yes" if value else "**no**"


def relative(value):
    """Return a relative difference in percent; a minus sign says that our error is the lower one."""
    return f"{-100 * value:+.1f} %".replace("-", "−")


def mean_and_spread(values, digits=1):
    """Return the mean of values with the least and the most."""
    return f"{statistics.mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"
