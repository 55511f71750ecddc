"""At least 10,000 invalid and unusual inputs, over all public entry points.

    python -m reliability.inputs [--inputs 12000] [--seed 0] [--only NAME]

Each must end in a finite answer, or in an error that the package (or a check of scikit-learn) raised on purpose, with a
message; within LIMIT seconds of processor time, and without leaving files that are only partly written. `deliberate`
looks at the line that raised the error: one from inside NumPy does not tell users what they did wrong.
"""

from __future__ import annotations

import argparse
import linecache
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from reliability import doors, entries, file_entries, results

LIMIT = 20.0  # seconds of processor time
TYPED = (ValueError, TypeError, OSError, MemoryError, ArithmeticError, AttributeError)
ENTRIES = {**entries.ENTRIES, **doors.ENTRIES, **file_entries.ENTRIES}
COLUMNS = ("inputs", "answered", "refused", "wrong")


class NotFinite(Exception):
    """The answer holds NaN or infinity."""


class TooLong(BaseException):
    """The call took longer than LIMIT."""


def deliberate(problem: BaseException) -> bool:
    """Return whether the innermost line is a `raise` of echolearn, or of a library's check of its arguments."""
    frame = traceback.extract_tb(problem.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    return line.startswith("raise") and any(name in frame.filename for name in ("echolearn", "sklearn", "click"))


def check_finite(answer: Any) -> None:
    """Raise NotFinite if any number of the answer is not finite."""
    if isinstance(answer, (list, tuple)):
        for part in answer:
            check_finite(part)
    elif isinstance(answer, dict):
        check_finite(list(answer.values()))
    elif isinstance(answer, np.ma.MaskedArray):
        check_finite(answer.compressed())
    elif hasattr(answer, "to_numpy"):
        values = answer.to_numpy()
        check_finite(list(values) if values.dtype == object else values)
    elif isinstance(answer, (float, np.ndarray, np.generic)):
        values = np.asarray(answer)
        if values.dtype.kind in "fc" and not np.isfinite(values).all():
            raise NotFinite(f"{values.size} numbers, {int((~np.isfinite(values)).sum())} not finite")


def verdict(call: Callable[[], Any]) -> str:
    """Return "answered", "refused", or "wrong: " and the reason."""

    def too_long(*_: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, too_long)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                check_finite(call())
            except NotFinite as problem:
                # a forecast that runs away warns of it
                return "answered" if caught else f"wrong: silently {problem}"
        raw = [w for w in caught if issubclass(w.category, RuntimeWarning) and "echolearn" in str(w.filename)]
        return (
            f"wrong: a raw warning, {raw[0].message} at line {raw[0].lineno} of {raw[0].filename[-30:]}"
            if raw
            else "answered"
        )
    except entries.Declined:
        return "refused"
    except doors.Misread as problem:
        return f"wrong: {problem}"
    except TooLong:
        return f"wrong: more than {LIMIT:g} seconds"
    except TYPED as problem:
        names_file = isinstance(problem, OSError) and problem.errno is not None and problem.filename is not None
        if (deliberate(problem) and len(str(problem)) >= 15) or names_file:
            return "refused"
        return f"wrong: {_where(problem)}"
    except BaseException as problem:
        from echolearn.exceptions import CorpusError

        if isinstance(problem, CorpusError):
            return "refused"
        return f"wrong: {_where(problem)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _where(problem: BaseException) -> str:
    """Return an error with the innermost line of echolearn that it passed through."""
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [f for f in frames if "/echolearn/" in f.filename] or frames
    last = ours[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    return f"{type(problem).__name__}: {str(problem)[:120]!r} at {place}"


def run(entry: Callable[[Any, Path], Any], count: int, start: int = 0) -> tuple[Counter[str], dict[str, str]]:
    """Return the verdicts on `count` inputs to one entry point, and an example of everything that was wrong."""
    counts: Counter[str] = Counter()
    wrong: dict[str, str] = {}

    with tempfile.TemporaryDirectory() as folder:

        @seed(start)
        @settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data())
        def one(data: Any) -> None:
            call, about = entry(data, Path(folder))
            found = verdict(call)
            counts["inputs"] += 1
            counts[found.split(":")[0]] += 1
            if found.startswith("wrong"):
                wrong.setdefault(found, f"{about!r:.300}")

        one()
        unfinished = [path.name for path in Path(folder).rglob("*") if path.name.endswith(".part")]
        if unfinished:
            counts["wrong"] += 1
            wrong[f"wrong: an unfinished file, {unfinished[0]}"] = ""
    return counts, wrong


def campaign(total: int, start: int = 0, only: str | None = None) -> dict[str, Any]:
    """Return the counts of all entry points, and what was wrong."""
    chosen = {name: entry for name, entry in ENTRIES.items() if only is None or name == only}
    weight = sum(share for _, share in chosen.values())
    rows, wrong = {}, []
    for name, (entry, share) in chosen.items():
        counts, examples = run(entry, -(-total * share // weight), start)
        rows[name] = dict(counts)
        wrong += [f"{name}: {what} <- {example}" for what, example in examples.items()]
        print(f"{name}: {dict(counts)}", file=sys.stderr, flush=True)
        for what, example in examples.items():
            print(f"   {what} <- {example}", file=sys.stderr, flush=True)
    rows["all"] = dict(sum((Counter(row) for row in rows.values()), Counter()))
    return {"inputs": rows, "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=12_000, help="inputs in all")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws")
    parser.add_argument("--only", choices=ENTRIES, help="try one entry point; its figures are not kept")
    options = parser.parse_args()
    figures = campaign(options.inputs, options.seed, options.only)
    results.show("invalid and unusual inputs", COLUMNS, figures["inputs"])
    for what in figures["wrong"]:
        print("FAILED", what)
    if options.only is None:
        results.keep("inputs", figures)
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
