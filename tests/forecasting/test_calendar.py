"""Calendars of dates, against pandas."""

import numpy as np
import pandas as pd
import pytest

from echolearn.forecasting.calendar import regular_calendar


@pytest.mark.parametrize("frequency", ["D", "2D", "h", "6h", "15min", "MS", "ME", "3MS", "12MS", "B", "7D"])
def test_dates_without_rows_are_found_and_pandas_inserts_the_same(frequency):
    dates = pd.date_range("2023-01-31" if "ME" in frequency else "2023-02-01", periods=60, freq=frequency)
    left = dates.delete([7, 20, 21, 40])
    calendar = regular_calendar(left.to_numpy())
    assert calendar is not None
    assert calendar.frequency == frequency
    np.testing.assert_array_equal(calendar.dates, dates.to_numpy().astype("M8[s]"))
    series = pd.Series(1.0, left).asfreq(calendar.frequency)
    np.testing.assert_array_equal(series.index.to_numpy().astype("M8[s]"), calendar.dates)


def test_months_from_another_day():
    dates = np.array([f"2023-{month:02}-15" for month in (1, 2, 3, 5, 6)], "M8[s]")
    assert len(regular_calendar(dates).dates) == 6


def test_irregular_dates_have_no_calendar():
    days = np.array("2023-01-01", "M8[D]")
    assert regular_calendar(days + np.array([0, 1, 2, 3, 500])) is None  # far more gaps than rows
    hours = np.array("2023-01-01T00:00", "M8[m]") + np.array([0, 60, 121, 180, 240])
    assert regular_calendar(hours) is None
    assert regular_calendar(days + np.array([0, 1])) is None
