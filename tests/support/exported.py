"""Small fitted models for tests of exports."""

import warnings

import numpy as np

from echolearn import DeepESNClassifier, DeepESNRegressor, ESNClassifier, ESNForecaster, ESNRegressor
from echolearn.exceptions import PoorFitWarning
from echolearn.export import plan_of
from reliability.exports import Drawn
from toys import grouped

RNG = np.random.default_rng(5)
X = [RNG.normal(100, 5, (30, 3)) for _ in range(6)]
LABELS = [np.array(["a", "b", "c"])[RNG.integers(0, 3, len(x))] for x in X]
VALUES = [np.roll(x[:, :2], 1, axis=0) for x in X]
SERIES = np.sin(np.arange(200) / 5) + 0.3 * np.sin(np.arange(200) / 2.1)
FIXED = {"learn": "none", "validation_fraction": 0.0, "ridge": 0.1}
DOUBLE = {**FIXED, "dtype": "float64"}
LIMIT = {"rtol": 1e-9, "atol": 1e-9}


def classifier(units=20, labels=LABELS, **settings):
    """Return a fitted classifier."""
    return ESNClassifier(units, **grouped({**FIXED, **settings})).fit(X, labels)


def regressor(units=20, **settings):
    """Return a fitted regressor of two values."""
    return ESNRegressor(units, **grouped({**FIXED, **settings})).fit(X, VALUES)


def deep_classifier(units=8, layers=2, labels=LABELS, **settings):
    """Return a fitted deep classifier."""
    return _fitted(DeepESNClassifier(units, layers, epochs=1, **settings), labels)


def deep_regressor(units=8, layers=2, values=VALUES, **settings):
    """Return a fitted deep regressor of two values."""
    return _fitted(DeepESNRegressor(units, layers, epochs=1, **settings), values)


def _fitted(deep, targets):
    """Return a deep network after one epoch, from which nobody expects good answers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorFitWarning)
        return deep.fit(X, targets)


def forecaster(**settings):
    """Return a fitted forecaster of one series."""
    return ESNForecaster(20, learn="none", ridge=1e-3, **grouped({"method": "closed_loop"} | settings)).fit(SERIES)


def drawn(model, x=X[0]):
    """Return a model with frames and its own answers, as the comparisons of exports take it."""
    x, plan = x.astype(np.float32), plan_of(model)
    answers = (model.predict_proba if hasattr(model, "predict_proba") else model.predict)(x.astype(float))
    return Drawn("test", {}, model, plan, x, np.asarray(answers, float).reshape(-1, plan.answer.n_out))


def assert_same(found, expected):
    """Compare answers in any form: the form too."""
    assert isinstance(found, list) == isinstance(expected, list)
    if isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
        return
    assert found.shape == expected.shape
    if expected.dtype.kind in "US":
        assert (found == expected).all()
    else:
        np.testing.assert_allclose(found, expected, **LIMIT)
