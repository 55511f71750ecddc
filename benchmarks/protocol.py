"""The door to test parts, and the rules of docs/evidence/protocol.md that it enforces.

An experiment NAME has a file benchmarks/frozen/NAME.toml with its settings, and its candidates if it chooses among any.
`open_test` hands out the test part only when that file is committed and unchanged, and when nothing under src/ and
benchmarks/ (its results aside) differs from the commit. So the commit that a result names holds everything that
decided it, and settings that are changed after a look at the test part leave a trace in the history.
"""

import ast
import fcntl
import hashlib
import importlib.util
import json
import os
import subprocess
import tomllib
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import an4
import results

ROOT = Path(__file__).resolve().parents[1]
CODE = ("src", "benchmarks", ":(exclude)benchmarks/results")  # what must be committed, as git's path patterns
READINGS = "test_readings"  # the result file that lists every reading of a test part


class NotFrozen(RuntimeError):
    """The settings or the code of an experiment are not committed, so its test part stays closed."""


def frozen_path(experiment):
    """Return the file that holds the settings of an experiment."""
    return ROOT / "benchmarks" / "frozen" / f"{experiment}.toml"


def read_frozen(experiment):
    """Return the settings of an experiment, with the candidates of the files that it names under `include`."""
    path = frozen_path(experiment)
    if not path.exists():
        raise NotFrozen(f"The experiment {experiment!r} has no settings: write {path.relative_to(ROOT)} and commit it.")
    settings = tomllib.loads(path.read_text(encoding="utf-8"))
    for other in settings.pop("include", []):
        settings.setdefault("candidate", []).extend(read_frozen(other)["candidate"])
    return settings


def git(*arguments):
    """Return what a git command prints, or None if it fails (no repository, or not in the commit)."""
    done = subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def changed_files():
    """Return the files under src/ and benchmarks/ that differ from the commit, new files included."""
    status = git("status", "--porcelain", "--untracked-files=all", "--", *CODE)
    return [] if not status else [line.split(maxsplit=1)[1] for line in status.splitlines()]


def require_frozen(experiment):
    """Return the commit and the blob id of the experiment's settings, or refuse."""
    commit = git("rev-parse", "HEAD")
    name, committed = _committed_blob(experiment, commit)
    if changed := changed_files():
        raise NotFrozen(
            f"{len(changed)} files differ from the commit {commit[:10]}: {', '.join(changed[:5])}. The test part is "
            "only read by committed code: commit them, or take the changes back."
        )
    require_own_package()
    included = tomllib.loads(frozen_path(experiment).read_text(encoding="utf-8")).get("include", [])
    blobs = dict(_committed_blob(other, commit) for other in included)
    return {"commit": commit, "frozen": name, "blob": committed} | ({"included": blobs} if blobs else {})


def _committed_blob(experiment, commit):
    """Return the name of a frozen file and its blob id, or refuse if it is not what the commit has."""
    path = frozen_path(experiment)
    name = path.relative_to(ROOT).as_posix()
    if commit is None:
        raise NotFrozen(f"{ROOT} is not a git repository with a commit, so nothing shows when {name} was settled.")
    committed = git("rev-parse", "--verify", "--quiet", f"HEAD:{name}")
    if committed is None:
        raise NotFrozen(f"{name} is not in the commit {commit[:10]}. Commit the settings before the test part is read.")
    if not path.exists() or git("hash-object", "--no-filters", "--", name) != committed:
        raise NotFrozen(f"{name} differs from the commit {commit[:10]}. Commit the change, or take it back.")
    return name, committed


def require_own_package():
    """Refuse when `import echolearn` would load a package of another folder than the one whose commit is recorded."""
    spec = importlib.util.find_spec("echolearn")
    source = ROOT / "src" / "echolearn"
    if source.exists() and spec is not None and spec.origin and not Path(spec.origin).resolve().is_relative_to(source):
        raise NotFrozen(f"echolearn is imported from {spec.origin}, not from src/: set PYTHONPATH={ROOT / 'src'}.")


