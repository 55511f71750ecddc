"""One network and one corpus: train it, evaluate it, and write the state labels that it predicts."""

from __future__ import annotations

import io
import itertools
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from echolearn.estimators import parameters
from echolearn.estimators.classifier import ESNClassifier
from echolearn.estimators.loading import load
from echolearn.exceptions import CorpusError, Problem
from echolearn.experiments.corpus_parts import CorpusParts
from echolearn.experiments.fitted_cells import fit_fingerprint
from echolearn.experiments.measured_fit import EpochRow, FitResult, confusion_counts, fit_and_test, planned_epochs
from echolearn.modelfile.atomic import write_atomically
from echolearn.modelfile.layout import RECOGNIZER
from echolearn.modelfile.reader import file_kind
from echolearn.speech.audio import RATE, read_audio
from echolearn.speech.corpus import Corpus
from echolearn.speech.errors import raise_any
from echolearn.speech.features import SHIFT, WINDOW
from echolearn.speech.labels import Segment, write_mlf
from echolearn.speech.phones import phones_of_states
from echolearn.speech.recipe import FeatureRecipe
from echolearn.speech.recognition import load_recognizer
from echolearn.training.progress import clock
from echolearn.validation import Array

SHOWN_CONFUSIONS = 8


class FitProgress(Protocol):
    """Receives the progress of one fit."""

    def note(self, text: str) -> object: ...
    def start(self, epochs: int) -> object: ...
    def epoch(self, row: EpochRow) -> object: ...
    def stage(self, what: str, done: int, total: int) -> None: ...


class Saveable(Protocol):
    """Something that can be saved to a file."""

    def save(self, path: Path) -> None: ...


@dataclass(frozen=True)
class Confusion:
    """Frames of one phone that were recognised as another."""

    spoken: str
    recognised: str
    frames: int


@dataclass(frozen=True)
class Evaluation:
    """Errors on a part of a corpus, as fractions of frames."""

    corpus: str
    synthetic: bool
    part: str
    frames: int
    state_error: float
    phone_error: float
    unknown_states: list[str]
    confusions: list[Confusion]

    def as_json(self) -> dict[str, object]:
        """Return what `echolearn evaluate --json` prints."""
        return {
            "corpus": self.corpus,
            "synthetic": self.synthetic,
            "part": self.part,
            "frames": self.frames,
            f"{self.part}_error": self.state_error,
            "phone_error": self.phone_error,
            "states_unknown_to_the_model": self.unknown_states,
            "confused": [{"said": c.spoken, "heard": c.recognised, "frames": c.frames} for c in self.confusions],
        }

    def as_text(self) -> str:
        """Return what `echolearn evaluate` prints."""
        confusions = ", ".join(f"{c.spoken} as {c.recognised} ({c.frames})" for c in self.confusions)
        lines = [
            f"state error{_kind(self.synthetic)}: {self.part} {100 * self.state_error:.1f} %",
            f"phone error by frame: {100 * self.phone_error:.1f} %, {self.frames:,} frames",
            f"most frequent confusions (frames): {confusions or 'none'}",
        ]
        if self.unknown_states:
            lines.append(f"states unknown to the model: {', '.join(self.unknown_states)}")
        return "\n".join(lines)


def _kind(synthetic: bool) -> str:
    return " (synthetic speech)" if synthetic else ""


def check_training(model: Path, estimator: ESNClassifier) -> None:
    """Check the settings and the place of the model file, before anything slow begins."""
    parameters.check(estimator.get_params(deep=False))
    if model.is_dir() or not model.absolute().parent.is_dir():
        raise ValueError(f"{model} cannot be written: its folder does not exist, or it is a folder itself.")


def train(
    corpus: Corpus,
    estimator: ESNClassifier,
    model: Path,
    progress: FitProgress,
    made_of: Callable[[ESNClassifier], Saveable] | None = None,
) -> FitResult:
    """Fit and save a network, or what is made of it. Until the file is there, a checkpoint allows resuming."""
    parts = CorpusParts.load(corpus)
    checkpoint = model.with_name(f"{model.name}-{fit_fingerprint(estimator, parts.fingerprint)}.checkpoint")
    for note in (*corpus.notes, *parts.notes):
        progress.note(note)
    progress.start(planned_epochs(estimator, len(parts.train[0])))
    result = fit_and_test(estimator, parts, checkpoint, on_epoch=progress.epoch, note=progress.note)
    if made_of is None:
        if corpus.recipe.audio:
            estimator.recipe_ = corpus.recipe.facts()
        estimator.save(model)
    else:
        made_of(estimator).save(model)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return result


def training_summary(result: FitResult, corpus: Corpus) -> str:
    """Return the errors and the time of a fit in one line."""
    test, valid = 100 * result["test_error"], 100 * result["valid_error"]
    duration = f"{result['epochs']} epochs in {clock(result['seconds'])}"
    return f"state error{_kind(corpus.synthetic)}: test {test:.1f} %, valid {valid:.1f} %, {duration}"


