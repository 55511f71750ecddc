"""Seasons: those that a calendar suggests, and others; lines and random walks have none."""

import numpy as np
import pytest

from echolearn.forecasting.seasons import find_seasons, is_seasonal

T = np.arange(120)


def draws(kind, count=200):
    """Series without a season."""
    for seed in range(count):
        noise = np.random.default_rng(seed).normal(size=120)
        yield {"noise": noise, "line": T + noise, "walk": np.cumsum(noise), "smooth": np.cumsum(np.cumsum(noise))}[kind]


@pytest.mark.parametrize("kind", ["noise", "line", "walk", "smooth"])
def test_what_has_no_season_is_called_seasonal_about_as_often_as_chance_allows(kind):
    assert np.mean([is_seasonal(y, 12) for y in draws(kind)]) < 0.1
    assert np.mean([find_seasons(y) != (1, 1) for y in draws(kind)]) < 0.1


@pytest.mark.parametrize("kind", ["noise", "line", "walk"])
@pytest.mark.parametrize("usual", [4, 12])
def test_a_calendar_makes_false_seasons_no_more_frequent(kind, usual):
    """Two tests at 5 % each, and peaks of changes, once found a season in 12 to 16 % of quarterly noise."""
    found = [find_seasons(y[:n], (usual,)) != (1, 1) for y in draws(kind) for n in (60, 120)]
    assert np.mean(found) < 0.07


def test_lines_without_noise_have_no_season():
    assert not any(is_seasonal(slope * T, m) for slope in (1.0, 0.1, 1e9) for m in (4, 7, 12))


@pytest.mark.parametrize("usual", [(), (12,), (7, 365)])
def test_a_season_is_found_whatever_the_calendar_suggests(usual):
    rng = np.random.default_rng(1)
    wave = 2 * np.sin(2 * np.pi * T / 12)
    for trend in (0, 0.3 * T, 0.5 * np.cumsum(rng.normal(size=120))):
        assert find_seasons(wave + trend + 0.3 * rng.normal(size=120), usual)[0] == 12


def test_two_seasons_with_and_without_a_calendar():
    t, rng = np.arange(7 * 24 * 5), np.random.default_rng(2)
    day, week = rng.normal(size=24), rng.normal(size=7).repeat(24)
    y = 3 * np.resize(day, len(t)) + 3 * np.resize(week, len(t)) + 0.3 * rng.normal(size=len(t))
    assert find_seasons(y, (24, 168)) == (24, 168)
    assert find_seasons(y) == (24, 168)


def test_a_strong_season_is_found_in_three_repetitions():
    """Its correlations at all lags hide it from the test of one lag; without a season, at most one in twenty passes."""
    t, passed = np.arange(40), 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        assert find_seasons(100 + 10 * np.sin(t * np.pi / 6) + rng.normal(size=40), [12])[0] == 12
        walk = np.cumsum(rng.normal(size=40))
        passed += is_seasonal(walk, 12) + is_seasonal(walk + t, 12)
    assert passed <= 4


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**900])
def test_seasons_do_not_depend_on_the_scale(scale):
    rng = np.random.default_rng(2)
    y = 50 + np.tile(5 * rng.normal(size=12), 3) + rng.normal(size=36)
    assert find_seasons(scale * y, (12,)) == find_seasons(y, (12,)) == (12, 1)


def test_a_season_that_changes_slowly_is_not_two_seasons():
    """What it leaves repeats after two days, but better after one: the second day is no season of its own."""
    t, rng = np.arange(30 * 24), np.random.default_rng(3)
    day = np.resize(rng.normal(size=24), len(t)) * (1 + t / len(t))
    assert find_seasons(day + 0.1 * rng.normal(size=len(t))) == (24, 1)


def test_a_part_of_the_shape_of_a_season_is_not_a_season():
    """Three peaks of a day, four hours apart, repeat after four hours by day alone; the day repeats, and the week."""
    t, rng = np.arange(4 * 168), np.random.default_rng(4)
    hour, weekday = t % 24, t // 24 % 7
    peaks = sum(np.exp(-((hour - at) ** 2)) for at in (8, 12, 16)) + 0.5 * (np.abs(hour - 12) < 7)
    y = peaks * (1 - 0.5 * (weekday > 4)) + 0.05 * rng.normal(size=len(t))
    assert find_seasons(y) == (24, 168)
