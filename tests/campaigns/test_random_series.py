"""The short form of reliability/random_series.py: a few series, and that its checks can fail."""

import pytest

from reliability import random_series


@pytest.mark.parametrize("seed", range(8))
def test_nothing_that_should_not_matter_changes_a_forecast(seed):
    found = random_series.outcome(seed)
    assert "wrong" not in found["found"].values(), str(found)
    assert 0 <= found["inside"][0] <= found["inside"][1] <= 1


def test_every_frequency_has_its_dates():
    for frequency in random_series.FREQUENCIES:
        dates = random_series.dates_of(frequency, 70, None)
        assert dates.is_monotonic_increasing
        assert len(dates.unique()) == 70


def test_a_forecast_that_depends_on_units_is_found(monkeypatch):
    forecast = random_series.forecast
    monkeypatch.setattr(random_series, "forecast", lambda *of, **how: 1.1 * forecast(*of, **how))
    assert random_series.outcome(0)["found"]["units"] == "wrong"
