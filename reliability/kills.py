"""SIGKILL at random times, and a full disk: fits with a checkpoint, model files and checkpoints must survive both.

    python -m reliability.kills [--kills 100] [--minutes 60]

fits: each is killed at random times and started again in a fresh interpreter until it ends; its model must have the
bits of an undisturbed fit. Here states are saved after every mini-batch, not every five minutes.
saves: a process that only saves is killed; the file that exists then must load, and must be the last one that the
process reported as written, or the one after it.
full disk: files may not grow beyond a limit (RLIMIT_FSIZE), or a system call of a write fails; nothing saved before may
be lost, the command must fail and name the file, and with enough space it must end in the same bits.
"""

from __future__ import annotations

import argparse
import itertools
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import echolearn
from echolearn.fitting.parameters import grouped_settings
from echolearn.modelfile import checkpoint as checkpoints
from echolearn.modelfile.checkpoint import Checkpoint
from echolearn.modelfile.layout import MODEL
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.values import HISTORY_TENSORS, history_rows
from echolearn.readout import solver
from echolearn.readout.large import sketch, trackers
from reliability import results

ROOT = Path(__file__).resolve().parents[1]
SMALL: dict[str, Any] = {"connections": 4, "batch_size": 2, "epochs": 6, "patience": None}
DEEP: dict[str, Any] = {"units": 16, "layers": 3, "batch_size": 2, "epochs": 8}
# What is fitted: the estimator, its settings, and whether its readout is solved as that of large networks.
KINDS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "mini-batches, softmax, refined": ("ESNClassifier", {**SMALL, "hidden_units": 30}, False),
    "ensemble of two, a thread each": ("ESNClassifier", {**SMALL, "hidden_units": 40, "ensemble": 2}, False),
    "full batch, FISTA": (
        "ESNClassifier",
        {**SMALL, "hidden_units": 30, "epochs": 30, "batch_size": None, "optimizer": "fista", "step_size": 0.01},
        False,
    ),
    "values, ridge readout": ("ESNRegressor", {**SMALL, "hidden_units": 30, "epochs": 10}, False),
    "large, following": ("ESNClassifier", {**SMALL, "hidden_units": 40, "epochs": 4}, True),
    "deep, labels, best epoch": ("DeepESNClassifier", {**DEEP, "validation_fraction": 0.25, "patience": 9}, False),
    "deep, ensemble of two, a thread each": (
        "DeepESNClassifier",
        {**DEEP, "ensemble": 2, "bidirectional": True},
        False,
    ),
    "deep, values, ridge readout": ("DeepESNRegressor", DEEP, False),
    "deep, one value per series": ("DeepESNRegressor", {**DEEP, "batch_size": 1}, False),
}


def task(kind: str) -> tuple[list[Any], list[Any]]:
    """Return sequences and, as targets, products with the step before, or their signs, or the mean of each series."""
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(n, 3)) for n in rng.integers(30, 60, 16)]
    products = [np.concatenate([[0.0], x[:-1, 0] * x[1:, 1]]) for x in X]
    if kind.endswith("per series"):
        return X, [y.mean() for y in products]
    return X, products if KINDS[kind][0].endswith("Regressor") else [y > 0 for y in products]


def network(kind: str) -> Any:
    """Return an estimator to fit, and set the constants that its fit needs."""
    name, settings, large = KINDS[kind]
    checkpoints.SECONDS_BETWEEN_STATES = 0.0
    if large:
        solver.MIN_ITERATIVE_UNITS, sketch.SAMPLE_FRAMES, trackers.BATCHES_PER_SKETCH = 0, 100, 3
    kind = getattr(echolearn, name)
    return kind(**grouped_settings(settings, kind))


# ---------------------------------------------------------------- what is killed


def fit(kind: str, folder: str, model: str) -> None:
    """Fit with a checkpoint (or without, if folder is empty) and save the model: the work of a child process."""
    esn = network(kind)
    X, y = task(kind)
    print("begun", flush=True)
    esn.fit(X, y, checkpoint=folder or None).save(model)


