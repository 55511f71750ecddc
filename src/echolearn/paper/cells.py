"""Fitted cells of a table on disk, each with a fingerprint of its settings and corpus."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Generic, NotRequired, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

from echolearn import __version__
from echolearn.estimators import ESNClassifier, StackedClassifier, load
from echolearn.execution.threads import thread_count
from echolearn.fitting.settings import NetworkSettings
from echolearn.modelfile.atomic import write_atomically
from echolearn.paper.parts import CorpusParts, Part
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.speech._phones import split_state

Result = TypeVar("Result", bound=Mapping[str, object])  # it has a fingerprint


def fit_fingerprint(estimator: StateClassifier, corpus: str) -> str:
    """Return a hash of what a result depends on: settings, the fingerprint of the corpus, and the version."""
    return fingerprint_of([__version__, corpus, estimator.get_params(deep=False)])


def fingerprint_of(content: object) -> str:
    """Return a hash of anything that JSON can say, and of the settings of layers."""
    text = json.dumps(content, sort_keys=True, default=lambda one: _layer(one) or str(one))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _layer(one: object) -> object:
    return one.get_params(deep=False) if isinstance(one, ESNClassifier) else None


def _checksum(result: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()


class CellStore(Generic[Result]):
    """A folder with one JSON file and one model file per cell, and a checkpoint folder for the one being fitted.

    Beside a cell there may be scores of its network, each a JSON file with a fingerprint of what it depends on.
    """

    def __init__(self, folder: Path, note: Note):
        self.folder, self.note = folder, note
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, name: str, fingerprint: str) -> Result | None:
        """Return a finished cell, or None where there is none or it was made from something else."""
        path = self.folder / f"{name}.json"
        if not path.is_file():
            return None
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            result: Result = stored
            if "cell" in stored:  # cells of earlier versions have no checksum
                result = stored["cell"]
                if stored["sha256"] != _checksum(result):
                    raise ValueError("its checksum does not match")
            if result["fingerprint"] == fingerprint and self.model_path(name).is_file():
                return result
            reason = "was made with other settings or another corpus"
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            reason = "is damaged"
        self.note(f"{path} {reason}; it is computed again")
        return None

    def find_score(self, name: str, kind: str, fingerprint: str) -> dict[str, object] | None:
        """Return a score of a cell's network, or None where there is none or it was made from something else."""
        path = self._score_path(name, kind)
        if not path.is_file():
            return None
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            score: dict[str, object] = stored["score"]
            if stored["sha256"] == _checksum(score):
                return score if stored["fingerprint"] == fingerprint else None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        self.note(f"{path} is damaged; it is computed again")
        return None

    def save_score(self, name: str, kind: str, fingerprint: str, score: Mapping[str, object]) -> None:
        """Write a score of a cell's network."""
        content = {"sha256": _checksum(score), "fingerprint": fingerprint, "score": score}
        write_atomically(self._score_path(name, kind), json.dumps(content, indent=1).encode())

    def _score_path(self, name: str, kind: str) -> Path:
        return self.folder / f"{name}.{kind}.json"

    def checkpoint(self, name: str, fingerprint: str) -> Path:
        """Return the folder in which the fit of a cell keeps its state."""
        return self.folder / f"{name}-{fingerprint}.checkpoint"

    def save(self, name: str, result: Result, model: StateClassifier) -> None:
        """Write a finished cell and remove its checkpoints."""
        model.save(self.model_path(name))
        content = {"sha256": _checksum(result), "cell": result}
        write_atomically(self.folder / f"{name}.json", json.dumps(content, indent=1).encode())
        self._remove_checkpoints(name)

    def model_path(self, name: str) -> Path:
        """Return the file of a cell's network."""
        return self.folder / f"{name}.safetensors"

    def load_model(self, name: str) -> ESNClassifier:
        """Return the network of a finished cell."""
        model: ESNClassifier = load(self.model_path(name))
        return model

    def remove(self, names: Iterable[str]) -> None:
        """Remove these cells, finished or not."""
        for name in names:
            self._remove_checkpoints(name)
            for path in (self.folder / f"{name}.json", self.model_path(name), *self.folder.glob(f"{name}.*.json")):
                path.unlink(missing_ok=True)

    def _remove_checkpoints(self, name: str) -> None:
        for path in self.folder.glob(f"{name}-*.checkpoint"):
            shutil.rmtree(path)


Note = Callable[[str], object]  # receives a line for the user
EpochRow = dict[str, float]  # a row of an estimator's history_
StateClassifier = ESNClassifier | StackedClassifier  # a network for phone states


class FitResult(TypedDict):
    """What is known of a fit. Errors are fractions of frames; `confusion[spoken][recognised]` counts test frames."""

    test_error: float
    valid_error: float
    confusion: list[list[int]]
    seconds: float
    processor_seconds: NotRequired[float | None]
    frames_per_second: float
    peak_memory_mb: float | None
    spectral_radius: float
    epochs: int
    history: list[EpochRow]
    settings: dict[str, object]
    made_with: NotRequired[MadeWith]
    fingerprint: NotRequired[str]


class FitMeasurement(TypedDict):
    """The cost of a fit. seconds: of all its runs, if it was resumed; processor_seconds: None if it was."""

    seconds: float
    processor_seconds: float | None
    peak_memory_mb: float | None


def planned_epochs(estimator: ESNClassifier, sequences: int) -> int:
    """Return how many epochs a fit on this many sequences takes at most."""
    settings = NetworkSettings.of(estimator.get_params(deep=False))
    return 0 if settings.learn == "none" else settings.epochs_for(sequences)


