"""The direct model: forecasts along a series are those after each of its values; corrections fade, errors widen."""

from dataclasses import replace

import numpy as np
import pytest

from echolearn import ESNForecaster
from echolearn.exceptions import ForecastWarning
from echolearn.forecasting.direct_model import CORRECTION_DECAY_PER_STEP, SeriesSettings, default_horizon

T = np.arange(120)
RNG = np.random.default_rng(4)
Y = 50 + 5 * np.sin(2 * np.pi * T / 12) + RNG.normal(size=120)
NONE = np.empty((120, 0))


@pytest.fixture(scope="module")
def model():
    (fitted,) = ESNForecaster(10, method="direct", season=12, log=False).fit(Y).forecast_.models
    return replace(fitted, D=0.1 * RNG.normal(size=fitted.D.shape))  # so that there is a correction


@pytest.mark.parametrize("horizon", [1, 5, 30])
def test_forecasts_along_a_series_are_those_after_each_value(model, horizon):
    start = model.start(Y[:, None], NONE)
    along = start.forecasts_along(Y[:, None], NONE, horizon)
    assert along.shape == (120 - horizon, 1)
    for n in (1, 40, 120 - horizon):
        end = start.follow(Y[:n, None], NONE[:n])
        ahead = end.in_units(end.forecast(horizon), np.empty((horizon, 0)))
        np.testing.assert_allclose(along[n - 1], ahead[-1], rtol=1e-10)


def test_beyond_the_last_horizon_corrections_fade_and_errors_widen(model):
    H = model.horizon
    plain = replace(model, D=np.zeros_like(model.D))
    correction = (model.forecast(H + 3) - plain.forecast(H + 3))[:, 0]
    assert correction[H + 1] == pytest.approx(correction[H - 1] * CORRECTION_DECAY_PER_STEP**2)
    lower, upper = model.interval(4 * H, 0.9)
    width = (upper - lower)[:, 0]
    assert width[4 * H - 1] == pytest.approx(2 * width[H - 1])
    np.testing.assert_allclose((lower + upper) / 2, model.forecast(4 * H))


def test_another_series_has_its_own_unit(model):
    small, large = (model.start(scale * Y[:, None], NONE).columns[0] for scale in (1.0, 1000.0))
    np.testing.assert_allclose(large.spread, 1000 * small.spread)
    np.testing.assert_allclose(large.input_scale, 1000 * small.input_scale)


def test_horizons_and_seasons_by_default():
    assert [default_horizon(m, 1000) for m in (1, 12, 52)] == [8, 24, 48]
    assert default_horizon(12, 30) == 10
    how = {"horizon": None, "trend": None, "log": False}
    assert SeriesSettings(season=12, **how).seasons_of(Y, ()) == (12, 1)
    assert SeriesSettings(season=None, **how).seasons_of(Y, (12,)) == (1, 1)
    assert SeriesSettings(season="auto", **how).seasons_of(Y, ()) == (12, 1)
    with pytest.warns(ForecastWarning, match="season=100 is left out: a series has 120 steps"):
        assert SeriesSettings(season=100, **how).seasons_of(Y, ()) == (1, 1)
