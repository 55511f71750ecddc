"""What all cases share: the list of cases, the homes of public names, small data, and what is recorded of a model."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from inspect import signature
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
from safetensors import safe_open
from scipy import sparse

import echolearn

# The modules below echolearn that a public name may live in: the present one of each commit is used. A place is written
# without "echolearn.", so that a tool that rewrites import paths leaves both sides of the comparison as they are.
HOMES = {
    "harvest": ("states",),
    "loss_and_gradients": ("gradients",),
    "intrinsic_plasticity": ("reservoir", "reservoir.plasticity"),
    "synaptic_plasticity": ("reservoir", "reservoir.plasticity", "reservoir._plasticity"),
    "LMS": ("readout", "readout.online"),
    "RLS": ("readout", "readout.online"),
    "Stream": ("streams", "streams._stream", "estimators.streams"),
    "on": ("cluster",),
    "tune": ("tuning",),
    "export_model": ("export",),
    "ExportError": ("exceptions", "export"),
    "Monitor": ("monitoring", "diagnostics"),
    "GuardedStream": ("monitoring", "diagnostics"),
    **dict.fromkeys(("open_corpus", "Corpus"), ("speech", "speech.corpus")),
    **dict.fromkeys(("mfcc", "with_differences", "with_context", "normalised"), ("speech", "speech.features")),
    "FeatureRecipe": ("speech._recipe", "speech", "speech.recipe"),
    **dict.fromkeys(("read_audio", "read_channels"), ("speech", "speech.audio")),
    **dict.fromkeys(("align", "boundary_errors"), ("speech", "speech.alignment")),
    **dict.fromkeys(("Segment", "read_labels", "read_mlf", "write_mlf"), ("speech", "speech.labels")),
    **dict.fromkeys(("evaluate", "matched_pairs"), ("speech", "speech.scoring")),
    **dict.fromkeys(("read_ark", "write_ark", "open_scp"), ("speech.formats", "speech.formats.kaldi")),
    **dict.fromkeys(("read_ctm", "write_ctm"), ("speech.formats", "speech.formats.ctm")),
    "read_stm": ("speech.formats", "speech.formats.stm"),
    "read_textgrid": ("speech.formats", "speech.formats.textgrid"),
    "read_json": ("speech.formats", "speech.formats.json_results"),
    "write_results": ("speech.formats", "speech.formats.writing"),
    **dict.fromkeys(("learn_recognizer", "load_recognizer"), ("speech.recognition", "speech.recognition.recognizer")),
    "read_lexicon": ("speech.recognition", "speech.recognition.lexicon"),
    "estimate": ("speech.recognition", "speech.recognition.ngrams"),
    **dict.fromkeys(("read_arpa", "write_arpa"), ("speech.recognition", "speech.recognition.arpa")),
}
# Constants that let small networks take the path of large ones, and short fits that of long ones: their value, and the
# modules that may have them. A constant is found by its value, so that it may have another name in each commit.
CONSTANTS = {
    "large": (8000, ("iterative", "readout.solver", "readout.large.solver", "readout.large")),
    "seconds": (300.0, ("checkpoints", "modelfile.checkpoint", "modelfile.checkpoints", "persistence.checkpoint")),
}
# Settings that are given in one dict where a constructor has a parameter of that name.
GROUPS = {
    "learning": (
        *("step_size", "batch_size", "lookback", "patience", "refine_epochs", "learn_leak", "optimizer", "momentum"),
        *("clip", "renormalize", "gradient", "case", "targets", "direct", "fit_intercept", "loop_steps"),
    ),
    "reservoir": ("connections", "topology", "activation", "bias_scaling", "feedback_scaling", "initial_state"),
}
# Estimators, and those that did their work at commits that lack them.
FORMER_KINDS = {"SeriesClassifier": "ESNClassifier", "SeriesRegressor": "ESNRegressor"}
SMALL: dict[str, Any] = {"hidden_units": 30, "connections": 4, "batch_size": 4, "epochs": 3, "patience": None}
TIMES = ("seconds", "processor_seconds", "decoding_seconds", "frames_per_second", "peak_memory_mb")
Data = tuple[Any, Any]


@dataclass(frozen=True)
class Run:
    """The folder of one case, the folder that the first commit hands over, and whether this run fills it."""

    work: Path
    handover: Path
    writes: bool

    def handed(self, path: Path) -> Path:
        """The file of this name that the first commit wrote."""
        if self.writes:
            shutil.copy(path, self.handover)
        return self.handover / path.name


CASES: dict[str, Callable[[Run], Any]] = {}


def case(function: Callable[[Run], Any]) -> Callable[[Run], Any]:
    CASES[function.__name__.replace("_", " ")] = function
    return function


# ---------------------------------------------------------------- names, settings and constants


def module_of(place: str) -> ModuleType | None:
    """The module at this place below echolearn, if this commit has it."""
    try:
        return importlib.import_module(f"echolearn.{place}")
    except ModuleNotFoundError as missing:
        if not str(missing.name).startswith("echolearn"):
            raise
        return None


def public(name: str) -> Any:
    """The class or function of this name, wherever this commit has it."""
    for place in HOMES[name]:
        if hasattr(module := module_of(place), name):
            return getattr(module, name)
    raise LookupError(f"{name} is in none of {HOMES[name]}; add its place to HOMES.")


def new(kind: str, **settings: Any) -> Any:
    """An estimator: its name in `echolearn`, or the name of one of its constructors such as ESNClassifier.paper.

    All estimators are made here, so that a commit with other names of classes or settings needs one translation.
    """
    if not hasattr(echolearn, kind.partition(".")[0]):
        kind = FORMER_KINDS[kind]
    return attrgetter(kind)(echolearn)(**present_settings(getattr(echolearn, kind.partition(".")[0]), settings))


def present_settings(kind: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as this commit's constructor takes them: some in one dict, where it has a parameter for that."""
    known = signature(kind).parameters
    if "input_noise" in known and "noise" in settings:
        settings = {"input_noise" if name == "noise" else name: value for name, value in settings.items()}
    for group, names in GROUPS.items():  # beside a reservoir that is given, how one is drawn is not used
        inside = {name: settings[name] for name in names if name in settings and name not in known}
        if inside and group in known:
            settings = {group: inside} | {name: value for name, value in settings.items() if name not in inside}
    return settings


