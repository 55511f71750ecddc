"""The doors for data in any container and layout: unusual ones, and whether usual ones are read as they were meant.

`wrapped` puts sequences into a table, a panel, a dictionary, a tensor, a padded array and so on, and targets into a
form that fits. "containers" spoils them; "layouts" does not, and compares what was read with what was put in.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from benchmarks.layouts import ArrayLike, PolarsFrame, Tensor, cells, masked, objects, padded
from echolearn import DeepESNClassifier, ESNClassifier, ESNRegressor, FrameWise, SeriesClassifier, SeriesRegressor
from echolearn.exceptions import InputWarning
from echolearn.fitting.data import open_data
from reliability import odd
from reliability.entries import SMALL, Call, draw_some, stop


class Misread(Exception):
    """Data were read as something else than they are, without a word."""


def _ids(n: int, kind: str) -> list[Any]:
    return [f"s{i:03d}" for i in range(n)] if kind == "words" else list(range(10, 10 + n))


def _panel(X: list[Any], ids: list[Any]) -> Any:
    pairs = [(i, t) for i, x in zip(ids, X, strict=True) for t in range(len(x))]
    index = pd.MultiIndex.from_tuples(pairs, names=["instance", "time"])
    return pd.DataFrame(np.concatenate(X), index=index, columns=[f"f{j}" for j in range(X[0].shape[1])])


def _nested(X: list[Any], ids: list[Any]) -> Any:
    columns = {f"d{j}": [pd.Series(x[:, j]) for x in X] for j in range(X[0].shape[1])}
    return pd.DataFrame(columns, index=ids)


def _long(X: list[Any], ids: list[Any]) -> Any:
    return _panel(X, ids).rename_axis(["id", "time"]).reset_index()


ALWAYS = (
    "list",
    "transposed",
    "dict",
    "tensors",
    "objects",
    "frames",
    "panel",
    "nested",
    "long",
    "polars",
    "cells",
    "nan",
    "masked",
)
EQUAL = (*ALWAYS, "stack", "aeon", "tensor", "array-like")
UNIVARIATE = ("series", "numbers", "Series", "ucr")  # those that only sequences of one feature can be in


def wrapped(X: list[Any], how: str, ids: list[Any]) -> Any:
    """Return sequences in a container or layout."""
    makers = {
        "list": lambda: X,
        "transposed": lambda: [x.T for x in X],
        "dict": lambda: dict(zip(ids, X, strict=True)),
        "tensors": lambda: [Tensor(x) for x in X],
        "objects": lambda: objects(X),
        "frames": lambda: [pd.DataFrame(x) for x in X],
        "panel": lambda: _panel(X, ids),
        "nested": lambda: _nested(X, ids),
        "long": lambda: _long(X, ids),
        "polars": lambda: PolarsFrame(dict(_long(X, ids))),
        "cells": lambda: cells(X),
        "nan": lambda: padded(X),
        "masked": lambda: masked(X),
        "stack": lambda: np.stack(X),
        "aeon": lambda: np.stack(X).swapaxes(1, 2),
        "tensor": lambda: Tensor(np.stack(X)),
        "array-like": lambda: ArrayLike(np.stack(X)),
        "series": lambda: [x[:, 0] for x in X],
        "numbers": lambda: [x[:, 0].tolist() for x in X],
        "Series": lambda: _panel(X, ids)["f0"],
        "ucr": lambda: padded(X)[:, :, 0],
    }
    return makers[how]()


def wrapped_targets(y: list[Any], how: str, ids: list[Any], per_step: bool) -> Any:
    """Return targets, one per sequence or an array of them, in the form that goes with a container."""
    if how == "dict":
        return dict(zip(ids, y, strict=True))
    if how in ("panel", "long", "nested", "Series") and not per_step:
        return pd.Series(y, index=ids)
    if how in ("panel", "long", "polars", "Series") and per_step:
        return np.concatenate(y)
    if how in ("nan", "masked", "stack", "aeon", "tensor", "array-like", "ucr") and per_step:
        out = np.full((len(y), max(map(len, y))), "?", dtype="U4")
        for row, part in zip(out, y, strict=True):
            row[: len(part)] = part
        return out
    return y


def walks(rng: np.random.Generator, features: int, *, equal: bool, least: int) -> list[Any]:
    """Return smooth sequences, longer than they are wide."""
    n = int(rng.integers(6, 13))
    lengths = [int(rng.integers(least, 40))] * n if equal else (least + rng.permutation(4 * n)[:n]).tolist()
    return [np.cumsum(rng.standard_normal((m, features)), axis=0) for m in lengths]


def layouts(data: Any, folder: Path) -> Call:
    """Draw usual data in any container, and compare what is read with what was put in."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))  # every container as often as another
    equal, per_step, features = bool(rng.integers(2)), bool(rng.integers(2)), int(rng.integers(1, 5))
    how = str(rng.choice([*(EQUAL if equal else ALWAYS), *(UNIVARIATE if features == 1 else ())]))
    X = walks(rng, features, equal=equal, least=12)
    ids = _ids(len(X), str(rng.choice(["words", "numbers"])))
    labels = [np.where(x[:, 0] > 0, "a", "b") for x in X] if per_step else [("a", "b")[i % 2] for i in range(len(X))]
    given, y = wrapped(X, how, ids), wrapped_targets(labels, how, ids, per_step)

    def call() -> Any:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            opened = open_data(given, y, series=not per_step)
        said = any(issubclass(w.category, InputWarning) for w in caught)
        same = len(opened.given.X) == len(X) and all(
            a.shape == b.shape and np.array_equal(a, b) for a, b in zip(opened.given.X, X, strict=True)
        )
        entries = all(np.array_equal(a, b) for a, b in zip(opened.entries, labels, strict=False))
        if not said and not (same and entries and opened.per_step == per_step):
            raise Misread(f"{how}, features {features}, equal {equal}, per step {per_step}: read as other data")
        return [x.sum() for x in opened.given.X]

    return call, (how, features, equal, per_step, [len(x) for x in X])


