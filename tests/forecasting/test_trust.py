"""Forecasts do not depend on other series and columns, units, zones, the order of rows, or later values."""

import numpy as np
import pandas as pd
import pytest

from echolearn import ESNForecaster, load
from echolearn.datasets import mackey_glass
from echolearn.exceptions import ForecastWarning

T = np.arange(120)


def direct(**how):
    return ESNForecaster(10, method="direct", **how)


def drawn(seed, n=120, season=12):
    """A series with a level that walks, perhaps a trend, and a season."""
    rng = np.random.default_rng(seed)
    wave = rng.uniform(0, 3) * np.sin(2 * np.pi * np.arange(n) / season + rng.uniform(0, 6))
    return 20 + wave + rng.uniform(-0.1, 0.1) * np.arange(n) + np.cumsum(0.2 * rng.normal(size=n)) + rng.normal(size=n)


def test_a_closed_loop_learns_series_of_one_scale_and_refuses_others():
    chaos = mackey_glass(400)[:, 0]
    first, second = chaos[:200], chaos[200:]
    esn = ESNForecaster(20, method="closed_loop", learn="none")
    assert np.abs(esn.fit([first, second]).predict(1)[0] - chaos[200]) < 0.1
    for factor, shift in ((10.0, 0.0), (1e6, 0.0), (1.0, 100.0)):
        with pytest.raises(ValueError, match="series of the list differ in scale"):
            esn.fit([first, factor * second + shift])
    auto = ESNForecaster(20, learn="none").fit([first, 1000 * second])
    np.testing.assert_allclose(auto.predict(3)[0], ESNForecaster(20, method="direct").fit(first).predict(3))


@pytest.mark.parametrize("positive", [True, False])
def test_one_odd_last_value_is_reported_and_bounded(positive):
    for seed in range(5):
        y = 100 * positive + 3 * np.random.default_rng(seed).normal(size=60)
        y[-1] += 910
        with pytest.warns(ForecastWarning, match="the last known value, .* is far from what the series led to expect"):
            forecast = direct().fit(y).predict(12)
        assert np.abs(forecast - 100 * positive).max() < 950
    esn = direct().fit(y[:-1])
    with pytest.warns(ForecastWarning, match="the last known value"):
        esn.update(y[-1])
    assert np.abs(esn.predict(12) - 100 * positive).max() < 950


def test_intervals_and_paths_count_from_the_last_known_value():
    inside, shares = [], []
    for seed in range(20):
        y = np.cumsum(np.random.default_rng(seed).normal(size=140))
        gaps = np.r_[y[:120], np.full(8, np.nan)]
        whole, fitted = direct(season=None, trend=False).fit(y[:120]), direct(season=None, trend=False).fit(gaps)
        updated = direct(season=None, trend=False).fit(y[:120]).update(np.full(8, np.nan))
        truth = y[128:132]
        for esn in (fitted, updated):
            lower, upper = esn.forecast_interval(4, 0.9)
            inside.append((truth >= lower) & (truth <= upper))
        np.testing.assert_allclose(
            np.subtract(*updated.forecast_interval(4)), np.subtract(*whole.forecast_interval(12))[8:]
        )
        paths = updated.forecast_paths(4, 200)
        shares.append((paths > updated.forecast_interval(4, 0.9)[0]).mean())
    assert 0.8 < np.mean(inside) < 0.99
    assert 0.9 < np.mean(shares) < 0.99


def test_an_index_hides_no_season():
    rng = np.random.default_rng(0)
    for index, season in (
        (pd.bdate_range("2020-01-01", periods=130), 5),
        (pd.date_range("2020-01-01", periods=130, freq="D"), 10),
        (pd.date_range("2020-01-01", periods=130, freq="MS"), 7),
    ):
        y = 30 + np.resize(5 * rng.normal(size=season), 130) + 0.3 * rng.normal(size=130)
        plain, dated = direct().fit(y[:120]), direct().fit(pd.Series(y, index=index)[:120])
        assert plain.season_[0] == dated.season_[0] == season
        assert np.abs(np.asarray(dated.predict(10)) - y[120:]).mean() < 1


def test_an_index_gives_lines_and_random_walks_no_season():
    months = pd.date_range("2010", periods=120, freq="MS")
    seasonal = []
    for seed in range(8):
        noise = np.random.default_rng(seed).normal(size=120)
        for y in (T + 0.1 * noise, np.cumsum(noise)):
            seasonal.append(direct(log=False).fit(pd.Series(y, index=months)).season_ != (1, 1))
    assert np.mean(seasonal) < 0.25


