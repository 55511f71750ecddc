"""The estimators as people use them: scikit-learn's habits, forms of input, learning, trouble."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference as ref
import toys
from echolearn import ESNClassifier, ESNRegressor, Reservoir
from echolearn.estimators.classifier import nearest_distribution
from echolearn.gradients.loss import loss_and_gradients
from echolearn.readout import collect as passes
from echolearn.reservoir.reservoir import EchoStateWarning
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import split
from echolearn.states import run as states
from echolearn.states.harvesting import harvest
from echolearn.training.loop import TrainingWarning

BY_NATURE = "a state depends on the frames before it"
EXPECTED = {
    "check_methods_sample_order_invariance": BY_NATURE,
    "check_methods_subset_invariance": BY_NATURE,
}
BOTH = [ESNClassifier, ESNRegressor]

X, LABELS = toys.labels(sequences=8)
VALUES = toys.echoes(sequences=8)[1]
RISING_X, RISING = toys.rising()


def targets_for(kind):
    return LABELS if kind is ESNClassifier else VALUES


@pytest.mark.filterwarnings("ignore:the means of the features")  # which are 100 in some checks
@parametrize_with_checks(
    [ESNClassifier(epochs=2), ESNRegressor(epochs=2), ESNClassifier(**toys.FAST, readout="ridge")],
    expected_failed_checks=lambda _: EXPECTED,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", BOTH)
def test_clone_and_params(kind):
    esn = kind(7, leak=0.5, ridge=[1e-3, 1.0], random_state=3)
    twin = clone(esn)
    assert twin.get_params() == esn.get_params()
    assert twin.set_params(hidden_units=9).hidden_units == 9
    assert esn.hidden_units == 7
    assert "hidden_units=7" in repr(esn)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(("dtype", "close"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("feedback", [False, True])
def test_batched_one_by_one_and_joined_agree(kind, dtype, close, feedback):
    esn = kind(**toys.FAST, dtype=dtype, feedback=feedback).fit(X, targets_for(kind))
    answer = esn.predict if kind is ESNRegressor else esn.predict_proba
    batched = answer(X)
    joined = answer(np.concatenate(X), lengths=[len(x) for x in X])
    scale = max(1.0, np.abs(joined).max())
    np.testing.assert_allclose(joined, np.concatenate(batched), rtol=0, atol=close * scale)
    for x, together in zip(X, batched, strict=True):
        np.testing.assert_allclose(answer(x), together, rtol=0, atol=close * scale)
        np.testing.assert_allclose(answer([x])[0], together, rtol=0, atol=close * scale)


@pytest.mark.parametrize("pooling", ["mean", "last", 3])
def test_pooled_batched_and_one_by_one_agree(pooling):
    esn = ESNClassifier(**toys.FAST, pooling=pooling, dtype="float64").fit(RISING_X, RISING)
    together = esn.predict_proba(RISING_X)
    alone = np.concatenate([esn.predict_proba([x]) for x in RISING_X])
    joined = esn.predict_proba(np.concatenate(RISING_X), lengths=[len(x) for x in RISING_X])
    np.testing.assert_allclose(alone, together, atol=1e-12)
    np.testing.assert_allclose(joined, together, atol=1e-12)


@pytest.mark.parametrize("kind", BOTH)
def test_causality(kind):
    esn = kind(**toys.FAST).fit(X, targets_for(kind))
    answer = esn.predict if kind is ESNRegressor else esn.decision_function
    x = X[0].copy()
    before = answer(x)
    x[6:] += 3.0
    np.testing.assert_array_equal(answer(x)[:6], before[:6])
    assert (answer(x)[6:] != before[6:]).any()


@pytest.mark.parametrize("kind", BOTH)
def test_same_seed_same_bits_and_an_earlier_call_changes_nothing(kind):
    y = targets_for(kind)
    a, b = (kind(**toys.FAST, random_state=4).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(a._U, b._U)
    np.testing.assert_array_equal(a.input_weights_, b.input_weights_)
    np.testing.assert_array_equal(a.recurrent_weights_.data, b.recurrent_weights_.data)
    first = a.predict(X[0])
    a.predict(X[1])
    np.testing.assert_array_equal(a.predict(X[0]), first)
    assert (kind(**toys.FAST, random_state=5).fit(X, y).input_weights_ != a.input_weights_).any()
    np.testing.assert_array_equal(a.fit(X, y)._U, b._U)  # a second fit starts anew


@pytest.mark.parametrize("kind", BOTH)
def test_learned_weights_have_words_and_shapes(kind):
    esn = kind(**toys.FAST, feedback=True).fit(X, targets_for(kind))
    assert esn.input_weights_.shape == (2, 15)
    assert sparse.issparse(esn.recurrent_weights_)
    assert esn.recurrent_weights_.shape == (15, 15)
    assert esn.feedback_weights_.shape == (15, 2)
    assert esn.readout_weights_.shape == (15 + 2, 2)
    assert esn.intercept_.shape == (2,)
    assert esn.n_features_in_ == 2


@pytest.mark.parametrize("readout", ["softmax", "ridge"])
def test_probabilities(readout):
    esn = ESNClassifier(**toys.FAST, readout=readout).fit(X, LABELS)
    for P, label, logs in zip(esn.predict_proba(X), esn.predict(X), esn.predict_log_proba(X), strict=True):
        np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
        assert (P >= 0).all()
        np.testing.assert_array_equal(esn.classes_[P.argmax(axis=1)], label)
        np.testing.assert_allclose(np.exp(logs), P, atol=1e-15)


def test_nearest_distribution_is_the_projection_on_the_simplex():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(50, 4))
    P = nearest_distribution(Y)
    # of all distributions tried, none is nearer
    for Q in rng.dirichlet(np.full(4, 0.3), size=400):
        assert (((Y - P) ** 2).sum(axis=1) <= ((Y - Q) ** 2).sum(axis=1) + 1e-12).all()
    already = rng.dirichlet(np.ones(4), size=5)
    np.testing.assert_allclose(nearest_distribution(already), already, atol=1e-12)
    assert np.isnan(nearest_distribution(np.array([[1.0, np.nan], [np.inf, 0.0]]))).all()  # and it ends


@pytest.mark.parametrize(
    "names", [("low", "high"), (3, -7), (0.0, 1.0), (True, False), ("é", "日本")], ids=lambda n: str(n[0])
)
def test_kinds_of_labels(names):
    X, y = toys.labels(names=names, sequences=6)
    esn = ESNClassifier(**toys.FAST).fit(X, y)
    np.testing.assert_array_equal(esn.classes_, np.unique(names))
    assert set(np.concatenate(esn.predict(X)).tolist()) <= set(names)
    assert esn.score(X, y) == np.mean(np.concatenate(esn.predict(X)) == np.concatenate(y))


def test_labels_of_mixed_types_are_named():
    y = [np.array(["a"] + [1] * (len(x) - 1), dtype=object) for x in X]
    with pytest.raises((ValueError, TypeError), match=r"types? .*int.*str|mixes labels"):
        ESNClassifier(**toys.FAST).fit(X, y)


def test_more_than_two_classes_and_decision_function():
    y = [np.digitize(v[:, 0], [-0.5, 0.5]) for v in VALUES]
    esn = ESNClassifier(**toys.FAST).fit(X, y)
    assert esn.decision_function(X)[0].shape == (len(X[0]), 3)
    np.testing.assert_array_equal(esn.decision_function(X)[0].argmax(axis=1), esn.predict(X)[0])
    two = ESNClassifier(**toys.FAST).fit(X, LABELS)
    np.testing.assert_array_equal(two.classes_[(two.decision_function(X)[0] > 0) * 1], two.predict(X)[0])


def test_data_frames():
    whole, y = np.concatenate(X), np.concatenate(LABELS)
    frame = pd.DataFrame(whole, columns=["a", "b"])
    esn = ESNClassifier(**toys.FAST).fit(frame, pd.Series(y))
    assert list(esn.feature_names_in_) == ["a", "b"]
    plain = ESNClassifier(**toys.FAST).fit(whole, y)
    np.testing.assert_array_equal(esn.predict(frame), plain.predict(whole))
    with pytest.raises(ValueError, match="feature names should match"):
        esn.predict(frame.rename(columns={"a": "c"}))
    esn.fit(whole, y)
    assert not hasattr(esn, "feature_names_in_")


def test_pipeline_and_scoring():
    whole, y = np.concatenate(X), np.concatenate(LABELS)
    pipe = make_pipeline(StandardScaler(), ESNClassifier(**toys.FAST)).fit(whole, y)
    assert 0 <= pipe.score(whole, y) <= 1
    ragged = make_pipeline(FunctionTransformer(lambda X: [2 * x for x in X]), ESNRegressor(**toys.FAST))
    assert len(ragged.fit(X, VALUES).predict(X)) == len(X)


@pytest.mark.parametrize("kind", BOTH)
def test_cross_validation_of_ragged_lists(kind):
    y = targets_for(kind)
    scores = cross_val_score(kind(**toys.FAST), X, y, cv=KFold(3), error_score="raise")
    by_hand = []
    for train, test in KFold(3).split(X):
        esn = kind(**toys.FAST).fit([X[i] for i in train], [y[i] for i in train])
        by_hand.append(esn.score([X[i] for i in test], [y[i] for i in test]))
    np.testing.assert_allclose(scores, by_hand, rtol=1e-12)
    search = GridSearchCV(kind(**toys.FAST), {"leak": [0.3, 1.0]}, cv=2, error_score="raise").fit(X, y)
    assert search.best_params_["leak"] in (0.3, 1.0)
    assert len(search.predict(X)) == len(X)


def test_cross_validation_with_one_label_a_sequence():
    esn = ESNClassifier(**toys.FAST)
    assert cross_val_score(esn, RISING_X, RISING, cv=3, error_score="raise").mean() > 0.8
    search = GridSearchCV(esn, {"pooling": ["mean", "last"]}, cv=3, scoring="accuracy", error_score="raise")
    assert search.fit(RISING_X, RISING).best_score_ > 0.8
    assert cross_val_predict(esn, RISING_X, RISING, cv=3).shape == RISING.shape


def test_score_against_hand_counts():
    esn = ESNRegressor(**toys.FAST).fit(X, VALUES)
    true, got = np.concatenate(VALUES), np.concatenate(esn.predict(X))
    r2 = 1 - ((true - got) ** 2).sum(axis=0) / ((true - true.mean(axis=0)) ** 2).sum(axis=0)
    assert esn.score(X, VALUES) == pytest.approx(r2.mean())
    whole = np.concatenate(X), [len(x) for x in X]
    assert esn.score(whole[0], true, lengths=whole[1]) == pytest.approx(r2.mean(), abs=1e-5)


def test_score_of_a_column_of_labels():
    whole, y = np.concatenate(X), np.concatenate(LABELS)
    esn = ESNClassifier(**toys.FAST).fit(whole, y)
    assert esn.score(whole, y[:, None]) == esn.score(whole, y)


def test_score_with_targets_of_the_other_kind():
    esn = ESNClassifier(**toys.FAST).fit(X, LABELS)
    with pytest.raises(
        ValueError, match=r"y has an entry a sequence, but this network was fitted with an entry a step"
    ):
        esn.score(X, ["low"] * 8)


@pytest.mark.parametrize("pooling", ["mean", "last", 3])
def test_pooling_learns_one_label_a_sequence(pooling):
    test_X, test_y = toys.rising(seed=1)
    esn = ESNClassifier(20, epochs=15, pooling=pooling).fit(RISING_X, RISING)
    assert esn.score(test_X, test_y) > 0.9
    assert esn.predict_proba(test_X).shape == (40, 2)


def test_one_value_or_vector_a_sequence():
    sums = np.array([x.sum() for x in RISING_X])
    esn = ESNRegressor(20, epochs=5, validation_fraction=0).fit(RISING_X, sums / 10)
    assert esn.predict(RISING_X).shape == (40,)
    pairs = [np.array([s, -s]) / 10 for s in sums]
    two = ESNRegressor(20, epochs=5, validation_fraction=0).fit(RISING_X, pairs)
    assert two.predict(RISING_X).shape == (40, 2)
    np.testing.assert_allclose(two.predict(RISING_X)[:, 0], -two.predict(RISING_X)[:, 1], atol=1e-3)


def test_learning_beats_the_fixed_network():
    train, test = toys.echoes(0, sequences=20, steps=(40, 60)), toys.echoes(1, sequences=10, steps=(40, 60))
    how = {"hidden_units": 20, "leak": 1.0, "learn_leak": False}
    fixed = ESNRegressor(**how, learn="none").fit(*train).score(*test)
    learned = ESNRegressor(**how, epochs=40).fit(*train).score(*test)
    assert learned > fixed + 0.05


def test_what_learn_leaves_alone():
    start = ESNRegressor(**toys.FAST, learn="none").fit(X, VALUES).reservoir_
    only_input = ESNRegressor(**toys.FAST, learn="input", learn_leak=False).fit(X, VALUES).reservoir_
    both = ESNRegressor(**toys.FAST).fit(X, VALUES).reservoir_
    np.testing.assert_array_equal(only_input.W_rec.data, start.W_rec.data)
    np.testing.assert_array_equal(only_input.leak, start.leak)
    assert (only_input.W != start.W).all()
    assert (both.W_rec.data != start.W_rec.data).all()
    assert (both.leak != start.leak).all()
    np.testing.assert_array_equal(both.W_rec.indices, start.W_rec.indices)
    np.testing.assert_array_equal(both.W_rec.indptr, start.W_rec.indptr)


def test_feedback_weights_are_learned_and_run_freely():
    """predict feeds back the network's own outputs: against a loop, one step after another."""
    values = [v[:, 0] for v in VALUES]
    fixed = ESNRegressor(**toys.FAST, feedback=True, learn="none", dtype="float64").fit(X, values)
    esn = ESNRegressor(**toys.FAST, feedback=True, dtype="float64").fit(X, values)
    assert (esn.feedback_weights_ != fixed.feedback_weights_).all()
    r = esn.reservoir_
    w = {"W": r.W, "W_rec": r.W_rec.toarray(), "bias": r.bias, "W_fb": r.W_fb, "leak": r.leak}
    slow = ref.free_run(w, X[0], esn._U, "tanh", direct=True)[:, 0] * esn.target_scale_ + esn.target_mean_
    np.testing.assert_allclose(esn.predict(X[0]), slow, rtol=1e-9, atol=1e-9)


