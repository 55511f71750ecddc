"""Which series a closed loop forecasts, and which are forecast directly."""

import numpy as np

from echolearn import ESNForecaster
from echolearn.datasets import kuramoto_sivashinsky, lorenz, mackey_glass


def test_noise_is_forecast_directly_and_dynamics_in_a_closed_loop():
    for series in (mackey_glass(600)[:, 0], lorenz(600), kuramoto_sivashinsky(200)):
        auto = ESNForecaster(30, learn="none").fit(series)
        loop = ESNForecaster(30, learn="none", method="closed_loop").fit(series)
        assert auto.method_ == "closed_loop"
        np.testing.assert_array_equal(auto.predict(20), loop.predict(20))
    assert ESNForecaster(20).fit(np.random.default_rng(3).normal(size=300)).method_ == "direct"
