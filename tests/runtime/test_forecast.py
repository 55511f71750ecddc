"""Closed loops of the runtime."""

import numpy as np
import pytest

import exported
from echolearn import ESNForecaster
from exported import assert_same


def test_forecasts(through_file):
    series = exported.SERIES
    exogenous = np.cos(np.arange(220) / 7)[:, None]
    one = ESNForecaster(20, learn="none", ridge=1e-3).fit(series)
    model = through_file(one)
    assert_same(model.forecast(6), one.predict(6))
    assert_same(model.forecast(6, series[:90]), one.predict(6, warm_up=series[:90]))
    with pytest.raises(TypeError, match="forecast"):
        model.predict(series[:, None])
    many = ESNForecaster(20, learn="none", ridge=1e-3).fit(
        [series, series[::-1].copy()], exogenous=[exogenous[:200]] * 2
    )
    model = through_file(many)
    assert_same(
        model.forecast(6, exogenous=[exogenous[200:206]] * 2), many.predict(6, exogenous=[exogenous[200:206]] * 2)
    )
    given = {"exogenous": exogenous[:106]}
    assert_same(model.forecast(6, series[:100], **given), many.predict(6, warm_up=series[:100], **given))
    for arguments, message in (
        ({}, "exogenous="),
        ({"exogenous": exogenous[:3]}, "one per step to come"),
        ({"exogenous": "no"}, "numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            model.forecast(6, **arguments)


def test_a_forecast_that_runs_away_is_reported(through_file, monkeypatch):
    model = through_file(exported.forecaster())
    model.forecast(20)
    monkeypatch.setattr("echolearn.runtime._forecast.MAX_FORECAST_DEVIATIONS", 0.5)
    with pytest.warns(UserWarning, match="runs away: after 1 steps"):
        model.forecast(20)
