"""Cases of what surrounds a fit: series generators, scores, features, diagnoses and monitors."""

from __future__ import annotations

from typing import Any

import numpy as np
from basis import SMALL, Run, case, labels, new, new_X, public, values
from fits import FITS
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from echolearn import Reservoir, datasets, diagnostics, metrics

GENERATORS = (
    *("double_scroll", "henon", "kuramoto_sivashinsky", "laser", "lorenz", "lorenz_96", "mackey_glass", "mso"),
    *("narma", "rossler"),
)


@case
def series_of_equations(run: Run) -> Any:
    found = {name: getattr(datasets, name)(200) for name in GENERATORS}
    return found, datasets.mackey_glass(100, 30.0), datasets.narma(100, 30)


@case
def scores(run: Run) -> Any:
    (X, Y), esn = values(), FITS["regressor"].fitted()
    predicted = esn.predict(X)
    found: dict[str, Any] = {"nrmse": metrics.nrmse(Y, predicted)}
    wave, off = datasets.lorenz(300), datasets.lorenz(300, start=(1.0, 1.0, 1.01))
    found["valid time"] = metrics.valid_time(wave, off, dt=0.02, lyapunov=0.9)
    small = new("ESNRegressor", **{**SMALL, "epochs": 1})
    found["folds"] = metrics.cross_val_predict(small, X, Y, cv=3)
    words = FITS["classifier"].fitted()
    for name in ("accuracy", "f1_macro", "neg_log_loss", "balanced_accuracy"):
        found[name] = metrics.scorer(name)(words, *labels())
    importance = metrics.permutation_importance(words, *labels(), n_repeats=2, random_state=0)
    return found, importance.importances, [words.score(*labels()), esn.score(X, Y)]


@case
def features(run: Run) -> Any:
    """Reservoirs as transformers, and plasticity."""
    X, Y = values()
    how = {"hidden_units": 20, "connections": 4}
    found: dict[str, Any] = {}
    for name, settings in {
        "states": {},
        "inputs too": {"direct": True, "washout": 3, "topology": "ring", "dtype": "float64"},
        "mean": {"pooling": "mean"},
        "parts": {"pooling": 3},
        "of an estimator": {"reservoir": FITS["classifier"].fitted()},
    }.items():
        made = new("ReservoirFeatures", **({} if "reservoir" in settings else how), **settings).fit(X)
        found[name] = [made.transform(new_X), [str(column) for column in made.get_feature_names_out()]]
    found["ES2N"] = new("ES2NFeatures", hidden_units=20).fit(X).transform(new_X)
    pooled = new("ReservoirFeatures", **how, pooling="last")
    found["ridge"] = make_pipeline(pooled, Ridge()).fit(X, [y.mean() for y in Y]).predict(new_X)
    plastic = public("synaptic_plasticity")(Reservoir.random(3, 20, random_state=5), X[:3])
    return found, plastic.W, plastic.W_rec, plastic.bias


@case
def reservoirs(run: Run) -> Any:
    """Drawn reservoirs of every topology, and what `diagnostics` finds in one."""
    found: dict[str, Any] = {}
    for name in ("random", "ring", "delay_line", "small_world", "orthogonal", "groups", "deep"):
        drawn = Reservoir.random(3, 24, topology=name, connections=4, n_feedback=2, bias_scaling=0.1, random_state=1)
        found[name] = [drawn.W, drawn.W_rec, drawn.W_fb, drawn.bias, drawn.leak]
    reservoir, X = Reservoir.random(3, 24, connections=4, leak=0.6, random_state=1), values()[0]
    found["memory"] = diagnostics.memory_capacity(Reservoir.random(1, 24, random_state=1), delays=20).by_delay
    found["ranks"] = list(vars(diagnostics.ranks(reservoir)).values())
    found["echo"] = diagnostics.echo(reservoir, np.vstack(X)).distances
    found["linear"] = [diagnostics.linearised(reservoir, x).eigenvalues for x in (None, X[0])]
    found["growth"] = diagnostics.lyapunov(reservoir, np.vstack(X)).growth
    return found


@case
def diagnoses(run: Run) -> Any:
    found = [
        diagnostics.diagnose(FITS[name].fitted(), *labels()) for name in ("classifier", "classifier, fixed, ridge")
    ]
    return [str(one) for one in (*found, diagnostics.diagnose(FITS["regressor"].fitted(), *values()))]


@case
def monitors(run: Run) -> Any:
    """Alarms on forecasts, values and labels, and a stream whose bad updates are withdrawn."""
    Monitor, GuardedStream, RLS = public("Monitor"), public("GuardedStream"), public("RLS")
    rng, found = np.random.default_rng(0), {}
    frames = np.sin(np.arange(1500)[:, None] / np.array([7.0, 11.0])) + 0.05 * rng.standard_normal((1500, 2))
    frames[900, 1] += 0.6
    frames[1200:, 1] = frames[1200, 1]
    for method in ("closed_loop", "direct"):
        esn = new("ESNForecaster", hidden_units=30, learn="none", method=method).fit(frames[:400])
        monitor, last = Monitor(esn), 1500 if method == "closed_loop" else 700
        found[method] = [list(monitor.update(x)) for x in frames[400:420]]
        found[f"{method}, all"] = vars(monitor.run(frames[420:last]))
    X, y = frames[:-1, :1], frames[1:, 0].copy()
    esn = new("ESNRegressor", hidden_units=30, learn="none").fit(X[:400], y[:400])
    y[800:900] = 1.0
    found["values"] = vars(Monitor(esn).run(X[400:], y[400:]))
    guarded = GuardedStream(esn.stream(online=RLS(forgetting=0.995)), every=50, bound=0.1, keep=3)
    found["guarded"] = [guarded.learn(X[400:], y[400:]), guarded.predict(X[:5])]
    found["rollbacks"] = [[rollback.step, rollback.to, rollback.worse] for rollback in guarded.rollbacks]
    words = FITS["classifier"].fitted()
    x, t = np.vstack(labels()[0]), np.concatenate(labels()[1])
    found["labels"] = [vars(Monitor(words).run(x, t)), vars(Monitor(words).run(x))]
    return found
