"""Labels and values as a network learns them, and back."""

import numpy as np

from echolearn.estimators.codecs import nearest_distribution


def test_nearest_distribution_is_the_projection_on_the_simplex():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(50, 4))
    P = nearest_distribution(Y)
    # of all distributions tried, none is nearer
    for Q in rng.dirichlet(np.full(4, 0.3), size=400):
        assert (((Y - P) ** 2).sum(axis=1) <= ((Y - Q) ** 2).sum(axis=1) + 1e-12).all()
    already = rng.dirichlet(np.ones(4), size=5)
    np.testing.assert_allclose(nearest_distribution(already), already, atol=1e-12)
    assert np.isnan(nearest_distribution(np.array([[1.0, np.nan], [np.inf, 0.0]]))).all()  # and it ends
