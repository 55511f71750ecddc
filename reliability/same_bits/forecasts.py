"""Cases of forecasts: closed loops, direct forecasts, the choice between them, and backtests."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from inspect import signature
from typing import Any

import numpy as np
from basis import SMALL, Run, case, constant, new, outcome, series

import echolearn

LOOP = {**SMALL, "washout": 20, "method": "closed_loop"}
DIRECT = {"hidden_units": 20, "method": "direct"}

# ---------------------------------------------------------------- data


@cache
def sales(steps: int = 120, seed: int = 0, season: int = 12) -> Any:
    """A noisy series with trend and season."""
    rng, t = np.random.default_rng(seed), np.arange(steps)
    return (50 + 0.3 * t) * (1 + 0.3 * np.sin(2 * np.pi * t / season + seed)) + rng.normal(size=steps)


def weather(steps: int) -> Any:
    """What is known of each step in advance."""
    t = np.arange(steps)
    return np.column_stack([np.cos(0.3 * t), (t % 5 == 0).astype(float)])


def gappy(values: Any) -> Any:
    found = values.copy()
    found[[7, 8, 40, len(found) - 2]] = np.nan
    return found


# ---------------------------------------------------------------- the verbs of a forecaster


def interval(esn: Any, steps: int, coverage: float, **more: Any) -> Any:
    paths = "n_paths" if "n_paths" in signature(esn.forecast_interval).parameters else "paths"
    return esn.forecast_interval(steps, coverage, **{paths: 50}, **more)


def answers(
    esn: Any, known: Any = None, *, steps: int = 9, new: Any = None, rows: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What each verb of a forecaster returns, for its own series and after a warm-up.

    known: the series that is scored and whose continuation is forecast; new: further values of the series of the fit;
    rows: exogenous inputs of each call.
    """
    given = {name: {"exogenous": e} for name, e in (rows or {}).items()}
    ahead, warm, update, later = (given.get(name, {}) for name in ("ahead", "warm", "update", "later"))
    found = {
        "predict": esn.predict(steps, **ahead),
        "interval": interval(esn, steps, 0.8, **ahead),
        "paths": esn.forecast_paths(steps, 7, **ahead),
        "again": interval(esn, steps, 0.95, **ahead),
        "facts": [str(getattr(esn, f"{name}_")) for name in ("method", "season", "horizon")],
        "scale": [esn.target_mean_, esn.target_scale_, esn.residuals_],
    }
    if known is not None:
        found["warm"] = [
            esn.predict(steps, warm_up=known, **warm),
            interval(esn, steps, 0.5, warm_up=known, **warm),
            esn.forecast_paths(steps, 3, warm_up=known, **warm),
        ]
        scored = {"exogenous": (rows or {})["score"]} if rows else {}
        found["scores"] = [esn.score(known, **scored), esn.score(known, horizon=4, **scored)]
    if new is not None:
        stream = esn.stream()
        found["stream"] = stream.predict(new, steps, ahead=later.get("exogenous"), **update)
        found["untouched"] = esn.predict(steps, **ahead)
        esn.update(new, **update)
        found["updated"] = [esn.predict(steps, **later), interval(esn, steps, 0.8, **later)]
    return found


def forecast(run: Run, name: str, esn: Any, **how: Any) -> Any:
    """All that is known of a forecaster; its file is written after `update`."""
    return outcome(esn, run, name, partial(answers, **how))


# ---------------------------------------------------------------- closed loops


@case
def forecasters(run: Run) -> Any:
    how = {**SMALL, "washout": 20}
    outside = [np.cos(0.1 * np.arange(440))[:, None] + i for i in range(3)]
    future = {"exogenous": [e[400:] for e in outside]}

    def alone(esn: Any) -> Any:
        warm = {"warm_up": series(steps=100)[0]}
        return esn.predict(30), esn.predict(9, **warm), interval(esn, 9, 0.8), esn.score(series()[0])

    def with_inputs(esn: Any) -> Any:
        return esn.predict(40, **future), interval(esn, 40, 0.9, **future)

    one = new("ESNForecaster", **how, validation_fraction=0.0).fit(series()[0])
    fixed = new("ESNForecaster", **how, learn="none", noise=1e-3).fit(series()[0])
    several = new("ESNForecaster", **how).fit(series(3), exogenous=[e[:400] for e in outside])
    with constant("large", 10):
        large = new("ESNForecaster", **how).fit(series()[0])
    found = [outcome(esn, run, f"forecaster {i}", alone) for i, esn in enumerate((one, fixed, large))]
    return found, outcome(several, run, "forecaster of several", with_inputs)


