"""Warnings after a fit and in a score: each beside data that must not cause it."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from echolearn import ESNClassifier, ESNRegressor
from echolearn.datasets import mackey_glass
from echolearn.exceptions import PoorFitWarning, ReadoutWarning
from echolearn.fitting.advice.after import _remark_on_strength
from echolearn.fitting.advice.baselines import Outcome
from echolearn.readout.ridge import solve, solve_without
from echolearn.readout.softmax import SOFTMAX_STRENGTHS
from echolearn.readout.statistics import statistics_of
from toys import grouped

RNG = np.random.default_rng(0)
NOISE = RNG.normal(size=(2000, 2))
OTHER = RNG.normal(size=2000)
ECHO = NOISE[:, 0] + np.roll(NOISE[:, 1], 2) + 0.3 * OTHER
FIXED = {"learn": "none", "random_state": 0}


def warned(fit):
    """Return the texts of all warnings."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit()
    assert all(w.filename == __file__ for w in found)
    return [str(w.message) for w in found]


@pytest.mark.parametrize("readout", ["ridge", "softmax"])
def test_labels_that_x_does_not_tell_apart(readout):
    esn = ESNClassifier(30, readout=readout, **grouped(FIXED))
    with pytest.warns(PoorFitWarning, match=r"labels are right: (no|hardly) better than always answering 'b'"):
        esn.fit(NOISE, np.where(OTHER > 0.1, "a", "b"))
    assert warned(lambda: esn.fit(NOISE, np.where(ECHO > 0.1, "a", "b"))) == []


def test_a_rare_class_that_is_found_is_no_poor_fit():
    rare = np.where(NOISE[:, 0] > 1.5, "rare", "usual")
    assert warned(lambda: ESNClassifier(30, **grouped(FIXED)).fit(NOISE, rare)) == []
    with pytest.warns(PoorFitWarning, match="always answering 'usual'"):
        ESNClassifier(30, **grouped(FIXED)).fit(NOISE, np.where(OTHER > 1.5, "rare", "usual"))


def test_values_that_have_nothing_to_do_with_x():
    esn = ESNRegressor(30, **grouped(FIXED))
    with pytest.warns(PoorFitWarning, match="no better than always answering the mean") as found:
        esn.fit(NOISE, OTHER)
    assert len(found) == 1
    assert warned(lambda: esn.fit(NOISE, ECHO)) == []
    assert warned(lambda: esn.fit(NOISE[:120], OTHER[:120])) == []  # too few held-out targets to tell


@pytest.mark.parametrize("ensemble", [1, 2])
@pytest.mark.parametrize(
    ("settings", "first"),
    [
        ({"readout": "ridge"}, "more data"),
        ({"readout": "ridge", "ridge": 1e-6}, "ridge='auto', more data"),
        ({"ridge": 1e-6}, "more data"),  # the penalty of softmax outputs is chosen nevertheless
    ],
)
def test_a_ridge_that_was_given_is_the_first_suspect(settings, first, ensemble):
    parts = [slice(i, i + 100) for i in range(0, 2000, 100)]
    esn = ESNClassifier(20, **settings, ensemble=ensemble, **grouped(FIXED))
    with pytest.warns(PoorFitWarning, match=f"then try {first}, more hidden_units"):
        esn.fit([NOISE[p] for p in parts], [OTHER[p] > 0 for p in parts])


def test_an_ensemble_warns_once():
    parts = [slice(i, i + 100) for i in range(0, 2000, 100)]
    esn = ESNClassifier(20, ensemble=2, epochs=1, learning={"refine_epochs": 0}, random_state=0)
    with pytest.warns(PoorFitWarning) as found:
        esn.fit([NOISE[p] for p in parts], [OTHER[p] > 0 for p in parts])
    assert len([w for w in found if w.category is PoorFitWarning]) == 1


def test_a_random_walk_is_no_better_than_its_last_value():
    walk = np.cumsum(OTHER)[:, None]
    with pytest.warns(PoorFitWarning, match=r"no better than that of repeating the last value"):
        ESNRegressor(30, **grouped(FIXED)).fit(walk[:-1], walk[1:, 0])
    series = np.asarray(mackey_glass(2000)).reshape(-1, 1)
    assert warned(lambda: ESNRegressor(50, **grouped(FIXED)).fit(series[:-10], series[10:, 0])) == []


