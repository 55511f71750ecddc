"""The cells of an experiment: networks that are fitted and scored once, and kept in a folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Generic, NamedTuple, Protocol, TypeVar, cast

from echolearn import __version__
from echolearn.estimators import DeepESNClassifier, ESNClassifier, load
from echolearn.execution.executor import LOCAL, executing_on
from echolearn.fitting.parameters import flat_settings
from echolearn.modelfile.atomic import write_atomically
from echolearn.paper.estimate import CorpusSize, Cost, cost_of_cell
from echolearn.paper.fits import EpochRow, MeasuredFit, Note, measured_fit, planned_epochs
from echolearn.paper.parts import CorpusParts, augmentation
from echolearn.paper.table1_report import CorpusReport
from echolearn.speech import Corpus
from echolearn.speech._augmentation import Augment
from echolearn.speech.recognition._recognizer import StateClassifier
from echolearn.training.cost_model import TYPICAL_RATES, Rates

Fit = TypeVar("Fit", bound=MeasuredFit)
Score = TypeVar("Score")
Table = TypeVar("Table")


@dataclass(frozen=True)
class Cell:
    """One network: a column of Table 1, or a system of `echolearn phones`, with so many units and this seed."""

    units: int
    column: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.column}-{self.units}-{self.seed}"


class Plan(Protocol):
    """Which networks an experiment has."""

    @property
    def level(self) -> str: ...
    def cells(self) -> list[Cell]: ...
    def estimator(self, cell: Cell, /) -> StateClassifier: ...


class Outcome(NamedTuple):
    """What progress shows of a finished cell: errors as fractions, and the seconds of its fit and of decoding."""

    test_error: float
    valid_error: float
    seconds: float
    decoding_seconds: float = 0.0


class Progress(Protocol):
    """Receives the progress of an experiment. `fits` and `decoding` are the work of each fit and of decoding, in one
    unit; `done` counts the epochs of all layers; `reused` marks a cell of an earlier run."""

    def note(self, text: str) -> object: ...
    def plan(self, fits: Mapping[Cell, float], decoding: float) -> object: ...
    def start(self, cell: Cell, epochs: int) -> object: ...
    def epoch(self, cell: Cell, done: int, row: EpochRow) -> object: ...
    def decode(self, cell: Cell, text: str, done: int, total: int) -> None: ...
    def finish(self, cell: Cell, outcome: Outcome, reused: bool) -> object: ...


def fit_fingerprint(estimator: StateClassifier, corpus: str) -> str:
    """Return a hash of what a result depends on: settings, the fingerprint of the corpus, and the version."""
    settings = flat_settings(estimator)
    if settings.get("augment") is not None:
        settings = {**settings, "augment": True}  # the text of a function differs in every process
    return fingerprint_of([__version__, corpus, settings])


def fingerprint_of(content: object) -> str:
    """Return a hash of anything that JSON can say; other things count as their text."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


def costs_of(plan: Plan, size: CorpusSize, rates: Rates) -> dict[Cell, Cost]:
    return {cell: cost_of_cell(plan.estimator(cell), size, rates) for cell in plan.cells()}


