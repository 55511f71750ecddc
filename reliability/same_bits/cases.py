"""Small fits that together use every part of the package; every weight and prediction goes into one .npz file.

    python cases.py --source SRC --out RESULTS.npz --handover FOLDER [--write-handover] [--only TEXT]

`reliability.same_bits.compare` runs this file under two commits and compares the results. It therefore uses the public
API only, apart from two module constants (`CONSTANTS`) that let small networks take the path of large ones, and short
fits that of long ones. Both commits read the models and checkpoints that the first one writes into the handover folder.
A case that raises an exception is recorded as failed, and the other cases still run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from safetensors import safe_open
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import echolearn
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, FrameWise, Reservoir

FAILURE = "failure"  # name of the only array of a case that raised an exception
# Where the constants live, before and after the modules were arranged in packages. At least one place must exist.
CONSTANTS = {
    "large": (("echolearn.iterative", "FROM"), ("echolearn.readout.solver", "LARGE")),
    "seconds": (("echolearn.checkpoints", "SECONDS"), ("echolearn.modelfile.checkpoint", "SECONDS")),
}
SMALL: dict[str, Any] = {"hidden_units": 30, "connections": 4, "batch_size": 4, "epochs": 3, "patience": None}
Data = tuple[Any, Any]


def either(name: str, *modules: str) -> Any:
    """Return what has this name in the first of the modules that this commit has."""
    for module in modules:
        with suppress(ImportError):
            return getattr(importlib.import_module(module), name)
    raise ImportError(f"none of {', '.join(modules)} exists")


@dataclass(frozen=True)
class Run:
    """The folder of one case, the folder that the first commit hands over, and whether this run fills it."""

    work: Path
    handover: Path
    writes: bool


class Fit:
    """An estimator (its name in `echolearn`), its training data, whether it counts as large, and its settings."""

    def __init__(self, kind: str, data: Callable[[], Data], large: bool = False, **settings: Any):
        self.kind, self.data, self.large = kind, data, large
        self.settings = settings if "layers" in settings else {**SMALL, **settings}

    def new(self) -> Any:
        return attrgetter(self.kind)(echolearn)(**self.settings)

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


def saved(esn: Any, path: Path, **how: Any) -> dict[str, Any]:
    """The arrays and facts of the model file, without what may differ: times, settings and the package's version."""
    esn.save(path, **how)
    with safe_open(path, "numpy") as file:
        found: dict[str, Any] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = json.loads(file.metadata()["echolearn-model"])
    for prefix, its in [("", facts), *((f"{i}/", layer) for i, layer in enumerate(facts.get("layers", [])))]:
        if "seconds" in its["history_columns"]:
            found[f"{prefix}history"][:, its["history_columns"].index("seconds")] = 0
        for name in ("echolearn", "settings"):
            its.pop(name, None)
    return found | {"facts": json.dumps(facts, sort_keys=True)}


def answers(esn: Any) -> dict[str, Any]:
    names = ("predict", "predict_proba", "decision_function")
    return {name: getattr(esn, name)(new_X) for name in names if hasattr(esn, name)}


def history(rows: Any) -> list[Any]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def outcome(esn: Any, run: Run, name: str, answers: Callable[[Any], Any] = answers, **how: Any) -> dict[str, Any]:
    """Everything about a fitted network, and about the model file that the first commit wrote for it."""
    parts = ("input_weights", "recurrent_weights", "feedback_weights", "readout_weights", "intercept", "ridge")
    found = {part: getattr(esn, f"{part}_") for part in parts if hasattr(esn, f"{part}_")}
    found |= {"history": history(esn.history_), "answers": answers(esn)}
    found["saved"] = saved(esn, run.work / f"{name}.safetensors", **how)
    if run.writes:
        shutil.copy(run.work / f"{name}.safetensors", run.handover)
    loaded = echolearn.load(run.handover / f"{name}.safetensors")
    return found | {"loaded": answers(loaded), "saved again": saved(loaded, run.work / "again.safetensors", **how)}