@contextmanager
def constant(name: str, value: float) -> Iterator[None]:
    """Within this context the constant has another value, in every module of `CONSTANTS` that has it."""
    usual, places = CONSTANTS[name]
    with ExitStack() as stack:
        found = 0
        for module in filter(None, map(module_of, places)):
            own = {k: v for k, v in vars(module).items() if k.isupper() and type(v) is type(usual) and v == usual}
            for attribute in own:
                stack.enter_context(mock.patch.object(module, attribute, value))
                found += 1
        if not found:
            raise LookupError(f"none of {places} has a constant of value {usual}; add its place to CONSTANTS.")
        yield


class Killed(BaseException):
    """Stands for the end of the process."""


@contextmanager
def killed_after(writes: float) -> Iterator[list[int]]:
    """Within this context a checkpoint is due at every opportunity, and the write with this number is the last one.

    Yields a list whose only entry counts the writes.
    """
    replace_file, count = os.replace, [0]

    def counted(*arguments: Any, **more: Any) -> None:
        replace_file(*arguments, **more)
        count[0] += 1
        if count[0] >= writes:
            raise Killed

    with constant("seconds", 0.0), mock.patch("os.replace", counted):
        yield count


class Fit:
    """An estimator (its name in `echolearn`), its training data, whether it counts as large, and its settings.

    Without `plain`, the settings are additions to those of a small network that learns for three epochs.
    """

    def __init__(self, kind: str, data: Callable[[], Data], large: bool = False, plain: bool = False, **settings: Any):
        self.kind, self.data, self.large = kind, data, large
        self.settings = settings if plain else {**SMALL, **settings}

    def new(self) -> Any:
        return new(self.kind, **self.settings)

    def fitted(self, **how: Any) -> Any:
        with constant("large", 10) if self.large else nullcontext():
            return self.new().fit(*self.data(), **how)


# ---------------------------------------------------------------- data


