"""What the estimators share: scikit-learn's conventions, forms of input, views of the fitted network."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import toys
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, Reservoir
from toys import grouped

BY_NATURE = "a state depends on the frames before it"
EXPECTED = {
    "check_methods_sample_order_invariance": BY_NATURE,
    "check_methods_subset_invariance": BY_NATURE,
    # a step that is removed or repeated changes the states after it; see test_target_rules for sequences
    "check_sample_weight_equivalence_on_dense_data": BY_NATURE,
}

X, LABELS = toys.labels(sequences=8)
VALUES = toys.echoes(sequences=8)[1]
BOTH = pytest.mark.parametrize(
    ("kind", "y"), [(ESNClassifier, LABELS), (ESNRegressor, VALUES)], ids=["labels", "values"]
)


@pytest.mark.filterwarnings("ignore:the means of the features")  # which are 100 in some checks
@parametrize_with_checks(
    [ESNClassifier(epochs=2), ESNRegressor(epochs=2), ESNClassifier(readout="ridge", **grouped(toys.FAST))],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", [ESNClassifier, ESNRegressor])
def test_clone_and_params(kind):
    esn = kind(7, leak=0.5, ridge=[1e-3, 1.0], random_state=3)
    twin = clone(esn)
    assert twin.get_params() == esn.get_params()
    assert twin.set_params(hidden_units=9).hidden_units == 9
    assert esn.hidden_units == 7
    assert "hidden_units=7" in repr(esn)


@BOTH
@pytest.mark.parametrize(("dtype", "close"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("feedback", [False, True])
def test_batched_one_by_one_and_joined_agree(kind, y, dtype, close, feedback):
    esn = kind(dtype=dtype, feedback=feedback, **grouped(toys.FAST)).fit(X, y)
    answer = esn.predict if kind is ESNRegressor else esn.predict_proba
    batched = answer(X)
    joined = answer(np.concatenate(X), lengths=[len(x) for x in X])
    scale = max(1.0, np.abs(joined).max())
    np.testing.assert_allclose(joined, np.concatenate(batched), rtol=0, atol=close * scale)
    for x, together in zip(X, batched, strict=True):
        np.testing.assert_allclose(answer(x), together, rtol=0, atol=close * scale)
        np.testing.assert_allclose(answer([x])[0], together, rtol=0, atol=close * scale)


@BOTH
def test_causality(kind, y):
    esn = kind(**grouped(toys.FAST)).fit(X, y)
    answer = esn.predict if kind is ESNRegressor else esn.decision_function
    x = X[0].copy()
    before = answer(x)
    x[6:] += 3.0
    np.testing.assert_array_equal(answer(x)[:6], before[:6])
    assert (answer(x)[6:] != before[6:]).any()


@BOTH
def test_same_seed_same_bits_and_an_earlier_call_changes_nothing(kind, y):
    a, b = (kind(random_state=4, **grouped(toys.FAST)).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(a.network_.readout.U, b.network_.readout.U)
    np.testing.assert_array_equal(a.input_weights_, b.input_weights_)
    np.testing.assert_array_equal(a.recurrent_weights_.data, b.recurrent_weights_.data)
    first = a.predict(X[0])
    a.predict(X[1])
    np.testing.assert_array_equal(a.predict(X[0]), first)
    assert (kind(random_state=5, **grouped(toys.FAST)).fit(X, y).input_weights_ != a.input_weights_).any()
    np.testing.assert_array_equal(a.fit(X, y).network_.readout.U, b.network_.readout.U)  # a second fit starts anew


@BOTH
def test_learned_weights_have_words_and_shapes(kind, y):
    esn = kind(feedback=True, **grouped(toys.FAST)).fit(X, y)
    assert esn.input_weights_.shape == (2, 15)
    assert sparse.issparse(esn.recurrent_weights_)
    assert esn.recurrent_weights_.shape == (15, 15)
    assert esn.feedback_weights_.shape == (15, 2)
    assert esn.readout_weights_.shape == (15 + 2, 2)
    assert esn.intercept_.shape == (2,)
    assert esn.n_features_in_ == 2


def test_data_frames():
    whole, y = np.concatenate(X), np.concatenate(LABELS)
    frame = pd.DataFrame(whole, columns=["a", "b"])
    esn = ESNClassifier(**grouped(toys.FAST)).fit(frame, pd.Series(y))
    assert list(esn.feature_names_in_) == ["a", "b"]
    plain = ESNClassifier(**grouped(toys.FAST)).fit(whole, y)
    np.testing.assert_array_equal(esn.predict(frame), plain.predict(whole))
    with pytest.raises(ValueError, match="feature names should match"):
        esn.predict(frame.rename(columns={"a": "c"}))
    esn.fit(whole, y)
    assert not hasattr(esn, "feature_names_in_")


def test_pipeline_and_scoring():
    whole, y = np.concatenate(X), np.concatenate(LABELS)
    pipe = make_pipeline(StandardScaler(), ESNClassifier(**grouped(toys.FAST))).fit(whole, y)
    assert 0 <= pipe.score(whole, y) <= 1
    ragged = make_pipeline(FunctionTransformer(lambda X: [2 * x for x in X]), ESNRegressor(**grouped(toys.FAST)))
    assert len(ragged.fit(X, VALUES).predict(X)) == len(X)


@BOTH
@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorScoreWarning")
def test_cross_validation_of_ragged_lists(kind, y):
    scores = cross_val_score(kind(**grouped(toys.FAST)), X, y, cv=KFold(3), error_score="raise")
    by_hand = []
    for train, test in KFold(3).split(X):
        esn = kind(**grouped(toys.FAST)).fit([X[i] for i in train], [y[i] for i in train])
        by_hand.append(esn.score([X[i] for i in test], [y[i] for i in test]))
    np.testing.assert_allclose(scores, by_hand, rtol=1e-12)
    search = GridSearchCV(kind(**grouped(toys.FAST)), {"leak": [0.3, 1.0]}, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_["leak"] in (0.3, 1.0)
    assert len(search.predict(X)) == len(X)


def test_score_with_targets_of_the_other_kind():
    esn = ESNClassifier(**grouped(toys.FAST)).fit(X, LABELS)
    with pytest.raises(
        ValueError, match=r"y has one entry per sequence, but this network was fitted with one entry per step"
    ):
        esn.score(X, ["low"] * 8)


def test_reservoir_is_public():
    assert isinstance(ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES).reservoir_, Reservoir)


# Attributes of fitted estimators are views of their model.


X_views = np.random.default_rng(0).normal(size=(80, 2))
SMALL = {"hidden_units": 8, "learn": "none", "washout": 5}
FITTED = (
    ESNRegressor(**SMALL).fit(X_views, X_views[:, 0]),
    ESNForecaster(**SMALL, method="closed_loop").fit(X_views),
)


@pytest.mark.parametrize("esn", FITTED, ids=lambda esn: type(esn).__name__)
def test_views_are_those_of_the_model(esn):
    network = esn.model_.network
    assert esn.network_ is network
    assert esn.reservoir_ is network.reservoir
    assert esn.history_ is esn.model_.history
    assert esn.n_features_in_ == 2
    assert esn.ridge_ == network.readout.ridge
    np.testing.assert_array_equal(esn.input_weights_, network.reservoir.W)
    assert esn.recurrent_weights_ is network.reservoir.W_rec
    np.testing.assert_array_equal(np.vstack([esn.readout_weights_, esn.intercept_]), network.readout.U)


def test_names_are_those_of_a_table():
    table = pd.DataFrame(X_views, columns=["a", "b"])
    assert ESNForecaster(**SMALL, method="direct").fit(table).feature_names_in_.tolist() == ["a", "b"]
    assert ESNRegressor(**SMALL).fit(table, X_views[:, 0]).feature_names_in_.tolist() == ["a", "b"]
    for esn in FITTED:
        with pytest.raises(AttributeError, match="without names of columns"):
            _ = esn.feature_names_in_


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("later", [1.0, 5.0])
def test_partial_fit_keeps_the_scale_of_its_first_call(standardize, later):
    """The readout is that of all data for this scale; one fit to all data has another, unless nothing is scaled."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(40, 2)) * scale for scale in (1.0, 1.0, later, later)]
    y = [np.where(x[:, 0] > 0, "up", "down") for x in X]
    how = {"hidden_units": 10, "learn": "none", "readout": "ridge", "ridge": 1e-3, "dtype": "float64"}
    parts = ESNClassifier(**how, standardize=standardize).partial_fit(X[:2], y[:2], classes=["down", "up"])
    first = np.concatenate(X[:2])
    mean, scale = (first.mean(axis=0), first.std(axis=0)) if standardize else (0.0, 1.0)
    whole = ESNClassifier(**how, standardize=False).fit([(x - mean) / scale for x in X], y)
    parts.partial_fit(X[2:], y[2:])
    np.testing.assert_allclose(parts.readout_weights_, whole.readout_weights_, rtol=1e-3, atol=1e-5)
    at_once = ESNClassifier(**how, standardize=standardize).fit(X, y)
    same = np.allclose(parts.readout_weights_, at_once.readout_weights_, rtol=1e-3, atol=1e-5)
    assert same == (not standardize)
    assert "`standardize=True`" in ESNClassifier.partial_fit.__doc__
