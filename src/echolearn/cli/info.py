"""The command `info`: a model, a corpus, or the installation."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Unpack

import click
import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline

from echolearn import __version__
from echolearn.cli.corpora import opened_corpus
from echolearn.cli.options import FILE, CorpusOptions, corpus_options
from echolearn.display.facts import counted
from echolearn.display.progress import clock
from echolearn.estimators import ESNForecaster, FrameWise
from echolearn.estimators._classifier import LabelEstimator
from echolearn.estimators._functions import AnyEstimator
from echolearn.execution.threads import thread_count
from echolearn.modelfile.reader import saved_by
from echolearn.readout.deep_network import DeepNetwork
from echolearn.reservoir._deep_reservoir import decay
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.speech import Corpus
from echolearn.speech._features import FRAME_SECONDS
from echolearn.speech._preparation import default_cache
from echolearn.speech.recognition import NGramModel, Recognizer
from echolearn.speech.recognition._decoder import DecodingWeights
from echolearn.speech.recognition._recognizer import load_any
from echolearn.training.history import History


@click.command()
@click.argument("model", required=False, type=FILE)
@corpus_options()
def info(*, model: Path | None, **corpus_settings: Unpack[CorpusOptions]) -> None:
    """Describe MODEL, or the corpus of --corpus; without either, this installation.

    MODEL is any file of a saved estimator, pipeline or recogniser. Printed are its kind, its size, its features
    and classes, its readout, its training, its settings, and the version that saved it.
    """
    if model is not None:
        whole = load_any(model)
        described = describe_recognizer if isinstance(whole, Recognizer) else describe_model
        click.echo(described(whole, model))
        size, changed = model.stat().st_size, datetime.fromtimestamp(model.stat().st_mtime).astimezone()
        saved = f"saved by echolearn {saved_by(model)}; {size:,} bytes"
        click.echo(f"{saved}, last changed {changed.strftime('%Y-%m-%d %H:%M %Z')}")
    elif corpus_settings["corpus"] is not None:
        click.echo(describe_corpus(opened_corpus(**corpus_settings)))
    else:
        click.echo(describe_installation())


SHOWN_NAMES = 8  # names of features or classes that are listed
LEARNED = {"none": "nothing but the readout", "input": "W", "both": "W and W_rec"}


def describe_model(model: AnyEstimator | Pipeline, path: Path | str) -> str:
    if isinstance(model, Pipeline):
        *steps, (_, network) = model.steps
        names = [type(step.transformer_ if isinstance(step, FrameWise) else step).__name__ for _, step in steps]
        taken = _listed(model.n_features_in_, "feature", ())
        first = f"{path}: pipeline of {', '.join([*names, type(network).__name__])}; {taken}"
        return f"{first}\n{describe_model(network, 'network')}"
    names = [str(name) for name in getattr(model, "feature_names_in_", ())]
    about = [_size(model), _listed(model.n_features_in_, "feature", names), *_answers(model)]
    lines = [f"{path}: {type(model).__name__}, {', '.join(about)}"]
    lines += _network_lines(model)
    lines.append(f"settings other than the defaults: {_changed_settings(model)}")
    return "\n".join(lines)


def _size(model: AnyEstimator) -> str:
    network = model.model_.network
    if isinstance(network, DeepNetwork):
        several = f"{counted(len(network.stacks), 'network')} of " if len(network.stacks) > 1 else ""
        return f"{several}{counted(network.reservoir.layers, 'layer')} of {network.reservoir.units:,} units"
    return counted(network.reservoir.N, "hidden unit")


def _answers(model: AnyEstimator) -> list[str]:
    if isinstance(model, ESNForecaster):
        season = "no season" if model.season_ is None else f"season {' and '.join(map(str, model.season_))}"
        method = model.method_.replace("_", " ")
        return [f"forecasts of {counted(len(model.target_mean_), 'value')} per step, method {method}, {season}"]
    each = f"one answer per {'step' if model.per_step_ else 'sequence'}"
    if isinstance(model, LabelEstimator):
        return [_listed(len(model.classes_), "class", [str(label) for label in model.classes_], "classes"), each]
    return [counted(len(model.target_mean_), "value"), each]


def _network_lines(model: AnyEstimator) -> list[str]:
    network, history = model.model_.network, model.history_
    if isinstance(network, DeepNetwork):
        return _deep_lines(network, history)
    reservoir = network.reservoir
    learned = LEARNED[getattr(model, "learn", "none") if history else "none"]
    kind = "softmax" if network.readout.softmax else "ridge regression"
    lines = [
        f"learned: {learned}; readout: {kind}, ridge {network.readout.ridge:.3g}; activation: {reservoir.activation}",
        f"spectral radius {spectral_radius_of(reservoir.W_rec):.3f}, {reservoir.W_rec.nnz:,} connections, "
        f"leak {reservoir.leak.min():.3g} to {reservoir.leak.max():.3g}",
    ]
    return [*lines, learning_summary(history)] if history else lines


def _deep_lines(network: DeepNetwork, history: History) -> list[str]:
    alphas = [v for stack in network.stacks for name, v in stack.weights.items() if name.endswith("/alpha")]
    leaks = 1 - decay(np.concatenate(alphas))
    kind = "softmax" if network.readout.softmax else f"ridge regression, ridge {network.readout.ridge:.3g}"
    learned = "all weights" if history else LEARNED["none"]
    lines = [f"learned: {learned}; readout: {kind}; leak {leaks.min():.3g} to {leaks.max():.3g}"]
    return [*lines, learning_summary(history)] if history else lines


def learning_summary(history: History) -> str:
    """Return one line about the epochs, their time and, where data were held out, the smallest error on them."""
    held = [row["valid_error"] for row in history if "valid_error" in row]
    best = f", smallest held-out error while learning {100 * min(held):.1f} %" if held else ""
    return f"{counted(len(history), 'epoch')} in {clock(history[-1]['seconds'])}{best}"


def _listed(count: int, name: str, names: Sequence[str], plural: str = "") -> str:
    """Return `2 features (a, b)`; only the first of many names are listed."""
    more = ", ..." if len(names) > SHOWN_NAMES else ""
    shown = f" ({', '.join(names[:SHOWN_NAMES])}{more})" if names else ""
    return f"{counted(count, name, plural)}{shown}"


def _changed_settings(model: AnyEstimator) -> str:
    defaults = type(model)().get_params(deep=False)
    settings: Mapping[str, object] = model.get_params(deep=False)
    changed = []
    for name, value in settings.items():
        same = type(value) is type(defaults[name]) and not _is_matrix(value) and value == defaults[name]
        changed += [] if same else [f"{name}={_shown(value)}"]
    return ", ".join(changed) or "none"


def _is_matrix(value: object) -> bool:
    return isinstance(value, np.ndarray) or sparse.issparse(value)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_shown(entry)}" for name, entry in value.items()) + "}"
    return f"an array of shape {value.shape}" if _is_matrix(value) else f"{value!r:.80}"  # type: ignore[attr-defined]


# Optional packages, and the extra of echolearn that installs each.
EXTRAS = {
    "kaldi_native_fbank": "speech",
    "soundfile": "speech",
    "espeakng_loader": "speech",
    "matplotlib": "report",
    "optuna": "tune",
    "pandas": "forecast",
}


def describe_recognizer(recognizer: Recognizer, path: Path) -> str:
    phones, words = recognizer.phones, recognizer.words
    lines = [
        f"{path}: recogniser of {len(phones.phones)} phones"
        + (f" and {len(words.lexicon.words):,} words" if words else ""),
        f"features: {recognizer.features.describe()}; can stream: {_can_stream(recognizer)}",
        f"phones: {_grams_text(phones.language_model)}; {_weights_text(phones.weights)}",
    ]
    if words is not None:
        lines.append(f"words: {_grams_text(words.language_model)}; {_weights_text(words.weights)}")
    lines.append(describe_model(recognizer.model, "network"))
    return "\n".join(lines)


def _can_stream(recognizer: Recognizer) -> str:
    try:
        recognizer.stream()
    except ValueError as problem:
        return f"no ({problem})"
    return f"yes, {1000 * recognizer.features.latency:.0f} ms behind the sound"


def _grams_text(model: NGramModel) -> str:
    counts = Counter(len(gram) for gram in model.probability)
    return "n-grams of " + ", ".join(f"order {order}: {counts[order]:,}" for order in sorted(counts))


def _weights_text(weights: DecodingWeights) -> str:
    return ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in asdict(weights).items())


def describe_corpus(corpus: Corpus) -> str:
    lines = [f"{corpus.name}{' (synthetic speech)' if corpus.synthetic else ''}: {len(corpus.state_names)} states"]
    for part, frames in corpus.frames.items():
        which = corpus.which(part)
        speakers = len({corpus.speakers[k] for k in which})
        length = clock(frames * FRAME_SECONDS)
        counts = f"{counted(len(which), 'utterance')}  {counted(speakers, 'speaker')}"
        lines.append(f"  {part:5}  {frames:>9,} frames ({length})  {counts}")
    return "\n".join([*lines, *(f"  {note}" for note in corpus.notes)])


def describe_installation() -> str:
    versions = ", ".join(f"{n} {importlib.metadata.version(n)}" for n in ("numpy", "scipy", "numba", "scikit-learn"))
    try:
        cache = default_cache()
        size = sum(f.stat().st_size for f in cache.rglob("*") if f.is_file()) if cache.is_dir() else 0
        about_cache = f"{cache} ({size / 1e6:,.0f} MB)"
    except FileNotFoundError as problem:
        about_cache = str(problem)
    lines = [
        f"echolearn {__version__}, Python {platform.python_version()}, {versions}",
        f"threads: {thread_count()} of {os.cpu_count()} cores",
        f"cache: {about_cache}",
    ]
    for module, extra in EXTRAS.items():
        installed = importlib.util.find_spec(module) is not None
        lines.append(f"  {module}: " + ("installed" if installed else f"missing; pip install 'echolearn[{extra}]'"))
    return "\n".join(lines)