def test_every_series_of_a_list_has_its_own_model():
    """Also in scores, after a warm-up, and whatever the length of the others: a short one sets no other's horizon."""
    a, b, short = drawn(0), 1e4 * drawn(1, season=7), drawn(2, 30)
    esn = direct().fit([a, b, short])
    scores = []
    for j, y in enumerate((a, b, short)):
        alone = direct().fit(y)
        np.testing.assert_array_equal(esn.predict(9)[j], alone.predict(9))
        np.testing.assert_array_equal(esn.forecast_paths(9, 5)[j], alone.forecast_paths(9, 5))
        for one, other in zip(esn.forecast_interval(9), alone.forecast_interval(9), strict=True):
            np.testing.assert_array_equal(one[j], other)
        np.testing.assert_array_equal(esn.predict(9, warm_up=[a, b, short])[j], alone.predict(9, warm_up=y))
        scores.append(alone.score(y))
    assert min(scores) < esn.score([a, b, short]) < max(scores)
    with pytest.raises(ValueError, match="warm_up has 1 series; expected 3, those of fit in their order"):
        esn.predict(3, warm_up=a)
    with pytest.raises(ValueError, match="series has 2 series; expected 3"):
        esn.score([a, b])


def test_every_column_has_its_own_season():
    a, b = drawn(3, season=12), drawn(4, season=7)
    ahead = direct().fit(np.stack([a, b], axis=1)).predict(14)
    swapped = direct().fit(np.stack([b, a], axis=1)).predict(14)
    np.testing.assert_allclose(swapped[:, ::-1], ahead, rtol=0.05)
    seasons = [c.members.seasons[0] for c in direct().fit(np.stack([a, b], axis=1)).forecast_.models[0].columns]
    assert seasons == [direct().fit(a).season_[0], direct().fit(b).season_[0]]


@pytest.mark.parametrize("how", ["plain", "zone", "text", "later", "exogenous"])
def test_rows_are_taken_by_their_dates(how):
    zone = "Europe/Berlin" if how == "zone" else None
    days = pd.date_range("2023-01-01", periods=120, freq="D", tz=zone)
    push = pd.DataFrame({"push": np.random.default_rng(1).normal(size=120)}, index=days)
    y = pd.Series(drawn(5, season=7) + 3 * push["push"], index=days)
    if how == "text":
        y.index = y.index.strftime("%Y-%m-%d")
    mixed = y.sample(frac=1, random_state=0)
    if how == "exogenous":
        ahead = {"exogenous": np.zeros((5, 1))}
        whole = direct().fit(y, exogenous=push).predict(5, **ahead)
        other = direct().fit(y, exogenous=push.sample(frac=1, random_state=1)).predict(5, **ahead)
        with pytest.raises(ValueError, match="exogenous has no row for 2023-04-30 00:00:00"):
            direct().fit(y, exogenous=push[:-1])
    elif how == "later":
        whole, other = direct().fit([y, y]).predict(5)[1], direct().fit([y, mixed]).predict(5)[1]
    else:
        whole, other = direct().fit(y).predict(5), direct().fit(mixed).predict(5)
    pd.testing.assert_series_equal(whole, other)
    if how != "text":
        assert (whole.index == days[-1] + pd.to_timedelta(np.arange(1, 6), unit="D")).all()


