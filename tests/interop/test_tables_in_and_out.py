"""The round trips of docs/howto/interop.md: pandas, and values with an index as darts has them."""

from __future__ import annotations

import numpy as np
import pytest

from echolearn import ESNForecaster

pd = pytest.importorskip("pandas")


def test_a_pandas_series_and_its_continuation():
    index = pd.date_range("2020-01-01", periods=120, freq="MS")
    sales = pd.Series(np.sin(np.arange(120) / 3), index=index, name="sales")
    esn = ESNForecaster(20, learn="none", washout=10).fit(sales.to_numpy())
    ahead = pd.date_range(sales.index[-1], periods=13, freq=sales.index.freq)[1:]
    forecast = pd.Series(esn.predict(12), index=ahead, name=sales.name)
    continued = pd.concat([sales, forecast])
    assert continued.index.equals(pd.date_range("2020-01-01", periods=132, freq="MS"))
    assert np.abs(forecast - np.sin(np.arange(120, 132) / 3)).max() < 0.2


class TimeSeries:
    """The part of a TimeSeries of darts that the recipe uses: values (n_steps, n_components) and an index."""

    def __init__(self, times, values):
        self.time_index, self._values = times, np.asarray(values).reshape(len(times), -1)
        self.freq = times.freq

    @classmethod
    def from_times_and_values(cls, times, values):
        return cls(times, values)

    def values(self):
        return self._values

    def end_time(self):
        return self.time_index[-1]


def test_values_with_an_index_as_darts_has_them():
    times = pd.date_range("2024-01-01", periods=150, freq="h")
    values = np.stack([np.sin(np.arange(150) / 3), np.cos(np.arange(150) / 4)], axis=1)
    series = TimeSeries(times, values)
    esn = ESNForecaster(30, learn="none", washout=10).fit(series.values())
    later = pd.date_range(series.end_time() + series.freq, periods=12, freq=series.freq)
    forecast = TimeSeries.from_times_and_values(later, esn.predict(12))
    assert forecast.values().shape == (12, 2)
    assert forecast.time_index[0] == pd.Timestamp("2024-01-07 06:00")
    again = esn.predict(12, warm_up=series.values())
    np.testing.assert_allclose(again, forecast.values(), atol=1e-8)
