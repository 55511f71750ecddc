"""Cases of fits: one small fit each, other forms of data, streams, callbacks, kills, Dask and tuning."""

from __future__ import annotations

import shutil
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from basis import (
    CASES,
    SMALL,
    Data,
    Fit,
    Killed,
    Run,
    answers,
    case,
    history,
    killed_after,
    labels,
    long_values,
    many_labels,
    many_values,
    most_values,
    name_alone,
    new,
    new_X,
    outcome,
    public,
    saved,
    series,
    values,
    whole_labels,
    whole_values,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import echolearn
from echolearn import FrameWise, Reservoir

# ---------------------------------------------------------------- cases that are one fit


classifier, regressor = partial(Fit, "ESNClassifier"), partial(Fit, "ESNRegressor")
series_classifier = partial(Fit, "SeriesClassifier", plain=True)
series_regressor = partial(Fit, "SeriesRegressor", plain=True)
paper = partial(Fit, "ESNClassifier.paper", labels, batch_size=None, gradient="printed", epochs=4)
deep_classifier = partial(Fit, "DeepESNClassifier", labels, plain=True, units=12, epochs=3)
deep_regressor = partial(Fit, "DeepESNRegressor", values, plain=True, units=12, epochs=3)
full = {"batch_size": None, "readout": "ridge"}
keep_last = {"validation_fraction": 0.0}  # the weights of the last epoch, not those of the best one
wild = {"activation": "relu", "step_size": 30.0}
MATRIX = np.random.default_rng(3).normal(size=(30, 30)) * (np.random.default_rng(4).random((30, 30)) < 0.2)
STATE = np.linspace(-0.5, 0.5, 30)
OWN = Reservoir.random(3, 30, connections=4, bias_scaling=0.2, leak=(0.1, 1.0), initial_state=STATE, random_state=5)


def gappy(X: list[Any]) -> list[Any]:
    """The sequences with NaN at some steps of a feature, from the second step on."""
    return [
        np.where((np.arange(len(x)) % 7 == 3)[:, None] & (np.arange(3) == i % 3), np.nan, x) for i, x in enumerate(X)
    ]


def label_sets() -> Data:
    X, Y = values()
    return X, [(y > 0).astype(int) for y in Y]


def whole_label_sets() -> Data:
    X, Y = whole_values()
    return X, np.array(Y) > 0


def whole_words() -> Data:
    """One of three words per series."""
    X, Y = whole_values()
    return X, np.array(["high", "low", "mid"])[np.digitize([y[0] for y in Y], [-0.1, 0.1])]


def many_series() -> Data:
    """More series than choose the units and the ridge."""
    X, Y = values(sequences=1600, shortest=5, longest=9)
    return X, np.array([y[:, 0].mean() > 0 for y in Y])


def one_series() -> Data:
    """One sequence, which predictions may continue."""
    X, Y = values(sequences=1, shortest=400, longest=401)
    return X[0], Y[0][:, 0]


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
    "classifier, matrix, state": classifier(labels, topology=MATRIX, initial_state=STATE),
    "classifier, float64": classifier(labels, dtype="float64", activation="sigmoid", clip=0.1, direct=False),
    "classifier, diverging": classifier(labels, **wild, epochs=1),
    "regressor": regressor(values),
    "regressor, full batch": regressor(values, batch_size=None, dtype="float64", washout=5, ridge=[0.01, 0.1, 1.0]),
    "regressor, fixed": regressor(values, learn="none", ridge=0.1, input_scaling=[0.5, 0.0, 1.0]),
    "regressor, feedback": regressor(values, feedback=True, patience=1, epochs=6),
    "regressor, diverging": regressor(values, **wild, batch_size=None),
    "regressor, diverging for good": regressor(values, activation="relu", step_size=1000.0),
    "regressor, diverging, no validation": regressor(values, **wild, **keep_last),
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
    "deep classifier": deep_classifier(layers=3),
    "deep classifier, ridge": deep_classifier(layers=2, readout="ridge", validation_fraction=0.2, patience=1),
    "deep classifier, both directions": deep_classifier(layers=2, bidirectional=True, ensemble=2, dropout=0.3),
    "deep classifier, of series": Fit("DeepESNClassifier", whole_labels, plain=True, units=12, layers=2, epochs=5),
    "deep regressor": deep_regressor(layers=3),
    "deep regressor, float64": deep_regressor(layers=2, dtype="float64", dropout=0.1, ridge=0.5, batch_size=7),
    "deep regressor, one series": Fit("DeepESNRegressor", one_series, plain=True, units=12, layers=2, epochs=3),
}
FITS |= {
    "classifier, defaults": classifier(labels, plain=True, hidden_units=40),
    "classifier, gaps": classifier(lambda: (gappy(labels()[0]), labels()[1]), missing="carry"),
    "classifier, gaps at the mean": classifier(lambda: (gappy(labels()[0]), labels()[1]), missing="mean", epochs=1),
    "classifier, label sets": classifier(label_sets),
    "classifier, balanced": classifier(labels, class_weight="balanced", ignore_label="mid", standardize=False),
    "regressor, defaults": regressor(values, plain=True, hidden_units=40),
    "regressor, noise": regressor(values, state_noise=0.02, direct=False),
    "regressor, one series": regressor(one_series, dtype="float64"),
}
FITS |= {
    "series, labels": series_classifier(whole_labels, hidden_units=40),
    "series, labels, defaults": series_classifier(whole_labels),
    "series, labels, ridge": series_classifier(whole_labels, hidden_units=30, readout="ridge", washout=3),
    "series, labels, float64": series_classifier(whole_labels, hidden_units=20, dtype="float64", ridge=[0.1, 10.0]),
    "series, labels, balanced": series_classifier(
        whole_words, hidden_units=20, class_weight="balanced", ignore_label="mid", standardize=False
    ),
    "series, label sets": series_classifier(whole_label_sets, hidden_units=20),
    "series, gaps": series_classifier(
        lambda: (gappy(whole_labels()[0]), whole_labels()[1]), hidden_units=20, missing="carry"
    ),
    "series, gaps at the mean": series_regressor(
        lambda: (gappy(whole_values()[0]), whole_values()[1]), hidden_units=20, missing="mean"
    ),
    "series, values": series_regressor(whole_values, hidden_units=40),
    "series, one value": series_regressor(
        lambda: (whole_values()[0], [y[0] for y in whole_values()[1]]), hidden_units=20, random_state=3
    ),
    "series, many": series_classifier(many_series, hidden_units=5),
}
for name in ("ring", "delay_line", "small_world", "orthogonal", "groups", "deep"):
    FITS[f"regressor, {name}"] = regressor(values, learn="none", topology=name)
