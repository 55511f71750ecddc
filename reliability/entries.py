"""The public entry points, each with a function that draws unusual arguments for it.

Such a function draws from hypothesis and returns the call to make, and what to print of its arguments.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.base import clone

from echolearn import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    FrameWise,
    Reservoir,
    ReservoirFeatures,
    SeriesClassifier,
    SeriesRegressor,
    datasets,
    diagnostics,
)
from echolearn.gradients import loss_and_gradients
from echolearn.readout import LMS, RLS
from echolearn.states import harvest
from echolearn.streams import Stream
from reliability import odd

Call = tuple[Callable[[], Any], Any]


class Declined(Exception):
    """The command refused its arguments: exit code 2 and a message."""


SMALL: dict[str, Any] = {"hidden_units": 4, "reservoir": {"connections": 2}, "epochs": 1}
RNG = np.random.default_rng(0)
X = [RNG.standard_normal((n, 2)) for n in (9, 12, 9, 10, 11, 9)]
LABELS = [np.where(x[:, 0] > 0, "a", "b") for x in X]
ONE_EACH = ["a", "b"] * 3
SERIES = np.sin(np.arange(60) / 3)[:, None]


def stop(row: dict[str, float]) -> bool:
    """End a fit after two epochs: epochs=10**12 is unusual, but not wrong."""
    return bool(row["epoch"] >= 2)


@cache
def fitted(kind: str) -> Any:
    """Return a small fitted estimator."""
    if kind == "labels":
        return ESNClassifier(**SMALL).fit(X, LABELS)
    if kind == "deep":
        return DeepESNClassifier(4, 2, epochs=1).fit(X, LABELS)
    if kind == "deep values":
        return DeepESNRegressor(4, 2, epochs=1, ensemble=2).fit(X, X)
    if kind == "deep, one label":
        return DeepESNClassifier(4, 2, epochs=1, bidirectional=True).fit(X, ONE_EACH)
    if kind == "one value":
        return SeriesRegressor(4).fit(X, range(6))
    if kind == "one label":
        return SeriesClassifier(4, readout="ridge").fit(X, ONE_EACH)
    if kind == "values":
        return ESNRegressor(**SMALL, learn="none").fit(X, X)
    if kind == "exogenous":
        return ESNForecaster(**SMALL, washout=2).fit(SERIES, exogenous=SERIES * 2)
    return ESNForecaster(**SMALL, washout=2).fit(SERIES[:, 0])


def draw_some(
    data: Any,
    names: Sequence[str],
    values: Callable[[str], Any] = lambda name: odd.values,
    *,
    least: int = 0,
    most: int = 2,
) -> dict[str, Any]:
    """Draw some of the names, and a value for each."""
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=least, max_size=most, unique=True))
    return {name: data.draw(values(name)) for name in chosen}


def fit(data: Any, folder: Path, estimator: Any, kind: str) -> Call:
    """Draw sequences and targets for a fit and a prediction."""
    given = data.draw(odd.sequences())
    y = data.draw(odd.targets(given, kind))
    more = {"lengths": data.draw(odd.values)} if data.draw(st.integers(0, 9)) == 0 else {}
    changes = data.draw(
        st.sampled_from([{}, {"dtype": "float64"}, {"washout": 1}, {"learn": "none"}, {"learning": {"direct": False}}])
    )

    def call() -> Any:
        esn = estimator(**{**SMALL, **changes}).fit(given, y, **more)
        answers = [esn.predict(given, **more), esn.score(given, y, **more), esn.network_.readout.U]
        return answers if estimator is ESNRegressor else [*answers, esn.predict_proba(given, **more)]

    return call, (given, y, more, changes)


def fit_series(data: Any, folder: Path, estimator: Any, kind: str) -> Call:
    """Draw series and targets of an estimator of whole series."""
    given = data.draw(odd.sequences())
    names = ["a", "b"] if kind == "labels" else [0.5, -1.0, 2.0]
    count = len(given) if hasattr(given, "__len__") and getattr(given, "shape", None) != () else 3
    plain = [names[i % len(names)] for i in range(count)]
    y = data.draw(st.one_of(st.just(plain), st.just(plain), odd.targets(given, kind)))
    more = {"lengths": data.draw(odd.values)} if data.draw(st.integers(0, 9)) == 0 else {}
    changes = data.draw(st.sampled_from([{}, {"dtype": "float64"}, {"washout": 1}, {"missing": "carry"}, {"ridge": 1}]))

    def call() -> Any:
        model = estimator(4, **changes).fit(given, y, **more)
        answers = [model.predict(given, **more), model.score(given, y, **more), model.network_.readout.U]
        return answers if estimator is SeriesRegressor else [*answers, model.predict_proba(given, **more)]

    return call, (given, y, more, changes)


def fit_settings(data: Any, folder: Path, estimator: Any, y: Any) -> Call:
    """Draw parameters of an estimator."""
    names = sorted(set(estimator().get_params()) - {"verbose"})
    changes = draw_some(data, names, odd.setting, least=1, most=3)
    refine_epochs = changes.get("learning__refine_epochs")
    if isinstance(refine_epochs, int):
        changes["learning__refine_epochs"] = min(refine_epochs, 3)  # any number is allowed, and would take its time
    if isinstance(changes.get("hidden_units"), int) and 4 < changes["hidden_units"] < 10**6:
        changes["hidden_units"] = 4

    def call() -> Any:
        if estimator in (SeriesClassifier, SeriesRegressor):
            return estimator(4).set_params(**changes).fit(X, y).predict(X)
        esn = estimator(**SMALL).set_params(**changes)
        if estimator is ESNForecaster:
            return esn.fit(SERIES, callback=stop).predict(2)
        return esn.fit(X, y, callback=stop).predict(X)

    return call, changes


def deep_networks(data: Any, folder: Path) -> Call:
    """Draw parameters and data of a deep network."""
    kind, y = data.draw(st.sampled_from([(DeepESNClassifier, LABELS), (DeepESNRegressor, X)]))
    names = sorted(set(kind().get_params()) - {"verbose", "learning"})
    changes = draw_some(data, names, odd.setting)
    for name, most in (("units", 4), ("layers", 2), ("ensemble", 2)):
        if isinstance(changes.get(name), int):
            changes[name] = min(changes[name], most)  # any number is allowed, and would take its time
    given = data.draw(st.one_of(st.just(X), odd.sequences()))
    y = y if given is X else data.draw(odd.targets(given, "labels" if kind is DeepESNClassifier else "values"))
    held = data.draw(st.one_of(st.none(), st.none(), odd.values))

    def call() -> Any:
        deep = kind(4, 2).set_params(**changes).fit(given, y, callback=stop, validation=held)
        return [deep.predict(given), deep.score(given, y)]

    return call, (kind, changes, given, y, held)


def predict(data: Any, folder: Path) -> Call:
    """Draw data for predictions and scores."""
    kinds = ["labels", "one label", "values", "one value", "deep", "deep values", "deep, one label"]
    esn = fitted(data.draw(st.sampled_from(kinds)))
    names = ["predict", "score", "predict_proba", "decision_function"]
    name = data.draw(st.sampled_from(names if hasattr(esn, "predict_proba") else names[:2]))
    given = data.draw(odd.sequences())
    arguments = [given, data.draw(odd.targets(given, "labels"))] if name == "score" else [given]
    more = {"lengths": data.draw(odd.values)} if data.draw(st.integers(0, 4)) == 0 else {}
    return lambda: getattr(esn, name)(*arguments, **more), (name, arguments, more)


def validation(data: Any, folder: Path) -> Call:
    """Draw held-out data and a checkpoint folder."""
    given = data.draw(odd.sequences())
    held = data.draw(
        st.one_of(st.tuples(st.just(given), odd.targets(given, "labels")), st.just((X, LABELS)), odd.values)
    )
    place = data.draw(st.sampled_from([None, folder / "kept", folder / "none" / "there", "\0", 3]))
    esn = data.draw(st.sampled_from([ESNClassifier(**SMALL), DeepESNClassifier(4, 2, epochs=1)]))
    return lambda: clone(esn).fit(X, LABELS, validation=held, checkpoint=place).network_.readout.U, (esn, held, place)


def partial_fit(data: Any, folder: Path) -> Call:
    """Draw sequences that are added to a fit, or with which one begins."""
    deep = {"units": 4, "layers": 2, "epochs": 1}
    kinds = [(ESNClassifier, SMALL), (ESNRegressor, SMALL), (DeepESNClassifier, deep), (DeepESNRegressor, deep)]
    kind, small = data.draw(st.sampled_from(kinds))
    of_labels = kind in (ESNClassifier, DeepESNClassifier)
    y0 = LABELS if of_labels else X
    given = data.draw(odd.sequences())
    y = data.draw(odd.targets(given, "labels" if of_labels else "values"))
    first = data.draw(st.booleans())
    more = {"classes": data.draw(odd.values)} if of_labels and data.draw(st.integers(0, 3)) == 0 else {}

    def call() -> Any:
        esn = kind(**small, **({"readout": "ridge"} if of_labels else {}))
        if not first:
            esn.fit(X, y0)
        return esn.partial_fit(given, y, **more).network_.readout.U

    return call, (kind, first, given, y, more)


def streams(data: Any, folder: Path) -> Call:
    """Draw frames, targets, states and online rules for the stream of a fitted estimator."""
    kind = data.draw(st.sampled_from(["labels", "values", "deep", "deep values"]))
    esn = fitted(kind)
    online = data.draw(st.sampled_from([None, "LMS", "RLS"]))
    number = data.draw(st.one_of(st.just(0.5), st.sampled_from([*odd.NUMBERS, None, "a"])))
    frames = st.one_of(odd.matrices((2,)), odd.matrices((3, 2)))
    given = data.draw(st.one_of(frames, frames, odd.values, odd.sequences()))
    right = st.sampled_from(["a", ["a", "b", "a"], X[0][:3], X[0][0]])
    y = data.draw(st.one_of(right, right, odd.values))
    state = data.draw(st.one_of(st.none(), odd.values, odd.matrices((4,))))
    method = data.draw(st.sampled_from(["predict", "predict_proba", "learn", "reset"]))

    def call() -> Any:
        rule = {None: None, "LMS": lambda: LMS(number), "RLS": lambda: RLS(ridge=number)}[online]
        stream = esn.stream(online=rule and rule())
        if method == "reset":
            return stream.reset(state).predict(given)
        if method == "learn":
            answer = stream.learn(given, y)
            return [answer, stream.readout_weights]
        return getattr(stream, method if kind in ("labels", "deep") else "predict")(given)

    return call, (kind, method, online, number, given, y, state)


def bare_stream(data: Any, folder: Path) -> Call:
    """Draw a readout and parameters of a stream without an estimator."""
    r = Reservoir.random(2, 4, connections=2, random_state=0)
    U = data.draw(st.one_of(odd.matrices((7, 1)), odd.matrices((7, 2)), odd.matrices((5, 2)), odd.values))
    settings = draw_some(data, ["direct", "washout", "softmax", "dtype"], most=1)
    return lambda: Stream(r, U, **settings).predict(X[0]), (U, settings)


def forecaster_fit(data: Any, folder: Path) -> Call:
    """Draw a series and exogenous inputs."""
    series = data.draw(st.one_of(odd.matrices((60,)), odd.matrices((60, 2)), odd.sequences(), odd.values))
    outside = data.draw(st.one_of(st.none(), st.none(), odd.values, odd.matrices((60, 1))))

    def call() -> Any:
        esn = ESNForecaster(**SMALL, washout=2).fit(series, exogenous=outside)
        return esn.predict(3) if outside is None else esn.model_.network.readout.U

    return call, (series, outside)


def forecaster_use(data: Any, folder: Path) -> Call:
    """Draw steps, warm-ups and exogenous inputs of forecasts."""
    esn = fitted(data.draw(st.sampled_from(["exogenous", "plain"])))
    steps = data.draw(st.one_of(st.integers(1, 4), st.integers(1, 4), st.sampled_from([0, -1, 2.5, None, "3", True])))
    warm = data.draw(st.one_of(st.none(), st.none(), odd.matrices((9,)), odd.matrices((9, 1)), odd.values))
    fitting = odd.matrices(((steps if type(steps) is int and steps > 0 else 3) + (0 if warm is None else 9), 1))
    outside = data.draw(st.one_of(st.none(), fitting, fitting, odd.values))
    method = data.draw(st.sampled_from(["predict", "forecast_interval", "score"]))
    more = {}
    if method == "forecast_interval":
        more["coverage"] = data.draw(st.sampled_from([0.9, *odd.NUMBERS, "a", None]))
        more["n_paths"] = data.draw(st.sampled_from([10, 0, 2.5, None, "a"]))

    def call() -> Any:
        if method == "score":
            return esn.score(warm, exogenous=outside, horizon=steps)
        return getattr(esn, method)(steps, warm_up=warm, exogenous=outside, **more)

    return call, (method, steps, warm, outside, more)


def reservoirs(data: Any, folder: Path) -> Call:
    """Draw parameters of a random reservoir, or the matrices of one."""
    if data.draw(st.booleans()):
        names = [n for n in inspect.signature(Reservoir.random).parameters if n not in ("n_in", "hidden_units")]
        settings = {"connections": 2, **draw_some(data, names)}
        sizes = data.draw(st.sampled_from([(2, 4)] * 6 + [(0, 4), (2, 0), (-1, 3), (2.5, 4), ("a", 3), (1, None)]))
        return lambda: harvest(Reservoir.random(*sizes, **settings), np.ones((5, 2))), (sizes, settings)
    settings = {
        "W": data.draw(st.one_of(odd.matrices((2, 4)), odd.values)),
        "W_rec": data.draw(st.one_of(odd.matrices((4, 4)), st.just(np.eye(4)), odd.values)),
    }
    settings |= draw_some(data, ["activation", "leak", "bias", "W_fb", "initial_state"])
    return lambda: Reservoir(**settings).W, settings


def topologies(data: Any, folder: Path) -> Call:
    """Draw topologies with their parameters."""
    from echolearn.reservoir._topologies import TOPOLOGIES

    settings = {
        "topology": data.draw(st.one_of(st.sampled_from(TOPOLOGIES), odd.matrices((4, 4)), odd.setting("topology"))),
        "spectral_radius": data.draw(
            st.one_of(st.floats(0.01, 10), st.floats(0.01, 10), odd.setting("spectral_radius"))
        ),
        "connections": data.draw(st.one_of(st.integers(1, 9), st.integers(1, 9), odd.setting("connections"))),
    }
    N = data.draw(st.sampled_from([1, 2, 3, 4, 4, 9]))
    return lambda: Reservoir.random(1, N, **settings, random_state=0).W_rec.data, (N, settings)


def gradients(data: Any, folder: Path) -> Call:
    """Draw sequences, targets and parameters of loss_and_gradients."""
    r = Reservoir.random(2, 4, connections=2, random_state=0)
    given = data.draw(odd.sequences())
    T = data.draw(odd.targets(given, "values"))
    names = ["ridge", "lookback", "targets", "gradient", "direct", "washout"]
    settings = {"ridge": 1.0, **draw_some(data, names, odd.setting)}

    def call() -> Any:
        found = loss_and_gradients(r, given, T, **settings)
        return [found.loss, found.dE_dW]

    return call, (given, T, settings)


def states(data: Any, folder: Path) -> Call:
    """Draw sequences and a dtype for harvest."""
    r = Reservoir.random(2, 4, connections=2, random_state=0)
    given = data.draw(odd.sequences())
    dtype = data.draw(st.sampled_from([np.float64, "float32", "float16", "int64", "object", None, 3, "a"]))
    return lambda: harvest(r, given, dtype=dtype), (given, dtype)


def generators(data: Any, folder: Path) -> Call:
    """Draw parameters of the series of echolearn.datasets."""
    names = ["mackey_glass", "lorenz", "rossler", "henon", "kuramoto_sivashinsky", "narma", "mso"]
    make = getattr(datasets, data.draw(st.sampled_from(names)))
    known = inspect.signature(make).parameters
    settings: dict[str, Any] = {"discard": 3} if "discard" in known else {}
    counts = ("steps", "discard", "points", "oscillators")
    for name, value in draw_some(data, sorted(known)).items():
        # any number is allowed, and would take its time
        settings[name] = 7 if name in counts and isinstance(value, (int, np.integer)) and value > 50 else value
    if isinstance(settings.get("tau"), (int, float)) and 100 < settings["tau"] < np.inf:
        settings["tau"] = 100.0
    return lambda: make(**{"steps": 9, **settings}), (make.__name__, settings)


def diagnose(data: Any, folder: Path) -> Call:
    """Draw inputs and parameters of the diagnostics."""
    r = Reservoir.random(1, 4, connections=2, random_state=0)
    name = data.draw(st.sampled_from(["linearised", "lyapunov", "echo", "memory_capacity", "ranks"]))
    known = [n for n in inspect.signature(getattr(diagnostics, name)).parameters if n not in ("reservoir", "X")]
    settings = draw_some(data, known) if known else {}
    for n in ("steps", "delays"):
        if isinstance(settings.get(n), (int, np.integer)) and settings[n] > 5000:
            settings[n] = 100
    given = (
        [data.draw(st.one_of(odd.matrices((30, 1)), odd.sequences(1)))]
        if name in ("lyapunov", "echo", "linearised")
        else []
    )
    attribute = {"linearised": "radius", "echo": "distances", "memory_capacity": "total", "ranks": "kernel"}

    def call() -> Any:
        found = getattr(diagnostics, name)(r, *given, **settings)
        return getattr(found, attribute.get(name, "washout"))

    return call, (name, given, settings)


def framewise(data: Any, folder: Path) -> Call:
    """Draw transformers, sequences and names of scores."""
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    transformer = data.draw(st.sampled_from([StandardScaler(), MinMaxScaler(), None, "a", 3]))
    given, later = data.draw(odd.sequences()), data.draw(odd.sequences())
    name = data.draw(st.sampled_from(["accuracy", "r2", "neg_nrmse", "nothing", 3, None]))

    def call() -> Any:
        if transformer is None:
            from echolearn.metrics import scorer

            return scorer(name)(fitted("labels"), given, LABELS)
        return FrameWise(transformer).fit(given).transform(later)

    return call, (transformer, given, later, name)


def features(data: Any, folder: Path) -> Call:
    """Draw parameters and sequences of ReservoirFeatures, and sequences of `states`."""
    names = sorted(set(ReservoirFeatures().get_params()) - {"reservoir"})
    changes = draw_some(data, names, odd.setting, least=0, most=3)
    if isinstance(changes.get("hidden_units"), int) and changes["hidden_units"] > 4:
        changes["hidden_units"] = 4
    kind = data.draw(st.sampled_from(["drawn", "fitted", "unfitted", "labels", "deep", "odd"]))
    reservoir = {"drawn": None, "unfitted": ESNRegressor(**SMALL), "odd": data.draw(odd.setting("reservoir"))}.get(kind)
    given, later = data.draw(odd.sequences()), data.draw(odd.sequences())

    def call() -> Any:
        own = fitted("values" if kind == "fitted" else kind) if kind in ("fitted", "labels", "deep") else reservoir
        made = ReservoirFeatures(own, **{"hidden_units": 4, "connections": 2, **changes}).fit(given, given)
        answers = made.transform(later)
        return [answers, own.states(later)] if kind in ("fitted", "labels", "deep") else answers

    return call, (kind, reservoir, changes, given, later)


def tuning(data: Any, folder: Path) -> Call:
    """Draw arguments of tune."""
    from echolearn.tuning import tune

    names = ["space", "trials", "validation", "folds", "storage", "random_state", "scoring", "X", "y", "estimator"]
    settings: dict[str, Any] = {"trials": 1, "folds": 2, "refit": False, **draw_some(data, names, least=1)}
    if isinstance(settings["trials"], (int, np.integer)) and settings["trials"] > 3:
        settings["trials"] = 2  # any number is allowed, and would take its time
    if callable(settings.get("scoring")):
        settings["scoring"] = None  # the errors of a given function are not ours
    if isinstance(settings.get("storage"), str):
        settings["storage"] = str(folder / settings["storage"].replace("/", "_")[:50])
    esn = settings.pop("estimator", ESNClassifier(**SMALL, learn="none"))
    given, y = settings.pop("X", X), settings.pop("y", LABELS)

    def call() -> Any:
        return [t.score for t in tune(esn, given, y, **settings).trials if t.score is not None]

    return call, (given, y, esn, settings)


ENTRIES: dict[str, tuple[Callable[[Any, Path], Call], int]] = {
    "ESNClassifier.fit": (lambda d, f: fit(d, f, ESNClassifier, "labels"), 10),
    "ESNRegressor.fit": (lambda d, f: fit(d, f, ESNRegressor, "values"), 10),
    "classifier settings": (lambda d, f: fit_settings(d, f, ESNClassifier, LABELS), 10),
    "regressor settings": (lambda d, f: fit_settings(d, f, ESNRegressor, X), 5),
    "forecaster settings": (lambda d, f: fit_settings(d, f, ESNForecaster, None), 5),
    "SeriesClassifier.fit": (lambda d, f: fit_series(d, f, SeriesClassifier, "labels"), 5),
    "SeriesRegressor.fit": (lambda d, f: fit_series(d, f, SeriesRegressor, "values"), 5),
    "series classifier settings": (lambda d, f: fit_settings(d, f, SeriesClassifier, ONE_EACH), 4),
    "series regressor settings": (lambda d, f: fit_settings(d, f, SeriesRegressor, range(6)), 3),
    "deep networks": (deep_networks, 5),
    "ReservoirFeatures, states": (features, 8),
    "predict, score": (predict, 8),
    "validation, checkpoint": (validation, 3),
    "partial_fit": (partial_fit, 5),
    "streams": (streams, 8),
    "Stream": (bare_stream, 3),
    "ESNForecaster.fit": (forecaster_fit, 5),
    "ESNForecaster.predict": (forecaster_use, 6),
    "Reservoir": (reservoirs, 6),
    "topologies": (topologies, 4),
    "loss_and_gradients": (gradients, 5),
    "harvest": (states, 3),
    "datasets": (generators, 5),
    "diagnostics": (diagnose, 4),
    "FrameWise, scorer": (framewise, 5),
    "tune": (tuning, 2),
}