@case
def closed_loops(run: Run) -> Any:
    """All verbs: one series, several, several columns, exogenous inputs, pandas, and inputs with noise."""
    one, known = series()[0][:, 0], series(steps=160)[0]
    several, ends = [s[:n] for s, n in zip(series(3), (400, 250, 90), strict=True)], [s[:5] for s in series(3)]
    rows = {"ahead": weather(409)[400:], "warm": weather(169), "score": weather(160)}
    rows |= {"update": weather(403)[400:], "later": weather(412)[403:]}
    inputs = new("ESNForecaster", **LOOP).fit(series()[0], exogenous=weather(400))
    noisy = new("ESNForecaster", **{**LOOP, "noise": 0.01, "learn": "input"}).fit(one)
    fits = {
        "column": (new("ESNForecaster", **LOOP).fit(one), {"known": known[:, 0], "new": 0.3}),
        "columns": (new("ESNForecaster", **LOOP).fit(series()[0]), {"known": known, "new": known[:4]}),
        "several": (new("ESNForecaster", **LOOP).fit(several), {"known": [known, known[:99]], "new": ends}),
        "inputs": (inputs, {"known": known, "new": known[:3], "rows": rows}),
        "noisy": (noisy, {"known": known[:, 0], "new": known[:4, 0]}),
    }
    return {name: forecast(run, f"loop of {name}", esn, **how) for name, (esn, how) in fits.items()}


@case
def noiseless_loops(run: Run) -> Any:
    """The QR solver, with weights that are learned through several steps of the loop."""
    how = {**LOOP, "solver": "qr", "validation_fraction": 0.2, "epochs": 4}
    found = {}
    for steps in (1, 4):
        esn = new("ESNForecaster", **how, loop_steps=steps).fit(series()[0])
        found[str(steps)] = forecast(run, f"noiseless {steps}", esn, known=series(steps=90)[0])
    nvar = new("NVARForecaster", delays=3).fit(series()[0])
    return found, nvar.predict(20), nvar.predict(5, warm_up=series(2, 60)[1])


# ---------------------------------------------------------------- direct forecasts


@case
def direct_forecasts(run: Run) -> Any:
    """All verbs on one series: with a season, without one, with gaps, short, and with given trend, log and horizon."""
    fits = {
        "season": ({}, sales()),
        "long": ({"hidden_units": 40}, sales(300, 1)),
        "gaps": ({"season": 12}, gappy(sales(100, 2))),
        "flat": ({"season": None}, np.random.default_rng(3).normal(size=90).cumsum()),
        "short": ({}, sales(14, 4)),
        "shortest": ({}, sales(5, 5)),
        "log": ({"log": True, "trend": True, "horizon": 5, "season": 12}, sales(96, 6)),
        "trend": ({"log": False, "trend": False, "horizon": 3, "ridge": 0.1}, sales(96, 7)),
        "units": ({"activation": "sigmoid", "leak": 0.5}, sales(150, 8)),
    }
    found = {}
    for name, (settings, values) in fits.items():
        esn = new("ESNForecaster", **{**DIRECT, **settings}).fit(values)
        how = {"known": sales(60, 9), "new": [70.0, np.nan, 75.0], "steps": 30}
        found[name] = forecast(run, f"direct, {name}", esn, **how)
    return found


