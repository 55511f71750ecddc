"""Reservoir states as features for readouts of scikit-learn."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import toys
from echolearn import ES2NFeatures, ESNClassifier, ESNRegressor, FrameWise, Reservoir, ReservoirFeatures
from echolearn.reservoir._reservoir import bidirectional_reservoir
from echolearn.states import harvest
from reference.toolkit import es2n_states
from toys import grouped

X, VALUES = toys.echoes(sequences=10)
LABELS = toys.labels(sequences=10)[1]
OWN = Reservoir.random(2, 12, connections=4, leak=(0.2, 1.0), bias_scaling=0.2, random_state=1)
SMALL = {"hidden_units": 12, "connections": 4}
BY_NATURE = "a state depends on the frames before it"


@pytest.mark.filterwarnings("ignore:the means of the features")
@parametrize_with_checks(
    [ReservoirFeatures(hidden_units=20), ReservoirFeatures(hidden_units=20, direct=True)],
    expected_failed_checks=lambda _: {
        "check_methods_sample_order_invariance": BY_NATURE,
        "check_methods_subset_invariance": BY_NATURE,
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_a_reservoir_is_drawn_and_its_states_are_the_features():
    features = ReservoirFeatures(**SMALL, dtype="float64", leak=0.5, random_state=4).fit(X)
    drawn = Reservoir.random(2, 12, connections=4, input_scaling=0.5, bias_scaling=0.1, leak=0.5, random_state=4)
    np.testing.assert_array_equal(features.reservoir_.W, drawn.W)
    for H, x in zip(features.transform(X), X, strict=True):
        np.testing.assert_allclose(H, harvest(drawn, x), atol=1e-14)
    other = ReservoirFeatures(**SMALL, random_state=5).fit(X)
    assert np.abs(other.reservoir_.W - drawn.W).max() > 0.01


def test_a_given_reservoir_is_used_as_it_is():
    features = ReservoirFeatures(OWN, dtype="float64").fit(X)
    for H, x in zip(features.transform(X), X, strict=True):
        np.testing.assert_allclose(H, harvest(OWN, x), atol=1e-14)
    assert features.transform(X[0]).dtype == np.float64
    assert ReservoirFeatures(OWN).fit(X).transform(X[0]).dtype == np.float32


def test_states_come_in_the_form_of_X():
    features = ReservoirFeatures(OWN, direct=True).fit(X)
    n = min(map(len, X))
    assert features.transform(X[0]).shape == (len(X[0]), 14)
    assert features.transform(np.stack([x[:n] for x in X])).shape == (10, n, 14)
    assert [H.shape for H in features.transform(X)] == [(len(x), 14) for x in X]
    np.testing.assert_allclose(features.transform(X)[3][:, 12:], X[3], rtol=1e-6)


@pytest.mark.parametrize("direct", [True, False])
def test_a_ridge_of_scikit_learn_on_the_states_is_the_readout_of_an_estimator(direct):
    how = {"learn": "none", "dtype": "float64", "ridge": 0.1, "validation_fraction": 0.0, "direct": direct}
    how["standardize"] = False
    esn = ESNRegressor(reservoir=OWN, **grouped(how)).fit(X, VALUES)
    features = ReservoirFeatures(OWN, dtype="float64", direct=direct)
    states, values = np.concatenate(features.fit_transform(X)), np.concatenate(VALUES)
    # both standardise: the estimator its targets inside, the ridge in units of these
    mean, scale = values.mean(axis=0), values.std(axis=0)
    ridge = Ridge(alpha=0.1).fit(states, (values - mean) / scale)
    np.testing.assert_allclose(
        ridge.predict(states) * scale + mean, np.concatenate(esn.predict(X)), rtol=1e-6, atol=1e-6
    )
    model = make_pipeline(ReservoirFeatures(OWN, dtype="float64", direct=direct), Ridge(alpha=0.1))
    one = model.fit(X[0], (VALUES[0] - mean) / scale)  # a single series passes through a Pipeline as it is
    assert one.predict(X[0]).shape == VALUES[0].shape


@pytest.mark.parametrize("pooling", ["mean", "last", 1, 3])
@pytest.mark.parametrize("both_ways", [False, True])
def test_pooled_states_are_those_of_a_slow_version(pooling, both_ways):
    reservoir = bidirectional_reservoir(OWN, OWN) if both_ways else OWN
    features = ReservoirFeatures(reservoir, pooling=pooling, direct=True, washout=2, dtype="float64")
    H = features.fit_transform(X)
    parts = 1 if isinstance(pooling, str) else pooling
    assert H.shape == (10, parts * (reservoir.N + 2))
    for x, row in zip(X, H, strict=True):
        seen = np.hstack([harvest(reservoir, x), x])
        if pooling == "last":
            expected = seen[-1]
            if both_ways:  # units that run backward have seen the whole sequence at its first step
                expected[12:24] = seen[0, 12:24]
        else:
            n = len(x) - 2
            steps = [range(2 + p * n // parts, 2 + int(np.ceil((p + 1) * n / parts))) for p in range(parts)]
            expected = np.concatenate([sum(seen[t] for t in part) / len(part) for part in steps])
        np.testing.assert_allclose(row, expected, atol=1e-12)
    assert len(features.get_feature_names_out()) == H.shape[1]


def test_a_fitted_estimator_gives_its_learned_states():
    esn = ESNClassifier(**grouped(toys.FAST)).fit(X, LABELS)
    features = ReservoirFeatures(esn).fit(X)
    assert features.estimator_ is esn
    for H, states in zip(features.transform(X), esn.states(X), strict=True):
        np.testing.assert_array_equal(H, states)
    with_feedback = ESNClassifier(feedback=True, **grouped(toys.FAST)).fit(X, LABELS)
    np.testing.assert_array_equal(
        ReservoirFeatures(with_feedback).fit_transform(X[:1])[0], with_feedback.states(X[:1])[0]
    )


def test_an_estimator_that_is_not_fitted_is_fitted_in_a_copy():
    esn = ESNClassifier(**grouped(toys.FAST))
    features = ReservoirFeatures(esn).fit(X, LABELS)
    assert not hasattr(esn, "network_")
    np.testing.assert_array_equal(features.reservoir_.W, clone(esn).fit(X, LABELS).reservoir_.W)
    with pytest.raises(ValueError, match="is not fitted, and y=None: give fit"):
        ReservoirFeatures(esn).fit(X)
    drawn = features.set_params(reservoir=None, hidden_units=7).fit(X)
    assert drawn.estimator_ is None
    assert drawn.reservoir_.N == 7


def test_one_label_per_sequence_in_a_pipeline():
    series, y = toys.rising()
    model = make_pipeline(
        ReservoirFeatures(hidden_units=20, pooling="last"), StandardScaler(), LogisticRegression(C=10)
    )
    assert cross_val_score(model, series, y, cv=4).mean() > 0.8
    found = GridSearchCV(model, {"reservoirfeatures__spectral_radius": [0.3, 0.9]}, cv=2).fit(series, y)
    assert found.best_score_ > 0.7


def test_one_label_per_step_in_a_pipeline():
    model = make_pipeline(ReservoirFeatures(OWN, direct=True), FrameWise(LogisticRegression(C=100)))
    answers = model.fit(X, LABELS).predict(X)
    assert [len(a) for a in answers] == [len(x) for x in X]
    states = np.concatenate(ReservoirFeatures(OWN, direct=True).fit_transform(X))
    joined = LogisticRegression(C=100).fit(states, np.concatenate(LABELS))
    np.testing.assert_array_equal(np.concatenate(answers), joined.predict(states))
    assert model.score(X, LABELS) == joined.score(states, np.concatenate(LABELS))
    assert cross_val_score(model, X, LABELS, cv=2).shape == (2,)


def test_names_of_the_features():
    named = ReservoirFeatures(OWN, direct=True).fit(pd.DataFrame(X[0], columns=["a", "b"]))
    assert list(named.get_feature_names_out()[-3:]) == ["reservoir11", "a", "b"]
    plain = ReservoirFeatures(OWN, direct=True, pooling=2).fit(X)
    assert list(plain.get_feature_names_out()[[0, 13, 14]]) == ["part0_reservoir0", "part0_x1", "part1_reservoir0"]
    assert list(plain.get_feature_names_out(["u", "v"])[-1:]) == ["part1_v"]
    with pytest.raises(ValueError, match="input_features"):
        plain.get_feature_names_out(["u"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"reservoir": 5}, "reservoir=5; expected None"),
        ({"pooling": "max"}, "pooling='max'; expected None"),
        ({"direct": 1}, "direct=1; expected"),
        ({"hidden_units": 0}, "hidden_units=0; expected"),
        ({"leak": 2.0}, "leak=2.0; expected"),
        ({"reservoir": Reservoir.random(3, 5, random_state=0)}, "reservoir has 3 inputs; X has 2"),
        ({"reservoir": Reservoir.random(2, 5, n_feedback=1, random_state=0)}, "feedback weights, but no readout"),
        ({"pooling": "mean", "washout": 100}, "washout=100, but sequence 0"),
    ],
)
def test_what_cannot_be_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        ReservoirFeatures(**settings).fit(X).transform(X)


# ES2NFeatures against a slow version, and what they are good for.


def test_es2n_states_are_those_of_a_slow_version():
    X = [np.random.default_rng(n).standard_normal((n, 2)) for n in (20, 13)]
    features = ES2NFeatures(11, proximity=0.3, input_scaling=0.7, bias_scaling=0.2).fit(X)
    for x, H in zip(X, features.transform(X), strict=True):
        np.testing.assert_allclose(H, es2n_states(features.reservoir_, features.rotation_, 0.3, x), atol=1e-12)
    np.testing.assert_allclose(features.rotation_ @ features.rotation_.T, np.eye(11), atol=1e-12)
    plain = ES2NFeatures(11, proximity=1.0).fit(X)
    np.testing.assert_allclose(plain.transform(X[0]), harvest(plain.reservoir_, X[0]), atol=1e-12)
    with pytest.raises(ValueError, match="proximity=0"):
        ES2NFeatures(proximity=0).fit(X)


def test_es2n_remembers_longer_than_an_ordinary_network():
    """An input of thirty steps ago, by a ridge readout: the reason for which people use it."""
    u = np.random.default_rng(0).uniform(-0.5, 0.5, (1500, 1))
    X, y = u[30:], u[:-30, 0]
    errors = []
    for proximity in (0.05, 1.0):
        model = make_pipeline(ES2NFeatures(60, proximity=proximity), FrameWise(Ridge(1e-8)))
        model.fit(X[:1000], y[:1000])
        errors.append(np.mean((model.predict(X)[1050:] - y[1050:]) ** 2) / y.var())
    assert errors[0] < 0.3 < 0.7 < errors[1]