def load_model(path: Path) -> ESNClassifier:
    """Load a network for phone states, or that of a recogniser; ValueError for a network of another kind."""
    model = load_recognizer(path).model if file_kind(path) == RECOGNIZER else load(path)
    if not isinstance(model, ESNClassifier) or not model.per_step_ or model.classes_.dtype.kind != "U":
        raise ValueError(
            f"{path} ({type(model).__name__}) is not a network for phone states; make one with: echolearn train. To "
            "predict the rows of a table with it: echolearn predict MODEL FILE.csv"
        )
    return model


def part_features(corpus: Corpus, part: str) -> tuple[list[str], list[Array]]:
    """Return the names and features of a part's utterances."""
    which = corpus.which(part)
    if not which:
        raise ValueError(f"{corpus.name} has no utterances of the {part} part.")
    return [corpus.utterances[k] for k in which], [corpus.features[k] for k in which]


def evaluate(model: ESNClassifier, corpus: Corpus, part: str) -> Evaluation:
    """Return the errors of a network on a part, and the phones most often recognised as another."""
    _, X = part_features(corpus, part)
    names = np.array(corpus.state_names)
    spoken = np.concatenate([names[corpus.labels[k]] for k in corpus.which(part)])
    unknown = sorted({str(s) for s in np.unique(spoken)} - set(model.classes_.tolist()))
    if len(unknown) == len(np.unique(spoken)):
        raise ValueError(
            f"the model knows none of the corpus's states: it knows {model.classes_[0]}, the corpus has {unknown[0]}"
        )
    recognised = np.concatenate(model.predict(X))
    phones = phones_of_states([*corpus.state_names, *model.classes_])
    counts = confusion_counts(spoken, recognised, phones)
    wrong = counts - np.diag(np.diag(counts))
    largest = zip(*np.unravel_index(np.argsort(-wrong, axis=None)[:SHOWN_CONFUSIONS], wrong.shape), strict=True)
    return Evaluation(
        corpus=corpus.name,
        synthetic=corpus.synthetic,
        part=part,
        frames=len(spoken),
        state_error=float(np.mean(spoken != recognised)),
        phone_error=float(wrong.sum() / counts.sum()),
        unknown_states=unknown,
        confusions=[Confusion(phones[a], phones[b], int(wrong[a, b])) for a, b in largest if wrong[a, b] > 0],
    )


def recipe_of(path: Path) -> FeatureRecipe:
    """Return how sound becomes the inputs of a network, as its file says; normalised per utterance, if it does not."""
    if file_kind(path) == RECOGNIZER:
        return load_recognizer(path).features
    known = getattr(load_model(path), "recipe_", None)
    return FeatureRecipe() if known is None else FeatureRecipe.from_facts(known)


def audio_features(paths: Sequence[Path], recipe: FeatureRecipe | None = None) -> tuple[list[str], list[Array]]:
    """Return names and features of audio files, normalised per utterance by default; CorpusError lists all problems."""
    how = FeatureRecipe() if recipe is None else recipe
    X: list[Array] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            samples = read_audio(path)
        except CorpusError as error:
            problems += error.problems
            continue
        if len(samples) < WINDOW:
            problems.append(Problem(str(path), f"holds {len(samples)} samples, a frame needs {WINDOW}"))
            continue
        X.append(how.of_samples(samples))
    names = [path.with_suffix("").as_posix().lstrip("/.") for path in paths]
    repeated = {name for name in names if names.count(name) > 1}
    problems += [Problem(name, "is given twice; a label file names each utterance once") for name in sorted(repeated)]
    raise_any(problems)
    return names, X


def write_predictions(model: ESNClassifier, names: Sequence[str], X: Sequence[Array], out: Path) -> None:
    """Write the probabilities of all states to a .npz file, or the most likely states to an HTK master label file."""
    if out.suffix.lower() == ".npz":
        content = io.BytesIO()
        probabilities = np.concatenate(model.predict_proba(list(X))).astype(np.float32)
        lengths = np.array([len(x) for x in X], dtype=np.int32)
        np.savez_compressed(
            content, posteriors=probabilities, lengths=lengths, utterances=np.array(names), state_names=model.classes_
        )
        write_atomically(out, content.getvalue())
        return
    segments = {name: _segments(states) for name, states in zip(names, model.predict(list(X)), strict=True)}
    _write_labels_atomically(out, lambda path: write_mlf(path, segments))


def _segments(states: Array) -> list[Segment]:
    """Return one segment per run of equal states, in seconds."""
    edges = np.flatnonzero(np.r_[True, states[1:] != states[:-1], True]).tolist()
    frame = SHIFT / RATE
    return [Segment(a * frame, b * frame, str(states[a])) for a, b in itertools.pairwise(edges)]


def write_alignment(corpus: Corpus, out: Path) -> None:
    """Write the state labels of a corpus to an HTK master label file."""
    _write_labels_atomically(out, corpus.write_mlf)


def _write_labels_atomically(out: Path, write: Callable[[Path], None]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "labels.mlf"
        write(draft)
        write_atomically(out, draft.read_bytes())