def spoiled(data: Any, X: Any) -> Any:
    """Draw a change of a container that users make by mistake."""
    way = data.draw(st.integers(0, 9))
    if isinstance(X, pd.DataFrame) and len(X):
        if way == 0:
            return X.sample(frac=1.0, random_state=0)
        if way == 1:
            return pd.concat([X, X])
        if way == 2:
            return X.iloc[: data.draw(st.integers(0, len(X)))]
        if way == 3 and X.index.nlevels > 1:
            return X.swaplevel()
        if way == 4:
            return X.assign(
                extra=data.draw(st.sampled_from([1.0, "a", None, pd.Timestamp("2024-01-01"), np.nan, True]))
            )
        if way == 5:
            dates = pd.to_datetime(np.random.default_rng(0).integers(0, 10**9, len(X)), unit="s")
            return X.set_axis(dates if data.draw(st.booleans()) else pd.Index(["x"] * len(X)))
        if way == 6:
            return X.rename(
                columns={X.columns[0]: data.draw(st.sampled_from(["id", "time", "date", "value", "dim_id"]))}
            )
        if way == 7:
            return X.iloc[:, :0] if data.draw(st.booleans()) else X.T
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and X.size:
        X = X.copy()
        if way == 0:
            X[-1] = np.nan
        elif way == 1:
            X[..., -1] = np.nan
        elif way == 2:
            X.flat[X.size // 3] = data.draw(st.sampled_from([np.nan, np.inf, 1e300]))
        elif way == 3:
            X = np.ma.masked_array(X, np.random.default_rng(0).random(X.shape) > 0.9)
        elif way == 4:
            X = np.moveaxis(X, data.draw(st.integers(0, X.ndim - 1)), 0)
    if isinstance(X, list) and X and way < 4:
        X = list(X)
        X[data.draw(st.integers(0, len(X) - 1))] = data.draw(
            st.one_of(odd.values, odd.matrices((4, 2)), odd.matrices((5,)), st.just(pd.DataFrame({"a": [1.0, 2.0]})))
        )
    if isinstance(X, dict) and way < 4:
        X = {
            **X,
            data.draw(st.sampled_from(["new", 10, None, (1, 2)])): data.draw(
                st.one_of(odd.values, odd.matrices((5, 2)))
            ),
        }
    return X


def containers(data: Any, folder: Path) -> Call:
    """Draw containers, spoiled or with targets of another form, for a fit, a prediction and a score."""
    equal, per_step = data.draw(st.booleans()), data.draw(st.booleans())
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    features = data.draw(st.integers(1, 3))
    X = walks(rng, features, equal=equal, least=data.draw(st.integers(1, 8)))
    ids = _ids(len(X), data.draw(st.sampled_from(["words", "numbers"])))
    labels = [np.where(x[:, 0] > 0, "a", "b") for x in X] if per_step else [("a", "b")[i % 2] for i in range(len(X))]
    forms = [*(EQUAL if equal else ALWAYS), *(UNIVARIATE if features == 1 else ())]
    how, other, third = (str(name) for name in rng.choice(forms, 3))
    given = wrapped(X, how, ids)
    given = spoiled(data, given) if data.draw(st.booleans()) else given
    y = wrapped_targets(labels, how if data.draw(st.integers(0, 3)) else other, ids, per_step)
    y = data.draw(odd.values) if data.draw(st.integers(0, 9)) == 0 else y
    later = wrapped(X, third, ids) if data.draw(st.booleans()) else given
    changes = draw_some(data, ["layout"], odd.setting, most=1)
    more = (
        {"lengths": data.draw(st.one_of(st.just([len(x) for x in X]), odd.values))}
        if data.draw(st.integers(0, 5)) == 0
        else {}
    )
    kind = data.draw(st.sampled_from(["classifier", "classifier", "regressor", "deep", "framewise"]))

    def call() -> Any:
        if kind == "framewise":
            from sklearn.preprocessing import PolynomialFeatures  # it refuses NaN, which StandardScaler passes on

            return FrameWise(PolynomialFeatures(1)).fit(given).transform(later)
        if kind == "deep":
            deep = DeepESNClassifier(4, 2, **changes).fit(given, y, callback=stop, **more)
            return [deep.predict(later), deep.score(given, y, **more)]
        how_fitted = {**more, "callback": stop} if per_step else more
        if kind == "regressor":
            values = _values(y)
            model = ESNRegressor(**SMALL, **changes) if per_step else SeriesRegressor(4, **changes)
            model.fit(given, values, **how_fitted)
            return [model.predict(later), model.score(given, values, **more)]
        esn = ESNClassifier(**SMALL, **changes) if per_step else SeriesClassifier(4, **changes)
        esn.fit(given, y, **how_fitted)
        return [esn.predict(later), esn.predict_proba(given, **more), esn.score(given, y, **more)]

    return call, (kind, how, other, third, equal, per_step, changes, more, type(given), type(y))


def _values(y: Any) -> Any:
    """Return labels as numbers in the same form."""
    if isinstance(y, dict):
        return {key: _values(value) for key, value in y.items()}
    if isinstance(y, pd.Series):
        return pd.Series(_values(y.to_numpy()), index=y.index)
    if isinstance(y, list):
        return [_values(part) for part in y]
    if isinstance(y, str):
        return float(y == "a")
    return (y == "a").astype(float) if isinstance(y, np.ndarray) and y.dtype.kind in "UO" else y


ENTRIES = {"layouts read right": (layouts, 5), "containers": (containers, 8)}
