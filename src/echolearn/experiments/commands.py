"""One network and one corpus: train it, measure it, let it label speech, say what it is."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import io
import itertools
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from echolearn import __version__
from echolearn.cli import progress as display
from echolearn.estimators import parameters as settings
from echolearn.estimators.classifier import ESNClassifier
from echolearn.estimators.saving import load
from echolearn.execution.threads import threads
from echolearn.experiments.fitted_cells import Parts, confusion, fingerprint_with, fit, planned_epochs
from echolearn.modelfile.atomic import write_atomically
from echolearn.reservoir.spectrum import spectral_radius_of
from echolearn.speech.audio import RATE, read_audio
from echolearn.speech.cache import default_cache
from echolearn.speech.corpus import Corpus
from echolearn.speech.errors import CorpusError, Problem, raise_any
from echolearn.speech.features import SHIFT, WINDOW, mfcc, normalised, with_context, with_differences
from echolearn.speech.labels import Segment, write_mlf
from echolearn.speech.phones import phones_of_states
from echolearn.training.progress import clock

Array = NDArray[Any]
Result = Mapping[str, Any]


def check_place(model: Path, estimator: ESNClassifier) -> None:
    """Everything that can be wrong before the first epoch, said before it."""
    settings.check(estimator.get_params(deep=False))
    if model.is_dir() or not model.absolute().parent.is_dir():
        raise ValueError(f"{model} cannot be written: its folder does not exist, or it is a folder itself.")


def train(corpus: Corpus, estimator: ESNClassifier, model: Path, console: Console) -> dict[str, Any]:
    """Fits and saves; a checkpoint beside the model's name goes with it, and goes when the model is there."""
    parts = Parts.of(corpus)
    checkpoint = model.with_name(f"{model.name}-{fingerprint_with(estimator, parts.fingerprint)}.checkpoint")
    for note in (*corpus.notes, *parts.notes):
        console.print(note, markup=False, highlight=False)
    with display.fitting(console, planned_epochs(estimator, len(parts.train[0]))) as (row_done, say):
        result = fit(estimator, parts, checkpoint, row_done, say)
    estimator.save(model)
    shutil.rmtree(checkpoint, ignore_errors=True)
    return result


def sentence(result: Result, part: str, corpus: Corpus) -> str:
    kind = " (synthetic speech)" if corpus.synthetic else ""
    took = f", {result['epochs']} epochs in {clock(result['seconds'])}" if "seconds" in result else ""
    valid = f", valid {100 * result['valid_error']:.1f} %" if "valid_error" in result else ""
    return f"state error{kind}: {part} {100 * result[f'{part}_error']:.1f} %{valid}{took}"


def opened(path: Path) -> ESNClassifier:
    model = load(path)
    if not isinstance(model, ESNClassifier) or not model.per_step_ or model.classes_.dtype.kind != "U":
        raise ValueError(f"{path} is no network for phone states; make one with: echolearn train")
    return model


def part_of(corpus: Corpus, part: str) -> tuple[list[str], list[Array]]:
    which = corpus.which(part)
    if not which:
        raise ValueError(f"{corpus.name} has no utterances of the {part} part.")
    return [corpus.utterances[k] for k in which], [corpus.features[k] for k in which]


