"""Runs the tests against one mutant, in a process of its own that is forked with the libraries loaded."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reliability.mutants.tree import COPY, WORK, TestMap, environment

MEMORY = 16 * 2**30  # bytes of address space
OPTIONS = ["-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:cov"]
OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # plugins are loaded already
BROKEN = 70  # exit code of a process in which something else than a test has failed
PATIENCE = 1_800  # seconds of wall time, on a machine that may be busy


@dataclass(frozen=True)
class Verdict:
    """The outcome of a mutant: "killed", "timeout" or "survived"; by: the first test that failed."""

    outcome: str
    by: str
    tests: int
    seconds: float


@dataclass(frozen=True)
class Places:
    """Where a mutant is: the source file, the lines of its statement, and those of its function (None: outside)."""

    path: str
    lines: tuple[int, int]
    function: tuple[int, int] | None


def load_libraries() -> None:
    """Import what every test needs, so that a forked process has it; nothing of echolearn."""
    import hypothesis
    import numba.core.typing
    import pandas
    import pytest
    import scipy.linalg
    import scipy.sparse.linalg
    import sklearn.model_selection
    import sklearn.pipeline
    import sklearn.utils.estimator_checks

    loaded = (hypothesis, numba, pandas, pytest, scipy, sklearn)
    assert all(loaded)
    empty = WORK / "test_nothing.py"
    empty.write_text("def test_nothing():\n    pass\n", encoding="utf-8")
    pytest.main([*OPTIONS, "--rootdir", str(WORK), "-c", os.devnull, str(empty)])
    assert "echolearn" not in sys.modules


def choose_tests(tests: TestMap, places: Places, most: float, *, own_alone: bool = False) -> list[list[str]]:
    """Return the tests of a mutant in two rounds: some seconds of quick ones first, those of the module in front.

    The tests are those that run the statement, or the function (for the defaults in its head), or else the file.
    The second round ends before it takes more than `most` seconds. own_alone: only those of the package itself.
    """
    found: dict[str, list[str]] = {}
    for lines in (places.lines, places.function):
        if not found and lines is not None and places.function is not None:
            found = tests.covering(places.path, range(lines[0], lines[1] + 1))
    found = found or tests.covering(places.path, None)
    package, module = places.path.split("/")[2], Path(places.path).stem
    own = f"tests/{package}/"
    if own_alone:
        found = {name: some for name, some in found.items() if name.startswith(own)}

    def rank(name: str) -> tuple[int, float]:
        seconds = sum(tests.files[name].seconds[test] for test in found[name])
        return (0 if name.endswith(f"test_{module.strip('_')}.py") else 1 if name.startswith(own) else 2), seconds

    quick: list[str] = []
    slow: list[str] = []
    spent = [0.0, 0.0]
    for name in sorted(found, key=rank):
        for test in sorted(found[name], key=lambda t: tests.files[name].seconds[t]):
            seconds = tests.files[name].seconds[test]
            first = seconds < 1.0 and spent[0] + seconds < most / 3
            if first or spent[1] + seconds < most or not (quick or slow):
                (quick if first else slow).append(test)
                spent[0 if first else 1] += seconds
    return [some for some in (quick, slow) if some]


def check_harness(tests: TestMap) -> None:
    """Run some tests of every folder against the source as it is; they must pass, or no verdict means anything."""
    some: dict[str, str] = {}
    for entry in tests.files.values():
        for test, seconds in entry.seconds.items():
            if seconds < 0.5:
                some.setdefault(test.split("/")[1], test)
    outcome, by = _run(list(some.values()), limit=600)
    if outcome != "survived":
        raise RuntimeError(f"tests fail without any mutant ({outcome}): {by}; see {WORK / 'output.txt'}")


def judge(source: str, path: str, rounds: list[list[str]], tests: TestMap) -> Verdict:
    """Return the verdict on a source that takes the place of a file in the copy."""
    began = time.monotonic()
    count = 0
    with _in_place(COPY / path, source):
        for some in rounds:
            expected = sum(tests.files[test.split("::")[0]].seconds[test] for test in some)
            count += len(some)
            outcome, by = _run(some, limit=20 + 3 * expected)
            if outcome != "survived":
                return Verdict(outcome, by, count, round(time.monotonic() - began, 1))
    return Verdict("survived", "", count, round(time.monotonic() - began, 1))


@contextlib.contextmanager
def _in_place(path: Path, source: str) -> Iterator[None]:
    """Replace a file; afterwards it, its time and the compiled code of its functions are as before."""
    saved = WORK / "saved"
    shutil.rmtree(saved, ignore_errors=True)
    saved.mkdir(parents=True)
    compiled = path.parent / "__pycache__"
    kept = [path, *compiled.glob(f"{path.stem}.*.nb*")]
    for file in kept:
        shutil.copy2(file, saved)
    try:
        path.write_text(source, encoding="utf-8")
        _forget(compiled, path.stem)
        yield
    finally:
        _forget(compiled, path.stem)
        for file in kept:
            shutil.copy2(saved / file.name, file)


def _forget(compiled: Path, stem: str) -> None:
    """Remove the compiled code of a file: a mutant may have the size and the second of another."""
    for file in (*compiled.glob(f"{stem}.*.nb*"), *compiled.glob(f"{stem}.*.pyc")):
        file.unlink()


class _Selection:
    """A pytest plugin that runs the given tests, in their order, and keeps the name of the first that fails."""

    def __init__(self, tests: list[str]):
        self.order = {test: k for k, test in enumerate(tests)}
        self.report = WORK / "first_failure"

    def pytest_collection_modifyitems(self, items: list) -> None:  # type: ignore[type-arg]
        """Keep the chosen tests."""
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])

    def pytest_runtest_logreport(self, report) -> None:  # type: ignore[no-untyped-def]
        """Keep the first failure."""
        if report.failed and not self.report.is_file():
            self.report.write_text(report.nodeid, encoding="utf-8")


def _run(tests: list[str], limit: float) -> tuple[str, str]:
    """Run tests until one fails, with a limit on processor seconds; return the outcome and the test that failed."""
    report = WORK / "first_failure"
    report.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        _child(tests, limit)
    return verdict_of(wait_for(child))


def verdict_of(status: int | None) -> tuple[str, str]:
    """Return the outcome and the test that failed, from the status of a process; None: it took too long."""
    report = WORK / "first_failure"
    by = report.read_text(encoding="utf-8") if report.is_file() else ""
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)):
        return "timeout", by
    code = os.waitstatus_to_exitcode(status)
    if code == 0:
        return "survived", ""
    output = (WORK / "output.txt").read_text(encoding="utf-8", errors="replace")
    if by or code < 0 or code == 2 or "while loading conftest" in output:
        return "killed", by or "at import"
    raise RuntimeError(f"the tests did not run as they should (exit code {code}):\n{output}")


def wait_for(child: int) -> int | None:
    """Wait for a process and end what it started; None if it took too long."""
    end = time.monotonic() + PATIENCE
    status = None
    while status is None and time.monotonic() < end:
        done, found = os.waitpid(child, os.WNOHANG)
        status = found if done else None
        if status is None:
            time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return status


def limit_child(limit: float) -> None:
    """Limit processor seconds and memory of this process, and send its output to a file."""
    os.setsid()
    out = os.open(WORK / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(out, 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 60))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def enter_copy() -> None:
    """Make this process use the copy of the tree."""
    os.environ.update(environment())
    here = str(Path.cwd())
    os.chdir(COPY)
    sys.path[:] = [str(COPY / "src"), str(COPY), *(p for p in sys.path if p not in ("", here))]
    for name in [name for name in sys.modules if name.split(".")[0] == "reliability"]:
        del sys.modules[name]


def _child(tests: list[str], limit: float) -> None:
    """Run the tests in this process, which never returns."""
    code = BROKEN
    try:
        limit_child(limit)
        enter_copy()
        import pytest

        files = list(dict.fromkeys(test.split("::")[0] for test in tests))
        code = int(pytest.main([*OPTIONS, *files], plugins=[_Selection(tests)]))
        module = sys.modules.get("echolearn")
        if module is not None and not str(module.__file__).startswith(str(COPY)):
            print(f"echolearn was imported from {module.__file__}, not from the copy")
            code = BROKEN
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