def fit_and_test(
    estimator: ESNClassifier,
    parts: CorpusParts,
    checkpoint: Path,
    *,
    on_epoch: Callable[[EpochRow], object],
    note: Note,
) -> FitResult:
    """Fit, test, and return the result. An interrupted fit resumes from the folder `checkpoint`.

    The fit sees the training and the validation part: epochs, ridge and penalty are chosen by them. Only when it has
    ended is the test part read, once.
    """
    measurement = timed_fit(estimator, parts.train, parts.valid_known, checkpoint, on_epoch=on_epoch, note=note)
    history = [dict(row) for row in estimator.history_]
    networks = len({row.get("network") for row in history}) or 1
    frames = sum(map(len, parts.train[0]))
    valid_wrong = np.concatenate(parts.valid[1]) != np.concatenate(estimator.predict(parts.valid[0]))
    spoken, recognised = np.concatenate(parts.test[1]), np.concatenate(estimator.predict(parts.test[0]))
    return {
        "test_error": float(np.mean(spoken != recognised)),
        "valid_error": float(np.mean(valid_wrong)),
        "confusion": confusion_counts(spoken, recognised, parts.phones).tolist(),
        "seconds": measurement["seconds"],
        "processor_seconds": measurement["processor_seconds"],
        "peak_memory_mb": measurement["peak_memory_mb"],
        "frames_per_second": round(frames * max(1, len(history)) / measurement["seconds"], 1),
        "spectral_radius": float(spectral_radius_of(estimator.recurrent_weights_)),
        "epochs": round(len(history) / networks),  # of each network of an ensemble
        "history": history,
        "settings": kept_settings(estimator),
        "made_with": made_with(),
    }


def kept_settings(estimator: ESNClassifier) -> dict[str, object]:
    """Return the settings that a result keeps."""
    return {k: v for k, v in estimator.get_params(deep=False).items() if k not in ("initial_state", "reservoir")}


def timed_fit(
    estimator: StateClassifier,
    train: Part,
    valid: Part,
    checkpoint: Path,
    *,
    on_epoch: Callable[[EpochRow], object],
    note: Note,
) -> FitMeasurement:
    """Fit on one part, with all choices made on the other, and return what it took."""
    resumed = checkpoint.is_dir() and any(checkpoint.iterdir())
    started, processor = time.perf_counter(), time.process_time()
    earlier = None if resumed else 0.0  # seconds of earlier runs; None: the first row will tell

    def after_epoch(row: EpochRow) -> object:
        nonlocal earlier
        if earlier is None:
            earlier = max(0.0, row["seconds"] - (time.perf_counter() - started))
        return on_epoch(row)

    with peak_memory() as peak, warnings_as_notes(note):
        estimator.fit(*train, validation=valid if valid[0] else None, callback=after_epoch, checkpoint=checkpoint)
    if earlier is None:  # all epochs were done in earlier runs
        earlier = estimator.history_[-1]["seconds"] if estimator.history_ else 0.0
    return {
        "seconds": round(time.perf_counter() - started + earlier, 3),
        "processor_seconds": None if resumed else round(time.process_time() - processor, 3),
        "peak_memory_mb": peak(),
    }


def confusion_counts(
    spoken: NDArray[np.str_], recognised: NDArray[np.str_], phones: Sequence[str]
) -> NDArray[np.int64]:
    """Return the numbers of frames (P, P) from state names: rows are the phones spoken, columns those recognised."""
    index = {phone: k for k, phone in enumerate(phones)}

    def phone_numbers(states: NDArray[np.str_]) -> NDArray[np.int64]:
        names, inverse = np.unique(states, return_inverse=True)
        return np.array([index[split_state(str(name))[0]] for name in names])[inverse]

    table = np.zeros((len(phones), len(phones)), np.int64)
    np.add.at(table, (phone_numbers(spoken), phone_numbers(recognised)), 1)
    return table


@contextlib.contextmanager
def warnings_as_notes(note: Note) -> Iterator[None]:
    """Pass every warning on as one line, instead of printing it into the middle of a live display."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")

        def show(message: Warning | str, *_: object, **__: object) -> None:
            note(f"note: {message}")

        warnings.showwarning = show
        yield


@contextlib.contextmanager
def peak_memory() -> Iterator[Callable[[], float | None]]:
    """Yield a function that returns the most memory this process held since, in MB; None where it is unknown."""
    status, refs = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    with contextlib.suppress(OSError):
        refs.write_text("5")  # resets the high-water mark, so that it belongs to this fit alone

    def peak() -> float | None:
        if status.is_file():
            line = next((r for r in status.read_text().splitlines() if r.startswith("VmHWM")), None)
            if line is not None:
                return round(int(line.split()[1]) / 1024, 1)
        if os.name != "posix":
            return None
        import resource  # exists on POSIX systems only

        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(size / (1024**2 if sys.platform == "darwin" else 1024), 1)

    yield peak


class MadeWith(TypedDict):
    """Versions, commit and threads of a result. commit: None outside a git repository; "+" after it: with changes."""

    echolearn: str
    commit: str | None
    python: str
    numpy: str
    scipy: str
    numba: str
    threads: int
    date: str


def made_with() -> MadeWith:
    """Return what a result that is finished now was made with."""
    return {
        "echolearn": __version__,
        "commit": source_commit(),
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        "scipy": importlib.metadata.version("scipy"),
        "numba": importlib.metadata.version("numba"),
        "threads": thread_count(),
        "date": datetime.now(UTC).date().isoformat(),
    }


@cache
def source_commit() -> str | None:
    """Return the commit of the source tree that runs, as it was at the first call; None where there is none.

    A "+" follows it where a file of the package differs from that commit.
    """
    package = Path(__file__).resolve().parent.parent

    def git(*words: str) -> str:
        command = ["git", "-C", str(package), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if git("ls-files", "__init__.py"):  # not a package that is installed inside somebody else's repository
            return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    return None