@case
def direct_forecasts_of_several(run: Run) -> Any:
    """Several series of other lengths and scales, several columns, and exogenous inputs."""
    several = [sales(), 1000 * sales(80, 1), gappy(sales(60, 2)) - 70]
    columns = np.column_stack([sales(), 5 - sales(seed=3), gappy(sales(seed=4))])
    n, rows = 110, {}
    for name, (first, last) in {"ahead": (n, n + 9), "update": (n, n + 2), "later": (n + 2, n + 11)}.items():
        rows[name] = weather(last)[first:]
    rows |= {"warm": weather(69), "score": weather(60)}
    with_inputs = new("ESNForecaster", **DIRECT).fit(sales(n) + weather(n) @ [9, 30], exogenous=weather(n))
    both = new("ESNForecaster", **DIRECT).fit(columns[:n], exogenous=weather(n))
    listed = {name: [e, e, e] for name, e in rows.items()}
    fed = new("ESNForecaster", **DIRECT).fit([s[-50:] for s in several], exogenous=[weather(50)] * 3)
    fits = {
        "series": (
            new("ESNForecaster", **DIRECT).fit(several),
            {"known": several, "new": [s[:3] for s in several]},
        ),
        "columns": (new("ESNForecaster", **DIRECT).fit(columns), {"known": columns[:60], "new": columns[:2]}),
        "inputs": (with_inputs, {"known": sales(60, 6), "new": [50.0, 60.0], "rows": rows}),
        "columns and inputs": (both, {"known": columns[:60], "new": columns[:2], "rows": rows}),
        "series and inputs": (fed, {"known": [sales(60)] * 3, "new": [sales(2)] * 3, "rows": listed}),
    }
    return {name: forecast(run, f"direct, {name}", esn, **how) for name, (esn, how) in fits.items()}


@case
def choice_of_method(run: Run) -> Any:
    """method="auto": chaos, waves, noise, seasons, short series, several series and columns, exogenous inputs."""
    from echolearn.datasets import lorenz, mackey_glass

    rng, small = np.random.default_rng(5), {"hidden_units": 25, "epochs": 2}
    chaos = mackey_glass(400)[:, 0] if np.ndim(mackey_glass(3)) == 2 else mackey_glass(400)
    fits = {
        "chaos": (chaos, {}),
        "noisy chaos": (chaos + 0.2 * rng.normal(size=len(chaos)), {}),
        "three columns": (lorenz(400), {}),
        "waves": (series()[0], {}),
        "waves with inputs": (series()[0], {"exogenous": weather(400)}),
        "sales": (sales(), {}),
        "many sales": ([sales(), sales(90, 1)], {}),
        "short": (sales(12), {}),
        "long season": (sales(400, 2, 24), {}),
    }
    found: dict[str, Any] = {}
    for name, (values, inputs) in fits.items():
        esn = new("ESNForecaster", **small).fit(values, **inputs)
        steps = {"exogenous": weather(412)[400:]} if inputs else {}
        found[name] = [str(esn.method_), str(esn.season_), str(esn.horizon_), esn.predict(12, **steps)]
        found[name].append(interval(esn, 12, 0.9, **steps))
    return found


@case
def forecasts_of_tables(run: Run) -> Any:
    """Series and tables of pandas, whose index announces the season."""
    import pandas as pd

    found: dict[str, Any] = {}
    for rule, steps in (("MS", 72), ("QS", 40), ("D", 150), ("h", 400)):
        index = pd.date_range("2020-01-01", periods=steps, freq=rule)
        esn = new("ESNForecaster", **DIRECT).fit(pd.Series(sales(steps, 1, 4), index))
        found[rule] = [esn.predict(10), str(esn.season_), interval(esn, 10, 0.8)]
    index = pd.date_range("2021-01-01", periods=100, freq="D")
    table = pd.DataFrame({"north": sales(100), "south": sales(100, 3)}, index)
    inputs = pd.DataFrame(weather(104), columns=["heat", "holiday"])
    for method in ("direct", "closed_loop"):
        esn = new("ESNForecaster", **{**SMALL, "washout": 10, "method": method}).fit(table, exogenous=inputs[:100])
        ahead = {"exogenous": inputs[100:]}
        found[method] = [np.asarray(esn.predict(4, **ahead)), [str(name) for name in esn.feature_names_in_]]
    return found


@case
def backtests(run: Run) -> Any:
    found = {}
    for method, values in (("direct", sales()), ("closed_loop", series()[0][:, 0])):
        how = {**SMALL, "washout": 20, "method": method}
        test = echolearn.backtest(new("ESNForecaster", **how), values, horizon=6, origins=3)
        found[method] = [test.scores, [vars(origin) for origin in test.origins], str(test)]
    return found
