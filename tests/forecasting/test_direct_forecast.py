"""Direct forecasts of an ESNForecaster: trend, season, gaps, many series, intervals, updates."""

import numpy as np
import pandas as pd
import pytest

from echolearn import ESNForecaster, load
from echolearn.datasets import mackey_glass
from echolearn.exceptions import ExportError
from toys import grouped

RNG = np.random.default_rng(3)
T = np.arange(132)
SALES = (100 + T) * (1 + 0.3 * np.sin(2 * np.pi * T / 12)) * np.exp(0.03 * RNG.normal(size=132))
MONTHS = pd.Series(SALES, index=pd.date_range("2010", periods=132, freq="MS"))
SMALL = {"hidden_units": 20}
ESN = ESNForecaster(**grouped(SMALL)).fit(MONTHS[:120])


def test_the_season_of_the_index_and_the_horizon_of_two_seasons():
    assert ESN.method_ == "direct"
    assert ESN.season_ == (12, 1)
    assert ESN.horizon_ == 24


def test_trend_and_season_are_continued():
    truth, last_year = SALES[120:], SALES[108:120]
    error = np.abs(ESN.predict(12) - truth).mean()
    assert error < 0.6 * np.abs(last_year - truth).mean()
    without = ESNForecaster(season=None, method="direct", **grouped(SMALL)).fit(MONTHS[:120])
    assert without.season_ == (1, 1)
    assert error < 0.7 * np.abs(without.predict(12) - truth).mean()
    assert ESN.predict(40).shape == (40,)
    np.testing.assert_array_equal(ESN.predict(40)[:24], ESN.predict(24))


def test_small_integers_of_numpy_are_numbers_like_any_other():
    values = MONTHS[:120].to_numpy()
    esn, same = (ESNForecaster(kind(20), horizon=kind(2), season=kind(12)).fit(values) for kind in (np.uint8, int))
    np.testing.assert_array_equal(esn.predict(12), same.predict(12))


def test_units_of_a_series_do_not_matter():
    other = ESNForecaster(**grouped(SMALL)).fit(8.0 * MONTHS[:120])
    np.testing.assert_allclose(other.predict(12), 8.0 * ESN.predict(12), rtol=1e-6)


def test_an_update_continues_and_equals_a_warm_up():
    at_once, in_steps = (ESNForecaster(**grouped(SMALL)).fit(MONTHS[:120]) for _ in range(2))
    at_once.update(SALES[120:])
    for value in SALES[120:]:
        in_steps.update(value)
    np.testing.assert_allclose(at_once.predict(5), in_steps.predict(5), rtol=1e-9)
    assert not np.allclose(at_once.predict(5), ESN.predict(5))
    np.testing.assert_allclose(ESN.predict(5, warm_up=SALES[:120]), ESN.predict(5), rtol=1e-9)
    stream, before = ESN.stream(), ESN.predict(5)
    np.testing.assert_allclose(stream.predict(SALES[120:], 5), at_once.predict(5), rtol=1e-9)
    np.testing.assert_array_equal(ESN.predict(5), before)


def test_gaps_are_bridged():
    gaps = MONTHS[:120].copy()
    gaps.iloc[[30, 31, 77, 119]] = np.nan
    esn = ESNForecaster(**grouped(SMALL)).fit(gaps)
    error = np.abs(esn.predict(12) - SALES[120:]).mean()
    assert error < 0.5 * np.abs(SALES[108:120] - SALES[120:]).mean()
    esn.update([np.nan, SALES[121]])
    assert np.isfinite(esn.predict(3)).all()
    assert np.isfinite(esn.score(gaps))


def test_many_series_keep_their_own_scale():
    esn = ESNForecaster(season=12, **grouped(SMALL)).fit([SALES[:120], 1000 * SALES[20:110], 5 + SALES[::-1]])
    first, second, third = esn.predict(6)
    assert first.shape == second.shape == third.shape == (6,)
    assert 1000 * SALES.min() < second.min()
    np.testing.assert_allclose(first, SALES[120:126], rtol=0.15)
    two = ESNForecaster(**grouped(SMALL)).fit(np.stack([SALES, SALES[::-1]], axis=1))
    assert two.predict(4).shape == (4, 2)
    lower, upper = two.forecast_interval(4)
    assert (lower < upper).all()
    assert two.forecast_paths(4, 7).shape == (7, 4, 2)


def test_exogenous_inputs_known_ahead():
    push = RNG.binomial(1, 0.2, size=(132, 1)).astype(float)
    series = SALES + 60 * push[:, 0]
    esn = ESNForecaster(method="direct", season=12, **grouped(SMALL)).fit(series[:120], exogenous=push[:120])
    with_push, without = esn.predict(12, exogenous=np.ones((12, 1))), esn.predict(12, exogenous=np.zeros((12, 1)))
    np.testing.assert_allclose(with_push - without, 60, atol=15)
    assert np.abs(esn.predict(12, exogenous=push[120:]) - series[120:]).mean() < 15