def flat(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays in a nested value, by path."""
    if sparse.issparse(value):
        value = {"data": value.data, "indices": value.indices, "indptr": value.indptr}
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


# ---------------------------------------------------------------- constants and interruptions


@contextmanager
def constant(name: str, value: float) -> Iterator[None]:
    """Within this context the constant has another value, in every module of `CONSTANTS` that exists."""
    with ExitStack() as stack:
        found = 0
        for module, attribute in CONSTANTS[name]:
            with suppress(ModuleNotFoundError):
                stack.enter_context(mock.patch.object(importlib.import_module(module), attribute, value))
                found += 1
        if not found:
            raise LookupError(f"none of {CONSTANTS[name]} exists; add the place of this constant to CONSTANTS.")
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


# ---------------------------------------------------------------- cases that are one fit


def layers(kind: str, **settings: Any) -> list[Any]:
    return [getattr(echolearn, kind)(**{**SMALL, "hidden_units": units, **settings}) for units in (20, 15)]


classifier, regressor = partial(Fit, "ESNClassifier"), partial(Fit, "ESNRegressor")
paper = partial(Fit, "ESNClassifier.paper", labels, batch_size=None, gradient="printed", epochs=4)
stacked = partial(Fit, "StackedClassifier", joint_epochs=2)
stacked_regressor = partial(Fit, "StackedRegressor", values, joint_epochs=2)
full = {"batch_size": None, "readout": "ridge"}
keep_last = {"validation_fraction": 0.0}  # the weights of the last epoch, not those of the best one
wild = {"activation": "relu", "step_size": 30.0}
MATRIX = np.random.default_rng(3).normal(size=(30, 30)) * (np.random.default_rng(4).random((30, 30)) < 0.2)
STATE = np.linspace(-0.5, 0.5, 30)
OWN = Reservoir.random(3, 30, connections=4, bias_scaling=0.2, leak=(0.1, 1.0), initial_state=STATE, random_state=5)

FITS = {
    "classifier": classifier(labels),
    "classifier, fixed, ridge": classifier(labels, learn="none", readout="ridge"),
    "classifier, fixed, softmax": classifier(labels, learn="none", washout=3, **keep_last),
    "classifier, full batch, case 1": classifier(labels, case=1, **full),
    "classifier, full batch, FISTA": classifier(labels, optimizer="fista", step_size=0.001, renormalize=True, **full),
    "classifier, case 1, input weights": classifier(labels, case=1, learn="input"),
    "classifier, paper": paper(),
    "classifier, paper, case 1, input weights": paper(case=1, learn="input", momentum="printed", targets="last"),
    "classifier, paper, validation": paper(validation_fraction=0.2, lookback=1),
    "classifier, feedback": classifier(labels, feedback=True),
    "classifier, bidirectional": classifier(labels, bidirectional=True, lookback=7, renormalize=True, **keep_last),
    "classifier, ensemble": classifier(labels, hidden_units=40, ensemble=3, initial_state=np.linspace(-1, 1, 40)),
    "classifier, no intercept": classifier(labels, fit_intercept=False),
    "classifier, own reservoir": classifier(labels, reservoir=OWN, leak=OWN.leak),
    "classifier, last targets": classifier(labels, lookback=5, washout=4, targets="last", **keep_last),
    "classifier, matrix, plasticity, state": classifier(labels, topology=MATRIX, plasticity=0.3, initial_state=STATE),
    "classifier, float64": classifier(labels, dtype="float64", activation="sigmoid", clip=0.1, direct=False),
    "classifier, diverging": classifier(labels, **wild, epochs=1),
    "classifier, sequences": classifier(whole_labels),
    "classifier, sequences, 3 parts": classifier(
        whole_labels, pooling=3, bidirectional=True, plasticity=0.4, **keep_last
    ),
    "classifier, sequences, ensemble": classifier(whole_labels, pooling=2, ensemble=2, washout=2, readout="ridge"),
    "regressor": regressor(values),
    "regressor, full batch": regressor(values, batch_size=None, dtype="float64", washout=5, ridge=[0.01, 0.1, 1.0]),
    "regressor, fixed": regressor(values, learn="none", ridge=0.1, input_scaling=[0.5, 0.0, 1.0]),
    "regressor, feedback": regressor(values, feedback=True, patience=1, epochs=6),
    "regressor, diverging": regressor(values, **wild, batch_size=None),
    "regressor, diverging for good": regressor(values, activation="relu", step_size=1000.0),
    "regressor, diverging, no validation": regressor(values, **wild, **keep_last),
    "regressor, sequences": regressor(whole_values, pooling="last", bidirectional=True),
    "regressor, wide": regressor(many_values, learn="none", hidden_units=2100, ridge=[0.1, 1.0], connections=10),
    "regressor, many groups": regressor(most_values, batch_size=None, epochs=2),
    "regressor, long": regressor(long_values),
    "regressor, long, full batch": regressor(long_values, batch_size=None, lookback=50, **keep_last),
    "large classifier": classifier(many_labels, True, batch_size=2, epochs=2),
    "large classifier, full batch, case 1": classifier(many_labels, True, case=1, **full),
    "large classifier, case 1": classifier(many_labels, True, case=1, readout="ridge"),
    "large classifier, fixed": classifier(many_labels, True, learn="none"),
    "large regressor, full batch": regressor(many_values, True, batch_size=None),
    "large regressor, fixed": regressor(many_values, True, learn="none", dtype="float64"),
    "large classifier, sequences": classifier(whole_labels, True, pooling=2, bidirectional=True, **full, **keep_last),
    "stacked classifier": stacked(labels, layers=layers("ESNClassifier")),
    "stacked classifier, ridge": stacked(labels, layers=layers("ESNClassifier", readout="ridge"), sees="output+input"),
    "stacked classifier, sequences": stacked(whole_labels, layers=layers("ESNClassifier"), **keep_last),
    "stacked classifier, diverging": stacked(labels, layers=layers("ESNClassifier", activation="relu"), step_size=30.0),
    "stacked regressor": stacked_regressor(layers=layers("ESNRegressor", washout=3), sees="output+hidden"),
    "stacked regressor, full batch": stacked_regressor(layers=layers("ESNRegressor", batch_size=None)),
    "stacked regressor, diverging": stacked_regressor(layers=layers("ESNRegressor", activation="relu"), step_size=30.0),
}
for name in ("ring", "delay_line", "small_world", "orthogonal", "groups", "deep"):
    FITS[f"regressor, {name}"] = regressor(values, learn="none", topology=name)
CASES: dict[str, Callable[[Run], Any]] = {
    name: lambda run, name=name: outcome(FITS[name].fitted(), run, name) for name in FITS
}

# ---------------------------------------------------------------- other cases


def case(function: Callable[[Run], Any]) -> Callable[[Run], Any]:
    CASES[function.__name__.replace("_", " ")] = function
    return function


@case
def other_forms_of_data(run: Run) -> Any:
    """A 3-D array, joined sequences with lengths, given validation data, and a Pipeline."""
    (X, y), how = labels(), {**SMALL, "epochs": 1}
    cube = ESNClassifier(**how).fit(np.stack([x[:30] for x in X]), np.stack([words[:30] for words in y]))
    given = {"lengths": [len(x) for x in X], "validation": (X[:4], y[:4])}
    joined = ESNClassifier(**how).fit(np.vstack(X), np.concatenate(y), **given)
    piped = make_pipeline(FrameWise(StandardScaler()), ESNClassifier(**how)).fit(X, y)
    deep = FITS["stacked regressor"].new().fit(*values(), validation=values(seed=3))
    scores = [joined.score(X, y), cube.predict_log_proba(new_X), deep.score(*values()), piped.score(X, y)]
    fits = {"cube": cube, "joined": joined, "stack": deep}
    return {name: outcome(esn, run, name) for name, esn in fits.items()}, answers(piped), scores


@case
def forecasters(run: Run) -> Any:
    how = {**SMALL, "washout": 20}
    outside = [np.cos(0.1 * np.arange(440))[:, None] + i for i in range(3)]
    future = {"exogenous": [e[400:] for e in outside]}

    def alone(esn: Any) -> Any:
        warm = {"warm_up": series(steps=100)[0]}
        return esn.predict(30), esn.predict(9, **warm), esn.forecast_interval(9, 0.8, paths=50), esn.score(series()[0])

    def with_inputs(esn: Any) -> Any:
        return esn.predict(40, **future), esn.forecast_interval(40, paths=20, **future)

    one = ESNForecaster(**how, **keep_last).fit(series()[0])
    fixed = ESNForecaster(**how, learn="none", noise=1e-3, dtype="float32").fit(series()[0])
    several = ESNForecaster(**how).fit(series(3), exogenous=[e[:400] for e in outside])
    with constant("large", 10):
        large = ESNForecaster(**how).fit(series()[0])
    found = [outcome(esn, run, f"forecaster {i}", alone) for i, esn in enumerate((one, fixed, large))]
    return found, outcome(several, run, "forecaster of several", with_inputs)


@case
def states_and_gradients(run: Run) -> Any:
    """`harvest`, `loss_and_gradients` and `intrinsic_plasticity` on their own, for one long sequence and for many."""
    intrinsic_plasticity = either("intrinsic_plasticity", "echolearn.plasticity", "echolearn.reservoir")

    from echolearn.gradients import loss_and_gradients
    from echolearn.states import harvest

    found: dict[str, Any] = {}
    ((x,), (t,)), (X, T) = long_values(), values()
    for activation in ("tanh", "sigmoid", "relu", "identity"):
        how = {"connections": 4, "leak": (0.3, 1.0), "bias_scaling": 0.1, "activation": activation, "random_state": 5}
        plain = Reservoir.random(3, 20, spectral_radius=0.8, **how)
        fed = Reservoir.random(3, 20, spectral_radius=0.8, n_feedback=2, **how)
        for dtype in ("float32", "float64"):
            gradients = partial(loss_and_gradients, ridge=0.1, dtype=dtype)
            states = [harvest(plain, given, dtype=dtype) for given in (x[:6000], X, X[:2])]
            found[f"{activation} {dtype}"] = [
                [*states, harvest(fed, X, T, dtype=dtype)],
                vars(gradients(plain, x, t)),
                vars(gradients(fed, X, T, lookback=6, washout=3)),
                vars(gradients(plain, X[:2], T[:2], direct=False)),
                vars(gradients(plain, X, [t[-1] for t in T], pooling="mean")),
            ]
        without_leak = Reservoir.random(3, 20, **{**how, "leak": 1.0})
        last = {"ridge": 0.1, "lookback": 4, "targets": "last", "gradient": "printed"}
        found[f"{activation} printed"] = vars(loss_and_gradients(without_leak, X, T, **last))
    moved = intrinsic_plasticity(Reservoir.random(3, 20, random_state=5), X[:3], spread=0.3, epochs=2)
    return found, moved.W, moved.W_rec, moved.bias


@case
def streams(run: Run) -> Any:
    """Chunks and single frames, pooled answers, and readouts that learn online."""
    LMS = either("LMS", "echolearn.online", "echolearn.readout")
    RLS = either("RLS", "echolearn.online", "echolearn.readout")
    Stream = either("Stream", "echolearn.streams", "echolearn.streams._stream")

    x, (X, Y), words, found = np.vstack(new_X), values(), labels()[1], {}
    softmax, pooled = FITS["classifier, feedback"].fitted(), FITS["classifier, sequences"].fitted()
    ridge, regressor = FITS["classifier, fixed, ridge"].fitted(), FITS["regressor, feedback"].fitted()
    for name, esn in (("softmax", softmax), ("pooled", pooled), ("ridge", ridge)):
        stream = esn.stream()
        found[name] = [[stream.predict_proba(part) for part in (x[:7], x[7], x[8:])], stream.predict(x), stream.state]
    drawn = Reservoir.random(3, 20, n_feedback=2, random_state=5)
    for name, stream, y in (
        ("softmax LMS", softmax.stream(online=LMS(0.1)), words),
        ("ridge RLS", ridge.stream(online=RLS(0.99)), words),
        ("regressor RLS", regressor.stream(online=RLS()), Y),
        ("FORCE", Stream.untrained(drawn, 2, online=RLS(ridge=1.0)), Y),
        ("float32 LMS", Stream.untrained(drawn, 2, online=LMS(), dtype="float32", washout=3), Y),
    ):
        learned = [stream.learn(*pair) for pair in zip(X[:3], y[:3], strict=True)]
        found[name] = [learned, stream.readout_weights, stream.predict(x), stream.state]
    return found


@case
def partial_fits(run: Run) -> Any:
    (X, Y), words = values(), labels()[1]
    of_values = outcome(ESNRegressor(**SMALL).partial_fit(X[:9], Y[:9]), run, "with sums", sums=True)
    loaded = echolearn.load(run.handover / "with sums.safetensors").partial_fit(X[9:], Y[9:])
    first = {"classes": ["high", "low", "mid", "none"]}
    of_words = ESNClassifier(**SMALL, readout="ridge").partial_fit(X[:9], words[:9], **first)
    return of_values, answers(loaded), answers(of_words), answers(of_words.partial_fit(X[9:], words[9:]))


@case
def callbacks(run: Run) -> Any:
    """Fits that a callback ends, by returning True or by raising KeyboardInterrupt, and the rows that it received."""
    found: dict[str, Any] = {}
    for name, last in (("classifier", 2), ("regressor, full batch", 2), ("stacked regressor", 7)):
        for interrupts in (False, True):
            rows: list[Any] = []

            def called(row: Any, rows: list[Any] = rows, last: int = last, interrupts: bool = interrupts) -> bool:
                rows.append(row)
                if interrupts and len(rows) == last:
                    raise KeyboardInterrupt
                return len(rows) >= last

            esn = FITS[name].new()
            with suppress(KeyboardInterrupt):
                esn.fit(*FITS[name].data(), callback=called)
            found[f"{name} {interrupts}"] = outcome(esn, run, f"{name} {interrupts}") | {"rows": history(rows)}
    return found


RESUMED = {
    "classifier": FITS["classifier"],
    "full batch": FITS["classifier, full batch, FISTA"],
    "regressor": regressor(values, case=1, **keep_last),
    "large": classifier(many_labels, True, batch_size=6, epochs=2, refine_epochs=2),
    "large, full batch": FITS["large classifier, full batch, case 1"],
    "stack": FITS["stacked classifier"],
    "stack, squared error": FITS["stacked regressor"],
    "forecaster": Fit("ESNForecaster", lambda: (series()[0], None), washout=20),
}


def resumed(fit: Fit, run: Run) -> Any:
    """Fits killed at three points, then resumed from their checkpoints and from those of the first commit."""
    with killed_after(np.inf) as writes:
        fit.fitted(checkpoint=run.work / "whole")
    found: dict[str, Any] = {}
    for share in (0.12, 0.55, 0.9):
        own, old = run.work / str(share), run.handover / f"{run.work.name} {share}"
        with suppress(Killed), killed_after(1 + int(share * writes[0])):
            fit.fitted(checkpoint=own)
            raise AssertionError("the fit was not killed")
        if run.writes:
            shutil.copytree(own, old)
        for whose, folder in (("own", own), ("old", shutil.copytree(old, run.work / f"old {share}"))):
            found[f"{whose} {share}"] = saved(fit.fitted(checkpoint=folder), run.work / "model.safetensors")
    return found


CASES |= {f"resumed: {name}": partial(resumed, fit) for name, fit in RESUMED.items()}


@case
def resumed_ensemble(run: Run) -> Any:
    """Networks run in threads; an exception in the second epoch of one of them ends the fit."""

    def called(row: dict[str, float]) -> None:
        if row["epoch"] == 2:
            raise Killed

    with suppress(Killed):
        FITS["classifier, ensemble"].fitted(checkpoint=run.work / "kept", callback=called)
        raise AssertionError("the fit was not killed")
    return outcome(FITS["classifier, ensemble"].fitted(checkpoint=run.work / "kept"), run, "resumed ensemble")


@case
def dask(run: Run) -> Any:
    """Two worker processes; sequences from this process and from the partitions of a bag."""
    try:
        from dask import bag
        from distributed import Client, LocalCluster
    except ImportError:
        return "distributed is not installed"
    from echolearn import cluster

    where = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    pairs = bag.from_sequence(zip(*labels(), strict=True), npartitions=5)
    files = [run.work / f"{i}.npy" for i in range(20)]
    for path, x in zip(files, values()[0], strict=True):
        np.save(path, x)
    with LocalCluster(**where) as local, Client(local) as client, cluster.on(client):
        fits = [
            classifier(labels, epochs=1, refine_epochs=1, **keep_last).fitted(),
            classifier(lambda: (pairs, None), case=1, **full).fitted(),
            classifier(labels, True, readout="ridge", epochs=1).fitted(),
            regressor(lambda: (files, values()[1]), feedback=True, epochs=1).fitted(),
            classifier(labels, hidden_units=40, ensemble=2, readout="ridge", epochs=1).fitted(),
        ]
        return [outcome(esn, run, f"dask {i}") for i, esn in enumerate(fits)]


@case
def tuning(run: Run) -> Any:
    try:
        import optuna  # noqa: F401
    except ImportError:
        return "optuna is not installed"
    from echolearn.tuning import tune

    found = tune(ESNClassifier(**{**SMALL, "epochs": 1}), *labels(), trials=2, folds=2)
    trials = [[repr(sorted(trial.settings.items())), trial.score, trial.curve] for trial in found.trials]
    return trials, outcome(found.estimator, run, "tuned")


# ---------------------------------------------------------------- the run


def recorded(name: str, run: Run) -> dict[str, Any]:
    """The arrays of one case, or the text of the exception that it raised."""
    try:
        return dict(flat(name, CASES[name](run)))
    except (Exception, Killed, KeyboardInterrupt):
        return {f"{name}/{FAILURE}": np.asarray(traceback.format_exc())}


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the cases of the echolearn in SOURCE and write their results.")
    parser.add_argument("--source", type=Path, required=True, help="folder that echolearn must be imported from")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--handover", type=Path, required=True)
    parser.add_argument("--write-handover", action="store_true")
    parser.add_argument("--only", default="", help="run only the cases whose names contain this text")
    given = parser.parse_args()
    if given.source.resolve() not in Path(str(echolearn.__file__)).resolve().parents:
        sys.exit(f"echolearn was imported from {echolearn.__file__}; expected a module in {given.source}.")
    arrays: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="echolearn-same-bits-") as work:
        for name in [name for name in CASES if given.only in name]:
            begun, folder = time.monotonic(), Path(work) / name
            folder.mkdir()
            arrays |= (found := recorded(name, Run(folder, given.handover, given.write_handover)))
            failed = "  FAILED" if f"{name}/{FAILURE}" in found else ""
            print(f"  {time.monotonic() - begun:5.1f} s  {name}{failed}", flush=True)
    np.savez(given.out, **arrays)


if __name__ == "__main__":
    main()