def _checksum(result: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()


class CellStore(Generic[Fit]):
    """A folder with one JSON file and one model file per cell, and a checkpoint folder for the one being fitted. Beside
    a cell there may be scores of its network, each a JSON file with a fingerprint of what it depends on."""

    def __init__(self, folder: Path, note: Note):
        self.folder, self.note = folder, note
        folder.mkdir(parents=True, exist_ok=True)

    def find(self, name: str, fingerprint: str) -> Fit | None:
        """Return a finished cell, or None where there is none or it was made from something else."""
        path = self.folder / f"{name}.json"
        found, _ = self._read(path, "cell")
        if found is None:
            return None
        fit = cast(Fit, found)
        if fit.get("fingerprint") == fingerprint and self.model_path(name).is_file():
            return fit
        self.note(f"{path} was made with other settings or another corpus; it is computed again")
        return None

    def find_score(self, name: str, kind: str, fingerprint: str) -> Mapping[str, object] | None:
        """Return a score of a cell's network, or None where there is none or it was made from something else."""
        score, made_from = self._read(self.folder / f"{name}.{kind}.json", "score")
        return score if made_from == fingerprint else None

    def _read(self, path: Path, key: str) -> tuple[dict[str, object] | None, object]:
        """Return the entry `key` of a file, and its fingerprint; None and a note if its checksum does not match."""
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            if stored["sha256"] == _checksum(stored[key]):
                return stored[key], stored.get("fingerprint")
        except FileNotFoundError:
            return None, None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        self.note(f"{path} is damaged; it is computed again")
        return None, None

    def save_score(self, name: str, kind: str, fingerprint: str, score: Mapping[str, object]) -> None:
        content = {"sha256": _checksum(score), "fingerprint": fingerprint, "score": score}
        write_atomically(self.folder / f"{name}.{kind}.json", json.dumps(content, indent=1).encode())

    def checkpoint(self, name: str, fingerprint: str) -> Path:
        return self.folder / f"{name}-{fingerprint}.checkpoint"

    def save(self, name: str, fit: Fit, model: StateClassifier) -> None:
        model.save(self.model_path(name))
        content = {"sha256": _checksum(fit), "cell": fit}
        write_atomically(self.folder / f"{name}.json", json.dumps(content, indent=1).encode())
        self._remove_checkpoints(name)

    def model_path(self, name: str) -> Path:
        return self.folder / f"{name}.safetensors"

    def load_model(self, name: str) -> ESNClassifier:
        model: ESNClassifier = load(self.model_path(name))
        return model

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self._remove_checkpoints(name)
            for path in (self.folder / f"{name}.json", self.model_path(name), *self.folder.glob(f"{name}.*.json")):
                path.unlink(missing_ok=True)

    def _remove_checkpoints(self, name: str) -> None:
        for path in self.folder.glob(f"{name}-*.checkpoint"):
            shutil.rmtree(path)


@dataclass(frozen=True)
class Experiment(ABC, Generic[Fit, Score, Table]):
    """The networks of a plan, each fitted to a corpus, scored and kept: what Table 1 and `echolearn phones` share."""

    corpus: Corpus
    plan: Plan
    parts: CorpusParts
    store: CellStore[Fit]
    progress: Progress

    @abstractmethod
    def kept_fit(self, model: StateClassifier, fit: MeasuredFit) -> Fit:
        """Return a fit with what else is kept of it."""

    @abstractmethod
    def kept_score(self, cell: Cell, fit: Fit) -> Score | None:
        """Return the score of a kept network, None where it has to be computed."""

    @abstractmethod
    def score(self, cell: Cell, fit: Fit, model: StateClassifier) -> Score:
        """Score a fitted network and keep its score."""

    @abstractmethod
    def outcome(self, fit: Fit, score: Score) -> Outcome: ...
    @abstractmethod
    def table(self, done: Mapping[Cell, tuple[Fit, Score]]) -> Table: ...
    @abstractmethod
    def write(self, out: Path, table: Table) -> None: ...
    @abstractmethod
    def page(self, table: Table, done: Mapping[Cell, tuple[Fit, Score]]) -> str: ...

    def corpus_report(self, settings: Mapping[str, object], done: Collection[Cell]) -> CorpusReport:
        """Return what every table says of its corpus and of how it was computed."""
        corpus = self.corpus
        return {
            "corpus": corpus.name,
            "level": self.plan.level,
            "digest": self.parts.fingerprint,
            "synthetic": corpus.synthetic,
            "frames": corpus.frames,
            "states": len(corpus.state_names),
            "speakers": len(set(corpus.speakers)),
            "settings": settings,
            "notes": list(corpus.notes),
            "complete": len(done) == len(self.plan.cells()),
            "echolearn": __version__,
        }

    def decoding_work(self, size: CorpusSize) -> float:
        """Return about how many seconds it takes to decode the answers of a network."""
        return 0.0

    def run(self, out: Path, *, force: bool) -> Table:
        """Compute the cells that are not kept yet, or all of them with `force`, and return the table. After every cell
        the tables on disk hold all that is known."""
        for note in (*self.corpus.notes, *self.parts.notes):
            self.progress.note(note)
        cells, size = self.plan.cells(), CorpusSize.of(self.corpus)
        if force:
            self.store.remove(cell.name for cell in cells)
        costs = costs_of(self.plan, size, TYPICAL_RATES)
        self.progress.plan({cell: cost.seconds for cell, cost in costs.items()}, self.decoding_work(size))
        kept = {cell: self.store.find(cell.name, self.fingerprint(cell)) for cell in cells}
        done: dict[Cell, tuple[Fit, Score]] = {}
        for cell, fit in kept.items():
            score = None if fit is None else self.kept_score(cell, fit)
            if fit is not None and score is not None:
                done[cell] = fit, score
                self.progress.finish(cell, self.outcome(fit, score), True)
        self.write(out, self.table(done))
        for cell in (cell for cell in cells if cell not in done):
            done[cell] = self._computed(cell, kept[cell])
            self.write(out, self.table(done))
        table = self.table(done)
        self.progress.note("drawing the report")
        write_atomically(out / "report.html", self.page(table, done).encode())
        return table

    @cached_property
    def augment(self) -> Augment | None:
        """How the training utterances of deep networks are changed in every epoch."""
        return augmentation(self.corpus)

    def estimator(self, cell: Cell) -> StateClassifier:
        """Return the network of a cell, not fitted."""
        model = self.plan.estimator(cell)
        learns_deep = isinstance(model, DeepESNClassifier) and model.epochs != 0
        return model.set_params(augment=self.augment) if learns_deep else model

    def fingerprint(self, cell: Cell) -> str:
        return fit_fingerprint(self.estimator(cell), self.parts.fingerprint)

    def _computed(self, cell: Cell, fit: Fit | None) -> tuple[Fit, Score]:
        """Fit a cell, unless its network is kept, and score it; both are stored."""
        model = self.estimator(cell)
        self.progress.start(cell, planned_epochs(model, len(self.parts.train[0])) if fit is None else 0)
        # of deep networks, a cluster fits ensembles alone
        alone = isinstance(model, DeepESNClassifier) and model.ensemble == 1
        with executing_on(LOCAL) if alone else nullcontext():
            if fit is None:
                fit = self._fitted(cell, model)
            else:
                self.progress.note(f"{cell.column}: its network is kept from an earlier run")
                model = self.store.load_model(cell.name)
            score = self.score(cell, fit, model)
        self.progress.finish(cell, self.outcome(fit, score), False)
        return fit, score

    def _fitted(self, cell: Cell, model: StateClassifier) -> Fit:
        fingerprint = self.fingerprint(cell)

        def on_epoch(row: EpochRow) -> None:
            self.progress.epoch(cell, int(row["epoch"]), row)

        checkpoint = self.store.checkpoint(cell.name, fingerprint)
        measured = measured_fit(model, self.parts, checkpoint, on_epoch=on_epoch, note=self.progress.note)
        fit = self.kept_fit(model, measured)
        fit["fingerprint"] = fingerprint
        self.store.save(cell.name, fit, model)
        return fit
