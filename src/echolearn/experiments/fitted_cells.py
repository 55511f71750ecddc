"""One cell of a table: fitted once, kept with a fingerprint of its settings and corpus, found again afterwards."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn import __version__
from echolearn.estimators.classifier import ESNClassifier
from echolearn.estimators.saving import load
from echolearn.modelfile.atomic import write_atomically
from echolearn.reservoir.spectrum import spectral_radius_of
from echolearn.speech.corpus import Corpus
from echolearn.speech.phones import phones_of_states, split_state

Say = Callable[[str], object]
Part = tuple[list[NDArray[np.float32]], list[NDArray[np.str_]]]


@dataclass(frozen=True)
class Parts:
    """A corpus in memory: X and state names of each part; `check`: the validation utterances a fit may use."""

    train: Part
    valid: Part
    test: Part
    check: Part
    phones: tuple[str, ...]
    fingerprint: str
    notes: tuple[str, ...]

    @classmethod
    def of(cls, corpus: Corpus) -> Parts:
        names = np.array(corpus.state_names)
        train, valid, test = (_named(corpus, part, names) for part in ("train", "valid", "test"))
        # A state no training frame has is an error wherever it stands, but a fit refuses to be asked for it.
        seen = set(np.unique(np.concatenate(train[1])).tolist())
        whole = [k for k, y in enumerate(valid[1]) if seen.issuperset(y.tolist())]
        check = ([valid[0][k] for k in whole], [valid[1][k] for k in whole])
        unseen = sorted(set(np.unique(np.concatenate(valid[1] + test[1])).tolist()) - seen)
        notes = [f"states without a training frame, always counted wrong: {', '.join(unseen)}"] if unseen else []
        phones = phones_of_states(corpus.state_names)
        return cls(train, valid, test, check, phones, fingerprint_of(corpus), tuple(notes))


def _named(corpus: Corpus, part: str, names: NDArray[np.str_]) -> Part:
    X, y = corpus.part(part)
    if not y:
        raise ValueError(f"{corpus.name} has no utterances of the {part} part; train, valid and test are needed.")
    return list(X), [names[labels] for labels in y]


def fingerprint_of(corpus: Corpus) -> str:
    """A hash of every feature and label, and of how they are divided."""
    digest = hashlib.sha256(repr((corpus.state_names, corpus.split, corpus.utterances)).encode())
    features = corpus.features
    digest.update(repr((features.bounds, features.context, features.scale)).encode())
    for start in range(0, len(features.frames), 65_536):
        digest.update(np.ascontiguousarray(features.frames[start : start + 65_536]).data)
    for labels in corpus.labels:
        digest.update(np.ascontiguousarray(labels).data)
    return digest.hexdigest()[:16]


def fingerprint_with(estimator: ESNClassifier, corpus: str) -> str:
    """Of settings, corpus and version: what a kept result depends on."""
    about = [__version__, corpus, estimator.get_params(deep=False)]
    return hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _checksum(result: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()


class Shelf:
    """The folder with one JSON and one model file a cell, and a checkpoint folder for the one being fitted."""

    def __init__(self, folder: Path, say: Say):
        self.folder, self.say = folder, say
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, name: str, fingerprint: str) -> dict[str, Any] | None:
        """A finished cell, or None where there is none or it was made from something else."""
        path = self.folder / f"{name}.json"
        if not path.is_file():
            return None
        try:
            kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            if "cell" in kept:  # those of earlier versions have no checksum
                told, kept = kept["sha256"], kept["cell"]
                if told != _checksum(kept):
                    raise ValueError("its checksum does not match")
            if kept["fingerprint"] == fingerprint and self.model_path(name).is_file():
                return kept
            why = "was made with other settings or another corpus"
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            why = "is damaged"
        self.say(f"{path} {why}; it is computed again")
        return None

    def checkpoint(self, name: str, fingerprint: str) -> Path:
        return self.folder / f"{name}-{fingerprint}.checkpoint"

    def put(self, name: str, result: dict[str, Any], model: ESNClassifier) -> None:
        model.save(self.model_path(name))
        content = {"sha256": _checksum(result), "cell": result}
        write_atomically(self.folder / f"{name}.json", json.dumps(content, indent=1).encode())
        for old in self.folder.glob(f"{name}-*.checkpoint"):
            shutil.rmtree(old)

    def model_path(self, name: str) -> Path:
        return self.folder / f"{name}.safetensors"

    def model(self, name: str) -> ESNClassifier:
        model: ESNClassifier = load(self.model_path(name))
        return model

    def clear(self, names: Sequence[str]) -> None:
        """Forget these cells, finished or not."""
        for name in names:
            for old in self.folder.glob(f"{name}-*.checkpoint"):
                shutil.rmtree(old)
            for path in (self.folder / f"{name}.json", self.model_path(name)):
                path.unlink(missing_ok=True)


def fit(
    estimator: ESNClassifier,
    parts: Parts,
    checkpoint: Path,
    callback: Callable[[dict[str, float]], object],
    say: Say,
) -> dict[str, Any]:
    """Fits, tests, and says what it took. An interrupted fit goes on from `checkpoint`."""
    resumed = checkpoint.is_dir() and any(checkpoint.iterdir())
    started, earlier = time.perf_counter(), 0.0

    def row_done(row: dict[str, float]) -> object:
        nonlocal earlier, resumed
        if resumed:
            earlier, resumed = max(0.0, row["seconds"] - (time.perf_counter() - started)), False
        return callback(row)

    with peak_memory() as peak, heard(say):
        estimator.fit(
            *parts.train,
            validation=parts.check if parts.check[0] else None,
            callback=row_done,
            checkpoint=checkpoint,
        )
    if resumed and estimator.history_:
        earlier = estimator.history_[-1]["seconds"]
    seconds = time.perf_counter() - started + earlier
    frames = sum(map(len, parts.train[0]))
    history = [dict(row) for row in estimator.history_]
    return {
        **tested(estimator, parts),
        "seconds": round(seconds, 3),
        "frames_per_second": round(frames * max(1, len(history)) / seconds, 1),
        "peak_memory_mb": peak(),
        "spectral_radius": float(spectral_radius_of(estimator.recurrent_weights_)),
        "epochs": len(history),
        "history": history,
        "settings": {k: v for k, v in estimator.get_params(deep=False).items() if k != "initial_state"},
    }


def planned_epochs(estimator: ESNClassifier, sequences: int) -> int:
    return 0 if estimator.learn == "none" else estimator._epochs(sequences)


def tested(estimator: ESNClassifier, parts: Parts) -> dict[str, Any]:
    """State errors on test and validation, and the test frames by phone: confusion[said][heard]."""
    said, heard_ = np.concatenate(parts.test[1]), np.concatenate(estimator.predict(parts.test[0]))
    valid = np.concatenate(parts.valid[1]) != np.concatenate(estimator.predict(parts.valid[0]))
    return {
        "test_error": float(np.mean(said != heard_)),
        "valid_error": float(np.mean(valid)),
        "confusion": confusion(said, heard_, parts.phones).tolist(),
    }


def confusion(said: NDArray[np.str_], heard_: NDArray[np.str_], phones: Sequence[str]) -> NDArray[np.int64]:
    """Frames by phone (P, P): rows what was said, columns what the network heard."""
    index = {phone: k for k, phone in enumerate(phones)}

    def numbers(states: NDArray[np.str_]) -> NDArray[np.int64]:
        names, inverse = np.unique(states, return_inverse=True)
        return np.array([index[split_state(str(name))[0]] for name in names])[inverse]

    table = np.zeros((len(phones), len(phones)), np.int64)
    np.add.at(table, (numbers(said), numbers(heard_)), 1)
    return table


@contextlib.contextmanager
def heard(say: Say) -> Iterator[None]:
    """Warnings become a line each instead of text in the middle of a live display."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")

        def show(message: Any, *_: Any, **__: Any) -> None:
            say(f"note: {message}")

        warnings.showwarning = show
        yield


@contextlib.contextmanager
def peak_memory() -> Iterator[Callable[[], float | None]]:
    """The most memory this process held since entering, in MB; None where the system does not tell."""
    status, refs = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    with contextlib.suppress(OSError):
        refs.write_text("5")  # start the high-water mark anew: it belongs to this cell alone

    def peak() -> float | None:
        if status.is_file():
            line = next((r for r in status.read_text().splitlines() if r.startswith("VmHWM")), None)
            if line is not None:
                return round(int(line.split()[1]) / 1024, 1)
        if os.name != "posix":
            return None
        import resource

        size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return round(size / (1024**2 if sys.platform == "darwin" else 1024), 1)

    yield peak