def saver(what: str, path: Path) -> Callable[[int], object]:
    """Return a function that saves a model or state full of one number, each time under the same path."""
    if what == "checkpoints":
        checkpoint = Checkpoint(path, {})
        return lambda number: checkpoint.save(
            {"G": np.full((300, 300), float(number))}, {"number": number, "history": []}
        )
    esn = echolearn.ESNRegressor(200, learn="none").fit(*task("values, ridge readout"))

    def save(number: int) -> None:
        readout = esn.network_.readout
        network = replace(esn.network_, readout=replace(readout, U=np.full_like(readout.U, number)))
        esn.model_ = replace(esn.model_, network=network)
        esn.save(path, sums=True)

    return save


@contextmanager
def child(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run `fit` in a fresh interpreter."""
    command = [sys.executable, "-m", "reliability.kills", "--child", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


# ---------------------------------------------------------------- fits


def killed_fits(kind: str, kills: int, place: Path, rng: np.random.Generator, until: float) -> dict[str, Any]:
    """Kill fits `kills` times in all; return how many ended, and how many with the bits of an undisturbed one."""
    straight, model, folder = place / "straight.safetensors", place / "model.safetensors", place / "kept"
    usual = _undisturbed(kind, "", straight)
    found: dict[str, Any] = {"kills": 0, "fits": 0, "same bits": 0, "states lost": 0}
    while found["kills"] < kills and time.monotonic() < until:
        states = _readable_states(folder)
        if not _killed_after(rng.uniform(0, usual), kind, folder, model):
            found["fits"] += 1
            found["same bits"] += not differences(model, straight)
            shutil.rmtree(folder)
            continue
        found["kills"] += 1
        found["states lost"] += _readable_states(folder) < states
    _undisturbed(kind, folder, model)
    found["fits"] += 1
    found["same bits"] += not differences(model, straight)
    return found


def _undisturbed(kind: str, folder: object, model: Path) -> float:
    """Run a whole fit and return its seconds, without the start of the interpreter."""
    with child(kind, folder, model) as process:
        assert process.stdout is not None
        process.stdout.readline()
        begun = time.monotonic()
        _, errors = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"{kind}: the fit failed:\n{errors}")
    return time.monotonic() - begun


def _killed_after(seconds: float, kind: str, folder: Path, model: Path) -> bool:
    """Start a fit and kill it after some seconds; return False if it ended before."""
    with child(kind, folder, model) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return True
        if process.returncode != 0:
            raise RuntimeError(f"{kind}: a resumed fit failed:\n{errors}")
    return False


def _readable_states(folder: Path) -> int:
    """Return how many stages and networks of a fit have a state to resume from."""
    readable = set()
    for path in folder.rglob("state-*.safetensors"):
        try:
            read_tensors(path, checkpoints.CHECKPOINT)
            readable.add(path.parent)
        except ValueError:
            pass
    return len(readable)


def differences(one: Path, other: Path) -> list[str]:
    """Return the names of what differs between two model files; the seconds in their histories do not count."""
    a, b = (_content(path) for path in (one, other))
    return [name for name in {**a, **b} if not _equal(a.get(name), b.get(name))]


def _content(path: Path) -> dict[str, Any]:
    """Return all that a model file holds: its arrays, its facts and its history."""
    tensors, facts = read_tensors(path, MODEL)
    history = [{**row, "seconds": 0.0} for row in history_rows(tensors, facts.pop("history_columns"))]
    arrays = {name: value for name, value in tensors.items() if name not in HISTORY_TENSORS}
    return {**arrays, **facts, "history": history}


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    return bool(a == b)


# ---------------------------------------------------------------- saves


def killed_saves(what: str, kills: int, place: Path, rng: np.random.Generator, until: float) -> dict[str, Any]:
    """Kill a forked process that saves `what` ("model files" or "checkpoints") and reports each number written."""
    path = place / ("kept" if what == "checkpoints" else "model.safetensors")
    save = saver(what, path)
    found: dict[str, Any] = {"kills": 0, "old or new file loads": 0, "in the middle of writing": 0, "saves": 0}
    while found["kills"] < kills and time.monotonic() < until:
        save(0)
        last = _killed_while(save, rng.uniform(0, 0.3))
        found["kills"] += 1
        found["saves"] += last
        found["in the middle of writing"] += bool(list(place.rglob(".*.part")))
        found["old or new file loads"] += _number(path) in (last, last + 1)
        for unfinished in place.rglob(".*.part"):
            unfinished.unlink()
    return found


def _killed_while(save: Callable[[int], object], seconds: float) -> int:
    """Save in a child process that is killed after some seconds; return the last number that it reported."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork in a process with threads: the child uses none
        process = os.fork()
    if process == 0:
        try:
            for number in itertools.count(1):
                save(number)
                os.write(writing, f"{number}\n".encode())
        finally:
            os._exit(1)
    os.close(writing)
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    with os.fdopen(reading) as reported:
        return int(f"0 {reported.read()}".split()[-1])


def _number(path: Path) -> float:
    """Return the number that a saved model or state is full of; -1 if there are several, or if it does not load."""
    try:
        if path.is_dir():
            state = Checkpoint(path, {}).load({"G": (300, 300)})
            values, number = (state[0]["G"], state[1]["number"]) if state else (np.ones(1), -1)
        else:
            values = echolearn.load(path).network_.readout.U
            number = values[0, 0]
        return float(number) if (values == number).all() else -1.0
    except ValueError:
        return -1.0


# ---------------------------------------------------------------- full disks


def limited(limit: int | None) -> None:
    """Let no file of this process grow beyond `limit` bytes; None removes the limit."""
    _, largest = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest if limit is None else limit, largest))


