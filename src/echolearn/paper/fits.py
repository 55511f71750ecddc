"""One fit on a corpus: its errors, its time and memory, and what it was made with."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from echolearn import __version__
from echolearn.estimators import DeepESNClassifier, DeepESNRegressor, ESNClassifier, ESNRegressor
from echolearn.execution.threads import thread_count
from echolearn.fitting.depth import epochs_for
from echolearn.fitting.parameters import flat_settings
from echolearn.fitting.settings import NetworkSettings, check, check_deep
from echolearn.paper.parts import CorpusParts
from echolearn.readout.deep_network import DeepNetwork
from echolearn.reservoir._deep_reservoir import decay
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.speech._phone_set import split_state
from echolearn.speech.recognition._recognizer import StateClassifier

Note = Callable[[str], object]  # receives a line for the user
EpochRow = dict[str, float]  # a row of an estimator's history_
UNRECORDED_SETTINGS = ("initial_state", "reservoir", "augment")


class MeasuredFit(TypedDict):
    """A fit with its cost. seconds: of all its runs, if it was resumed; processor_seconds: None if it was."""

    seconds: float
    processor_seconds: float | None
    peak_memory_mb: float | None
    epochs: int
    history: list[EpochRow]
    settings: dict[str, object]
    made_with: dict[str, object]
    fingerprint: NotRequired[str]


class FitResult(MeasuredFit):
    """A fit with its errors, as fractions of frames; `confusion[spoken][recognised]` counts test frames."""

    test_error: float
    valid_error: float
    confusion: list[list[int]]
    frames_per_second: float
    spectral_radius: float
    weights: NotRequired[int]


def planned_epochs(estimator: StateClassifier | ESNRegressor | DeepESNRegressor, sequences: int) -> int:
    """Return how many epochs a fit on this many sequences takes at most."""
    if isinstance(estimator, (DeepESNClassifier, DeepESNRegressor)):
        return epochs_for(flat_settings(estimator), sequences)
    settings = NetworkSettings.of(flat_settings(estimator))
    return 0 if settings.learn == "none" else settings.epochs_for(sequences)


def check_network(estimator: StateClassifier) -> None:
    """Raise ValueError for settings of a network that cannot be."""
    (check_deep if isinstance(estimator, DeepESNClassifier) else check)(flat_settings(estimator))


def valid_error(estimator: StateClassifier, parts: CorpusParts) -> float:
    """Return the share of wrong states in the frames of the validation part."""
    return float(np.mean(np.concatenate(parts.valid[1]) != np.concatenate(estimator.predict(parts.valid[0]))))


def with_errors(estimator: StateClassifier, parts: CorpusParts, fit: MeasuredFit) -> FitResult:
    """Return a fit with its errors. Only now, with all choices made on the validation part, is the test part read."""
    networks = len({row.get("network") for row in fit["history"]}) or 1
    frames, valid = sum(map(len, parts.train[0])), valid_error(estimator, parts)
    spoken, recognised = np.concatenate(parts.test[1]), np.concatenate(estimator.predict(parts.test[0]))
    return {
        **fit,
        "test_error": float(np.mean(spoken != recognised)),
        "valid_error": valid,
        "confusion": confusion_counts(spoken, recognised, parts.phones).tolist(),
        "frames_per_second": round(frames * max(1, fit["epochs"]) / fit["seconds"], 1),
        "spectral_radius": _spectral_radius(estimator),
        "weights": estimator.network_.size,
        "epochs": round(fit["epochs"] / networks),  # of each network of an ensemble
    }


def _spectral_radius(estimator: StateClassifier) -> float:
    """Return the spectral radius of W_rec; of a deep network, the largest of its layers."""
    if isinstance(estimator, ESNClassifier):
        return float(spectral_radius_of(estimator.recurrent_weights_))
    network = estimator.network_
    assert isinstance(network, DeepNetwork)
    weights = network.reservoir.weights
    return float(max(decay(value).max() for name, value in weights.items() if name.endswith("/alpha")))


def measured_fit(
    estimator: StateClassifier,
    parts: CorpusParts,
    checkpoint: Path,
    *,
    on_epoch: Callable[[EpochRow], object],
    note: Note,
) -> MeasuredFit:
    """Fit on the training part, with all choices made on the validation part, and return what it took."""
    resumed = checkpoint.is_dir() and any(checkpoint.iterdir())
    started, processor = time.perf_counter(), time.process_time()
    earlier = None if resumed else 0.0  # seconds of earlier runs; None: the first row will tell

    def after_epoch(row: EpochRow) -> object:
        nonlocal earlier
        if earlier is None:
            earlier = max(0.0, row["seconds"] - (time.perf_counter() - started))
        return on_epoch(row)

    valid = parts.valid_known if parts.valid_known[0] else None
    with peak_memory() as peak, warnings_as_notes(note):
        estimator.fit(*parts.train, validation=valid, callback=after_epoch, checkpoint=checkpoint)
    if earlier is None:  # all epochs were done in earlier runs
        earlier = estimator.history_[-1]["seconds"] if estimator.history_ else 0.0
    history = [dict(row) for row in estimator.history_]
    return {
        "seconds": round(time.perf_counter() - started + earlier, 3),
        "processor_seconds": None if resumed else round(time.process_time() - processor, 3),
        "peak_memory_mb": peak(),
        "epochs": len(history),
        "history": history,
        "settings": {k: v for k, v in flat_settings(estimator).items() if k not in UNRECORDED_SETTINGS},
        "made_with": made_with(),
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


def made_with() -> dict[str, object]:
    """Return versions, the commit, the number of threads and the date of a result that is finished now."""
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
    """Return the commit of the source tree that runs, as it was at the first call; None where there is none. A "+"
    follows it where a file of the package differs from that commit."""
    package = Path(__file__).resolve().parent.parent

    def git(*words: str) -> str:
        command = ["git", "-C", str(package), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    with contextlib.suppress(OSError, subprocess.SubprocessError):
        if git("ls-files", "__init__.py"):  # not a package that is installed inside somebody else's repository
            return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    return None
