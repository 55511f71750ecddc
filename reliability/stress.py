"""Numerical stress: every estimator with settings and data far from usual ones.

A task that a network learns well under usual conditions is made harder in one way at a time (or, at random, in
several), and a new sample of the same kind is predicted. The outcomes are:

    good       all numbers are finite, and the predictions are as good as can be expected (`enough`)
    warned     they are worse, and one of echolearn's own warnings says why
    refused    echolearn raised an error with a message
    FAILED     NaN or infinity, a poor result without a warning, a warning or an error of another library

    python -m reliability.stress [--random 1000]
"""

from __future__ import annotations

import argparse
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from scipy.special import ndtr

from echolearn import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    SeriesClassifier,
    SeriesRegressor,
)
from echolearn.exceptions import (
    EchoStateWarning,
    ForecastWarning,
    InputWarning,
    PoorFitWarning,
    ReadoutWarning,
    TrainingWarning,
)
from echolearn.readout.deep_network import DeepNetwork
from reliability import results

REGRESSORS = (ESNRegressor, DeepESNRegressor, SeriesRegressor)
OWN = (InputWarning, ForecastWarning, PoorFitWarning, ReadoutWarning, EchoStateWarning, TrainingWarning)
REFUSALS = (ValueError, TypeError, FloatingPointError, MemoryError)
POOR = 0.01  # of what a perfect prediction gains over a constant one
HARDER = {"classes", "rare", "still"}  # changes of the task after which less can be learned
SCARCE = {"sequences", "steps"}  # changes of the amount of data after which perhaps nothing can be learned

SEVERAL = "several at once"

Case = dict[str, Any]  # parameters of the estimator and of the data (DATA)
DATA: Case = {
    "sequences": 30,
    "steps": 40,
    "classes": 2,
    "rare": None,  # the share of the frames of the first class
    "scale": 1.0,  # of the inputs
    "offset": 0.0,
    "target_scale": 1.0,
    "copies": 1,  # of every feature
    "constant": 0,  # additional features that never change
    "still": False,  # all features are constant
}
DEEP: Case = {"hidden_units": 16, "layers": 2, "epochs": 30}
SERIES: Case = {"_series": True, "sequences": 150}
ESTIMATORS: dict[str, tuple[type, Case]] = {
    "classifier, ridge": (ESNClassifier, {"readout": "ridge", "learn": "none"}),
    "classifier, softmax": (ESNClassifier, {"readout": "softmax", "learn": "none"}),
    "classifier, ridge, learned": (ESNClassifier, {"readout": "ridge", "epochs": 3}),
    "classifier, softmax, learned": (ESNClassifier, {"readout": "softmax", "epochs": 3, "refine_epochs": 1}),
    "classifier, as in the paper": (ESNClassifier, {"_paper": True, "epochs": 3}),
    "regressor": (ESNRegressor, {"learn": "none"}),
    "regressor, learned": (ESNRegressor, {"epochs": 3}),
    "forecaster": (ESNForecaster, {"learn": "none", "washout": 5}),
    "forecaster, learned": (ESNForecaster, {"epochs": 3, "washout": 5}),
    "deep classifier": (DeepESNClassifier, DEEP),
    "deep classifier, ridge": (DeepESNClassifier, {**DEEP, "readout": "ridge"}),
    "deep regressor": (DeepESNRegressor, DEEP),
    "deep classifier of series": (DeepESNClassifier, {**DEEP, **SERIES}),
    "series classifier": (SeriesClassifier, SERIES),
    "series regressor": (SeriesRegressor, SERIES),
}
SCALES = [10.0**e for e in (-300, -100, -30, -20, -12, -8, -6, -4, -3, -2, -1, 1, 2, 3, 4, 6, 8, 12, 20, 30, 100, 300)]