CASES.update({name: lambda run, name=name: outcome(FITS[name].fitted(), run, name) for name in FITS})

# ---------------------------------------------------------------- other cases


@case
def other_forms_of_data(run: Run) -> Any:
    """A 3-D array, joined sequences with lengths, given validation data, and a Pipeline."""
    (X, y), how = labels(), {**SMALL, "epochs": 1}
    cube = new("ESNClassifier", **how).fit(np.stack([x[:30] for x in X]), np.stack([words[:30] for words in y]))
    given = {"lengths": [len(x) for x in X], "validation": (X[:4], y[:4])}
    joined = new("ESNClassifier", **how).fit(np.vstack(X), np.concatenate(y), **given)
    piped = make_pipeline(FrameWise(StandardScaler()), new("ESNClassifier", **how)).fit(X, y)
    deep = FITS["deep regressor"].new().fit(*values(), validation=values(seed=3))
    scores = [joined.score(X, y), cube.predict_log_proba(new_X), deep.score(*values()), piped.score(X, y)]
    fits = {"cube": cube, "joined": joined, "deep": deep}
    return {name: outcome(esn, run, name) for name, esn in fits.items()}, answers(piped), scores


@case
def weights_and_tables(run: Run) -> Any:
    """Weights of targets, tables and panels of pandas, padded arrays, other layouts, and one series that goes on."""
    import pandas as pd

    (X, y), (_, Y), how = labels(), values(), {**SMALL, "epochs": 1}
    weights = [np.linspace(0, 2, len(x)) for x in X]
    weighted = new("ESNClassifier", **how).fit(X, y, sample_weight=weights)
    counted = new("SeriesRegressor", hidden_units=20).fit(*whole_values(), sample_weight=np.arange(30) % 3)
    long = pd.concat([pd.DataFrame(x, columns=list("abc")) for x in X[:6]], keys=range(6), names=["sequence", "time"])
    panel = new("ESNRegressor", **how).fit(long, pd.DataFrame(np.vstack(Y[:6]), long.index, columns=["u", "v"]))
    table = pd.DataFrame(np.vstack(X[:2]), columns=list("abc"))
    one = new("ESNRegressor", **how).fit(table, np.concatenate(Y[:2])[:, 0])
    cube = np.stack([x[:25] for x in X])
    turned = new("ESNClassifier", **how, layout="channels_first").fit(cube.transpose(0, 2, 1), [w[:25] for w in y])
    fits = {"weighted": weighted, "counted": counted, "turned": turned}
    found = {name: saved(esn, run.work / f"{name}.safetensors") for name, esn in fits.items()}
    tables = [panel.predict(long), one.predict(table[:30]), one.predict(table[30:])]
    found["tables"] = [[np.asarray(t), [str(c) for c in getattr(t, "columns", [])]] for t in tables]
    found["turned"] = [found["turned"], turned.predict(cube.transpose(0, 2, 1))]
    ahead = new_X[0], one.predict(new_X[0]), one.predict(new_X[0], warm_up="cold"), one.predict(new_X, warm_up=X[:5])
    return found, ahead, [weighted.score(X, y), weighted.score(X, y, sample_weight=weights)]


