"""ESNForecaster: what it has, how it is cloned and resumed, and what it refuses."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from echolearn import ESNForecaster, NVARForecaster
from echolearn.datasets import henon, mso
from toys import grouped

SMALL = {"hidden_units": 20, "connections": 4, "washout": 20, "epochs": 2}
WAVES = mso(300, 2)[:, 0]
PLANE = henon(300)
RNG = np.random.default_rng(5)
PUSH = RNG.uniform(-1, 1, (300, 2))


def test_same_seed_same_bits():
    a, b, c = (ESNForecaster(random_state=seed, input_noise=0.01, **grouped(SMALL)).fit(WAVES) for seed in (1, 1, 2))
    np.testing.assert_array_equal(a.predict(20), b.predict(20))
    np.testing.assert_array_equal(a.forecast_interval(5, n_paths=20), b.forecast_interval(5, n_paths=20))
    np.testing.assert_array_equal(a.forecast_interval(5, n_paths=20), a.forecast_interval(5, n_paths=20))
    assert not np.array_equal(a.predict(20), c.predict(20))


@pytest.mark.parametrize("kind", [ESNForecaster, NVARForecaster])
def test_times_before_the_series_are_not_taken_for_it(kind):
    with pytest.raises(ValueError, match=r"y is given, but a forecaster takes the series itself.*Write fit\(y\)"):
        kind().fit(np.arange(300), WAVES)


@pytest.mark.parametrize("method", ["closed_loop", "direct"])
def test_a_forecaster_has_no_verbs_of_a_classifier(method):
    esn = ESNForecaster(method=method, **grouped(SMALL)).fit(WAVES)
    for name in ("states", "outcome_of", "streams", "per_step_", "inputs_", "feedback_weights_"):
        with pytest.raises(AttributeError):
            getattr(esn, name)


def test_only_a_closed_loop_has_a_network():
    direct, loop = (ESNForecaster(method=method, **grouped(SMALL)).fit(WAVES) for method in ("direct", "closed_loop"))
    for name in ("network_", "reservoir_", "ridge_", "input_weights_", "recurrent_weights_", "readout_weights_"):
        assert hasattr(loop, name)
        with pytest.raises(AttributeError, match=r"have no network of their own.*method='closed_loop'"):
            getattr(direct, name)
    assert len(direct.history_) == 0
    assert len(loop.history_) == 2
    assert (direct.season_ is None, loop.season_ is None, direct.horizon_ > 0, loop.horizon_) == (
        False,
        True,
        True,
        None,
    )


def test_clone_and_grid_search():
    esn = ESNForecaster(input_noise=0.1, **grouped(SMALL))
    assert clone(esn).get_params() == esn.get_params()
    search = GridSearchCV(ESNForecaster(learn="none", **grouped(SMALL)), {"spectral_radius": [0.5, 0.9]}, cv=2)
    search.fit([WAVES[i : i + 90] for i in range(0, 200, 50)])
    assert np.isfinite(search.best_score_)


def test_a_fit_resumes_from_its_checkpoint(tmp_path):
    whole = ESNForecaster(input_noise=0.01, **grouped({**SMALL, "epochs": 4})).fit(WAVES)
    esn = ESNForecaster(input_noise=0.01, **grouped({**SMALL, "epochs": 4}))
    esn.fit(WAVES, checkpoint=tmp_path, callback=lambda row: row["epoch"] == 2)
    assert len(esn.history_) == 2
    esn.fit(WAVES, checkpoint=tmp_path)
    np.testing.assert_array_equal(esn.predict(20), whole.predict(20))


def test_a_failed_fit_leaves_the_old_one():
    esn = ESNForecaster(**grouped(SMALL)).fit(WAVES)
    before = esn.predict(5)
    with pytest.raises(ValueError):
        esn.fit([PLANE, WAVES])
    np.testing.assert_array_equal(esn.predict(5), before)


FITTED = ESNForecaster(learn="none", **grouped(SMALL)).fit(WAVES)
DRIVEN = ESNForecaster(learn="none", **grouped(SMALL)).fit(WAVES, exogenous=PUSH)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ESNForecaster(input_noise=-1).fit(WAVES), "noise=-1; expected a number >= 0"),
        (lambda: ESNForecaster(method="closed_loop").fit(WAVES[:40]), "40 steps; washout=50 .* at least 53"),
        (lambda: ESNForecaster().fit([]), "series: "),
        (lambda: ESNForecaster(method="closed_loop").fit(np.append(WAVES, np.nan)), "series: .*NaN"),
        (lambda: ESNForecaster(method="direct", log=True).fit(WAVES), "log=True, but series 0 holds -"),
        (lambda: ESNForecaster(season=0).fit(WAVES), "season=0; expected 'auto', a whole number"),
        (lambda: ESNForecaster(**grouped(SMALL)).fit([WAVES, PLANE]), "series: .*different numbers of features"),
        (
            lambda: ESNForecaster(**grouped(SMALL)).fit(WAVES, exogenous=PUSH[:7]),
            "exogenous of series 0 has 7 rows; expected 300",
        ),
        (
            lambda: ESNForecaster(**grouped(SMALL)).fit([WAVES], exogenous=PUSH),
            "exogenous is one array; expected a list of 1",
        ),
        (lambda: ESNForecaster().predict(5), "not fitted"),
        (lambda: FITTED.predict(0), "horizon=0; expected a whole number >= 1"),
        (lambda: FITTED.predict(2.5), "horizon=2.5"),
        (lambda: FITTED.predict(WAVES[:9]), r"horizon is an array of shape \(9,\); .*warm_up=data\).*update\(data\)"),
        (lambda: FITTED.predict([1.0, 2.0]), r"horizon is a list of 2 entries; expected a whole number.*warm_up=data"),
        (lambda: ESNForecaster().fit(WAVES[None]), r"one row of 300 values: one step. Time runs down.*series\.T"),
        (lambda: ESNForecaster().fit(pd.Series(pd.date_range("2024", periods=90))), "series: X holds dates"),
        (lambda: FITTED.predict(5, warm_up=PLANE), "warm_up: X has 2 features"),
        (lambda: FITTED.predict(5, warm_up=WAVES[:10]), "washout=20, but sequence 0 has 10 steps"),
        (lambda: FITTED.predict(5, exogenous=PUSH[:5]), "fitted without"),
        (lambda: DRIVEN.predict(5), "fitted with 2 exogenous inputs"),
        (lambda: DRIVEN.predict(5, exogenous=PUSH[:4]), "has 4 rows; expected 5"),
        (lambda: DRIVEN.predict(5, warm_up=WAVES, exogenous=PUSH), "has 300 rows; expected 305"),
        (lambda: FITTED.forecast_interval(5, 1.5), "coverage=1.5"),
        (lambda: FITTED.forecast_interval(5, "most"), "coverage='most'"),
        (lambda: FITTED.forecast_interval(5, n_paths=1), "n_paths=1"),
        (lambda: FITTED.score(WAVES, horizon=0), "horizon=0"),
        (lambda: FITTED.score(WAVES[:25], horizon=10), "25 steps; washout=20 and horizon=10 need at least 32"),
    ],
)
def test_bad_input_is_explained(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_progress_is_shown_on_request(capsys):
    ESNForecaster(verbose=2, **grouped(SMALL)).fit(WAVES)
    assert capsys.readouterr().err.count("epoch ") == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ESNForecaster(**grouped(SMALL)).fit(WAVES)
    assert capsys.readouterr().err == ""
