"""Compare the results of two commits bit for bit: those of BASE, and those of the working tree (HEAD).

    python -m reliability.same_bits.compare --base COMMIT [--only TEXT] [--fresh] [--store FOLDER]

Each commit runs the cases of this folder in a process of its own, with the packages that its requirements.lock pins and
with its own sources. Environments, exported sources and the results of BASE are kept in the store, by default as
.venv-same-bits-* in the repository, so that the next comparison with the same BASE runs HEAD only.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).with_name("cases.py")  # it imports the modules beside it
FAILURE = "failure"  # as in cases.py, which is not imported here because it imports echolearn
Results = Mapping[str, Mapping[str, Any]]  # arrays by case and name

# ---------------------------------------------------------------- running


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], check=True, cwd=ROOT, stdout=subprocess.PIPE).stdout


def digest(*contents: bytes) -> str:
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:12]


def environment(lock: bytes, store: Path) -> Path:
    """A virtual environment with the packages of a lock file, without echolearn."""
    place = store / f".venv-same-bits-{digest(lock, sys.version.encode())}"
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "requirements.lock", "ab") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # another comparison may be installing the same packages
        if not (place / "ready").exists():
            print(f"installing packages in {place}", flush=True)
            (place / "requirements.lock").write_bytes(lock)
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            pip = [place / "bin/python", "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
            subprocess.run([*pip, "-r", place / "requirements.lock"], check=True)
            (place / "ready").touch()
    return place


def run_cases(source: Path, place: Path, out: Path, handover: Path, *words: str) -> None:
    """Run the cases with the packages of the environment `place` and the echolearn in `source`/src."""
    # Numba does not notice changes of functions that a compiled function calls, so other sources get another cache.
    code = digest(*(path.read_bytes() for path in sorted((source / "src").rglob("*.py"))))
    version = tomllib.loads((source / "pyproject.toml").read_text())["project"]["version"]
    with TemporaryDirectory() as metadata:  # of the installed package: workers of a cluster compare their versions
        folder = Path(metadata) / f"echolearn-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: echolearn\nVersion: {version}\n")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA"))}
        variables |= {"NUMBA_CACHE_DIR": str(place / "numba" / code), "PYTHONWARNINGS": "ignore"}
        variables |= {"PYTHONPATH": f"{source / 'src'}{os.pathsep}{metadata}"}
        command = [place / "bin/python", CASES, "--source", source / "src", "--out", out, "--handover", handover]
        subprocess.run([*command, *words], check=True, cwd=metadata, env=variables)


def exported(commit: str, place: Path) -> Path:
    """The sources of a commit."""
    source = place / f"source-{commit}"
    if not source.exists():
        with TemporaryDirectory(dir=place) as folder:
            archive = git("archive", "--prefix=tree/", commit, "src", "pyproject.toml")
            subprocess.run(["tar", "-x", "-C", folder], check=True, input=archive)
            (Path(folder) / "tree").rename(source)
    return source


def results_of_base(commit: str, store: Path, only: str, fresh: bool) -> Path:
    """A folder with the results of a commit (arrays.npz) and the files that it hands over."""
    place = environment(git("show", f"{commit}:requirements.lock"), store)
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    code = [path.read_bytes() for path in sorted(CASES.parent.glob("*.py")) if path.name != Path(__file__).name]
    kept = place / f"results-{commit[:12]}-{digest(*code, str(threads).encode(), only.encode())}"
    print(f"BASE {commit[:12]}", flush=True)
    if kept.exists() and not fresh and not any(FAILURE in found for found in read(kept / "arrays.npz").values()):
        print("  results of an earlier run")
        return kept
    with TemporaryDirectory(dir=place) as folder:
        new = Path(folder) / "results"
        (new / "handover").mkdir(parents=True)
        words = ("--write-handover", "--only", only)
        run_cases(exported(commit, place), place, new / "arrays.npz", new / "handover", *words)
        shutil.rmtree(kept, ignore_errors=True)
        return new.rename(kept)


# ---------------------------------------------------------------- comparing


def read(path: Path) -> Results:
    found: dict[str, dict[str, Any]] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for key in arrays:
            case, _, name = key.partition("/")
            found.setdefault(case, {})[name] = arrays[key]
    return found


def text_difference(a: str, b: str) -> str:
    """The first line in which two texts differ, or an empty text."""
    if a == b:
        return ""
    lines = list(zip_longest(a.split("\n"), b.split("\n"), fillvalue="(no line)"))
    number = next(i for i, (old, new) in enumerate(lines) if old != new)
    old, new = lines[number]
    first = next((i for i, (x, y) in enumerate(zip(old, new, strict=False)) if x != y), min(len(old), len(new)))
    cut = slice(max(0, first - 40), first + 160)
    return f"line {number + 1} is {old[cut]!r} at BASE, {new[cut]!r} at HEAD"


def difference(a: Any, b: Any) -> str:
    """How two arrays differ in dtype, shape or bits, or an empty text. Every NaN counts as the same."""
    if a.dtype.kind == b.dtype.kind == "U" and a.ndim == b.ndim == 0:
        return text_difference(str(a), str(b))
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"{a.dtype} {a.shape} at BASE, {b.dtype} {b.shape} at HEAD"
    if a.dtype.kind == "f":
        a, b = (np.where(np.isnan(values), values.dtype.type(np.nan), values) for values in (a, b))
    if a.tobytes() == b.tobytes():
        return ""
    if a.dtype.kind not in "fiu":
        return f"{np.count_nonzero(a != b)} of {a.size} entries differ"
    with np.errstate(all="ignore"):
        apart = np.fmax.reduce(np.abs(a.astype(np.float64) - b.astype(np.float64)), axis=None)
    return f"largest absolute difference {apart:.3g}" if apart > 0 else "NaN on one side, or another sign of zero"


def verdict(base: Mapping[str, Any] | None, head: Mapping[str, Any] | None) -> str:
    """What is wrong with a case, or an empty text."""
    if base is None or head is None:
        return f"DIFFERENT: the case exists at {'HEAD' if base is None else 'BASE'} only"
    if FAILURE in base or FAILURE in head:
        sides = ("BASE", base), ("HEAD", head)
        return "FAILED\n" + "\n".join(f"{side}: {found[FAILURE]}" for side, found in sides if FAILURE in found)
    alone = [f"{name} exists at BASE only" for name in base if name not in head]
    alone += [f"{name} exists at HEAD only" for name in head if name not in base]
    shared = [(name, difference(base[name], head[name])) for name in base if name in head]
    wrong = [f"{name}: {found}" for name, found in shared if found] + alone
    return f"DIFFERENT in {len(wrong)} arrays, first {wrong[0]}" if wrong else ""


def table(base: Results, head: Results) -> tuple[str, bool]:
    """One line per case, and whether all cases are equal. Without any case there is nothing to call equal."""
    verdicts = {case: verdict(base.get(case), head.get(case)) for case in [*base, *head]}
    width, wrong = max(map(len, verdicts), default=0), sum(map(bool, verdicts.values()))
    rows = [f"{case:{width}}  {len(base.get(case, ())):6}  {found or 'equal'}" for case, found in verdicts.items()]
    summary = f"{len(verdicts) - wrong} of {len(verdicts)} cases are equal to the bit."
    return "\n".join([f"{'case':{width}}  arrays  result", *rows, summary]), bool(verdicts) and not wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the working tree with a commit, bit for bit.")
    parser.add_argument("--base", default="HEAD~1", help="the commit")
    parser.add_argument("--only", default="", help="run only the cases whose names contain this text")
    parser.add_argument("--fresh", action="store_true", help="run BASE even if its results are known")
    parser.add_argument("--store", type=Path, default=ROOT, help="folder for environments and results of BASE")
    given = parser.parse_args()
    commit = git("rev-parse", "--verify", f"{given.base}^{{commit}}").decode().strip()
    store = given.store.resolve()
    base = results_of_base(commit, store, given.only, given.fresh)
    print("HEAD, the working tree", flush=True)
    with TemporaryDirectory() as folder:
        place = environment((ROOT / "requirements.lock").read_bytes(), store)
        run_cases(ROOT, place, Path(folder) / "arrays.npz", base / "handover", "--only", given.only)
        text, equal = table(read(base / "arrays.npz"), read(Path(folder) / "arrays.npz"))
    print(text)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