def test_classifier_feedback_feeds_back_probabilities():
    esn = ESNClassifier(**toys.FAST, feedback=True, dtype="float64").fit(X, LABELS)
    r = esn.reservoir_
    w = {"W": r.W, "W_rec": r.W_rec.toarray(), "bias": r.bias, "W_fb": r.W_fb, "leak": r.leak}

    def softmax(y):
        e = np.exp(y - y.max())
        return e / e.sum()

    slow = ref.free_run(w, X[0], esn._U, "tanh", direct=True, turn=softmax)
    np.testing.assert_allclose(esn.predict_proba(X[0]), [softmax(y) for y in slow], atol=1e-9)


def test_feedback_helps_where_the_answer_depends_on_answers():
    """A switch that remembers: the label flips when the input spikes and stays otherwise."""
    rng = np.random.default_rng(0)
    X = [(rng.random((60, 1)) < 0.15) * 1.0 for _ in range(20)]
    y = [np.cumsum(x[:, 0]).astype(int) % 2 for x in X]
    how = {"input_scaling": 1.0, "feedback_scaling": 1.0, "leak": 1.0, "learn_leak": False}
    esn = ESNClassifier(30, feedback=True, epochs=20, **how).fit(X, y)
    assert esn.score(X, y) > 0.75


def test_washout_leaves_the_first_steps_out_of_the_fit():
    a = ESNRegressor(**toys.FAST, washout=4).fit(X, VALUES)
    spoiled = [np.vstack([v[:4] + 100, v[4:]]) for v in VALUES]
    b = ESNRegressor(**toys.FAST, washout=4)
    # the scale of targets is taken over all steps, so compare at the same scale
    b.fit(X, spoiled)
    fitted = [np.concatenate([p[4:] for p in e.predict(X)]) for e in (a, b)]
    assert np.abs(fitted[0] - fitted[1]).max() < 0.5
    c = ESNRegressor(**toys.FAST).fit(X, spoiled)
    assert np.abs(np.concatenate([p[4:] for p in c.predict(X)]) - fitted[0]).max() > 1