def evaluate(model: ESNClassifier, corpus: Corpus, part: str) -> dict[str, Any]:
    """Errors as fractions, and the phones most often taken for another."""
    _, X = part_of(corpus, part)
    names = np.array(corpus.state_names)
    said = np.concatenate([names[corpus.labels[k]] for k in corpus.which(part)])
    unknown = sorted({str(s) for s in np.unique(said)} - set(model.classes_.tolist()))
    if len(unknown) == len(np.unique(said)):
        raise ValueError(
            f"the model knows none of the corpus's states: it knows {model.classes_[0]}, here is {unknown[0]}"
        )
    heard = np.concatenate(model.predict(X))
    phones = phones_of_states([*corpus.state_names, *model.classes_])
    table = confusion(said, heard, phones)
    wrong = table - np.diag(np.diag(table))
    most = np.argsort(-wrong, axis=None)[:8]
    pairs = [(int(k // len(phones)), int(k % len(phones))) for k in most if wrong.flat[k] > 0]
    return {
        "corpus": corpus.name,
        "synthetic": corpus.synthetic,
        "part": part,
        "frames": len(said),
        f"{part}_error": float(np.mean(said != heard)),
        "phone_error": float(wrong.sum() / table.sum()),
        "states_unknown_to_the_model": unknown,
        "confused": [{"said": phones[a], "heard": phones[b], "frames": int(wrong[a, b])} for a, b in pairs],
    }


def words(result: Result, part: str, corpus: Corpus) -> str:
    lines = [
        sentence(result, part, corpus),
        f"phone error by frame: {100 * result['phone_error']:.1f} %, {result['frames']:,} frames",
        "most often: " + ", ".join(f"{c['said']} as {c['heard']} ({c['frames']})" for c in result["confused"]),
    ]
    if result["states_unknown_to_the_model"]:
        lines.append(f"unknown to the model: {', '.join(result['states_unknown_to_the_model'])}")
    return "\n".join(lines)


def heard_files(paths: Sequence[Path]) -> tuple[list[str], list[Array]]:
    """Features of audio files, as corpora have them, normalised per utterance; all that is wrong in one list."""
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
        X.append(with_context(normalised(with_differences(mfcc(samples)))))
    names = [path.with_suffix("").as_posix().lstrip("/.") for path in paths]
    twice = {name for name in names if names.count(name) > 1}
    problems += [Problem(name, "is given twice; a label file names each utterance once") for name in sorted(twice)]
    raise_any(problems)
    return names, X


def write_predictions(model: ESNClassifier, names: Sequence[str], X: Sequence[Array], out: Path) -> None:
    if out.suffix.lower() == ".npz":
        content = io.BytesIO()
        probabilities = np.concatenate(model.predict_proba(list(X))).astype(np.float32)
        lengths = np.array([len(x) for x in X], dtype=np.int32)
        np.savez_compressed(
            content, posteriors=probabilities, lengths=lengths, utterances=np.array(names), state_names=model.classes_
        )
        write_atomically(out, content.getvalue())
        return
    runs = {name: _segments(states) for name, states in zip(names, model.predict(list(X)), strict=True)}
    _write_mlf(runs, out)


def _segments(states: Array) -> list[Segment]:
    edges = np.flatnonzero(np.r_[True, states[1:] != states[:-1], True]).tolist()
    step = SHIFT / RATE
    return [Segment(a * step, b * step, str(states[a])) for a, b in itertools.pairwise(edges)]


def _write_mlf(runs: Mapping[str, Sequence[Segment]], out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder) / "labels.mlf"
        write_mlf(draft, runs)
        write_atomically(out, draft.read_bytes())


def write_alignment(corpus: Corpus, out: Path) -> None:
    names = np.array(corpus.state_names)
    labels = zip(corpus.utterances, corpus.labels, strict=True)
    _write_mlf({name: _segments(names[y]) for name, y in labels}, out)


def about_model(model: ESNClassifier, path: Path) -> str:
    reservoir, history = model.reservoir_, model.history_
    changed = {k: v for k, v in model.get_params(deep=False).items() if v != ESNClassifier().get_params()[k]}
    learned = {"none": "nothing but the readout", "input": "W", "both": "W and W_rec"}[model.learn]
    lines = [
        f"{path}: {type(model).__name__}, {reservoir.N:,} hidden units, {reservoir.n_in} inputs, "
        f"{len(model.classes_)} states",
        f"learned: {learned}; readout: {model.readout}; activation: {reservoir.activation}",
        f"spectral radius {spectral_radius_of(reservoir.W_rec):.3f}, {reservoir.W_rec.nnz:,} connections, "
        f"leak {reservoir.leak.min():.3g} to {reservoir.leak.max():.3g}",
    ]
    if history:
        best = min(r.get("valid_error", r["error"]) for r in history)
        lines.append(f"{len(history)} epochs in {clock(history[-1]['seconds'])}, best held-out error {best:.4f}")
    lines.append("settings other than the defaults: " + (", ".join(f"{k}={v!r}" for k, v in changed.items()) or "none"))
    return "\n".join(lines)


def about_corpus(corpus: Corpus) -> str:
    lines = [f"{corpus.name}{' (synthetic speech)' if corpus.synthetic else ''}: {len(corpus.state_names)} states"]
    for part, frames in corpus.frames.items():
        which = corpus.which(part)
        speakers = len({corpus.speakers[k] for k in which})
        length = clock(frames * SHIFT / RATE)
        lines.append(f"  {part:5}  {frames:>9,} frames ({length})  {len(which):,} utterances  {speakers} speakers")
    return "\n".join([*lines, *(f"  {note}" for note in corpus.notes)])


def about_here() -> str:
    def there(module: str, extra: str) -> str:
        found = importlib.util.find_spec(module) is not None
        return f"  {module}: " + ("installed" if found else f"missing; pip install 'echolearn[{extra}]'")

    parts = {"kaldi_native_fbank": "speech", "soundfile": "speech", "espeakng_loader": "speech", "matplotlib": "report"}
    parts["optuna"] = "tune"
    versions = ", ".join(f"{n} {importlib.metadata.version(n)}" for n in ("numpy", "scipy", "numba", "scikit-learn"))
    cache = default_cache()
    size = sum(f.stat().st_size for f in cache.rglob("*") if f.is_file()) if cache.is_dir() else 0
    return "\n".join(
        [
            f"echolearn {__version__}, Python {platform.python_version()}, {versions}",
            f"threads: {threads()} of {os.cpu_count()} cores",
            f"cache: {cache} ({size / 1e6:,.0f} MB)",
            *(there(module, extra) for module, extra in parts.items()),
        ]
    )
