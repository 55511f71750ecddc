"""Seasons of time indices and of values; dates that are out of order or missing."""

import numpy as np
import pandas as pd
import pytest

from echolearn import ESNForecaster
from echolearn.exceptions import InputWarning
from echolearn.forecasting.seasons import find_seasons, seasons_of_index

RNG = np.random.default_rng(1)


def test_seasons_of_indices_and_of_values():
    for frequency, seasons in (("MS", (12, 1)), ("QS", (4, 1)), ("D", (7, 1)), ("h", (24, 168)), ("YS", (1, 1))):
        assert seasons_of_index(pd.date_range("2020", periods=20, freq=frequency)) == seasons
    assert seasons_of_index(pd.period_range("2020", periods=20, freq="M")) == (12, 1)
    assert seasons_of_index(pd.RangeIndex(20)) is None
    t = np.arange(120)
    wave = np.sin(2 * np.pi * t / 12) + 0.3 * RNG.normal(size=120)
    assert find_seasons(wave, None) == (12, 1)
    assert find_seasons(wave, (12, 1)) == (12, 1)
    assert find_seasons(RNG.normal(size=120), None) == (1, 1)
    assert find_seasons(np.cumsum(RNG.normal(size=120)), (12, 1)) == (1, 1)


def test_dates_that_run_backwards_are_refused_and_missing_ones_reported():
    t = np.arange(72)
    sales = pd.Series(100 + t + 10 * np.sin(2 * np.pi * t / 12), index=pd.date_range("2018-01", periods=72, freq="MS"))
    with pytest.raises(ValueError, match="do not increase"):
        ESNForecaster().fit(sales[::-1])
    with pytest.warns(InputWarning, match="missing at 2 places"):
        ESNForecaster().fit(sales.drop(sales.index[[20, 40]]))
    days = pd.Series(np.sin(t), index=pd.bdate_range("2024-01-01", periods=72))
    ESNForecaster().fit(days)  # without a warning
