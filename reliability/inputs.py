"""At least 10,000 bad and odd inputs, over every public entry point.

    python -m reliability.inputs [--inputs 12000] [--seed 0] [--only NAME]

Each must end in a finite answer, or in an error that the package (or scikit-learn's own checks) raised on purpose, with
a message; within LIMIT seconds of processor time, and without files that are half written. `deliberate` looks at the
line that raised: an error out of NumPy's depths says nothing useful to the one who made the mistake.
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

from reliability import entries, file_entries, results

LIMIT = 20.0  # seconds of processor time
TYPED = (ValueError, TypeError, OSError, MemoryError, ArithmeticError, AttributeError)
ENTRIES = {**entries.ENTRIES, **file_entries.ENTRIES}
COLUMNS = ("inputs", "answered", "refused", "wrong")


class NotFinite(Exception):
    """The answer holds NaN or infinity, and nothing was said."""


class TooLong(BaseException):
    """The time is over."""


def deliberate(problem: BaseException) -> bool:
    """Whether the innermost line is a `raise` of echolearn, or of a library's own check of what it was given."""
    frame = traceback.extract_tb(problem.__traceback__)[-1]
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    return line.startswith("raise") and any(name in frame.filename for name in ("echolearn", "sklearn", "click"))


def check_finite(answer: Any) -> None:
    """NotFinite where a number of the answer is not."""
    if isinstance(answer, (list, tuple)):
        for part in answer:
            check_finite(part)
    elif isinstance(answer, dict):
        check_finite(list(answer.values()))
    elif isinstance(answer, (float, np.ndarray, np.generic)):
        values = np.asarray(answer)
        if values.dtype.kind in "fc" and not np.isfinite(values).all():
            raise NotFinite(f"{values.size} numbers, {int((~np.isfinite(values)).sum())} not finite")


def verdict(call: Callable[[], Any]) -> str:
    """answered, refused, or wrong: why."""

    def over(*_: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                check_finite(call())
            except NotFinite as problem:
                # a forecast that runs away says so
                return "answered" if said else f"wrong: silently {problem}"
        raw = [w for w in said if issubclass(w.category, RuntimeWarning) and "echolearn" in str(w.filename)]
        return (
            f"wrong: a raw warning, {raw[0].message} at line {raw[0].lineno} of {raw[0].filename[-30:]}"
            if raw
            else "answered"
        )
    except entries.Declined:
        return "refused"
    except TooLong:
        return f"wrong: more than {LIMIT:g} seconds"
    except TYPED as problem:
        told = isinstance(problem, OSError) and problem.errno is not None and problem.filename is not None
        if (deliberate(problem) and len(str(problem)) >= 15) or told:
            return "refused"
        return f"wrong: {_where(problem)}"
    except BaseException as problem:
        from echolearn.speech.errors import CorpusError

        if isinstance(problem, CorpusError):
            return "refused"
        return f"wrong: {_where(problem)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _where(problem: BaseException) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    ours = [f for f in frames if "/echolearn/" in f.filename] or frames
    last = ours[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    return f"{type(problem).__name__}: {str(problem)[:120]!r} at {place}"


def run(entry: Callable[[Any, Path], Any], count: int, start: int = 0) -> tuple[Counter[str], dict[str, str]]:
    """`count` inputs to one entry point: verdicts, and an example of everything that was wrong."""
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
        left = [path.name for path in Path(folder).rglob("*") if path.name.endswith(".part")]
        if left:
            counts["wrong"] += 1
            wrong[f"wrong: half a file, {left[0]}"] = ""
    return counts, wrong


def campaign(total: int, start: int = 0, only: str | None = None) -> dict[str, Any]:
    chosen = {name: way for name, way in ENTRIES.items() if only is None or name == only}
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
    ask = argparse.ArgumentParser()
    ask.add_argument("--inputs", type=int, default=12_000)
    ask.add_argument("--seed", type=int, default=0)
    ask.add_argument("--only")
    given_ = ask.parse_args()
    figures = campaign(given_.inputs, given_.seed, given_.only)
    results.show("bad and odd inputs", COLUMNS, figures["inputs"])
    for what in figures["wrong"]:
        print("FAILED", what)
    if given_.only is None:
        results.keep("inputs", figures)
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
