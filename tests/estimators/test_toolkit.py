"""NVARForecaster and ES2NFeatures against slow versions, and what they are good for."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from echolearn import ES2NFeatures, FrameWise, NVARForecaster
from echolearn.datasets import lorenz
from echolearn.forecasting.nvar import PolynomialFeatures
from echolearn.metrics import valid_time
from echolearn.states import harvest
from reference.toolkit import es2n_states, nvar_features


@pytest.mark.parametrize(("delays", "stride", "degrees"), [(1, 1, (1, 2, 3)), (3, 2, (1, 2)), (2, 4, (1, 3))])
def test_products_are_those_of_a_slow_version(delays, stride, degrees):
    X = np.random.default_rng(0).standard_normal((30, 2))
    features = PolynomialFeatures(2, delays, stride, degrees)
    expected = nvar_features(X, delays, stride, degrees)
    found = features.of_series(X)
    assert found.shape == expected.shape == (30 - (delays - 1) * stride, features.count)
    np.testing.assert_allclose(found, expected)


def test_nvar_finds_the_map_it_can_express():
    """Hénon's map is a polynomial of degree two of one value and the one before: forecasts last until rounding."""
    x = [0.1, 0.2]
    while len(x) < 400:
        x.append(1 - 1.4 * x[-1] ** 2 + 0.3 * x[-2])
    x = np.array(x)
    model = NVARForecaster(delays=2, degree=2).fit(x[:300])
    assert model.n_products_ == 5
    assert valid_time(x[300:], model.predict(100)) > 50
    moved = model.predict(10, warm_up=x[:350])
    np.testing.assert_allclose(moved, x[350:360], atol=1e-8)
    both = model.predict(10, warm_up=[x[:350], x[:340]])
    np.testing.assert_allclose(both[0], moved)


def test_nvar_chooses_its_ridge_by_forecasts():
    series = lorenz(1200)
    chosen = NVARForecaster(delays=2, degree=2).fit(series[:900])
    large = NVARForecaster(delays=2, degree=2, ridge=1.0).fit(series[:900])
    long, short = (valid_time(series[900:], model.predict(300)) for model in (chosen, large))
    assert long > short + 50


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"delays": 0}, "delays=0"),
        ({"degree": 30}, "products of 3 dimensions"),
        ({"ridge": "best"}, "ridge='best'"),
        ({"ridge": -1.0}, ">= 0"),
        ({"validation_fraction": 1.0}, "validation_fraction=1.0"),
        ({"delays": 200}, "steps"),
    ],
)
def test_nvar_explains_what_does_not_fit(how, words):
    with pytest.raises(ValueError, match=words):
        NVARForecaster(**{"degree": 1} | how).fit(lorenz(100))
    with pytest.raises(ValueError, match="looks back over 2"):
        NVARForecaster().fit(lorenz(100)).predict(3, warm_up=lorenz(1))
    with pytest.raises(ValueError, match=r"steps is an array of shape \(9, 3\); .*warm_up=data\)\.$"):
        NVARForecaster().fit(lorenz(100)).predict(lorenz(9))
    with pytest.raises(ValueError, match="one row of 100 values: one step"):
        NVARForecaster().fit(lorenz(100)[:, 0][None])


def test_es2n_states_are_those_of_a_slow_version():
    X = [np.random.default_rng(n).standard_normal((n, 2)) for n in (20, 13)]
    features = ES2NFeatures(11, proximity=0.3, input_scaling=0.7, bias_scaling=0.2).fit(X)
    for x, H in zip(X, features.transform(X), strict=True):
        np.testing.assert_allclose(H, es2n_states(features.reservoir_, features.rotation_, 0.3, x), atol=1e-12)
    np.testing.assert_allclose(features.rotation_ @ features.rotation_.T, np.eye(11), atol=1e-12)
    plain = ES2NFeatures(11, proximity=1.0).fit(X)
    np.testing.assert_allclose(plain.transform(X[0]), harvest(plain.reservoir_, X[0]), atol=1e-12)
    with pytest.raises(ValueError, match="proximity=0"):
        ES2NFeatures(proximity=0).fit(X)


def test_es2n_remembers_longer_than_an_ordinary_network():
    """An input of thirty steps ago, by a ridge readout: the reason for which people use it."""
    u = np.random.default_rng(0).uniform(-0.5, 0.5, (1500, 1))
    X, y = u[30:], u[:-30, 0]
    errors = []
    for proximity in (0.05, 1.0):
        model = make_pipeline(ES2NFeatures(60, proximity=proximity), FrameWise(Ridge(1e-8)))
        model.fit(X[:1000], y[:1000])
        errors.append(np.mean((model.predict(X)[1050:] - y[1050:]) ** 2) / y.var())
    assert errors[0] < 0.3 < 0.7 < errors[1]