@pytest.mark.parametrize("named", ["series", "exogenous"])
def test_columns_in_another_order_are_refused_also_beside_arrays(named, tmp_path):
    """Names of exogenous inputs are checked where the series has none, and the other way round, also from a file."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    pair = {"series": rng.normal(size=(80, 2)), "exogenous": rng.normal(size=(80, 2))} | {named: table}
    esn = direct().fit(**pair)
    esn.save(tmp_path / "model.safetensors")
    later = {name: rows[:5] for name, rows in pair.items()}
    for one in (esn, load(tmp_path / "model.safetensors")):
        swapped = later | {named: table[["b", "a"]][:5]}
        with pytest.raises(ValueError, match=r"has the columns \['b', 'a'\]; expected those of the fit"):
            one.update(swapped["series"], exogenous=swapped["exogenous"])
        assert np.shape(
            one.update(later["series"], exogenous=later["exogenous"]).predict(5, exogenous=later["exogenous"])
        ) == (5, 2)


def test_exogenous_rows_of_an_update_are_taken_by_their_dates():
    days = pd.date_range("2023-01-01", periods=130, freq="D")
    push = pd.DataFrame({"push": np.random.default_rng(1).normal(size=130)}, index=days)
    y = pd.Series(drawn(5, 130, season=7) + 3 * push["push"], index=days)
    mixed = push[120:126].sample(frac=1, random_state=0)
    plain, dated = (direct().fit(y[:120], exogenous=push[:120]) for _ in range(2))
    plain.update(y[120:126], exogenous=push[120:126])
    dated.update(y[120:126], exogenous=mixed)
    ahead = {"exogenous": push[126:129]}
    np.testing.assert_array_equal(plain.predict(3, **ahead), dated.predict(3, **ahead))
    with pytest.raises(ValueError, match="exogenous has no row for 2023-05-07"):
        plain.update(y[126:128], exogenous=push[110:112])
    gaps = direct().fit(y[:120], exogenous=push[:120]).update(y[123:126], exogenous=push[120:126])
    assert gaps.predict(1, exogenous=push[126:127]).index[0] == days[126]


def test_years_of_an_update_follow_those_of_the_series():
    years = pd.Series(drawn(0, 50), index=range(1950, 2000))
    esn = direct(season=None).fit(years)
    with pytest.raises(ValueError, match="new has a row for 1999, which does not follow: the next dates are 2000"):
        esn.update(years[-1:])
    assert esn.update(pd.Series([21.0, 20.0], index=[2003, 2001])).predict(1).index[0] == 2004
    assert esn.update(pd.Series([21.0, 20.0])).predict(1).index[0] == 2006  # these rows are only counted


def test_gaps_do_not_change_the_scale():
    y = drawn(0)
    y[10:70] = np.nan
    esn = direct().fit(np.stack([y, drawn(1)], axis=1))
    np.testing.assert_allclose(esn.target_scale_, [np.nanstd(y), drawn(1).std()])


def test_values_that_have_no_logarithm_are_reported():
    y = np.exp(0.05 * T + 0.1 * np.random.default_rng(0).normal(size=120))
    esn = direct(season=None, log=True).fit(y)
    assert esn.forecast_.models[0].columns[0].log
    with pytest.warns(ForecastWarning, match="a value of 0 is taken as a gap: .* in logarithms"):
        esn.update([y[-1], 0.0, y[-1]])


def test_no_later_value_enters_a_score():
    y = drawn(6, 200)
    esn = direct(washout=20).fit(y[:100])
    changed = y.copy()
    changed[150:] += 1000.0
    for model in (esn.forecast_,):
        errors = [model.errors(series, None, 1)[0] for series in (y, changed)]
        until = len(errors[0]) - 51
        np.testing.assert_array_equal(errors[0][:until], errors[1][:until])


def test_residuals_are_errors_in_standard_deviations_of_their_series():
    y = np.exp(0.02 * T + 0.3 * np.random.default_rng(0).normal(size=120))
    residuals = direct(log=True, season=None).fit(y).residuals_ * y.std()
    naive = np.abs(np.diff(y)[40:]).mean()
    assert 0.5 * naive < np.abs(residuals).mean() < 1.2 * naive
    alone, both = direct().fit(drawn(1)).residuals_, direct().fit([1e6 * drawn(0), drawn(1)]).residuals_
    np.testing.assert_allclose(both[-len(alone) :], alone, rtol=1e-6)


def test_columns_without_names_keep_their_numbers(tmp_path):
    esn = direct().fit(pd.DataFrame(np.stack([drawn(0), drawn(1)], axis=1)))
    esn.save(tmp_path / "model.safetensors")
    for one in (esn, load(tmp_path / "model.safetensors")):
        assert one.predict(3).columns.tolist() == [0, 1]
    assert direct().fit(pd.Series(drawn(0), name=7)).predict(3).name == 7


def test_dates_and_names_come_back():
    table = pd.DataFrame({"a": drawn(0), "b": drawn(1)}, index=pd.period_range("2015-01", periods=120, freq="M"))
    esn = direct().fit(table)
    assert esn.predict(2).columns.tolist() == ["a", "b"]
    assert [str(p) for p in esn.predict(2).index] == ["2025-01", "2025-02"]
    assert [str(p) for p in esn.update(table[-3:].set_axis(esn.predict(3).index)).predict(1).index] == ["2025-04"]
    lower, upper = esn.forecast_interval(2)
    assert (lower < upper).all().all()
    named = pd.Series(drawn(0), index=pd.RangeIndex(1900, 2020), name="ships")
    assert direct().fit(named).predict(2).index.tolist() == [2020, 2021]
    assert direct().fit(named).predict(2).name == "ships"
    assert isinstance(direct().fit(named.to_numpy()).predict(2), np.ndarray)


def test_updates_at_their_dates():
    y = pd.Series(drawn(0), index=pd.date_range("2023-01-01", periods=120, freq="D"))
    gap, plain = direct().fit(y[:100]), direct().fit(y[:100])
    gap.update(y.iloc[[103, 101, 102]])  # one day without a row
    plain.update(np.r_[np.nan, y.iloc[101:104]])
    pd.testing.assert_series_equal(gap.predict(4), plain.predict(4))
    with pytest.raises(ValueError, match="new has a row for 2023-04-01 00:00:00, which does not follow"):
        gap.update(y.iloc[90:92])
    both = direct().fit([y[:100], y[:90].to_numpy()]).update([y[100:103], y.to_numpy()[90:95]])
    np.testing.assert_allclose(both.predict(3)[0], direct().fit(y[:100]).update(y[100:103]).predict(3))


def test_a_season_that_does_not_fit_is_reported():
    with pytest.warns(ForecastWarning, match="season=52 is left out: a series has 60 steps; two seasons have 104"):
        direct(season=52).fit(drawn(0, 60))
