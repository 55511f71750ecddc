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


def test_noisy_dynamics_are_forecast_by_what_was_best_from_rolling_origins():
    """A series whose noise hides the next step may still follow dynamics over many; without any, direct is kept."""
    rng = np.random.default_rng(0)
    noisy = mackey_glass(624)[:, 0] + 0.025 * rng.normal(size=624)
    auto, direct = (ESNForecaster(50, learn="none", method=method).fit(noisy[:600]) for method in ("auto", "direct"))
    assert auto.method_ != "direct"
    errors = [np.abs(esn.predict(24) - noisy[600:]).mean() for esn in (auto, direct)]
    assert errors[0] < 0.5 * errors[1]
    walks = [ESNForecaster(20).fit(np.cumsum(rng.normal(size=200))).method_ for _ in range(3)]
    assert walks == ["direct"] * 3
