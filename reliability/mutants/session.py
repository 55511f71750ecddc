"""The quick judgement: one session of pytest in which everything is imported, and a forked process for every mutant.

The changed function gets its new code in the forked process, so that nothing is imported or collected again. What has
run before, while the modules were imported, is not changed by that: what survives here must be judged again by
`judging.judge`, and so must changes outside of functions or in compiled functions.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from reliability.mutants.judging import BROKEN, OPTIONS, Verdict, enter_copy, limit_child, verdict_of, wait_for
from reliability.mutants.tree import COPY, WORK, TestMap

UNFIT = 71  # exit code of a process whose function could not be changed


@dataclass(frozen=True)
class Job:
    """A mutant: the source file, the whole changed source, the first changed line, and the tests to run."""

    number: int
    path: str
    source: str
    line: int
    tests: Sequence[str]


Record = Callable[[int, Verdict], None]


def judge_quickly(jobs: Sequence[Job], tests: TestMap, record: Record) -> None:
    """Judge the mutants in a forked process; `record` is called there with the number of a job and its verdict."""
    server = os.fork()
    if server == 0:
        code = BROKEN
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            progress = os.fdopen(os.dup(1), "w", buffering=1)
            enter_copy()
            import pytest

            files = sorted({test.split("::")[0] for job in jobs for test in job.tests})
            options = [option for option in OPTIONS if option != "-x"]
            with open(WORK / "session.txt", "w") as log, contextlib.redirect_stdout(log):
                code = int(pytest.main([*options, *files], plugins=[_Loop(jobs, tests, record, progress)]))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])
    except BaseException:
        os.kill(server, signal.SIGTERM)
        raise
    if code:
        raise RuntimeError(f"the session of the quick judgement failed (exit code {code}); see {WORK / 'session.txt'}")


class _Loop:
    """A pytest plugin that takes the place of the loop over the tests."""

    def __init__(self, jobs: Sequence[Job], tests: TestMap, record: Record, progress: Any):
        self.jobs, self.tests, self.record, self.progress = jobs, tests, record, progress
        self.failed = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the first failure."""
        if report.failed and not self.failed:
            self.failed = report.nodeid
            (WORK / "first_failure").write_text(report.nodeid, encoding="utf-8")

    def pytest_runtestloop(self, session: Any) -> bool:
        """Judge one mutant after the other; the first is the source as it is, which all tests must pass."""
        others = [one for one in threading.enumerate()[1:] if not one.name.startswith("echolearn")]  # those may fork
        if others:
            raise RuntimeError(f"threads run before the fork: {others}")
        items = {item.nodeid: item for item in session.items}
        seconds = {test: s for entry in self.tests.files.values() for test, s in entry.seconds.items()}
        functions = _functions()
        some: dict[str, str] = {}
        for test in items:
            if seconds.get(test, 1.0) < 0.3:
                some.setdefault(test.split("::")[0], test)
        path = "src/echolearn/__init__.py"
        control = Job(-1, path, (COPY / path).read_text(encoding="utf-8"), 0, list(some.values()))
        for job in (control, *self.jobs):
            began = time.monotonic()
            (WORK / "first_failure").unlink(missing_ok=True)
            chosen = [items[test] for test in job.tests if test in items]
            child = os.fork()
            if child == 0:
                self._child(job, chosen, functions, 4 + 3 * sum(seconds[item.nodeid] for item in chosen))
            status = wait_for(child)
            if job is control:
                if status != 0:
                    raise RuntimeError("tests fail without any mutant, or none was found")
                continue
            if status is not None and os.WIFEXITED(status) and os.WEXITSTATUS(status) == UNFIT:
                continue
            outcome, by = verdict_of(status)
            spent = round(time.monotonic() - began, 1)
            self.record(job.number, Verdict(outcome, by, len(chosen), spent))
            print(f"{job.number + 1} {outcome:8} {spent:6.1f} s {job.path}:{job.line} {by}", file=self.progress)
        return True

    def _child(self, job: Job, items: Sequence[Any], functions: dict[tuple[str, str, int], Any], limit: float) -> None:
        """Change the function, run the tests until one fails, and end this process."""
        code = BROKEN
        try:
            limit_child(limit)
            if job.number >= 0 and not _swap(job, functions):
                code = UNFIT
                return
            for k, item in enumerate(items):
                following = items[k + 1] if k + 1 < len(items) else None
                try:
                    item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                except (KeyboardInterrupt, SystemExit):  # pytest passes them on; here they end one test
                    (WORK / "first_failure").write_text(item.nodeid, encoding="utf-8")
                    self.failed = item.nodeid
                if self.failed:
                    break
            code = 1 if self.failed else 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)


def _functions() -> dict[tuple[str, str, int], list[FunctionType]]:
    """Return all functions of the copy, by file, qualified name and first line."""
    found: dict[tuple[str, str, int], list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(COPY / "src")):
            code = one.__code__
            found.setdefault((code.co_filename, code.co_qualname, code.co_firstlineno), []).append(one)
    return found


def _swap(job: Job, functions: dict[tuple[str, str, int], list[FunctionType]]) -> bool:
    """Give the outermost function around the changed line its new code; False for none, and for a compiled one."""
    outermost = _outermost(job.source, job.line)
    if outermost is None:
        return False
    name = str(COPY / job.path)
    for code in _codes(compile(job.source, name, "exec", dont_inherit=True)):
        if (code.co_qualname, code.co_firstlineno) == outermost:
            found = functions.get((name, *outermost), [])
            for function in found:
                function.__code__ = code
            return bool(found)
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _outermost(source: str, line: int) -> tuple[str, int] | None:
    """Return the qualified name and the first line of the outermost function that has a line in its body."""
    stack: list[tuple[ast.AST, str]] = [(ast.parse(source), "")]
    while stack:
        node, prefix = stack.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                stack.append((child, f"{prefix}{child.name}."))
            elif isinstance(child, ast.FunctionDef) and child.body[0].lineno <= line <= (child.end_lineno or 0):
                compiled = any("jit" in ast.unparse(decorator) for decorator in child.decorator_list)
                first = min([child.lineno, *(decorator.lineno for decorator in child.decorator_list)])
                return None if compiled else (f"{prefix}{child.name}", first)
            elif not isinstance(child, ast.FunctionDef):
                stack.append((child, prefix))
    return None
