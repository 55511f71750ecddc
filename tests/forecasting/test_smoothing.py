"""Exponential smoothing against plain loops, its search for parameters, and the weights of members."""

import numpy as np
import pytest

from echolearn import ESNForecaster
from echolearn.forecasting._loops import mean_squared_error
from echolearn.forecasting.smoothing import (
    MAX_LAGS,
    Kind,
    Smoothing,
    autoregression,
    errors_ahead,
    fit_member,
    fit_smoothing,
    is_intermittent,
    kinds_for,
    member_weights,
    start_of,
    weighted_median,
)

RNG = np.random.default_rng(0)
P = np.array([[0.3, 0.1, 0.2, 0.15, 0.9, 1.5, 0.0], [0.5, 0.0, 0.1, 0.0, 1.0, 0.02, 0.0]])
A = np.zeros((2, MAX_LAGS))
A[0, :3] = 0.4, 0.0, -0.2
LOGS = np.array([False, True])
Y = 20 + np.cumsum(RNG.normal(size=40)) + 3 * np.sin(np.arange(40) * 2 * np.pi / 4)
Y[17] = np.nan


def members(weights=(0.25, 0.75)):
    """Two members at step 3; the second has no second season."""
    rng = np.random.default_rng(1)
    L, R, S1 = np.array([[20.0, 0.2], [3.0, 0.0]]), np.zeros((2, MAX_LAGS)), rng.normal(size=(2, 4)) * 0.1
    R[0, :3] = 0.1, -0.3, 0.2
    which = np.array([2, 0]), np.array([True, False])
    return Smoothing(P, A, LOGS, *which, np.array(weights), L, R, S1, np.zeros((2, 6)), 3)


def by_hand(y, p, a, log, start, time, horizon):
    """The recursion, one member, in words."""
    (level, trend), rests, s1, s2 = start[0], list(start[1]), list(start[2]), list(start[3])
    alpha, beta, g1, g2, phi, most, _ = p
    rows = []
    for t, v in enumerate(y):
        v = np.log(v) if log else v
        now = time + t
        level, trend = level + phi * trend, phi * trend
        expected = a @ rests
        new = 0.0 if np.isnan(v) else v - level - s1[now % 4] - s2[now % 6] - expected
        cut = np.clip(new, -most, most)
        level, trend, rests = level + alpha * new, trend + beta * cut, [expected + cut, *rests[:-1]]
        s1[now % 4] += g1 * cut
        s2[now % 6] += g2 * cut
        row, ahead = [], rests
        for h in range(1, horizon + 1):
            growth = sum(phi**i for i in range(1, h + 1))
            ahead = [a @ ahead, *ahead[:-1]]
            f = level + growth * trend + s1[(now + h) % 4] + s2[(now + h) % 6] + ahead[0]
            row.append(np.exp(f) if log else f)
        rows.append(row)
    return np.array(rows)


def test_the_compiled_recursion_is_the_plain_one():
    F, end = members().advance(Y, 5)
    start = members()
    for k in range(2):
        expected = by_hand(Y, P[k], A[k], LOGS[k], (start.L[k], start.R[k], start.S1[k], start.S2[k]), 3, 5)
        np.testing.assert_allclose(F[:, k], expected, rtol=1e-12)
    assert end.time == 43
    np.testing.assert_allclose(end.forecast(5), weighted_median(F[-1:], members().weights)[0], rtol=1e-12)


def test_in_pieces_as_in_one():
    whole, end = members().advance(Y, 3)
    first, middle = members().advance(Y[:11], 3)
    second, last = middle.advance(Y[11:], 3)
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)
    np.testing.assert_array_equal(last.S1, end.S1)


def test_the_error_of_the_search_is_that_of_the_forecasts():
    start = (20.0, 0.1, np.array([0.5, -0.5, 0.2, -0.2]), np.zeros(6))
    L, R, S1, S2 = np.array([[20.0, 0.1]]), np.zeros((1, MAX_LAGS)), start[2][None], start[3][None]
    one = Smoothing(P[:1], 0 * A[:1], LOGS[:1], np.array([2]), np.array([True]), np.ones(1), L, R, S1, S2, 0)
    F, _ = one.advance(Y, 5)
    E = errors_ahead(Y, F[:, 0])[7:]
    assert mean_squared_error(Y, P[0], *start, 5, 7, 1) == pytest.approx(np.nanmean(E**2))


def test_parameters_of_a_random_walk_and_of_noise_about_a_level():
    walk, noise = np.cumsum(RNG.normal(size=400)), RNG.normal(size=400)
    assert fit_member(walk, Kind("none", ahead=False), (1, 1), 8)[0][0] > 0.8
    assert fit_member(noise, Kind("none", ahead=False), (1, 1), 8)[0][0] < 0.2


def test_trend_and_season_learn_from_no_odd_value():
    walk = np.cumsum(np.random.default_rng(1).normal(size=200))
    most = fit_member(walk, Kind("damped"), (1, 1), 8)[0][5]
    assert most == pytest.approx(8 * np.median(np.abs(np.diff(walk))))
    odd = walk.copy()
    odd[100] += 1e6
    assert fit_member(odd, Kind("damped"), (1, 1), 8)[0][5] == pytest.approx(most, rel=0.1)


def test_a_line_and_a_season_start_where_they_are():
    t = np.arange(48)
    level, trend, s1, _ = start_of(5 + 2.0 * t + np.tile([3.0, -1, -1, -1], 12), "damped", 4, 1)
    assert trend == pytest.approx(2.0)
    assert level == pytest.approx(3.0)  # one step before the first value
    np.testing.assert_allclose(s1, [3, -1, -1, -1], atol=1e-9)