@cache
def values(sequences: int = 20, shortest: int = 30, longest: int = 60, seed: int = 1) -> Data:
    """Noise, and two values per time step that need a memory of two steps."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, 3)) for n in rng.integers(shortest, longest, sequences)]
    late = [np.vstack([np.zeros((2, 3)), x])[:-2] for x in X]
    return X, [np.column_stack([a[:, 0] + 0.3 * x[:, 2], a[:, 1] * x[:, 1]]) for x, a in zip(X, late, strict=True)]


def labels(**how: int) -> Data:
    """One of three words per time step."""
    X, Y = values(**how)
    return X, [np.array(["high", "low", "mid"])[np.digitize(y[:, 0], [-0.4, 0.4])] for y in Y]


def whole_labels() -> Data:
    X, Y = values(sequences=30)
    return X, [bool(y[:, 0].mean() > 0) for y in Y]


def whole_values() -> Data:
    X, Y = values(sequences=30)
    return X, [y.mean(axis=0) for y in Y]


many_labels = partial(labels, sequences=44, shortest=90, longest=130)  # more frames than a sketch is made of
many_values = partial(values, sequences=44, shortest=90, longest=130)
most_values = partial(values, sequences=500, shortest=90, longest=130)  # more groups of frames than a sum takes at once
long_values = partial(values, sequences=1, shortest=12_007, longest=12_008)  # run in chunks that are joined
new_X = values(sequences=5, seed=2)[0]  # for predictions


def series(count: int = 1, steps: int = 400) -> list[Any]:
    t = np.arange(steps)[:, None]
    return [np.sin(0.2 * t + i) + 0.5 * np.sin(0.311 * t * [1, 1.3]) for i in range(count)]


# ---------------------------------------------------------------- what is recorded


def arrays_of(path: Path) -> dict[str, Any]:
    """The arrays and facts of a model file, without what may differ: times, settings and the package's version.

    The name of an estimator of whole series is that which it has now.
    """
    with safe_open(path, "numpy") as file:
        found: dict[str, Any] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        (about,) = [text for name, text in file.metadata().items() if name.startswith("echolearn-")]
    facts = json.loads(about)
    for prefix, its in _networks(facts):
        present = {former: kind for kind, former in FORMER_KINDS.items()}
        if not its.get("per_step", True) and its["estimator"] in present:
            its["estimator"] = present[its["estimator"]]
        if "seconds" in its["history_columns"]:
            found[f"{prefix}history"][:, its["history_columns"].index("seconds")] = 0
    return found | {"facts": json.dumps(without(facts, ("echolearn", "settings")), sort_keys=True)}


def _networks(facts: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """The facts of the networks in a file, with what the names of their arrays begin with."""
    if "history_columns" in facts:
        yield prefix, facts
    for i, layer in enumerate(facts.get("layers", [])):
        yield from _networks(layer, f"{prefix}{i}/")
    for part in ("model", "network"):
        if isinstance(facts.get(part), dict):
            yield from _networks(facts[part], f"{prefix}{part}/")


def saved(esn: Any, path: Path, **how: Any) -> dict[str, Any]:
    """What a model's file holds."""
    esn.save(path, **how)
    return arrays_of(path)


def name_alone(name: str) -> str:
    """The name of a setting without that of the dict that it is given in."""
    return re.sub(rf"^({'|'.join(GROUPS)})(__|\.)", "", name)


def without(value: Any, names: Iterable[str]) -> Any:
    """A value of JSON without the entries of these names, at any depth."""
    if isinstance(value, dict):
        return {name: without(entry, names) for name, entry in value.items() if name not in names}
    return [without(entry, names) for entry in value] if isinstance(value, list) else value


def plain(text: str) -> str:
    """A text without the version of the package, and with the former names of estimators."""
    for kind, former in FORMER_KINDS.items():
        text = text.replace(kind, former)
    return text.replace(echolearn.__version__, "VERSION")


def answers(esn: Any) -> dict[str, Any]:
    names = ("predict", "predict_proba", "decision_function")
    return {name: getattr(esn, name)(new_X) for name in names if hasattr(esn, name)}


def history(rows: Any) -> list[Any]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def outcome(esn: Any, run: Run, name: str, answers: Callable[[Any], Any] = answers, **how: Any) -> dict[str, Any]:
    """Everything about a fitted network, and about the model file that the first commit wrote for it."""
    found: dict[str, Any] = {"answers": answers(esn)}
    if not hasattr(esn, "forecast_interval"):  # the attributes of a forecaster are views of what it saves
        parts = ("input_weights", "recurrent_weights", "feedback_weights", "readout_weights", "intercept", "ridge")
        found |= {part: getattr(esn, f"{part}_") for part in parts if getattr(esn, f"{part}_", None) is not None}
        found["history"] = history(esn.history_)
    file = run.work / f"{name}.safetensors"
    found["saved"] = saved(esn, file, **how)
    loaded = echolearn.load(run.handed(file) if getattr(esn, "per_step_", True) else file)  # `FORMER_KINDS` in a file
    return found | {"loaded": answers(loaded), "saved again": saved(loaded, run.work / "again.safetensors", **how)}


def flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays in a nested value, by path."""
    if sparse.issparse(value):
        value = {"data": value.data, "indices": value.indices, "indptr": value.indptr}
    if isinstance(value, bytes):
        value = np.frombuffer(value, np.uint8)
    if isinstance(value, (list, tuple)):
        value = dict(enumerate(value))
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from flat(f"{name}/{key}", entry)
        return
    array = np.asarray("None" if value is None else value)
    if array.dtype.kind == "O":
        raise TypeError(f"{name} holds Python objects of type {type(value).__name__}; expected numbers or text.")
    yield name, array


def refusal(action: Callable[[], Any], *errors: type[Exception]) -> Any:
    """What an action returns, or the text of the error by which it refuses."""
    try:
        return action()
    except errors as problem:
        return plain(f"{type(problem).__name__}: {problem}")
