"""The estimators of sktime: its own checks, and the same answers as echolearn's."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import echolearn

pytest.importorskip("sktime", reason="needs sktime, which only the interop environment has (make interop)")
pytestmark = pytest.mark.filterwarnings("ignore")  # sktime's own, and small networks that learn little

from sktime.forecasting.model_selection import ForecastingGridSearchCV  # noqa: E402
from sktime.split import ExpandingWindowSplitter  # noqa: E402
from sktime.utils.estimator_checks import check_estimator  # noqa: E402

from echolearn.interop import sktime  # noqa: E402
from toys import grouped  # noqa: E402

EXCLUDED: dict[str, str] = {}  # check -> reason


@pytest.mark.parametrize(
    ("name", "least"), [("SeriesClassifier", 200), ("SeriesRegressor", 100), ("ESNForecaster", 500)]
)
def test_it_passes_the_checks_of_sktime(name, least):
    found = check_estimator(getattr(sktime, name), verbose=False, tests_to_exclude=list(EXCLUDED) or None)
    assert len(found) >= least
    assert {check: result for check, result in found.items() if result != "PASSED"} == {}


def panel():
    rng = np.random.default_rng(0)
    cases = [rng.normal(size=(steps, 2)) for steps in rng.integers(15, 30, 24)]
    return cases, [pd.DataFrame(case) for case in cases]


def test_the_classifier_answers_as_echolearn_does():
    cases, frames = panel()
    y = np.array([str(case[:, 0].mean() > 0) for case in cases])
    theirs = sktime.SeriesClassifier(12, random_state=3).fit(frames, y)
    ours = echolearn.SeriesClassifier(12, random_state=3).fit(cases, y)
    assert (theirs.predict(frames) == ours.predict(cases)).all()
    assert np.array_equal(theirs.predict_proba(frames), ours.predict_proba(cases))


def test_the_regressor_takes_missing_values_if_told_how():
    cases, _ = panel()
    y = np.array([case.sum() for case in cases])
    cases[0][3, 1] = np.nan
    frames = [pd.DataFrame(case) for case in cases]
    with pytest.raises(ValueError, match="missing values"):
        sktime.SeriesRegressor(10).fit(frames, y)
    theirs = sktime.SeriesRegressor(10, missing="carry").fit(frames, y)
    assert np.array_equal(
        theirs.predict(frames), echolearn.SeriesRegressor(10, missing="carry").fit(cases, y).predict(cases)
    )


def monthly(columns=1, steps=90):
    t = np.arange(steps)
    values = np.stack([np.sin(t / (3 + k)) + 0.01 * t for k in range(columns)], axis=1)
    index = pd.period_range("2015-01", periods=steps, freq="M")
    return pd.Series(values[:, 0], index=index, name="sales") if columns == 1 else pd.DataFrame(values, index=index)


SMALL = {"hidden_units": 20, "learn": "none", "washout": 5}


@pytest.mark.parametrize("columns", [1, 2])
def test_the_forecaster_answers_as_echolearn_does(columns):
    y = monthly(columns)
    theirs = sktime.ESNForecaster(**grouped(SMALL)).fit(y, fh=[1, 4])
    ours = echolearn.ESNForecaster(**grouped(SMALL)).fit(y.to_numpy())
    assert np.array_equal(theirs.predict().to_numpy(), ours.predict(4)[[0, 3]])
    lower, upper = ours.forecast_interval(4, 0.8)
    bounds = theirs.predict_interval(coverage=0.8).to_numpy().reshape(2, columns, 2)
    assert np.array_equal(bounds[..., 0].squeeze(), lower[[0, 3]])
    assert np.array_equal(bounds[..., 1].squeeze(), upper[[0, 3]])


def test_the_forecaster_takes_exogenous_rows_by_their_date():
    y = monthly()
    X = pd.DataFrame({"load": np.cos(np.arange(96))}, index=pd.period_range("2015-01", periods=96, freq="M"))
    theirs = sktime.ESNForecaster(**grouped(SMALL)).fit(y, X=X.iloc[:90], fh=[2])
    ours = echolearn.ESNForecaster(**grouped(SMALL)).fit(y.to_numpy(), exogenous=X.to_numpy()[:90])
    expected = ours.predict(2, exogenous=X.to_numpy()[90:92])[-1]
    assert theirs.predict(X=X.iloc[90:]).item() == expected
    assert theirs.predict(X=X).item() == expected
    with pytest.raises(ValueError, match=r"need its rows for every step from 2022-07 to 2022-08; missing: 2022-07"):
        theirs.predict(X=X.iloc[91:])


def test_update_without_learning_moves_the_network_and_with_it_fits_anew():
    y = monthly(steps=100)
    moved = sktime.ESNForecaster(**grouped(SMALL)).fit(y[:90], fh=[1, 2]).update(y[90:], update_params=False)
    ours = echolearn.ESNForecaster(**grouped(SMALL)).fit(y[:90].to_numpy())
    np.testing.assert_allclose(moved.predict(), ours.predict(2, warm_up=y.to_numpy()), rtol=1e-12)
    assert str(moved.predict().index[0]) == "2023-05"
    anew = sktime.ESNForecaster(**grouped(SMALL)).fit(y[:90], fh=[1, 2]).update(y[90:])
    assert np.array_equal(anew.predict(), echolearn.ESNForecaster(**grouped(SMALL)).fit(y.to_numpy()).predict(2))


def test_parameters_can_be_searched():
    y = monthly()
    search = ForecastingGridSearchCV(
        sktime.ESNForecaster(**grouped(SMALL)),
        cv=ExpandingWindowSplitter(fh=[1, 2], initial_window=70, step_length=8),
        param_grid={"spectral_radius": [0.1, 0.9], "hidden_units": [5, 20]},
    ).fit(y, fh=[1, 2])
    assert search.best_params_["hidden_units"] in (5, 20)
    assert search.best_forecaster_.esn_.hidden_units == search.best_params_["hidden_units"]