@case
def states_and_gradients(run: Run) -> Any:
    """`harvest`, `loss_and_gradients` and `intrinsic_plasticity` on their own, for one long sequence and for many."""
    harvest, loss_and_gradients = public("harvest"), public("loss_and_gradients")
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
            ]
        without_leak = Reservoir.random(3, 20, **{**how, "leak": 1.0})
        last = {"ridge": 0.1, "lookback": 4, "targets": "last", "gradient": "printed"}
        found[f"{activation} printed"] = vars(loss_and_gradients(without_leak, X, T, **last))
    moved = public("intrinsic_plasticity")(Reservoir.random(3, 20, random_state=5), X[:3], spread=0.3, epochs=2)
    return found, moved.W, moved.W_rec, moved.bias


@case
def streams(run: Run) -> Any:
    """Chunks and single frames, and readouts that learn online."""
    LMS, RLS, Stream = public("LMS"), public("RLS"), public("Stream")
    x, (X, Y), words, found = np.vstack(new_X), values(), labels()[1], {}
    kinds = ("classifier, feedback", "classifier, fixed, ridge", "regressor, feedback")
    softmax, ridge, regressor = (FITS[name].fitted() for name in kinds)
    for name, esn in (("softmax", softmax), ("ridge", ridge)):
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
    of_values = outcome(new("ESNRegressor", **SMALL).partial_fit(X[:9], Y[:9]), run, "with sums", sums=True)
    loaded = echolearn.load(run.handover / "with sums.safetensors").partial_fit(X[9:], Y[9:])
    first = {"classes": ["high", "low", "mid", "none"]}
    of_words = new("ESNClassifier", **SMALL, readout="ridge").partial_fit(X[:9], words[:9], **first)
    return of_values, answers(loaded), answers(of_words), answers(of_words.partial_fit(X[9:], words[9:]))


@case
def callbacks(run: Run) -> Any:
    """Fits that a callback ends, by returning True or by raising KeyboardInterrupt, and the rows that it received."""
    found: dict[str, Any] = {}
    for name, last in (("classifier", 2), ("regressor, full batch", 2), ("deep regressor", 2)):
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
    "deep": FITS["deep classifier"],
    "deep, squared error": FITS["deep regressor"],
    "forecaster": Fit("ESNForecaster", lambda: (series()[0], None), washout=20),
}


def resumed(fit: Fit, run: Run) -> Any:
    """Fits killed at three points, then resumed from their checkpoints and from those of the first commit."""
    with killed_after(np.inf) as writes:
        fit.fitted(checkpoint=run.work / "whole")
    found: dict[str, Any] = {}
    whose = ("own",) if fit.kind == "ESNForecaster" else ("own", "old")  # a setting of it has another name
    for share in (0.12, 0.55, 0.9):
        own, old = run.work / str(share), run.handover / f"{run.work.name} {share}"
        with suppress(Killed), killed_after(1 + int(share * writes[0])):
            fit.fitted(checkpoint=own)
            raise AssertionError("the fit was not killed")
        if run.writes:
            shutil.copytree(own, old)
        folders = {"own": own, "old": shutil.copytree(old, run.work / f"old {share}")}
        for name in whose:
            found[f"{name} {share}"] = saved(fit.fitted(checkpoint=folders[name]), run.work / "model.safetensors")
    return found


CASES.update({f"resumed: {name}": partial(resumed, fit) for name, fit in RESUMED.items()})


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
    where = {"processes": True, "n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    pairs = bag.from_sequence(zip(*labels(), strict=True), npartitions=5)
    files = [run.work / f"{i}.npy" for i in range(20)]
    for path, x in zip(files, values()[0], strict=True):
        np.save(path, x)
    with LocalCluster(**where) as local, Client(local) as client, public("on")(client):
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
    found = public("tune")(new("ESNClassifier", **{**SMALL, "epochs": 1}), *labels(), trials=2, folds=2)
    trials = [
        [repr(sorted((name_alone(name), value) for name, value in trial.settings.items())), trial.score, trial.curve]
        for trial in found.trials
    ]
    return trials, outcome(found.estimator, run, "tuned")
