"""Warnings and errors recommend only what the estimator that raises them has."""

from __future__ import annotations

import inspect
import re
import warnings

import numpy as np
import pytest

from echolearn import (
    DeepESNClassifier,
    DeepESNRegressor,
    ESNClassifier,
    ESNForecaster,
    ESNRegressor,
    SeriesClassifier,
    SeriesRegressor,
)

SMALL = {"hidden_units": 8, "units": 8, "layers": 1, "epochs": 1}
KINDS = [
    ESNClassifier,
    ESNRegressor,
    DeepESNClassifier,
    DeepESNRegressor,
    SeriesClassifier,
    SeriesRegressor,
    ESNForecaster,
]


def parameters(kind):
    """Return the names of the parameters of an estimator, of the groups among them, and of its methods' arguments."""
    called = ("fit", "predict", "partial_fit", "stream", "update")
    methods = [getattr(kind, name) for name in called if hasattr(kind, name)]
    groups = [key for keys in getattr(kind, "groups", {}).values() for key in keys]
    return {name for one in (kind, *methods) for name in inspect.signature(one).parameters} | set(groups)


ANY = set().union(*map(parameters, KINDS))


# Parameters whose names are words of other sentences too: they are recommended only before an equals sign.
ENGLISH = set(
    re.findall(
        r"\w+",
        "angle case classes column direct epochs feedback frame gradient layers layout leak learn learning log method "
        "missing name names new online path readout reservoir ridge season self series solver steps targets training "
        "trend units validation verbose",
    )
)


def recommended(message):
    """Return the names of parameters in a message."""
    words = set(re.findall(r"\b[a-z_]+\b", message)) - ENGLISH
    return (words | set(re.findall(r"\b[a-z_]+(?==)", message))) & ANY


def situations(kind):
    """Yield data and settings that make an estimator warn or refuse."""
    rng = np.random.default_rng(0)
    noise = [rng.standard_normal((30, 2)) for _ in range(12)]
    per_series, labels = kind.__name__.startswith("Series"), kind.__name__.endswith("Classifier")

    def targets(X):
        if labels:
            return rng.choice(["a", "b"], len(X)) if per_series else [rng.choice(["a", "b"], len(x)) for x in X]
        return rng.standard_normal(len(X)) if per_series else [rng.standard_normal(len(x)) for x in X]

    def given(X):
        return (np.concatenate(X)[:, 0],) if kind is ESNForecaster else (X, targets(X))

    huge = [x * 1e30 for x in noise]
    yield given(noise), {}
    yield given(noise[:2]), {}
    yield given([x[:3] for x in noise]), {}
    yield given(huge), {"standardize": False}
    yield given([x + 1e9 for x in noise]), {"standardize": False}
    yield given([np.ones_like(x) for x in noise]), {}
    yield given([np.repeat(x[:, :1], 2, axis=1) for x in noise]), {"ridge": 0.0, "standardize": False}
    yield given(noise), {"ridge": 1e12}
    yield given(noise), {"washout": 40}
    yield given(noise), {"leak": 5.0}
    yield given(noise), {"ensemble": 9}
    yield given(noise), {"readout": "nothing"}
    yield given([np.where(x > 2, np.nan, x) for x in noise]), {}
    yield given([x.T for x in noise]), {}
    yield given([np.float32(x) for x in noise]), {"no_such_setting": 1}
    if labels:
        rare = ["a"] * 11 + ["b"] if per_series else [np.array(["a"] * 29 + ["b"]) for _ in noise]
        yield (noise, rare), {}
        yield (noise, targets(noise)), {"class_weight": {"z": 2.0}}
    if kind is not ESNForecaster:
        swapped = [x[:, 0] for x in noise] if per_series else rng.standard_normal(12)
        yield (noise, swapped), {}
        yield (noise, targets(noise)[:-1]), {}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_messages_name_only_parameters_that_the_estimator_has(kind):
    own, found = parameters(kind), {}
    for data, settings in situations(kind):
        known = {name: value for name, value in {**SMALL, **settings}.items() if name in own or name not in ANY}
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            texts = []
            try:
                kind(**known).fit(*data).predict(*((5,) if kind is ESNForecaster else data[:1]))
            except (ValueError, TypeError) as problem:
                texts.append(str(problem))
            texts += [str(one.message) for one in raised]
        for text in texts:
            found |= dict.fromkeys(recommended(text) - own, text)
    assert not found