def full_disk_command(corpus: Path, place: Path, factor: float = 1.4) -> dict[str, Any]:
    """Run `echolearn train` with files limited to 100, 1000, 1000 factor, ... bytes until it succeeds.

    (A limit of 0 would fail in the import of older versions of SciPy.)
    """
    straight, model, limit = place / "straight.safetensors", place / "model.safetensors", 100
    if (result := _train(corpus, straight, None)).returncode != 0:
        raise RuntimeError(f"the undisturbed run failed:\n{result.stderr}")
    found: dict[str, Any] = {"limits": 0, "failed": 0, "file named": 0, "nothing lost": 0, "same bits": 0}
    before = _kept_files(place)
    while (result := _train(corpus, model, limit)).returncode != 0:
        if limit > 1e9:
            raise RuntimeError(f"it fails with files of up to a gigabyte:\n{result.stderr}")
        after, unfinished = _kept_files(place), list(place.rglob(".*.part"))
        found["limits"] += 1
        found["failed"] += result.returncode == 2 and "Traceback" not in result.stderr
        found["file named"] += "cannot write" in result.stderr and ".safetensors" in result.stderr
        found["nothing lost"] += _none_lost(before, after) and not unfinished and not model.exists()
        before, limit = after, int(max(1000, factor * limit))
    found["same bits"] = int(not differences(model, straight))
    return found


def _train(corpus: Path, model: Path, limit: int | None) -> subprocess.CompletedProcess[str]:
    options = ["--units", "20", "--epochs", "3", "--set", "reservoir.connections=4"]
    command = [sys.executable, "-m", "echolearn", "train", "--out", str(model), "--corpus", f"features:{corpus}"]
    command += options
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: limited(limit))


def _kept_files(place: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in place.rglob("state-*.safetensors")}


def _none_lost(before: dict[Path, bytes], after: dict[Path, bytes]) -> bool:
    """Return whether every folder still has its newest state, or a newer one."""
    for folder in {path.parent for path in before}:
        newest = max(path for path in before if path.parent == folder)
        now = max((path for path in after if path.parent == folder), default=Path())
        if now < newest or (now == newest and after[now] != before[newest]):
            return False
    return all(content for content in after.values())


