"""Fitted cells of a table on disk, each with a fingerprint of its settings and corpus."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Generic, TypeVar

from echolearn import __version__
from echolearn.estimators.classifier import ESNClassifier
from echolearn.estimators.loading import load
from echolearn.experiments.measured_fit import Note, StateClassifier
from echolearn.modelfile.atomic import write_atomically

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