def test_intervals_of_short_noisy_series_cover():
    """120 points: 90 % intervals that resampled one-step residuals covered 0 to 77 %."""
    inside = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x = np.cumsum(rng.normal(size=132)) + 5 * np.sin(2 * np.pi * T / 12)
        esn = ESNForecaster(season=12, method="direct", **grouped(SMALL)).fit(x[:120])
        lower, upper = esn.forecast_interval(12, 0.9)
        inside.append(((x[120:] >= lower) & (x[120:] <= upper)).mean())
    assert 0.8 < np.mean(inside) <= 1.0
    narrow, wide = (np.subtract(*esn.forecast_interval(12, c)[::-1]) for c in (0.5, 0.9))
    assert (narrow < wide).all()
    assert wide[-1] > wide[0]


def test_intervals_hold_what_they_announce():
    """Errors of walks count as few, those of noise as many: of a year's season with a walk 71 % were held before."""
    walks, noises = [], []
    for seed in range(60):
        rng = np.random.default_rng([1, seed])
        noise = rng.normal(size=96)
        wave = np.resize(2 * rng.normal(size=12), 96)
        for y, held in ((wave + 0.05 * T[:96] + 0.3 * np.cumsum(noise), walks), (noise, noises)):
            lower, upper = ESNForecaster(method="direct", **grouped(SMALL)).fit(y[:84]).forecast_interval(12, 0.8)
            held.append(((y[84:] >= lower) & (y[84:] <= upper)).mean())
    assert 0.76 < np.mean(walks) < 0.86
    assert 0.76 < np.mean(noises) < 0.86


def test_paths_spread_as_the_intervals():
    paths = ESN.forecast_paths(12, 2000)
    assert paths.shape == (2000, 12)
    np.testing.assert_array_equal(paths, ESN.forecast_paths(12, 2000))
    lower, upper = map(np.asarray, ESN.forecast_interval(12, 0.8))
    inside = ((paths > lower) & (paths < upper)).mean()
    assert inside == pytest.approx(0.8, abs=0.06)
    of_loop = ESNForecaster(30, learn="none").fit(mackey_glass(500)[:, 0])
    assert of_loop.forecast_paths(6, 9).shape == (9, 6)


def test_the_score_is_the_error_of_predictions():
    """A score starts from the values of the washout, a warm-up from all, so only about."""
    esn, horizon = ESNForecaster(washout=50, **grouped(SMALL)).fit(MONTHS[:120]), 3
    origins = np.arange(51, 120 - horizon)  # the last known value
    forecasts = np.array([esn.predict(horizon, warm_up=SALES[: n + 1])[-1] for n in origins])
    truth = SALES[origins + horizon]
    nrmse = np.sqrt(((forecasts - truth) ** 2).sum() / ((truth - truth.mean()) ** 2).sum())
    assert esn.score(SALES[:120], horizon=horizon) == pytest.approx(-nrmse, rel=0.1)


def test_what_cannot_be_exported_is_refused(tmp_path):
    with pytest.raises(ExportError, match=r"direct forecasts .* method='closed_loop'"):
        ESN.export(tmp_path / "model.h")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ESNForecaster(method="loop").fit(SALES), "method='loop'"),
        (lambda: ESNForecaster().fit([1.0, 2.0, 3.0]), "series 0 has 3 known values; expected at least 4"),
        (lambda: ESNForecaster().fit(np.full(50, np.nan)), "only gaps"),
        (lambda: ESN.update(np.ones((2, 2))), "new: "),
        (lambda: ESN.update([np.ones(3), np.ones(3)]), "new has 2 series; expected 1"),
        (lambda: ESN.predict(3, warm_up=[1.0, 2.0]), "warm_up has 2 known values; expected at least 4"),
        (lambda: ESN.forecast_paths(3, 0), "n_paths=0"),
    ],
)
def test_bad_input_is_explained(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_same_seed_same_bits():
    np.testing.assert_array_equal(ESNForecaster(**grouped(SMALL)).fit(MONTHS[:120]).predict(12), ESN.predict(12))


def test_a_series_that_is_never_negative_has_no_negative_forecast(tmp_path):
    """Sales that fade out end at zero, unless logarithms are ruled out or a value was negative."""
    rng = np.random.default_rng(0)
    fading = np.maximum(60.0 - np.arange(70) + 4 * rng.normal(size=70), 0.0)
    esn, unbound = (ESNForecaster(20, method="direct", log=log).fit(fading) for log in ("auto", False))
    esn.save(tmp_path / "a.safetensors")
    for one in (esn, load(tmp_path / "a.safetensors")):
        assert min(one.predict(12).min(), one.forecast_paths(12, 50).min()) >= 0
        assert one.forecast_interval(12)[0].min() == 0 < one.forecast_interval(12)[1].min()
    assert unbound.forecast_interval(12)[0].min() < 0
    assert esn.forecast_interval(12, warm_up=fading)[0].min() == 0
    assert esn.forecast_interval(12, warm_up=fading - 1)[0].min() < 0
    assert esn.update([-1.0]).forecast_interval(12)[0].min() < 0
    assert ESNForecaster(20, method="direct").fit(fading - 1).forecast_interval(12)[0].min() < 0