def one_at_a_time() -> Iterator[tuple[str, Case]]:
    """Yield what is stressed, and the parameters that differ."""
    yield "untroubled", {}
    for radius in (0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0):
        yield "spectral radius", {"spectral_radius": radius}
        yield "spectral radius, no leak", {"spectral_radius": radius, "leak": 1.0}
    for ridge in (0.0, 1e-300, 1e-12, 1e-8, 1e-4, 1.0, 1e2, 1e4, 1e6):
        yield "ridge", {"ridge": ridge}
        yield "ridge, copied features", {"ridge": ridge, "copies": 2}
        yield "ridge, constant feature", {"ridge": ridge, "constant": 1}
    for scale in SCALES:
        yield "scale of inputs", {"scale": scale}
        yield "scale of targets", {"target_scale": scale}
        yield "offset of inputs", {"offset": scale}
    for still in (0.0, 1.0, 1e30):
        yield "constant inputs", {"still": True, "offset": still}
    for copies in (2, 50):
        yield "copied features", {"copies": copies}
    for steps in (1, 2, 3, 8, 1000):
        yield "steps", {"steps": steps, "washout": 0}
    for sequences in (1, 2, 4, 5, 300):
        yield "sequences", {"sequences": sequences}
    for classes in (1, 2, 10, 100, 1000):
        yield "classes", {"classes": classes}
    for rare in (0.1, 0.01, 0.001):
        yield "unbalanced classes", {"rare": rare}
    for activation in ("relu", "identity", "sigmoid"):
        for radius in (0.9, 2.0, 100.0):
            yield "activation", {"activation": activation, "spectral_radius": radius}


def large() -> Iterator[tuple[str, Case]]:
    """Yield cases with many steps or many sequences."""
    yield "10^6 steps", {"steps": 1_000_000, "sequences": 1}
    yield "10^5 sequences", {"steps": 6, "sequences": 100_000, "washout": 0}
    yield "10^5 sequences", {"steps": 6, "sequences": 100_000, "rare": 1e-5, "washout": 0}


def by_chance(count: int, rng: np.random.Generator) -> Iterator[tuple[str, Case]]:
    """Yield `count` random cases in which several parameters differ."""
    choices: dict[str, list[Any]] = {
        "spectral_radius": [0.1, 0.9, 3.0, 100.0],
        "leak": [0.1, 1.0],
        "ridge": [0.0, 1e-12, 1e-4, 1e6, "auto"],
        "scale": [1e-30, 1e-6, 1e-2, 1e2, 1e6, 1e30],
        "offset": [0.0, 1.0, 1e4, 1e30],
        "target_scale": [1e-30, 1e30],
        "copies": [1, 3],
        "constant": [0, 2],
        "steps": [2, 7, 100],
        "sequences": [1, 3, 6, 20],
        "classes": [2, 3, 10],
        "rare": [None, 0.01],
        "activation": ["tanh", "sigmoid", "relu", "identity"],
        "direct": [True, False],
        "washout": [0, 3],
        "batch_size": [1, None],
        "optimizer": ["adam", "fista"],
        "clip": [None, 1.0],
        "renormalize": [True, False],
        "input_scaling": [1e-3, 0.1, 10.0],
        "validation_fraction": [0.0, 0.1, 0.5],
    }
    for _ in range(count):
        names = rng.permutation(list(choices))[: rng.integers(2, 6)].tolist()
        yield SEVERAL, {name: choices[name][rng.integers(len(choices[name]))] for name in names}


def sample(case: Case, seed: int, kind: type, *, series: bool = False) -> tuple[list[Any], list[Any]]:
    """Return noise and, as targets, its value one step ago; for a forecaster, waves with noise.

    The targets are classes of equal size (or one of them is rare), or values. series: one of the mean of each series.
    """
    rng = np.random.default_rng([case["sequences"], case["steps"], seed])
    n, steps = case["sequences"], case["steps"]
    if kind is ESNForecaster:
        t = np.arange(steps + 4)[:, None] / 3
        waves = [np.sin(t + rng.uniform(0, 6)) + 0.02 * rng.standard_normal(t.shape) for _ in range(n)]
        return [_stressed(w, case) * case["target_scale"] for w in waves], []
    noise = [rng.standard_normal((steps + 1, 2)) for _ in range(n)]
    late = [x[:-1, 0].copy() for x in noise]
    for x, before in zip(noise, late, strict=True):  # the input holds a little of the target
        x[1:, 0] += 0.5 * before
    X = [_stressed(x[1:], case) for x in noise]
    if series:
        late = [before.sum() / steps**0.5 for before in late]
    if kind in REGRESSORS:
        return X, [case["target_scale"] * (0.5 + before) for before in late]
    share, rest = case["rare"] or 1 / case["classes"], case["classes"] - 1
    if not rest:
        return X, [0 if series else np.zeros(steps, int)] * n
    uniform = [ndtr(before) for before in late]
    return X, [np.where(u < share, 0, 1 + ((u - share) / (1 - share) * rest).astype(int))[()] for u in uniform]


