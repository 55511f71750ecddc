"""NVARForecaster: what it forecasts, how it chooses its ridge, and what it refuses."""

import numpy as np
import pytest

from echolearn import NVARForecaster
from echolearn.datasets import lorenz
from echolearn.estimators._nvar import PolynomialFeatures
from echolearn.metrics import valid_time
from reference.toolkit import nvar_features


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
    with pytest.raises(ValueError, match=r"horizon is an array of shape \(9, 3\); .*warm_up=data\)\.$"):
        NVARForecaster().fit(lorenz(100)).predict(lorenz(9))
    with pytest.raises(ValueError, match="one row of 100 values: one step"):
        NVARForecaster().fit(lorenz(100)[:, 0][None])


@pytest.mark.parametrize(("delays", "stride", "degrees"), [(1, 1, (1, 2, 3)), (3, 2, (1, 2)), (2, 4, (1, 3))])
def test_products_are_those_of_a_slow_version(delays, stride, degrees):
    X = np.random.default_rng(0).standard_normal((30, 2))
    features = PolynomialFeatures(2, delays, stride, degrees)
    expected = nvar_features(X, delays, stride, degrees)
    found = features.of_series(X)
    assert found.shape == expected.shape == (30 - (delays - 1) * stride, features.count)
    np.testing.assert_allclose(found, expected)