def open_test(experiment, path, *, seeds, prepared=False):
    """Return the test part of an AN4 file (inputs and labels, one array per utterance), and what `describe` returns.

    seeds: random states of the networks to be tested, which are recorded. prepared: whether the inputs have the 117
    columns that `an4.load_an4` gives, instead of 13 cepstra.
    """
    record = describe(experiment, path, seeds=seeds)  # refuses before anything is read
    part = an4.read_parts(path, [an4.TEST])[an4.TEST]
    log_reading(record)
    return (an4.prepare(part[0]), part[1]) if prepared else part, record


def describe(experiment, path, *, seeds):
    """Return commit, blob id of the settings, digest of the data, seeds, versions, machine and date, or refuse."""
    path = an4.data_file(path)
    return {
        "experiment": experiment,
        **require_frozen(experiment),
        "data_sha256": file_digest(path),
        "arrays_sha256": data_digest(path),
        "seeds": list(seeds),
        "versions": results.versions(),
        "machine": results.machine(),
        "date": results.now(),
    }


def log_reading(record):
    """Count this reading of a test part in results/test_readings.json: once per experiment, commit and settings."""
    with updated(results.FOLDER / f"{READINGS}.json") as content:
        entries = content.setdefault("readings", [])
        key = {name: record[name] for name in ("experiment", "commit", "blob", "data_sha256")}
        found = next((entry for entry in entries if key.items() <= entry.items()), None)
        if found is None:
            entries.append({**key, "first": record["date"], "last": record["date"], "times": 1})
        else:
            found.update(last=record["date"], times=found["times"] + 1)


@contextmanager
def updated(path):
    """Yield the content of a JSON file, and write what it has become, completely or not at all.

    Another process that wants to change the same file waits, so that no change is lost.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        content = json.loads(path.read_text()) if path.exists() else {}
        yield content
        results.replace_file(path, content)


def file_digest(path):
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def data_digest(path):
    """Return the SHA-256 of the arrays in an AN4 file: the same for every file that was built from the same data."""
    digest = hashlib.sha256()
    with np.load(an4.data_file(path), allow_pickle=False) as file:
        for name, kind in (("features", "<f4"), ("labels", "<i8"), ("lengths", "<i8")):
            digest.update(np.ascontiguousarray(file[name], dtype=kind).tobytes())
        digest.update("\n".join(file["split"].tolist()).encode())
    return digest.hexdigest()


def code_fingerprint(patterns):
    """Return a digest of the Python code of files and folders; comments, docstrings and layout do not change it."""
    digest = hashlib.sha256()
    for path in code_files(patterns):
        digest.update(f"{path.relative_to(ROOT).as_posix()}\n{_without_docstrings(path)}\n".encode())
    return digest.hexdigest()


def code_files(patterns):
    """Return the Python files that a list of files and folders names, sorted."""
    found = set()
    for pattern in patterns:
        path = ROOT / pattern
        if not path.exists():
            raise FileNotFoundError(f"{pattern} names no file of {ROOT}")
        found |= set(path.rglob("*.py")) if path.is_dir() else {path}
    return sorted(found)


def _without_docstrings(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            node.body = node.body[1:]
    return ast.dump(tree)


def frame_error(probabilities, labels):
    """Return the percentage of frames whose most probable class is not their label."""
    wrong = sum(int((np.argmax(p, axis=1) != y).sum()) for p, y in zip(probabilities, labels, strict=True))
    return 100 * wrong / sum(map(len, labels))


def single_threaded(environment=os.environ):
    """Return an environment in which numerical libraries of a child process use one thread each."""
    names = ("OMP", "NUMBA", "OPENBLAS", "MKL", "NUMEXPR", "VECLIB")
    return {**environment, **{f"{name}_NUM_THREADS": "1" for name in names}}