def _stressed(x: np.ndarray, case: Case) -> np.ndarray:
    """Return the features scaled, shifted, copied and extended as the case says."""
    x = np.repeat(case["offset"] + case["scale"] * (x * (not case["still"])), case["copies"], axis=1)
    return np.hstack([x, np.full((len(x), case["constant"]), 7.0)])


def gain(esn: Any, X: list[Any], y: list[Any]) -> float:
    """Return 1 for perfect predictions, 0 for those no better than the mean or the most frequent class.

    Every number must be finite. Predictions within the washout, to which nothing was fitted, do not count.
    """
    if isinstance(esn, ESNForecaster):
        _finite(*esn.predict(3))
        score = esn.score(X)
        _finite(score)
        return 1 - score**2
    predicted, washout = esn.predict(X), getattr(esn, "washout", 0) and esn.network_.view.washout
    if not esn.per_step_:
        y, predicted, washout = [np.array(y)], [predicted], 0
    if isinstance(esn, REGRESSORS):
        _finite(*predicted)
        scale = max(np.abs(y).max(), 1e-300)  # squares of 1e300 are infinite
        truth, answer = (np.concatenate([v[washout:] for v in part]) / scale for part in (y, predicted))
        return float(1 - ((truth - answer) ** 2).mean() / truth.var()) if truth.var() else 1.0
    P = [*esn.predict_proba(X)] if esn.per_step_ else [esn.predict_proba(X)]
    _finite(*P, *esn.decision_function(X))
    assert all(np.allclose(p.sum(axis=1), 1) for p in P)
    truth, answer = (np.concatenate([v[washout:] for v in part]) for part in (y, predicted))
    wrong = (answer != truth).mean()
    always = 1 - max(Counter(truth.tolist()).values()) / len(truth)
    return float(1 - wrong / always) if always else 1.0


def _finite(*arrays: Any) -> None:
    if not all(np.isfinite(a).all() for a in arrays):
        raise ArithmeticError("a result is NaN or infinite")


def _our_own(problem: Exception) -> bool:
    """Return whether echolearn raised the error, not a library that it calls."""
    last = list(traceback.walk_tb(problem.__traceback__))[-1][0]
    return str(last.f_globals["__name__"]).startswith("echolearn.")


@cache
def usual_gain(name: str, dtype: str) -> float:
    """Return the gain under usual conditions."""
    return attempt(name, dtype, {})


def enough(name: str, dtype: str, case: Case, several: bool) -> float:
    """Return the gain that is good enough: half of the usual one, a little, or with scarce data any finite number."""
    if not SCARCE.isdisjoint(case):
        return -np.inf
    return POOR if several or not HARDER.isdisjoint(case) else 0.5 * usual_gain(name, dtype)


