"""The mean of a closed loop and direct forecasts: every verb lies between both, and a file keeps it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from echolearn import ESNForecaster, load
from echolearn.forecasting.forecast import MeanForecast
from echolearn.forecasting.loop_forecast import LoopForecast

T = np.arange(200)
WAVES = np.sin(T / 6) + 0.2 * np.random.default_rng(0).normal(size=200)


@pytest.fixture(params=[False, True], ids=["array", "dates"])
def esn(request):
    series = pd.Series(WAVES, index=pd.date_range("2020", periods=200, freq="D")) if request.param else WAVES
    loop, direct = (
        ESNForecaster(15, method=method, learn="none", season=None).fit(series[:180])
        for method in ("closed_loop", "direct")
    )
    mean = MeanForecast.of(loop.forecast_, direct.forecast_)
    loop.model_ = replace(loop.model_, forecast=mean)
    return loop


def test_verbs_are_those_of_both_about_their_mean(esn):
    mean = esn.forecast_
    loop, direct = (ESNForecaster(15, learn="none") for _ in range(2))
    plain = LoopForecast(**{name: value for name, value in vars(mean).items() if name != "direct"})
    loop.model_, direct.model_ = (replace(esn.model_, forecast=part) for part in (plain, mean.direct))
    assert esn.method_ == "mean"
    np.testing.assert_allclose(esn.predict(9), (loop.predict(9) + direct.predict(9)) / 2)
    lower, upper = esn.forecast_interval(9)
    np.testing.assert_allclose((lower + upper) / 2, esn.predict(9))
    np.testing.assert_allclose(upper - lower, np.subtract(*direct.forecast_interval(9)[::-1]))
    assert esn.forecast_paths(9, 5).shape == (5, 9)
    several = esn.predict(4, warm_up=[WAVES[:150], WAVES[:160]])
    np.testing.assert_allclose(several[0], esn.predict(4, warm_up=WAVES[:150]))
    between = sorted([loop.score(WAVES), direct.score(WAVES)])
    assert esn.score(WAVES) >= between[0]
    before = np.asarray(esn.predict(3))
    esn.update(WAVES[180:190])
    assert not np.allclose(esn.predict(3), before)


def test_a_file_keeps_both(esn, tmp_path):
    esn.save(tmp_path / "model.safetensors")
    back = load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(back.predict(9), esn.predict(9))
    np.testing.assert_array_equal(back.update(WAVES[180:]).predict(9), esn.update(WAVES[180:]).predict(9))
    assert back.method_ == "mean"