def test_the_weight_goes_to_the_member_that_was_good_lately():
    y = np.arange(60.0)
    F = np.stack([y + 1, y + 3, np.where(y < 40, y + 1, y + 1.5)], axis=1)[:, :, None]
    late, ever = member_weights(y, F + 0.1, 40), member_weights(y, F + 0.1, 0)
    assert late[0] > late[2] > late[1]
    assert late[2] / late[0] < 0.75 * ever[2] / ever[0]


def test_short_series_trust_errors_less_and_fit_one_step_ahead():
    long, short = (np.arange(float(n)) for n in (80, 16))
    weights = [member_weights(y, np.stack([y + 0.1, y - 1.5], axis=1)[:, :, None], 5) for y in (long, short)]
    assert weights[1][1] > weights[0][1] > 0
    assert {k.ahead for k in kinds_for(short, (1, 1), None, None)} == {False}
    assert True in {k.ahead for k in kinds_for(long, (1, 1), None, None)}


def test_a_member_that_goes_astray_moves_the_median_little():
    F = np.stack([np.full((1, 4), v) for v in (1.0, 2.0, 3.0, 1e9)], axis=1)
    np.testing.assert_allclose(weighted_median(F, np.full(4, 0.25)), 2.5)
    np.testing.assert_allclose(weighted_median(F, np.array([0.3, 0.3, 0.3, 0.1])), 13 / 6)
    np.testing.assert_array_equal(weighted_median(F, np.array([0.0, 1, 0, 0])), 2.0)


def test_which_members_there_are():
    assert {k.log for k in kinds_for(np.array([1.0, 2]), (1, 1), None, None)} == {False, True}
    assert {k.log for k in kinds_for(np.array([0.0, 2]), (1, 1), None, None)} == {False}
    assert {k.trend for k in kinds_for(np.arange(9.0), (1, 1), None, False)} == {"none"}
    assert {k.trend for k in kinds_for(np.arange(90.0), (1, 1), None, False)} == {"none"}
    assert {k.trend for k in kinds_for(np.arange(90.0), (1, 1), None, True)} == {"theta", "damped"}
    assert "fixed" not in {k.trend for k in kinds_for(np.arange(59.0), (1, 1), None, None)}
    assert any(k.second for k in kinds_for(np.arange(9.0), (4, 8), None, None))


def test_a_line_with_a_season_is_continued():
    t = np.arange(60)
    y = 10 + 0.5 * t + 4 * np.sin(2 * np.pi * t / 12)
    _, C = fit_smoothing(y[:48], (12, 1), 12)
    np.testing.assert_allclose(C[-1], y[48:], atol=0.7)


@pytest.mark.parametrize("seed", range(4))
def test_counts_with_many_zeros_are_forecast_by_their_rate(seed):
    rng = np.random.default_rng(seed)
    counts = rng.binomial(1, 0.3, size=240) * (1.0 + rng.poisson(2, size=240))
    forecast = ESNForecaster(10, method="direct").fit(counts).predict(12)
    np.testing.assert_allclose(forecast, forecast[0], rtol=0.02)
    assert forecast.mean() == pytest.approx(counts[-120:].mean(), rel=0.5)
    assert is_intermittent(counts)
    assert not is_intermittent(counts - 1)
    assert not is_intermittent(counts + 1)


def test_an_autoregression_is_that_of_the_process():
    """The coefficients of a process of order two, of its sum, and of noise are found."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=3000)
    for t in range(2, 3000):
        x[t] += 1.2 * x[t - 1] - 0.5 * x[t - 2]
    of_values, of_changes = autoregression(x, changes=False), autoregression(np.cumsum(x), changes=True)
    np.testing.assert_allclose(of_values[:2], [1.2, -0.5], atol=0.05)
    np.testing.assert_allclose(of_changes[:3], np.convolve([1, -1.2, 0.5], [1, -1])[1:] * -1, atol=0.1)
    assert of_changes.sum() == pytest.approx(1)  # a level is continued
    order = np.flatnonzero(of_values)[-1] + 1
    lags = np.stack([x[50 - i : -i] for i in range(1, order + 1)], axis=1)
    np.testing.assert_allclose(of_values[:order], np.linalg.lstsq(lags, x[50:], rcond=None)[0], rtol=1e-5)
    np.testing.assert_allclose(autoregression(1e-9 * x, changes=False), of_values)
    assert np.abs(autoregression(rng.normal(size=400), changes=False)).sum() < 0.5
    assert not autoregression(np.zeros(60), changes=False).any()


def test_autoregressions_forecast_waves_and_weigh_more_in_long_series():
    """Two waves that no season describes; smoothing alone is off by most of their height."""
    t = np.arange(700)
    y = 5 + np.sin(t / 5.3) + np.sin(t / 8.9) + 0.05 * np.random.default_rng(0).normal(size=700)
    members, C = fit_smoothing(y[:600], (1, 1), 24)
    fixed = members.A.any(axis=1)
    assert members.weights[fixed].sum() > 0.9
    assert np.abs(C[-1] - y[600:624]).mean() < 0.2
    noise = np.random.default_rng(1).normal(size=600)
    shares = [fit_smoothing(noise[:n], (1, 1), 8)[0] for n in (75, 600)]
    short, long = (one.weights[one.trends == 3].sum() for one in shares)
    assert short < 0.35 < 0.6 < long