def test_the_final_readout_is_the_ridge_solution_over_all_frames():
    esn = ESNRegressor(**toys.FAST, learn="none", ridge=0.3, washout=2, dtype="float64").fit(X, VALUES)
    H = harvest(esn.reservoir_, X)
    H_c = np.vstack([np.hstack([h, x, np.ones((len(x), 1))])[2:] for h, x in zip(H, X, strict=True)])
    T = (np.concatenate([v[2:] for v in VALUES]) - esn.target_mean_) / esn.target_scale_
    penalty = np.sqrt(0.3) * np.eye(18)[:-1]
    U = np.linalg.lstsq(np.vstack([H_c, penalty]), np.vstack([T, np.zeros((17, 2))]), rcond=None)[0]
    np.testing.assert_allclose(esn._U, U, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("ridge", [np.float32(0.1), np.int64(1), 1, 0.5, [0.1, 1.0], np.array([0.1]), "auto", (1e-3,)])
def test_ridge_in_every_form(ridge):
    esn = ESNRegressor(**toys.FAST, ridge=ridge).fit(X, VALUES)
    if np.ndim(ridge) == 0 and not isinstance(ridge, str):
        assert esn.ridge_ == pytest.approx(float(ridge))
    elif not isinstance(ridge, str):
        assert esn.ridge_ in ridge
    assert esn.ridge_ > 0


@pytest.mark.filterwarnings("ignore:all features are constant")
def test_singular_gram_without_ridge():
    with pytest.raises(ValueError, match=r"singular and ridge=0.*Give a positive ridge"):
        ESNRegressor(**toys.FAST, ridge=0).fit([np.zeros((30, 2))], [np.arange(30.0)])


def test_paper_settings():
    esn = ESNClassifier.paper(12, epochs=4)
    assert (esn.spectral_radius, esn.ridge, esn.step_size, esn.activation) == (3.9, 1e-8, 0.07, "sigmoid")
    assert (esn.optimizer, esn.readout, esn.batch_size, esn.renormalize) == ("fista", "ridge", None, True)
    esn.fit(X, LABELS)
    radius = np.abs(np.linalg.eigvals(esn.recurrent_weights_.toarray())).max()
    assert radius == pytest.approx(3.9, rel=1e-9)
    assert ESNClassifier.paper(12, learn="none").learn == "none"
    errors = [row["error"] for row in esn.history_]
    assert errors[-1] < errors[0]


def test_paper_gradient_of_the_first_epoch():
    """One full-batch FISTA step of the estimator is W - alpha dE/dW of `loss_and_gradients`, clipped."""
    how = {"epochs": 1, "clip": 1.0, "dtype": "float64", "ridge": 0.1, "renormalize": False, "direct": False}
    esn = ESNClassifier.paper(8, **how).fit(X, LABELS)
    start = ESNClassifier.paper(8, **{**how, "learn": "none"}).fit(X, LABELS).reservoir_
    T = [(y[:, None] == esn.classes_).astype(float) for y in LABELS]
    # the estimator's readout has an intercept, which the bare function has as an input of ones
    ones = [np.ones((len(x), 1)) for x in X]
    H = harvest(start, X)
    H_c = np.vstack([np.hstack([h, o]) for h, o in zip(H, ones, strict=True)])
    penalty = np.sqrt(0.1) * np.eye(9)[:-1]
    U = np.linalg.lstsq(np.vstack([H_c, penalty]), np.vstack([np.vstack(T), np.zeros((8, 2))]), rcond=None)[0]
    b = U[-1]
    out = loss_and_gradients(start, X, [t - b for t in T], ridge=0.1, lookback=3, direct=False)
    np.testing.assert_allclose(out.readout, U[:-1], rtol=1e-6, atol=1e-9)  # with the intercept taken off
    g = out.dE_dW * min(1, 1 / np.linalg.norm(out.dE_dW))
    np.testing.assert_allclose(esn.input_weights_, start.W - 0.07 * g, rtol=1e-6, atol=1e-9)
    g = out.dE_dW_rec.data * min(1, 1 / np.linalg.norm(out.dE_dW_rec.data))
    np.testing.assert_allclose(esn.recurrent_weights_.data, start.W_rec.data - 0.07 * g, rtol=1e-6, atol=1e-9)


def test_echo_state_warning_reaches_the_user():
    with pytest.warns(EchoStateWarning, match=r"spectral_radius=1\.5"):
        ESNRegressor(**toys.FAST, learn="none", spectral_radius=1.5, leak=1.0).fit(X, VALUES)


# ---------------------------------------------------------------- held-out data and early stopping


def test_splits():
    data = Dataset(X, VALUES, None, True, np.dtype("float32"))
    rng = np.random.default_rng(0)
    train, held = split(data, 0.25, 0, rng)
    assert (len(train.X), len(held.X)) == (6, 2)
    assert {id(x) for x in train.X} | {id(x) for x in held.X} == {id(x) for x in X}
    assert split(data, 0.0, 0, rng) == (data, None)
    for fraction in (0.5, 0.95, 0.999):
        train, held = split(data, fraction, 0, rng)
        assert train.X
        assert held.X
    long = Dataset([np.ones((100, 1))] * 2, [np.ones((100, 1))] * 2, None, True, np.dtype("float32"))
    train, held = split(long, 0.1, 0, rng)
    assert [len(x) for x in train.X] == [90, 90]
    assert [len(x) for x in held.X] == [10, 10]
    count = Dataset([np.arange(100.0)[:, None]], [np.arange(100.0)], None, True, np.dtype("float32"))
    train, held = split(count, 0.3, 20, rng)
    np.testing.assert_array_equal(train.X[0][-1], 69)
    np.testing.assert_array_equal(held.X[0][:, 0], np.arange(50, 100))  # its washout lies before the cut
    np.testing.assert_array_equal(held.y[0], np.arange(50, 100))
    for fraction in (0.05, 0.999):  # too little on one side of the cut: nothing is held out
        train, held = split(long, fraction, 20, rng)
        assert train is long
        assert held is None


@pytest.mark.parametrize("fraction", [0.5, 0.97, 0.999])
def test_large_validation_fractions_still_fit(fraction):
    esn = ESNRegressor(**{**toys.FAST, "validation_fraction": fraction})
    assert np.isfinite(esn.fit(X, VALUES).predict(X[0])).all()
    long = np.random.default_rng(0).normal(size=(60, 2))
    assert np.isfinite(clone(esn).set_params(washout=3).fit(long, long).predict(long)).all()


def test_early_stopping_keeps_the_weights_as_drawn_where_learning_only_hurts():
    """Held-out targets that cannot be learned: every epoch makes them worse."""
    rng = np.random.default_rng(0)
    noise = [rng.normal(size=v.shape) for v in VALUES]
    how = {**toys.FAST, "epochs": 30, "step_size": 0.05, "ridge": 1e-3}
    esn = ESNRegressor(**how, patience=3).fit(X, VALUES, validation=(X, noise))
    assert len(esn.history_) == 3
    fixed = ESNRegressor(**how, learn="none").fit(X, VALUES)
    np.testing.assert_array_equal(esn.input_weights_, fixed.input_weights_)
    np.testing.assert_array_equal(esn._U, fixed._U)


def test_early_stopping_restores_the_best_weights():
    how = {**toys.FAST, "epochs": 60, "step_size": 0.01, "ridge": 1e-3, "leak": (0.3, 1.0)}
    held_out = toys.echoes(1, sequences=8)
    esn = ESNRegressor(**how, patience=4).fit(X, VALUES, validation=held_out)
    errors = [row["valid_error"] for row in esn.history_]
    best = int(np.argmin(errors)) + 1
    assert 1 < best == len(errors) - 4 < 56
    again = ESNRegressor(**how, patience=None)
    again.fit(X, VALUES, validation=held_out, callback=lambda row: row["epoch"] == best)
    np.testing.assert_array_equal(esn.input_weights_, again.input_weights_)
    np.testing.assert_array_equal(esn._U, again._U)


def test_callback_sees_every_epoch_and_can_stop():
    rows = []
    esn = ESNRegressor(**{**toys.FAST, "epochs": 6}).fit(X, VALUES, callback=rows.append)
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert rows == list(esn.history_)
    stopped = ESNRegressor(**{**toys.FAST, "epochs": 6}).fit(X, VALUES, callback=lambda row: row["epoch"] == 2)
    assert len(stopped.history_) == 2


# ---------------------------------------------------------------- Ctrl-C, failures, explosions


@pytest.mark.parametrize("kind", BOTH)
def test_interrupted_fit_is_usable(kind):
    def press(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    y = targets_for(kind)
    how = toys.FAST | {"epochs": 50} | ({"refine_epochs": 0} if kind is ESNClassifier else {})
    esn = kind(**how)
    with pytest.raises(KeyboardInterrupt):
        esn.fit(X, y, callback=press)
    assert len(esn.history_) == 2
    stopped = kind(**how).fit(X, y, callback=lambda row: row["epoch"] == 2)
    for a, b in zip(esn.predict(X), stopped.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_interrupted_before_the_first_epoch_leaves_things_as_they_were(monkeypatch):
    esn = ESNRegressor(**toys.FAST).fit(X, VALUES)
    before = esn.predict(X[0])

    def press(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(passes, "collect", press)
    with pytest.raises(KeyboardInterrupt):
        esn.fit(X, VALUES)
    monkeypatch.undo()
    np.testing.assert_array_equal(esn.predict(X[0]), before)


@pytest.mark.parametrize("spoil", [{"y": VALUES[:3]}, {"callback": lambda row: 1 / 0}, {"X": [X[0][:, :1]] * 8}])
def test_a_failed_fit_leaves_the_estimator_as_it_was(spoil):
    esn = ESNRegressor(**toys.FAST).fit(X, VALUES)
    before = esn.predict(X[0])
    with pytest.raises((ValueError, ZeroDivisionError)):
        esn.fit(**{"X": X, "y": VALUES, **spoil})
    np.testing.assert_array_equal(esn.predict(X[0]), before)
    assert not hasattr(clone(esn), "classes_")


EXPLOSIONS = {
    "huge step": {"step_size": 1e6},
    "absurd step": {"step_size": 1e300},
    "huge FISTA step": {
        "optimizer": "fista",
        "step_size": 1e8,
        "batch_size": None,
        "leak": 1.0,
        "learn_leak": False,
    },
    "relu": {"activation": "relu", "spectral_radius": 5.0, "leak": 0.9},
    "identity": {"activation": "identity", "spectral_radius": 3.0, "leak": 0.9},
    "identity, step": {"activation": "identity", "step_size": 10.0},
    "printed momentum": {"optimizer": "fista", "momentum": "printed", "step_size": 10.0, "batch_size": None},
}


@pytest.mark.filterwarnings("ignore::echolearn.reservoir.EchoStateWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("how", EXPLOSIONS)
def test_explosions_never_end_in_nan(kind, how, dtype):
    """Either a clear error, or finite weights and predictions (with a warning where training backed off)."""
    rng = np.random.default_rng(0)
    long = [rng.normal(size=(150, 2)) for _ in range(6)]
    y = [(x[:, 0] > 0) * 1 if kind is ESNClassifier else x[:, 0] for x in long]
    esn = kind(**{**toys.FAST, "dtype": dtype, **EXPLOSIONS[how]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingWarning)
        warnings.filterwarnings("ignore", "ridge=")
        try:
            esn.fit(long, y)
        except (FloatingPointError, ValueError) as problem:
            assert "spectral_radius" in str(problem) or "step_size" in str(problem)  # noqa: PT017
            return
    r = esn.reservoir_
    for weights in (r.W, r.W_rec.data, r.leak, esn._U):
        assert np.isfinite(weights).all()
    answer = esn.predict_proba if kind is ESNClassifier else esn.predict
    assert np.isfinite(np.concatenate(answer(long))).all()


def long_noise():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(300, 2)) for _ in range(6)]
    return X, [x[:, 0] for x in X]


def test_backing_off_and_giving_up_are_said():
    how = {"activation": "identity", "leak": 1.0, "learn_leak": False, "ridge": 1.0}
    esn = ESNRegressor(**toys.FAST, **how, step_size=1e3)
    with pytest.warns(TrainingWarning) as said:
        esn.fit(*long_noise())
    texts = [str(w.message) for w in said]
    assert all("epoch 1 diverged" in t and "tried again with step_size=" in t for t in texts[:-1])
    assert "training stopped in epoch 1" in texts[-1]
    assert "Try a smaller step_size or spectral_radius, or set clip" in texts[-1]
    untouched = ESNRegressor(**toys.FAST, **{**how, "learn": "none"}).fit(*long_noise())
    np.testing.assert_array_equal(esn._U, untouched._U)  # the best weights so far are the first ones


def test_weights_that_explode_at_the_end_of_an_epoch_are_not_kept():
    how = {"activation": "relu", "leak": (0.1, 1.0), "learn_leak": False, "ridge": 1.0, "step_size": 1.0}
    esn = ESNRegressor(**{**toys.FAST, "epochs": 8}, **how)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        esn.fit(*long_noise())
    assert np.isfinite(np.concatenate(esn.predict(long_noise()[0]))).all()


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("kind", BOTH)
def test_no_more_states_than_a_batch_at_a_time(kind, monkeypatch):
    """Every call that makes states gets at most one group of frames (or one sequence), never all the data."""
    rng = np.random.default_rng(0)
    long = [rng.normal(size=(100, 2)) for _ in range(40)]
    y = [(x[:, 0] > 0) * 1 if kind is ESNClassifier else x[:, 0] for x in long]
    sizes = []
    real = states.run

    def spy(reservoir, batch, *h0, **rest):
        sizes.append(batch.frames)
        return real(reservoir, batch, *h0, **rest)

    monkeypatch.setattr("echolearn.readout.collect.run", spy)
    monkeypatch.setattr(passes, "FRAMES", 500)
    monkeypatch.setattr("echolearn.readout.softmax.FRAMES", 125)
    esn = kind(**{**toys.FAST, "batch_size": 5, "epochs": 2}).fit(long, y)
    esn.predict(long)
    assert sum(sizes) > 3 * 4000
    assert max(sizes) <= 500


def test_reservoir_is_public():
    assert isinstance(ESNRegressor(**toys.FAST).fit(X, VALUES).reservoir_, Reservoir)
