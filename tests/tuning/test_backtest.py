"""Backtests: origins, measures by hand, the simplest forecasts, tables, and the search that uses them."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from echolearn import ESNForecaster, backtest
from echolearn.tuning import tune
from echolearn.tuning._backtest import crps, seasonal_scale, smape

T = np.arange(72)
SERIES = 30 + 0.3 * T + 5 * np.sin(2 * np.pi * T / 12) + np.random.default_rng(0).normal(size=72)


def last(past, horizon):
    return np.full(horizon, np.asarray(past)[-1])


def test_measures_by_hand():
    found = backtest(last, SERIES, 6, [60, 66], season=12)
    assert [o.known for o in found.origins] == [60, 66]
    expected = []
    for n in (60, 66):
        scale = np.abs(SERIES[12:n] - SERIES[: n - 12]).mean()
        expected.append(np.abs(SERIES[n : n + 6] - SERIES[n - 1]).mean() / scale)
    assert found.scores["model"]["MASE"] == pytest.approx(np.mean(expected))
    assert found.scores["naive"] == {**found.scores["model"], "p": 1.0}
    np.testing.assert_array_equal(found.origins[0].forecasts["seasonal naive"], SERIES[48:54])
    np.testing.assert_allclose(found.origins[0].forecasts["mean"], SERIES[:60].mean())
    assert smape(np.array([1.0, 0.0]), np.array([3.0, 0.0])) == pytest.approx(50)
    assert seasonal_scale(np.array([0.0, 3.0, 4.0]), 1, 2) == pytest.approx(np.sqrt(5))


def test_crps_is_the_mean_over_all_pairs():
    rng = np.random.default_rng(1)
    paths, truth = rng.normal(size=(7, 3)), rng.normal(size=3)
    pairs = np.abs(paths[:, None] - paths[None]).mean(axis=(0, 1))
    assert crps(truth, paths) == pytest.approx((np.abs(paths - truth).mean(axis=0) - pairs / 2).mean())
    assert crps(truth, paths[:1]) == pytest.approx(np.abs(paths[0] - truth).mean())


def test_a_model_sees_only_what_was_known():
    seen = []

    def spy(past, horizon):
        seen.append(past)
        return np.zeros(horizon)

    index = pd.date_range("2015", periods=72, freq="MS")
    found = backtest(spy, pd.Series(SERIES, index=index), 6, 3)
    assert [len(past) for past in seen] == [54, 60, 66]
    assert all(isinstance(past, pd.Series) for past in seen)
    assert found.origins[0].season == 12


def test_a_forecaster_has_intervals_a_table_and_a_plot():
    found = backtest(ESNForecaster(20, season=12), SERIES, 6, 2)
    row = found.scores["model"]
    assert set(row) == {"MASE", "sMAPE", "RMSSE", "CRPS", "coverage 0.8", "coverage 0.95"}
    assert row["CRPS"] < row["MASE"] < found.scores["mean"]["MASE"]
    text = repr(found)
    assert "seasonal naive" in text
    assert "2 origins, 6 steps ahead" in text
    assert found.to_frame().loc["model", "MASE"] == row["MASE"]
    pytest.importorskip("matplotlib").use("agg")
    axes = found.plot()
    assert {"truth", "model", "95% interval"} <= {t.get_text() for t in axes.get_legend().get_texts()}
    assert axes.get_title() == "6 steps ahead, from origin 2 of 2"


def test_several_series_and_gaps():
    holes = SERIES.copy()
    holes[[20, 69]] = np.nan
    found = backtest(last, [SERIES, holes], 6, 2, season=12)
    assert [o.series for o in found.origins] == [0, 0, 1, 1]
    assert np.isfinite(found.scores["model"]["MASE"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: backtest(last, SERIES, 0), "horizon=0"),
        (lambda: backtest(last, SERIES, 70), "leaves 2 to fit to"),
        (lambda: backtest(last, SERIES, 6, [70]), "known values from 2 to 66"),
        (lambda: backtest(last, np.ones((9, 2)), 2), r"shape \(9, 2\); expected one column"),
        (lambda: backtest({}, SERIES, 6), r"names \[\]; expected at least one model"),
        (lambda: backtest({"naive": last}, SERIES, 6), "by names other than naive, seasonal naive, mean"),
    ],
)
def test_bad_input_is_explained(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_tune_takes_a_forecaster_and_its_series():
    pytest.importorskip("optuna")
    space = {"trend": [False, True]}
    found = tune(ESNForecaster(20, season=12, horizon=6), 10 * T + SERIES, space=space, trials=4, folds=2)
    assert found.best_settings == {"trend": True}
    assert found.estimator.predict(6).shape == (6,)
    own = backtest(ESNForecaster(20, season=12, horizon=6, trend=True), 10 * T + SERIES, 6, 2)
    assert found.best_score == pytest.approx(-own.scores["model"]["MASE"])


def test_time_series_split():
    search = GridSearchCV(ESNForecaster(10, season=12), {"trend": [True, False]}, cv=TimeSeriesSplit(2))
    assert np.isfinite(search.fit(SERIES).best_score_)


def test_forecasts_that_are_not_finite_are_infinitely_wrong():
    def diverges(past, horizon):
        return last(past, horizon) if len(past) > 60 else np.full(horizon, np.nan)

    found = backtest(diverges, SERIES, 6, [48, 54, 60, 66], season=12).scores["model"]
    assert {found[name] for name in ("MASE", "sMAPE", "RMSSE", "CRPS")} == {np.inf}
    assert smape(np.array([1.0, np.nan]), np.array([np.inf, 2.0])) == np.inf
    assert crps(np.ones(2), np.array([[1.0, 1.0], [np.nan, 1.0]])) == np.inf
    holes = SERIES.copy()
    holes[-1] = np.nan
    assert np.isfinite(backtest(last, holes, 6, 1, season=12).scores["model"]["MASE"])


def test_between_fits_a_model_takes_in_the_values_since():
    esn = ESNForecaster(20, season=12, method="direct")
    found = backtest(esn, SERIES, 6, [48, 54, 60], refit_every=2)
    fitted = ESNForecaster(20, season=12, method="direct").fit(SERIES[:48])
    np.testing.assert_array_equal(found.origins[1].forecasts["model"], fitted.update(SERIES[48:54]).predict(6))
    anew = ESNForecaster(20, season=12, method="direct").fit(SERIES[:60])
    np.testing.assert_array_equal(found.origins[2].forecasts["model"], anew.predict(6))
    with pytest.raises(ValueError, match="refit_every=2, but the model has no method `update`"):
        backtest(last, SERIES, 6, 3, refit_every=2)


def test_rows_are_taken_in_the_order_of_their_dates():
    dated = pd.Series(SERIES, index=pd.date_range("2015", periods=72, freq="MS"))
    whole, mixed = (backtest(last, rows, 6, 3).scores for rows in (dated, dated.sample(frac=1, random_state=0)))
    assert whole == mixed


def test_several_models_stand_in_one_table_with_a_mark_of_significance():
    def worse(past, horizon):
        return last(past, horizon) + 20 + np.arange(horizon)

    models = {"ours": ESNForecaster(20, season=12), "last": last, "far off": worse}
    found = backtest(models, SERIES, 6, 6)
    assert list(found.scores) == ["ours", "last", "far off", "naive", "seasonal naive", "mean"]
    assert found.scores["ours"] == backtest(models["ours"], SERIES, 6, 6).scores["model"]
    assert found.scores["far off"]["p"] < 1e-3
    lines = {line.split("  ")[0]: line for line in repr(found).splitlines()[1:]}
    assert "*" in lines["far off"]
    assert "*" not in lines["ours"]
    assert repr(found).endswith("6 origins, 6 steps ahead; * differs from ours (p < 0.05)")
    assert max(map(len, repr(found).splitlines())) <= 80  # the columns are as wide as their entries
    assert found.to_frame().loc["last", "MASE"] == found.scores["naive"]["MASE"]
    assert found.scores["last"]["p"] == found.scores["naive"]["p"]


@pytest.mark.parametrize("step", [1, 6])
def test_equal_models_are_rarely_called_different(step):
    """Also where forecasts from neighbouring origins overlap, and their errors with them."""
    chances = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=80)

        def guess(past, horizon, rng=rng):
            return np.full(horizon, 0.5 * rng.choice([-1, 1]))

        chances.append(backtest({"a": guess, "b": guess}, y, 6, 10, step=step, season=1).scores["b"]["p"])
    assert np.mean(np.array(chances) < 0.05) < 0.12


def test_errors_of_several_series_are_paired_by_series():
    def near(past, horizon):
        return np.full(horizon, 0.1)

    def far(past, horizon):
        return np.full(horizon, 3.0)

    rows = [np.random.default_rng(seed).normal(size=40) for seed in range(6)]
    by_series = backtest({"near": near, "far": far}, rows, 4, 5, season=1)
    errors = {
        name: np.array(
            [np.abs(o.truth - o.forecasts[name]).mean() / np.abs(np.diff(o.past)).mean() for o in by_series.origins]
        )
        for name in ("near", "far")
    }
    means = (errors["far"] - errors["near"]).reshape(6, 5).mean(axis=1)
    assert by_series.scores["far"]["p"] == pytest.approx(stats.ttest_1samp(means, 0).pvalue)


def test_progress_is_shown_after_two_seconds_on_a_terminal(monkeypatch, capsys):
    backtest(last, SERIES, 6, 3)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("echolearn.tuning._backtest.QUIET_SECONDS", -1.0)
    backtest(last, SERIES, 6, 3)
    assert capsys.readouterr().err == ""  # a log
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    backtest(last, SERIES, 6, 3)
    assert "backtest: 3 of 3 origins" in capsys.readouterr().err