def attempt(name: str, dtype: str, case: Case) -> float:
    """Return the gain of one fit and one prediction."""
    kind, settings = ESTIMATORS[name]
    case = {**settings, **case}
    data = {**DATA, **{key: value for key, value in case.items() if key in DATA}}
    settings = {"hidden_units": 25, "dtype": dtype, **{k: v for k, v in case.items() if k not in DATA}}
    make: Callable[..., Any] = kind.paper if settings.pop("_paper", False) else kind  # type: ignore[attr-defined]
    series = settings.pop("_series", False)
    X, y = sample(data, 0, kind, series=series)
    inside = {key: f"{group}__{key}" for group, names in kind.groups.items() for key in names}
    esn = make(settings.pop("hidden_units")).set_params(
        **{inside.get(k, k): v for k, v in settings.items() if has(kind, k)}
    )
    esn = esn.fit(X) if kind is ESNForecaster else esn.fit(X, y)
    better = gain(esn, *sample(data, 1, kind, series=series))
    network = esn.model_.network
    _finite(network.readout.U)
    if isinstance(network, DeepNetwork):
        _finite(*(weights for stack in network.stacks for weights in stack.weights.values()))
    else:
        _finite(network.reservoir.W, network.reservoir.W_rec.data)
    return better


def has(kind: Any, name: str) -> bool:
    """Return whether an estimator has a parameter that takes these values; `leak` of a deep network is a range."""
    known = {*kind().get_params(deep=False), *(key for names in kind.groups.values() for key in names)}
    return name in known - {*kind.fixed} and not (name == "leak" and kind in (DeepESNClassifier, DeepESNRegressor))


def outcome(name: str, dtype: str, case: Case, several: bool = False) -> tuple[str, str]:
    """Return good, warned, refused or FAILED, and why."""
    least = enough(name, dtype, case, several)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            better = attempt(name, dtype, case)
        except REFUSALS as problem:
            return ("refused" if _our_own(problem) else "FAILED"), f"{type(problem).__name__}: {problem}"
        except Exception as problem:
            return "FAILED", f"{type(problem).__name__}: {problem}"
    foreign = [w for w in caught if not issubclass(w.category, OWN)]
    if foreign:
        return "FAILED", f"{foreign[0].category.__name__}: {foreign[0].message}"
    if better >= least:
        return "good", f"gain {better:.3g}"
    if caught:
        return "warned", f"gain {better:.3g}, {caught[0].category.__name__}: {caught[0].message}"
    return "FAILED", f"gain {better:.3g} of {least:.3g} without a warning"


def campaign(
    cases: Iterator[tuple[str, Case]], names: list[str], dtypes: tuple[str, ...]
) -> tuple[dict[str, Counter[str]], list[str]]:
    """Return the number of outcomes for each kind of stress, and the failures."""
    counts: dict[str, Counter[str]] = {}
    failures = []
    for stress, case in cases:
        for name in names:
            if case and not any(key in DATA or has(ESTIMATORS[name][0], key) for key in case):
                continue
            for dtype in dtypes:
                result, why = outcome(name, dtype, case, stress == SEVERAL)
                counts.setdefault(stress, Counter())[result] += 1
                if result == "FAILED":
                    failures.append(f"{name}, {dtype}, {case}: {why}")
                    print(failures[-1], flush=True)
    return counts, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--random", type=int, default=1000, help="random cases in which several parameters differ")
    parser.add_argument("--seed", type=int, default=0, help="seed of these cases")
    options = parser.parse_args()
    names, both = list(ESTIMATORS), ("float32", "float64")
    counts, failures = campaign(one_at_a_time(), names, both)
    several = list(by_chance(options.random, np.random.default_rng(options.seed)))
    for k, name in enumerate(names):  # each random case is for one kind of fit
        more, failed = campaign(iter(several[k :: len(names)]), [name], both[k % 2 :][:1])
        counts[SEVERAL] = counts.get(SEVERAL, Counter()) + more.get(SEVERAL, Counter())
        failures += failed
    big, failed = campaign(large(), names, both[:1])
    counts |= big
    failures += failed
    kinds = ("good", "warned", "refused", "FAILED")
    rows = {stress: {kind: count[kind] for kind in kinds} for stress, count in counts.items()}
    rows["all"] = {kind: sum(row[kind] for row in rows.values()) for kind in kinds}
    results.show("Numerical stress: fits and predictions", kinds, rows)
    results.keep("stress", {"outcomes": rows, "failures": failures})
    raise SystemExit(bool(failures))


if __name__ == "__main__":
    main()