CALLS = 4  # system calls of a write: open, fsync of the file, replace, fsync of the folder


def full_disk_calls(kind: str, place: Path) -> dict[str, Any]:
    """Let every call of every write of a fit fail once, as on a full disk; the fit is started again each time."""
    X, y = task(kind)
    straight = network(kind).fit(X, y)
    straight.save(place / "straight.safetensors")
    found: dict[str, Any] = {"calls": 0, "file named": 0, "nothing lost": 0, "same bits": 0}
    while True:
        before, esn = _kept_files(place), network(kind)
        try:
            with _failing(1 + found["calls"] % CALLS):
                esn.fit(X, y, checkpoint=place / "kept")
            break
        except OSError as problem:
            found["calls"] += 1
            found["file named"] += str(place / "kept") in str(problem) and ".safetensors" in str(problem)
            found["nothing lost"] += _none_lost(before, _kept_files(place)) and not list(place.rglob(".*.part"))
    esn.fit(X, y, checkpoint=place / "kept").save(place / "model.safetensors")
    found["same bits"] = int(not differences(place / "model.safetensors", place / "straight.safetensors"))
    return found


@contextmanager
def _failing(number: int) -> Iterator[None]:
    """Let one of the calls that writes make fail: the first, second, ..."""
    count = itertools.count(1)

    def guarded(call: Any) -> Any:
        def run(*arguments: Any, **more: Any) -> Any:
            if next(count) == number:
                raise OSError(28, "No space left on device")
            return call(*arguments, **more)

        return run

    calls = {"echolearn.modelfile.atomic.open": open, "os.fsync": os.fsync, "os.replace": os.replace}
    with ExitStack() as stack:
        for name, call in calls.items():
            stack.enter_context(mock.patch(name, guarded(call), create=True))
        yield


# ---------------------------------------------------------------- all of it


def campaign(kills: int, minutes: float) -> dict[str, dict[str, Any]]:
    """Return the counts of all kinds of fits, saves and full disks."""
    rng, until = np.random.default_rng(), time.monotonic() + 60 * minutes
    rows: dict[str, dict[str, Any]] = {}

    def note(name: str, row: dict[str, Any]) -> None:
        rows[name] = row
        print(f"{name}: " + ", ".join(f"{value} {key}" for key, value in row.items()), flush=True)

    def place() -> Any:
        return tempfile.TemporaryDirectory(prefix="echolearn-kills-")

    shares = np.diff(np.linspace(0, kills, len(KINDS) + 1).astype(int))
    for kind, share in zip(KINDS, shares, strict=True):
        with place() as folder:
            note(f"fit: {kind}", killed_fits(kind, int(share), Path(folder), rng, until))
    for what in ("model files", "checkpoints"):
        with place() as folder:
            note(f"save: {what}", killed_saves(what, kills, Path(folder), rng, until))
    with place() as folder:
        corpus = Path(folder) / "corpus.npz"
        sys.path.append(str(ROOT / "tests" / "support"))
        import smallcorpus

        smallcorpus.write(corpus)
        note("full disk: echolearn train", full_disk_command(corpus, Path(folder)))
    for kind in ("mini-batches, softmax, refined", "values, ridge readout", "deep, values, ridge readout"):
        with place() as folder:
            note(f"full disk: {kind}", full_disk_calls(kind, Path(folder)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="kills of fits in all, and of saves of each kind")
    parser.add_argument("--minutes", type=float, default=60, help="no kill after so many minutes")
    options = parser.parse_args()
    rows = campaign(options.kills, options.minutes)
    for title, begin in (("SIGKILL in a fit", "fit"), ("SIGKILL in a save", "save"), ("full disk", "full disk")):
        part = {name.split(": ")[1]: row for name, row in rows.items() if name.startswith(begin)}
        results.show(title, tuple(dict.fromkeys(key for row in part.values() for key in row)), part)
    results.keep("kills", {"rows": rows})


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        fit(*sys.argv[2:])
    else:
        main()
