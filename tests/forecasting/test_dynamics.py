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


def test_a_loop_that_was_chosen_by_its_forecasts_keeps_what_forecast_best_there():
    """Learning for one step, or a ridge chosen by one-step errors, lets loops of short noisy waves run away."""
    loops, errors = 0, []
    for seed in range(12):
        rng, t = np.random.default_rng(seed), np.arange(174)
        waves = np.sin(t / rng.uniform(5, 15) + rng.uniform(0, 6)) + 0.5 * np.sin(t / rng.uniform(3, 9))
        y = waves + 0.1 * rng.normal(size=174)
        esn, direct = ESNForecaster().fit(y[:150]), ESNForecaster(method="direct").fit(y[:150])
        errors.append([np.abs(one.predict(24) - y[150:]).mean() for one in (esn, direct)])
        if esn.method_ != "direct":
            loops += 1
            assert len(esn.history_) == 0
            assert np.abs(esn.predict(100)).max() < 10
    assert loops > 0
    assert np.mean(errors, axis=0)[0] < 1.05 * np.mean(errors, axis=0)[1]


def test_a_loop_that_was_chosen_by_its_forecasts_keeps_a_ridge_that_was_given():
    noisy = mackey_glass(600)[:, 0] + 0.025 * np.random.default_rng(0).normal(size=600)
    chosen, given = (ESNForecaster(50, ridge=ridge).fit(noisy) for ridge in ("auto", 0.5))
    assert chosen.method_ == given.method_ == "closed_loop"
    assert given.ridge_ == 0.5 != chosen.ridge_
