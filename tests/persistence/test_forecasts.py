"""Forecasters that are saved and loaded."""

import numpy as np
import pytest

from echolearn import ESNForecaster, load
from echolearn.datasets import henon, mso

WAVES = mso(300, 2)[:, 0]
PLANE = henon(300)
RNG = np.random.default_rng(3)
PUSH = RNG.uniform(-1, 1, (300, 2))
T = np.arange(132)
SALES = (100 + T) * (1 + 0.3 * np.sin(2 * np.pi * T / 12)) * np.exp(0.03 * RNG.normal(size=132))


@pytest.mark.parametrize("kind", ["one", "many", "exogenous"])
def test_a_closed_loop(kind, tmp_path):
    series = [PLANE[:100], PLANE[100:250]] if kind == "many" else WAVES
    more = {"exogenous": PUSH} if kind == "exogenous" else {}
    to_come = {"exogenous": PUSH[:9]} if kind == "exogenous" else {}
    esn = ESNForecaster(20, reservoir={"connections": 4}, washout=20, epochs=2).fit(series, **more)
    esn.save(tmp_path / "model.safetensors")
    back = load(tmp_path / "model.safetensors")
    assert type(back) is ESNForecaster
    assert back.get_params() == esn.get_params()
    np.testing.assert_array_equal(back.predict(9, **to_come), esn.predict(9, **to_come))
    np.testing.assert_array_equal(
        back.forecast_interval(9, n_paths=10, **to_come), esn.forecast_interval(9, n_paths=10, **to_come)
    )
    assert back.score(series, **more) == esn.score(series, **more)


@pytest.mark.parametrize("kind", ["one", "many", "exogenous"])
def test_direct_forecasts(kind, tmp_path):
    push = RNG.normal(size=(140, 2))
    how = {"exogenous": push[:132]} if kind == "exogenous" else {}
    ahead = {"exogenous": push[:4]} if kind == "exogenous" else {}
    series = [SALES, SALES[:70]] if kind == "many" else SALES
    esn = ESNForecaster(20, season=12, method="direct").fit(series, **how)
    esn.save(tmp_path / "model.safetensors")
    back = load(tmp_path / "model.safetensors")
    assert back.get_params() == esn.get_params()
    assert (back.method_, back.season_, back.n_features_in_) == (esn.method_, esn.season_, esn.n_features_in_)
    np.testing.assert_array_equal(back.predict(4, **ahead), esn.predict(4, **ahead))
    np.testing.assert_array_equal(back.forecast_interval(4, **ahead), esn.forecast_interval(4, **ahead))
    if kind == "one":
        np.testing.assert_array_equal(back.update(SALES[-12]).predict(4), esn.update(SALES[-12]).predict(4))
