"""Descriptions for `echolearn info`: of a recogniser, a corpus, and the installation."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from echolearn import __version__
from echolearn.execution.threads import thread_count
from echolearn.experiments.model_descriptions import describe_model
from echolearn.speech.audio import RATE
from echolearn.speech.cache import default_cache
from echolearn.speech.corpus import Corpus
from echolearn.speech.features import SHIFT
from echolearn.speech.recognition import NGramModel, Recognizer
from echolearn.speech.recognition._decoder import DecodingWeights
from echolearn.training.progress import clock

# Optional packages, and the extra of echolearn that installs each.
EXTRAS = {
    "kaldi_native_fbank": "speech",
    "soundfile": "speech",
    "espeakng_loader": "speech",
    "matplotlib": "report",
    "optuna": "tune",
}


def describe_recognizer(recognizer: Recognizer, path: Path) -> str:
    """Return what a recogniser recognises and how, and its network."""
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
    """Return frames, utterances and speakers of every part of a corpus."""
    lines = [f"{corpus.name}{' (synthetic speech)' if corpus.synthetic else ''}: {len(corpus.state_names)} states"]
    for part, frames in corpus.frames.items():
        which = corpus.which(part)
        speakers = len({corpus.speakers[k] for k in which})
        length = clock(frames * SHIFT / RATE)
        lines.append(f"  {part:5}  {frames:>9,} frames ({length})  {len(which):,} utterances  {speakers} speakers")
    return "\n".join([*lines, *(f"  {note}" for note in corpus.notes)])


def describe_installation() -> str:
    """Return versions, threads, the cache, and which optional packages are installed."""
    versions = ", ".join(f"{n} {importlib.metadata.version(n)}" for n in ("numpy", "scipy", "numba", "scikit-learn"))
    cache = default_cache()
    size = sum(f.stat().st_size for f in cache.rglob("*") if f.is_file()) if cache.is_dir() else 0
    lines = [
        f"echolearn {__version__}, Python {platform.python_version()}, {versions}",
        f"threads: {thread_count()} of {os.cpu_count()} cores",
        f"cache: {cache} ({size / 1e6:,.0f} MB)",
    ]
    for module, extra in EXTRAS.items():
        installed = importlib.util.find_spec(module) is not None
        lines.append(f"  {module}: " + ("installed" if installed else f"missing; pip install 'echolearn[{extra}]'"))
    return "\n".join(lines)