def test_predictions_that_lag():
    slow = np.zeros(2000)
    for t in range(1, 2000):
        slow[t] = 0.97 * slow[t - 1] + 0.25 * OTHER[t]
    seen = (slow**3)[:, None]  # not a series that resembles the target
    with pytest.warns(PoorFitWarning, match=r"predictions lag [345] steps behind the held-out targets"):
        ESNRegressor(50, **grouped(FIXED)).fit(seen[:-5], slow[5:])
    assert warned(lambda: ESNRegressor(50, **grouped(FIXED)).fit(seen[5:], slow[5:])) == []


def test_a_ridge_at_an_edge_where_the_error_still_falls():
    few = slice(600)
    esn = ESNRegressor(300, ridge=[1e-6, 1e-5], **grouped(FIXED))
    with pytest.warns(ReadoutWarning, match=r"ridge=1e-05 was chosen at the upper edge.*ridge=\[1e-05, 0\.0001"):
        esn.fit(NOISE[few], ECHO[few])
    with pytest.warns(ReadoutWarning, match=r"ridge=1e\+04 was chosen at the lower edge.*or more hidden_units"):
        ESNRegressor(30, ridge=[1e4, 1e5], **grouped(FIXED)).fit(NOISE, ECHO)
    assert warned(lambda: ESNRegressor(30, ridge="auto", **grouped(FIXED)).fit(NOISE, ECHO)) == []
    exact = NOISE[:, 0]  # the error is at rounding level: a smaller ridge is of no use
    assert warned(lambda: ESNRegressor(30, ridge=[1e-3, 1.0], **grouped(FIXED)).fit(NOISE, exact)) == []


def test_more_columns_than_targets():
    X, y = NOISE[:200], NOISE[:200, 0] * np.roll(NOISE[:200, 1], 1)
    with pytest.warns(ReadoutWarning, match=r"302 columns of states and inputs for 180 targets.*ridge='auto'"):
        ESNRegressor(300, ridge=1e-9, **grouped(FIXED)).fit(X, y)
    assert warned(lambda: ESNRegressor(300, **grouped(FIXED)).fit(X, y)) == []
    assert warned(lambda: ESNRegressor(50, ridge=1e-9, **grouped(FIXED)).fit(X, X[:, 0])) == []


@pytest.mark.parametrize(("strength", "edge"), [(30.0, "upper"), (0.1, "lower"), (3.0, None)])
@pytest.mark.parametrize("factor", [3.0, 1.0, 0.15])
def test_a_strength_at_an_edge_where_other_logits_are_better(strength, edge, factor):
    logit = 5 * OTHER
    labels = (RNG.random(2000) < 1 / (1 + np.exp(-logit))).astype(int)  # right with the logits as they are
    Y = factor * np.stack([np.zeros(2000), logit], axis=1)
    outcome = Outcome([np.empty((2000, 0))], [labels], [Y], [np.ones(2000)], True)
    unseen, fit = SimpleNamespace(outcome=lambda: outcome), SimpleNamespace(square=4.0, n=2.0)
    found = _remark_on_strength(unseen, strength, fit, SOFTMAX_STRENGTHS)
    expected = (edge, factor) in [("upper", 3.0), ("lower", 0.15)]
    assert [f"at the {edge} edge" in text for text in found.values()] == [True] * expected


def test_a_cold_start_that_dominates_a_score():
    series = np.asarray(mackey_glass(2100)).reshape(-1, 1)
    X, y = series[:-10], series[10:, 0]
    esn = ESNRegressor(50, washout=0, **grouped(FIXED)).fit(X[:1500], y[:1500])
    with pytest.warns(PoorFitWarning, match=r"the first \d+ steps of each sequence.*warm_up=.*washout=\d+"):
        esn.score([X[1600:2000]], [y[1600:2000]])
    assert warned(lambda: esn.score([X[1600:2000]], [y[1600:2000]], warm_up=[X[1500:1600]])) == []
    settled = ESNRegressor(50, washout=100, **grouped(FIXED)).fit(X[:1500], y[:1500])
    assert warned(lambda: settled.score([X[1600:2000]], [y[1600:2000]])) == []


def test_a_readout_without_a_part_is_that_of_the_rest():
    H_c = np.hstack([NOISE[:300], np.ones((300, 1))])
    T = OTHER[:300, None]
    whole, part, rest = (statistics_of(H_c[s], T[s], 1) for s in (slice(300), slice(200, 300), slice(200)))
    np.testing.assert_allclose(solve_without(whole, part, 0.1), solve(rest, 0.1, intercept=True), rtol=1e-9)
    assert solve_without(whole, part, 0.0) is None
    assert solve_without(whole, whole, 0.1) is None
