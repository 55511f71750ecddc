"""The estimators of aeon: its own checks, and the same answers as echolearn's."""

from __future__ import annotations

import numpy as np
import pytest

import echolearn

pytest.importorskip("aeon", reason="needs aeon, which only the interop environment has (make interop)")
pytestmark = pytest.mark.filterwarnings("ignore")  # aeon's own, and small networks that learn little

from aeon.testing.estimator_checking import check_estimator  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402

from echolearn.interop import aeon  # noqa: E402
from toys import grouped  # noqa: E402

EXCLUDED: dict[str, str] = {}  # check -> reason


@pytest.mark.parametrize(("name", "least"), [("SeriesClassifier", 40), ("SeriesRegressor", 40), ("ESNForecaster", 25)])
def test_it_passes_the_checks_of_aeon(name, least):
    found = check_estimator(getattr(aeon, name), checks_to_exclude=list(EXCLUDED) or None)
    assert len(found) >= least
    assert {check: result for check, result in found.items() if result != "PASSED"} == {}


def panel():
    rng = np.random.default_rng(0)
    return [rng.normal(size=(2, steps)) for steps in rng.integers(15, 30, 24)]


def test_the_classifier_answers_as_echolearn_does():
    cases = panel()
    y = np.array([str(case[0].mean() > 0) for case in cases])
    first = [case.T for case in cases]
    theirs = aeon.SeriesClassifier(12, random_state=3).fit(cases, y)
    ours = echolearn.SeriesClassifier(12, random_state=3).fit(first, y)
    assert (theirs.predict(cases) == ours.predict(first)).all()
    assert np.array_equal(theirs.predict_proba(cases), ours.predict_proba(first))


def test_the_regressor_answers_as_echolearn_does_and_can_be_searched():
    X = np.random.default_rng(0).normal(size=(30, 2, 20))
    y = X.sum(axis=(1, 2))
    theirs, ours = aeon.SeriesRegressor(10).fit(X, y), echolearn.SeriesRegressor(10).fit(X.transpose(0, 2, 1), y)
    assert np.array_equal(theirs.predict(X), ours.predict(X.transpose(0, 2, 1)))
    search = GridSearchCV(aeon.SeriesRegressor(), {"hidden_units": [3, 10]}, cv=2).fit(X, y)
    assert search.best_params_["hidden_units"] in (3, 10)


def test_the_forecaster_continues_any_series():
    y = np.sin(np.arange(120) / 3)
    small = {"hidden_units": 20, "learn": "none", "washout": 5}
    theirs = aeon.ESNForecaster(horizon=3, **grouped(small)).fit(y[:80])
    ours = echolearn.ESNForecaster(**grouped(small)).fit(y[:80])
    assert theirs.predict(y) == ours.predict(3, warm_up=y)[-1]
    iterated = aeon.ESNForecaster(**grouped(small)).iterative_forecast(y, 3)
    np.testing.assert_allclose(iterated, echolearn.ESNForecaster(**grouped(small)).fit(y).predict(3), atol=1e-8)
