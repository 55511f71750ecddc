"""The direct model: forecasts along a series are those after each of its values; corrections fade, errors widen."""

from dataclasses import replace

import numpy as np
import pytest

from echolearn import ESNForecaster
from echolearn.exceptions import ForecastWarning
from echolearn.forecasting.direct_model import (
    CORRECTION_DECAY_PER_STEP,
    MAX_INPUT_DEVIATIONS,
    SeriesSettings,
    default_horizon,
    exogenous_effects,
    fit_column,
    independent_errors,
    network_inputs,
    typical_step,
    widening,
)

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


DRAWN = np.random.default_rng(2)
STEPS = np.arange(80)
VALUES = 30 + 0.2 * STEPS + 4 * np.sin(2 * np.pi * STEPS / 8) + 0.3 * DRAWN.normal(size=80)
NO_INPUTS = np.empty((80, 0))
TRACK = fit_column(VALUES, NO_INPUTS, (8, 1), 6)
COLUMN = TRACK.end


def test_a_column_is_followed_in_pieces_as_in_one():
    start = COLUMN.begin(VALUES)
    whole = start.follow(VALUES, 6)
    first = start.follow(VALUES[:33], 6)
    second = first.end.follow(VALUES[33:], 6)
    for name in ("z", "G", "inputs"):
        pieces = np.concatenate([getattr(first, name), getattr(second, name)])
        np.testing.assert_allclose(pieces, getattr(whole, name), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(whole.inputs, TRACK.inputs)


def test_errors_grow_with_the_horizon_and_are_about_the_noise():
    errors = np.abs(VALUES[1:] - np.exp(TRACK.G[:-1, 0]) if COLUMN.log else VALUES[1:] - TRACK.G[:-1, 0])
    assert 0.1 < errors[30:].mean() < 1.0
    assert COLUMN.spread.shape == (6,)
    assert (COLUMN.spread > 0).all()


def test_effects_of_exogenous_inputs():
    E = DRAWN.normal(size=(80, 2))
    np.testing.assert_allclose(exogenous_effects(VALUES + E @ [5.0, -2.0], E, 8), [5, -2], atol=0.3)
    assert exogenous_effects(VALUES, NO_INPUTS, 8).shape == (0,)


def test_inputs_are_cut_and_know_the_phase_of_the_season():
    inputs = network_inputs([replace(TRACK, end=replace(COLUMN, input_scale=np.full(3, 1e-9)))])
    assert inputs.shape == (80, 5)
    assert np.abs(inputs[:, :3]).max() == MAX_INPUT_DEVIATIONS
    np.testing.assert_allclose(inputs[:, 3], np.sin(2 * np.pi * STEPS / 8), atol=1e-12)


def test_steps_of_known_neighbours():
    assert typical_step(np.array([0.0, 3.0, np.nan, 5.0, 1.0])) == np.sqrt((9 + 16) / 2)
    assert typical_step(np.array([1.0, np.nan])) == 0


def test_errors_of_a_walk_say_less_than_as_many_of_noise():
    """Errors six steps ahead of a walk have five steps in common with those of the next origin."""
    steps = np.random.default_rng(0).normal(size=406)
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    of_walk = np.stack([walk[h : 401 + h] - walk[:401] for h in range(1, 7)], axis=1)
    of_noise = np.stack([steps[h : 400 + h] for h in range(6)], axis=1)
    of_walk[5, 2] = np.nan
    np.testing.assert_allclose(independent_errors(of_noise), 400, rtol=0.05)
    shared = [1 + 2 * sum((1 - k / h) ** 2 for k in range(1, h)) for h in range(1, 7)]
    np.testing.assert_allclose(independent_errors(of_walk), 401 / np.array(shared), rtol=0.15)
    assert widening(of_walk)[5] > widening(of_walk)[0] > 1
    assert widening(of_walk[:40])[5] > widening(of_walk)[5]
    assert np.isfinite(widening(np.full((2, 3), np.nan))).all()
