"""Both kinds of forecasts answer the same verbs, in the same shapes."""

import numpy as np
import pytest

from echolearn import ESNForecaster
from echolearn.datasets import henon
from echolearn.forecasting.direct_forecast import DirectForecast
from echolearn.forecasting.loop_forecast import LoopForecast
from echolearn.forecasting.series import Continuation

RNG = np.random.default_rng(0)
PLANE = henon(120) + 0.1 * RNG.normal(size=(120, 2))
PUSH = RNG.normal(size=(140, 2))
VERBS = {"predict", "interval", "paths", "update", "errors"}
FORMS = {
    "one": (PLANE[:, 0], None),
    "column": (PLANE[:, :1], None),
    "plane": (PLANE, None),
    "list": ([PLANE[:, 0], PLANE[:90, 0]], None),
    "exogenous": (PLANE, PUSH[:120]),
    "list with exogenous": ([PLANE, PLANE[:90]], [PUSH[:120], PUSH[:90]]),
}


def forecaster(method, form):
    series, exogenous = FORMS[form]
    esn = ESNForecaster(10, method=method, washout=5, learn="none")
    return esn.fit(series, exogenous=exogenous)


def shapes(answers):
    return [np.shape(a) for a in answers] if isinstance(answers, list) else np.shape(answers)


def answers_of(forecast, form):
    """The shapes of all answers, of the training series and after a warm-up of as many, or of three after one."""
    series, exogenous = FORMS[form]
    many = isinstance(series, list)
    rows = PUSH[: len(series) + 7] if exogenous is not None else None
    if many:
        rows = None if rows is None else [PUSH[: len(s) + 7] for s in series]
    to_come = None if rows is None else [PUSH[:7]] * len(series) if many else PUSH[:7]
    new, of_new = ([series[0][:3], series[1][:5]], [PUSH[:3], PUSH[:5]]) if many else (series[:3], PUSH[:3])
    three = (series, rows) if many else ([series] * 3, None if rows is None else [rows] * 3)
    updated = forecast.update(new, None if rows is None else of_new)
    found = [shapes(updated.predict(Continuation(7, None, to_come)))]
    for ahead in (
        Continuation(7, None, to_come),
        Continuation(7, series, rows),
        Continuation(7, *three),
    ):
        found.append(shapes(forecast.predict(ahead)))
        found += map(shapes, forecast.interval(ahead, 0.8, 20, 0))
        found.append(shapes(forecast.paths(ahead, 4, 0)))
    found += [e.shape[1:] for e in forecast.errors(series, exogenous, 2)]
    return found


@pytest.mark.parametrize("form", FORMS)
def test_both_forecasts_answer_the_same_verbs_with_the_same_shapes(form):
    loop, direct = (forecaster(method, form).forecast_ for method in ("closed_loop", "direct"))
    assert (type(loop), type(direct)) == (LoopForecast, DirectForecast)
    assert answers_of(loop, form) == answers_of(direct, form)
    for forecast in (loop, direct):
        assert {name for name, verb in vars(type(forecast)).items() if callable(verb) and name[0] != "_"} == VERBS
        assert forecast.residuals.shape[1:] == forecast.last_value.shape[1:] == (forecast.form.dims,)
        assert len(forecast.last_value) == len(forecast.last_state)


@pytest.mark.parametrize("method", ["closed_loop", "direct"])
def test_an_update_leaves_the_forecast_as_it_was(method):
    before = forecaster(method, "one").forecast_
    first = before.predict(Continuation(5))
    after = before.update(PLANE[:9, 0], None)
    np.testing.assert_array_equal(before.predict(Continuation(5)), first)
    assert not np.array_equal(after.predict(Continuation(5)), first)


@pytest.mark.parametrize("method", ["closed_loop", "direct"])
def test_bounds_enclose_the_forecast_and_paths_follow_the_seed(method):
    forecast = forecaster(method, "plane").forecast_
    lower, upper = forecast.interval(Continuation(4), 0.9, 200, 0)
    assert (lower < upper).all()
    same, other = (forecast.paths(Continuation(4), 6, seed) for seed in (0, 1))
    np.testing.assert_array_equal(forecast.paths(Continuation(4), 6, 0), same)
    assert not np.array_equal(same, other)


def test_a_loop_that_gains_little_is_not_taken():
    """Swings that noise keeps alive look like dynamics, but a loop forecasts them hardly better."""
    noise, y = np.random.default_rng(0).normal(size=300), np.zeros(300)
    for t in range(2, 300):
        y[t] = 2 * 0.99 * np.cos(0.4) * y[t - 1] - 0.99**2 * y[t - 2] + noise[t]
    assert ESNForecaster().fit(y).forecast_.method == "direct"
