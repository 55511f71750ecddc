"""Members of smoothing: which there are, and their weights."""

import numpy as np
import pytest

from echolearn import ESNForecaster
from echolearn.forecasting.members import fit_smoothing, is_intermittent, kinds_for, member_weights
from echolearn.forecasting.smoothing import weighted_median


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
    assert "none" not in {k.trend for k in kinds_for(np.arange(9.0), (1, 1), None, True)}
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
