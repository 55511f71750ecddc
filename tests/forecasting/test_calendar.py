"""Calendars: rows at their dates, gaps for dates without a row, and the dates to come, all as pandas has them."""

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from echolearn.exceptions import InputWarning
from echolearn.forecasting.calendar import Calendar, on_calendar

RNG = np.random.default_rng(0)
FREQUENCIES = [
    "D",
    "B",
    "W-WED",
    "MS",
    "ME",
    "QE",
    "QS-FEB",
    "YE",
    "BME",
    "2ME",
    "h",
    "15min",
    "1500ms",
    "6h",
    "SMS",
    "SME",
    "LWOM-FRI",
]


@pytest.mark.filterwarnings("ignore::echolearn.exceptions.InputWarning")
@pytest.mark.parametrize("frequency", [*FREQUENCIES, pd.DateOffset(months=1)])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin", "UTC"])
def test_rows_in_any_order_and_with_gaps_lie_on_the_calendar_of_pandas(frequency, zone):
    dates = pd.date_range("2020-01-15", periods=70, freq=frequency, tz=zone)
    for gaps in (0, 5):
        kept = np.sort(np.r_[0, 59, 1 + RNG.choice(58, 58 - gaps, replace=False)])
        rows = pd.Series(kept.astype(float), index=pd.DatetimeIndex(dates[kept].astype(object)), name="a")
        table, calendar = on_calendar(rows.sample(frac=1, random_state=1), "series")
        assert (table.index == dates[:60]).all()
        np.testing.assert_array_equal(np.flatnonzero(~table.isna()), kept)
        np.testing.assert_array_equal(table.dropna(), kept)
        assert (calendar.ahead(10) == dates[60:]).all()
        assert (calendar.after(3).ahead(7) == dates[63:]).all()
        assert Calendar(**json.loads(json.dumps(asdict(calendar)))) == calendar


def test_seasons_that_a_calendar_suggests():
    expected = {"h": [24, 168], "30min": [48, 336], "min": [60, 1440], "D": [7, 365]}
    expected |= {"B": [5, 261], "W": [52], "ME": [12], "YS": []}
    for frequency, seasons in expected.items():
        _, calendar = on_calendar(pd.Series(0.0, index=pd.date_range("2020", periods=30, freq=frequency)), "series")
        assert calendar.seasons[: len(seasons)] == seasons
    _, periods = on_calendar(pd.Series(0.0, index=pd.period_range("2020", periods=9, freq="Q")), "series")
    assert periods.seasons == [4]
    assert Calendar("dates", "9950-01-01", step="YS").seasons == []  # pandas has no dates after 9999; some units, 2262
    assert Calendar("dates", "9950-01-01", step="QS").seasons == [4]
    assert str(periods.ahead(1)[0]) == "2022Q2"


def test_distances_that_repeat_and_numbers_are_continued():
    weeks = pd.to_datetime("2023-01-01") + pd.to_timedelta(7 * np.cumsum(np.resize([4, 4, 5], 25)), unit="D")
    _, calendar = on_calendar(pd.Series(0.0, index=weeks[:20]), "series")
    assert (calendar.ahead(5) == weeks[20:]).all()
    assert (calendar.after(2).ahead(3) == weeks[22:]).all()
    assert calendar.seasons == [12]
    _, years = on_calendar(pd.Series(0.0, index=range(1990, 2010)), "series")
    assert years.ahead(2).tolist() == [2010, 2011]


def test_a_day_counted_in_another_zone():
    days = pd.date_range("2023-03-01", periods=40, freq="D", tz="UTC").tz_convert("US/Eastern")
    _, calendar = on_calendar(pd.Series(0.0, index=days[:30]), "series")
    assert (calendar.ahead(10) == days[30:]).all()


def test_zones_without_a_name_are_refused():
    days = pd.date_range("2023-03-01", periods=40, freq="D", tz="dateutil/Europe/Berlin")
    with pytest.raises(ValueError, match=r"series: the zone tzfile.* has no name. Give it one, for example index.tz_c"):
        on_calendar(pd.Series(0.0, index=days), "series")
    _, calendar = on_calendar(pd.Series(0.0, index=days.tz_convert("Europe/Berlin")), "series")
    assert calendar.ahead(1)[0] == days[-1] + pd.DateOffset(days=1)


def test_no_row_between_the_dates_of_a_calendar_is_dropped():
    months = pd.PeriodIndex(pd.period_range("2020-01", periods=12, freq="M"), freq="2M")
    with pytest.warns(InputWarning, match="not at equal distances"):
        table, _ = on_calendar(pd.Series(np.arange(12.0), index=months), "series")
    assert len(table) == 12


def test_dates_as_text_and_dates_that_lie_on_no_calendar():
    table, calendar = on_calendar(pd.Series([3.0, 2, 1], index=["2020-01-03", "2020-01-02", "2020-01-01"]), "series")
    assert table.tolist() == [1, 2, 3]
    assert str(calendar.ahead(1)[0]) == "2020-01-04 00:00:00"
    with pytest.raises(ValueError, match=r"series: its index holds dates as text, such as '31.01.2020'"):
        on_calendar(pd.Series([1.0, 2], index=["31.01.2020", "28.02.2020"]), "series")
    with pytest.raises(ValueError, match=r"two rows have the date 2020-01-01.*ambiguous='infer'"):
        on_calendar(pd.Series([1.0, 2], index=pd.to_datetime(["2020-01-01", "2020-01-01"])), "series")
    odd = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-09", "2020-03-01", "2020-03-02"])
    with pytest.warns(InputWarning, match="not at equal distances"):
        _, calendar = on_calendar(pd.Series(0.0, index=odd), "series")
    assert calendar.ahead(2).tolist() == [5, 6]
