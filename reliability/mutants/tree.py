"""The copy of the source tree in which mutants live, and which of its tests run which line."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "runs" / "mutants"
COPY = WORK / "tree"
MAP = WORK / "map.json"
# Tests of the tree itself, not of what the code does.
LEFT_OUT = (
    "tests/test_structure.py",
    "tests/test_supply.py",
    "tests/test_same_bits.py",
    "tests/campaigns/test_mutants.py",
)
COPIED = ("src", "tests", "reliability", "examples", "docs", "benchmarks", "tools", "pyproject.toml", "README.md")


def update_copy() -> None:
    """Bring the copy up to date; a file that is the same keeps its time, by which compiled code is found again."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *COPIED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    wanted = {name for name in listed.stdout.splitlines() if (ROOT / name).is_file()}
    for name in wanted:
        source, target = ROOT / name, COPY / name
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for path in COPY.rglob("*.py"):
        if path.relative_to(COPY).as_posix() not in wanted:
            path.unlink()


def environment() -> dict[str, str]:
    """Return the environment of a process that uses the copy."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    return {**os.environ, **threads, "PYTHONPATH": f"{COPY / 'src'}{os.pathsep}{COPY}"}


@dataclass
class Entry:
    """A test file: its digest, the processor seconds of its tests, and which tests (by number) run which line.

    -1 stands for all tests of the file: the line runs while a fixture is made, which they may share.
    """

    digest: str
    seconds: dict[str, float]
    lines: dict[str, dict[str, list[int]]] = field(default_factory=dict)  # by source file and line


class TestMap:
    """Which tests run which line. It is kept in a file, and a test file that has changed is run again."""

    def __init__(self) -> None:
        stored = json.loads(MAP.read_text(encoding="utf-8")) if MAP.is_file() else {}
        files = stored["files"] if stored.get("source") == source_digest() else {}
        self.files: dict[str, Entry] = {name: Entry(**entry) for name, entry in files.items()}

    def update(self, only: Iterable[str] = ()) -> None:
        """Run the test files that are new or changed, one folder at a time; only: folders to which this is limited."""
        stale: dict[str, list[str]] = {}
        present = {p.relative_to(COPY).as_posix(): p for p in sorted((COPY / "tests").rglob("test_*.py"))}
        self.files = {name: entry for name, entry in self.files.items() if name in present}
        for name, path in present.items():
            known = name in self.files and self.files[name].digest == _digest(path)
            if name not in LEFT_OUT and not known and (not only or name.split("/")[1] in only):
                stale.setdefault("/".join(name.split("/")[:2]), []).append(name)
        for folder, names in stale.items():
            print(f"which tests of {folder} run which line: {len(names)} files ...", flush=True)
            durations, data = WORK / "durations.json", WORK / "coverage"
            data.unlink(missing_ok=True)
            options = ["-p", "reliability.mutants.durations", "--cov=echolearn", "--cov-context=test", "--cov-report="]
            subprocess.run(
                [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, *names],
                cwd=COPY,
                env={**environment(), "MUTANTS_DURATIONS": str(durations), "COVERAGE_FILE": str(data)},
                stdout=subprocess.DEVNULL,
                check=False,
            )
            self.add(names, durations, data)
            self.save()

    def add(self, names: Iterable[str], durations: Path, data: Path) -> None:
        """Add what a run of test files has found; tests that did not pass are left out."""
        found = json.loads(durations.read_text(encoding="utf-8"))
        failed = set(found["not passed"])
        for name in names:
            tests = {t: s for t, s in found["seconds"].items() if t.split("::")[0] == name and t not in failed}
            self.files[name] = Entry(_digest(COPY / name), tests)
        numbers = {name: {test: k for k, test in enumerate(entry.seconds)} for name, entry in self.files.items()}
        for source, line, test, phase in _contexts(data):
            name = test.split("::")[0]
            number = -1 if phase == "setup" else numbers.get(name, {}).get(test)
            if number is not None and name in self.files:
                tests_of_line = self.files[name].lines.setdefault(source, {}).setdefault(str(line), [])
                if number not in tests_of_line[-1:]:
                    tests_of_line.append(number)

    def save(self) -> None:
        """Write the file."""
        files = {name: asdict(entry) for name, entry in self.files.items()}
        MAP.parent.mkdir(parents=True, exist_ok=True)
        MAP.write_text(json.dumps({"source": source_digest(), "files": files}), encoding="utf-8")

    def covering(self, source: str, lines: Iterable[int] | None) -> dict[str, list[str]]:
        """Return the tests, by test file, that run one of these lines, or any line of the source file."""
        wanted = None if lines is None else {str(line) for line in lines}
        found: dict[str, list[str]] = {}
        for name, entry in self.files.items():
            numbers: set[int] = set()
            for line, some in entry.lines.get(source, {}).items():
                if wanted is None or line in wanted:
                    numbers.update(some)
            tests = [test for k, test in enumerate(entry.seconds) if k in numbers or -1 in numbers]
            if tests:
                found[name] = tests
        return found


def source_digest() -> str:
    """Return a digest of the source of the copy."""
    digest = hashlib.sha256()
    for path in sorted((COPY / "src").rglob("*.py")):
        digest.update(f"{path.relative_to(COPY)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _contexts(data: Path) -> Iterable[tuple[str, int, str, str]]:
    """Yield file, line, test and phase of all lines that ran during a test."""
    with sqlite3.connect(data) as base:
        arcs = "SELECT DISTINCT f.path, abs(a.tono), c.context FROM arc a JOIN file f ON f.id = a.file_id "
        for path, line, context in base.execute(arcs + "JOIN context c ON c.id = a.context_id WHERE c.context != ''"):
            test, phase = context.rsplit("|", 1)
            yield path[path.index("src/echolearn") :], line, test, phase
