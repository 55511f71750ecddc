"""Warnings of `score`, and arguments in the wrong order."""

import warnings

import numpy as np
import pytest

from echolearn import DeepESNClassifier, ESNClassifier, ESNForecaster, ESNRegressor, SeriesClassifier
from echolearn.exceptions import PoorFitWarning, PoorScoreWarning
from echolearn.fitting.advice.scores import warn_of_poor_labels
from echolearn.metrics import permutation_importance

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 2))
ECHO = np.roll(X[:, 0], 1)
NAMES = np.where(ECHO > 0.3, "high", "low")
OTHER = RNG.permutation(NAMES)


@pytest.fixture(scope="module")
def classifier():
    return ESNClassifier(20, learn="none", washout=0).fit(X, NAMES)


@pytest.fixture(scope="module")
def regressor():
    return ESNRegressor(20, learn="none", washout=0).fit(X, ECHO)


def test_labels_no_better_than_the_majority(classifier):
    with pytest.warns(PoorScoreWarning, match=r"of these labels are right: no better than always answering 'low' \(6"):
        classifier.score(X, OTHER)
    assert classifier.score(X, NAMES) > 0.8  # without a warning


def test_a_few_labels_are_not_judged(classifier):
    assert classifier.score(X[:40], np.roll(NAMES[:40], 7)) < 0.8
    weights = np.r_[np.full(20, 1e6), np.full(380, 1e-6)]  # as good as 20 labels
    classifier.score(X, OTHER, sample_weight=weights)


@pytest.mark.parametrize(("right", "warns"), [(55, True), (60, True), (61, False), (90, False)])
def test_what_is_better_than_the_majority_does_not_warn(right, warns):
    true = np.repeat(["low", "high"], [60, 40])
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warn_of_poor_labels(true, np.arange(100) < right, None)
        warn_of_poor_labels(true[:60], np.arange(60) < right, None)  # only one label: nothing is better
    assert ["no better than always answering 'low' (60.0%)" in str(w.message) for w in found] == [True] * warns


def test_weights_of_classes_give_up_accuracy_on_purpose():
    rare = np.where(RNG.random(400) < 0.06, "rare", "usual")
    esn = ESNClassifier(20, learn="none", class_weight="balanced")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorFitWarning)
        esn.fit(X, rare)
    assert esn.score(X, rare) < 0.94


def test_values_no_better_than_the_mean(regressor):
    with pytest.warns(PoorScoreWarning, match=r"of the variance of these values: no better than always.*R² -"):
        regressor.score(X, RNG.permutation(ECHO))
    regressor.score(X[:40], RNG.permutation(ECHO[:40]))  # too few
    assert regressor.score(X, ECHO) > 0.9


def test_rows_of_labels_deep_networks_and_forecasters_warn_too():
    rows = np.stack([ECHO > 0, np.roll(ECHO, 1) > 0], axis=1).astype(int)
    esn = ESNClassifier(20, learn="none").fit([X] * 3, [rows] * 3)
    with pytest.warns(PoorScoreWarning, match="each label's most frequent value"):
        esn.score([X], [RNG.permutation(rows)])
    deep = DeepESNClassifier(8, 2, epochs=60).fit([X] * 3, [NAMES] * 3)
    with pytest.warns(PoorScoreWarning, match="'low'"):
        deep.score([X], [OTHER])
    series = np.sin(np.arange(300) / 5)
    forecaster = ESNForecaster(20, learn="none").fit(series)
    with pytest.warns(PoorScoreWarning, match="no better than always answering their mean"):
        forecaster.score(RNG.normal(size=300), horizon=3)


def test_shuffled_features_do_not_warn(regressor):
    found = permutation_importance(regressor, X, ECHO, n_repeats=1, random_state=0)
    assert found.importances_mean.argmax() == 0


def test_swapped_arguments_are_recognised(classifier, regressor):
    for esn, y in ((classifier, NAMES), (regressor, ECHO), (regressor, ECHO[:, None])):
        with pytest.raises(ValueError, match=r"X and y are swapped: y has the 2 features.*score\(X, y\)"):
            esn.score(y, X)
    whole = SeriesClassifier(10).fit([X[:20], X[20:40], X[40:60]] * 4, ["a", "b", "a"] * 4)
    with pytest.raises(ValueError, match="X and y are swapped"):
        whole.score(["a", "b"], [X[:20], X[20:40]])
    layer = ESNRegressor(5, learn="none")
    one = layer.fit(X[:, :1], ECHO)
    with pytest.raises(ValueError, match=r"X\[:, None\].*If X and y are swapped, call score\(X, y\)"):
        one.score(ECHO, X[:, :1])
    with pytest.raises(ValueError, match="NaN") as found:  # X is wrong, but no y
        regressor.score(np.full_like(X, np.nan), X)
    assert "swapped" not in str(found.value)


def test_labels_of_another_kind_are_refused(classifier):
    with pytest.raises(ValueError, match=r"y holds 0 and others.*such as those of the fit, 'high'"):
        classifier.score(X, np.zeros(400, int))
    numbers = ESNClassifier(10, learn="none").fit(X[:, :1], (ECHO > 0).astype(int))
    with pytest.raises(ValueError, match=r"look whether X and y are swapped"):
        numbers.score((ECHO > 0).astype(float)[:, None], X[:, 0])
