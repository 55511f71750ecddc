"""Products of delayed values, against a slow version."""

import numpy as np
import pytest

from echolearn.forecasting.nvar import PolynomialFeatures
from reference.toolkit import nvar_features


@pytest.mark.parametrize(("delays", "stride", "degrees"), [(1, 1, (1, 2, 3)), (3, 2, (1, 2)), (2, 4, (1, 3))])
def test_products_are_those_of_a_slow_version(delays, stride, degrees):
    X = np.random.default_rng(0).standard_normal((30, 2))
    features = PolynomialFeatures(2, delays, stride, degrees)
    expected = nvar_features(X, delays, stride, degrees)
    found = features.of_series(X)
    assert found.shape == expected.shape == (30 - (delays - 1) * stride, features.count)
    np.testing.assert_allclose(found, expected)
