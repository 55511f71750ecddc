"""Scores of ragged sequences, and which tool of scikit-learn works on which data (docs/howto/scikit_learn.md)."""

import pickle

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn_metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.metrics import get_scorer_names, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_score,
    cross_validate,
)
from sklearn.model_selection import cross_val_predict as of_arrays
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toys
from echolearn import ESNClassifier, ESNForecaster, ESNRegressor, FrameWise, SeriesClassifier, metrics
from echolearn.metrics import SCORERS, joined, nrmse, scorer
from echolearn.metrics._forecast_errors import mean_and_error
from toys import grouped

X, VALUES = toys.echoes()
ONE_VALUE = [v[:, 0] for v in VALUES]
_, LABELS = toys.labels()
NUMBERS = [(label == "high").astype(int) for label in LABELS]
RISING_X, RISING = toys.rising()
SETTINGS = {"hidden_units": 15, "connections": 4, "learn": "none", "validation_fraction": 0.0}
CLASSIFIER, REGRESSOR = ESNClassifier(readout="ridge", **grouped(SETTINGS)), ESNRegressor(**grouped(SETTINGS))
SERIES = SeriesClassifier(10)
POSITIVE = [abs(v) + 10 for v in ONE_VALUE]
OF_VALUES = {name for name in SCORERS if name.startswith(("neg_mean_", "neg_median", "neg_root", "neg_max"))}
OF_VALUES |= {"r2", "explained_variance", "d2_absolute_error_score", "neg_nrmse"}
UNFIT = {name for name in SCORERS if name.endswith("_samples")}  # for several labels at once


class KnownAnswers(BaseEstimator):
    """Answers as arrays, for scikit-learn's own scorers."""

    def __init__(self, esn=None):
        self.esn = esn

    def fit(self, X=None, y=None):
        return self

    def predict(self, X):
        return np.concatenate(self.esn.predict(X))

    @property
    def classes_(self):
        return self.esn.classes_


class KnownClasses(ClassifierMixin, KnownAnswers):
    def predict_proba(self, X):
        return np.concatenate(self.esn.predict_proba(X))

    def decision_function(self, X):
        return np.concatenate(self.esn.decision_function(X))


class KnownValues(RegressorMixin, KnownAnswers):
    pass


def fitted_for(name):
    """Return a fitted network and targets for which a score is defined, and its answers as arrays."""
    if name not in OF_VALUES:
        esn = clone(CLASSIFIER).fit(X, NUMBERS)
        return esn, NUMBERS, KnownClasses(esn)
    y = POSITIVE if "log" in name or "deviance" in name else ONE_VALUE
    esn = clone(REGRESSOR).fit(X, y)
    return esn, y, KnownValues(esn)


@pytest.mark.parametrize("name", sorted(set(SCORERS) - UNFIT - {"neg_nrmse"}))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_every_scorer_is_scikit_learns_on_the_joined_steps(name):
    esn, y, known = fitted_for(name)
    assert scorer(name)(esn, X, y) == pytest.approx(
        sklearn_metrics.get_scorer(name)(known, X, np.concatenate(y)), nan_ok=True
    )


@pytest.mark.parametrize("name", ["accuracy", "f1_macro", "roc_auc", "neg_log_loss", "average_precision", "f1"])
def test_in_scikit_learns_functions(name):
    scores = cross_val_score(CLASSIFIER, X, NUMBERS, cv=KFold(2), scoring=scorer(name), error_score="raise")
    assert np.isfinite(scores).all()
    as_rows = np.stack([np.resize(x[:, 0], 8) for x in RISING_X])
    for series in (RISING_X, as_rows):  # scikit-learn's own scores are those of one label per series
        scores = cross_val_score(SERIES, series, RISING, cv=KFold(2), scoring=scorer(name), error_score="raise")
        np.testing.assert_allclose(scores, cross_val_score(SERIES, series, RISING, cv=KFold(2), scoring=name))


def test_several_scores_at_once_and_in_other_processes():
    several = {name: scorer(name) for name in ("accuracy", "f1_macro", "roc_auc", "neg_log_loss")}
    search = GridSearchCV(CLASSIFIER, {"leak": [0.5]}, scoring=several, refit="f1_macro", cv=KFold(2), n_jobs=2)
    assert set(search.fit(X, NUMBERS).cv_results_) >= {f"mean_test_{name}" for name in several}
    assert set(cross_validate(CLASSIFIER, X, NUMBERS, scoring=several, cv=2)) >= {"test_f1_macro", "test_roc_auc"}
    assert pickle.loads(pickle.dumps(scorer("r2"))) == scorer("r2")


def test_scores_are_those_of_all_steps():
    esn = ESNClassifier(**grouped(toys.FAST)).fit(X, LABELS)
    true, got = np.concatenate(LABELS), np.concatenate(esn.predict(X))
    assert scorer("accuracy")(esn, X, LABELS) == pytest.approx(esn.score(X, LABELS))
    assert scorer("f1_macro")(esn, X, LABELS) == pytest.approx(sklearn_metrics.f1_score(true, got, average="macro"))
    P = np.concatenate(esn.predict_proba(X))
    right = P[np.arange(len(true)), np.searchsorted(esn.classes_, true)]
    assert scorer("neg_log_loss")(esn, X, LABELS) == pytest.approx(np.log(right).mean(), rel=1e-5)
    low = [x[label == "low"] for x, label in zip(X, LABELS, strict=True)]
    only = [np.full(len(x), "low") for x in low]  # some sequences may lack a class
    assert scorer("neg_log_loss")(esn, low, only) < 0


@pytest.mark.parametrize("washout", [0, 4])
@pytest.mark.parametrize("scaled", [False, True])
def test_the_steps_that_score_counts(washout, scaled):
    """Not those of the washout, unless a series continues the one of the fit."""
    esn = clone(REGRESSOR).set_params(washout=washout)
    if scaled:
        esn = make_pipeline(FrameWise(StandardScaler()), esn)
    assert scorer("r2")(esn.fit(X, VALUES), X, VALUES) == pytest.approx(esn.score(X, VALUES))
    series, late = np.concatenate(X), np.concatenate(ONE_VALUE)
    esn.fit(series[:80], late[:80])
    for part in (slice(0, 80), slice(80, None)):
        assert scorer("r2")(esn, series[part], late[part]) == pytest.approx(esn.score(series[part], late[part]))
    if washout:
        with pytest.raises(ValueError, match="nothing to score"):
            scorer("r2")(esn.fit(X, VALUES), [x[:4] for x in X], [v[:4] for v in VALUES])


def test_targets_that_are_missing_do_not_count():
    marked = [np.where(np.arange(len(y)) % 3 == 0, -1, y) for y in NUMBERS]
    esn = clone(CLASSIFIER).set_params(ignore_label=-1).fit(X, marked)
    there = np.concatenate(marked) >= 0
    expected = (np.concatenate(esn.predict(X)) == np.concatenate(NUMBERS))[there].mean()
    assert scorer("accuracy")(esn, X, marked) == pytest.approx(expected)
    assert scorer("accuracy")(esn, X, marked) == pytest.approx(esn.score(X, marked))
    gaps = [np.where(np.arange(len(v)) % 3 == 0, np.nan, v) for v in ONE_VALUE]
    values = clone(REGRESSOR).fit(X, gaps)
    assert scorer("r2")(values, X, gaps) == pytest.approx(values.score(X, gaps))
    with pytest.raises(ValueError, match="nothing to score"):
        scorer("r2")(values, X, [np.full(len(v), np.nan) for v in ONE_VALUE])


def test_own_scorers_of_scikit_learn_and_weights():
    esn = clone(CLASSIFIER).fit(X, NUMBERS)
    strict = make_scorer(sklearn_metrics.fbeta_score, beta=2)
    true, got = np.concatenate(NUMBERS), np.concatenate(esn.predict(X))
    assert scorer(strict)(esn, X, NUMBERS) == pytest.approx(sklearn_metrics.fbeta_score(true, got, beta=2))
    per_sequence = np.arange(1, len(X) + 1)
    per_step = [np.full(len(x), w) for x, w in zip(X, per_sequence, strict=True)]
    expected = sklearn_metrics.accuracy_score(true, got, sample_weight=np.concatenate(per_step))
    for weights in (per_sequence, per_step):
        assert scorer("accuracy")(esn, X, NUMBERS, sample_weight=weights) == pytest.approx(expected)


def test_scores_of_values():
    esn = ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES)
    assert scorer("r2")(esn, X, VALUES) == pytest.approx(esn.score(X, VALUES))
    esn.fit(X, ONE_VALUE)
    true, got = np.concatenate(ONE_VALUE), np.concatenate(esn.predict(X))
    assert scorer("neg_nrmse")(esn, X, ONE_VALUE) == pytest.approx(-np.sqrt(np.mean((true - got) ** 2)) / true.std())
    assert nrmse(true, np.full(len(true), true.mean())) == pytest.approx(1)  # what guessing the mean gets
    assert nrmse(ONE_VALUE, esn.predict(X)) == pytest.approx(nrmse(true, got))
    with pytest.raises(ValueError, match="NRMSE is not defined"):
        nrmse(np.ones(3), np.ones(3))


def test_scores_with_one_label_per_series():
    pipeline = make_pipeline(FrameWise(StandardScaler()), SERIES)
    scores = cross_val_score(pipeline, RISING_X, RISING, cv=3, scoring=scorer("accuracy"), error_score="raise")
    np.testing.assert_allclose(scores, cross_val_score(pipeline, RISING_X, RISING, cv=3))
    pipeline.fit(RISING_X, RISING)
    expected = -sklearn_metrics.log_loss(RISING, pipeline.predict_proba(RISING_X))
    assert scorer("neg_log_loss")(pipeline, RISING_X, RISING) == pytest.approx(expected)


def test_lists_are_joined_and_arrays_stay():
    predicted = [np.random.default_rng(0).permutation(y) for y in NUMBERS]
    for true, answers in (
        (NUMBERS, predicted),
        ([y.tolist() for y in NUMBERS], np.array([*predicted, 0], object)[:-1]),
        (np.concatenate(NUMBERS), np.concatenate(predicted)),
    ):
        np.testing.assert_array_equal(joined(true, answers), [np.concatenate(NUMBERS), np.concatenate(predicted)])
    probabilities = [np.stack([1 - y, y], axis=1) for y in predicted]
    np.testing.assert_array_equal(joined(NUMBERS, probabilities)[1], np.concatenate(probabilities))
    several = np.array([[0, 1], [1, 1]])  # a 2-D array stays one: several labels or values at once
    np.testing.assert_array_equal(joined(several, several), [several, several])


def test_lists_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="23 and 22 steps in sequence 0"):
        joined([np.zeros(23)], [np.zeros(22)])
    with pytest.raises(ValueError, match="8 and 7 sequences"):
        joined(NUMBERS, NUMBERS[:-1])
    with pytest.raises(ValueError, match="sequences of y_true cannot be joined"):
        joined([np.zeros(2), np.zeros((2, 2))], [np.zeros(2), np.zeros((2, 2))])
    with pytest.raises(ValueError, match="did you mean balanced_accuracy"):
        scorer("balanced_acuracy")
    with pytest.raises(ValueError, match="there is no setting None"):
        scorer(None)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_log_proba", "decision_function"])
def test_answers_to_sequences_that_were_held_out(method):
    got = metrics.cross_val_predict(CLASSIFIER, X, LABELS, cv=KFold(2), method=method)
    half = len(X) // 2
    expected = getattr(clone(CLASSIFIER).fit(X[half:], LABELS[half:]), method)(X[:half])
    assert [len(a) for a in got] == [len(x) for x in X]
    for a, b in zip(got[:half], expected, strict=True):
        np.testing.assert_array_equal(a, b)
    per_sequence = metrics.cross_val_predict(SERIES, RISING_X, RISING, cv=StratifiedKFold(3), method=method)
    same = of_arrays(SERIES, RISING_X, RISING, cv=StratifiedKFold(3), method=method)
    np.testing.assert_array_equal(per_sequence, same)
    np.testing.assert_array_equal(metrics.cross_val_predict(SERIES, RISING_X, RISING, cv=3, method=method), same)


def test_gaps_in_sequences_that_are_held_out_are_left_to_the_estimator():
    gaps = [np.where(np.arange(len(x))[:, None] == 3, np.nan, x) for x in X]
    carrying = clone(CLASSIFIER).set_params(missing="carry")
    got = metrics.cross_val_predict(carrying, gaps, LABELS, cv=KFold(2))
    half = len(X) // 2
    expected = clone(carrying).fit(gaps[half:], LABELS[half:]).predict(gaps[:half])
    for a, b in zip(got[:half], expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_folds_that_are_no_partition_are_refused():
    with pytest.raises(ValueError, match="into two test parts"):
        metrics.cross_val_predict(CLASSIFIER, X, LABELS, cv=ShuffleSplit(5, random_state=0, test_size=0.5))
    with pytest.raises(ValueError, match="sequence 0 into no test part"):
        metrics.cross_val_predict(CLASSIFIER, X, LABELS, cv=[(range(4), range(4, 8))])
    with pytest.raises(ValueError, match="X is one sequence"):
        metrics.cross_val_predict(CLASSIFIER, X[0], LABELS[0])
    groups = np.arange(len(X)) % 3
    got = metrics.cross_val_predict(REGRESSOR, X, VALUES, cv=GroupKFold(3), groups=groups)
    fitted = clone(REGRESSOR).fit(*zip(*[(x, v) for x, v, g in zip(X, VALUES, groups, strict=True) if g], strict=True))
    np.testing.assert_allclose(got[0], fitted.predict([X[0], X[3], X[6]])[0])


def test_the_feature_that_matters_is_the_important_one():
    ahead = [np.roll(x[:, 1], 1) for x in X]
    esn = clone(REGRESSOR).fit(X, ahead)
    found = metrics.permutation_importance(esn, X, ahead, random_state=0)
    assert found.importances.shape == (2, 5)
    assert found.importances_mean[1] > 10 * abs(found.importances_mean[0])
    by_error = metrics.permutation_importance(esn, X, ahead, scoring="neg_nrmse", random_state=0)
    assert by_error.importances_mean.argmax() == 1
    classifier = clone(SERIES).fit(RISING_X, RISING)
    one = metrics.permutation_importance(classifier, RISING_X, RISING, scoring="f1_macro", n_repeats=2, random_state=0)
    assert one.importances_mean[0] > 0.2
    np.testing.assert_allclose(one.importances_std, one.importances.std(axis=1))


def test_all_words_of_scikit_learn_are_known():
    assert set(get_scorer_names()) < set(SCORERS)


def test_an_ignored_label_is_left_out():
    esn = clone(CLASSIFIER).fit(X, NUMBERS)
    answers, rng = esn.predict(X), np.random.default_rng(0)
    gone = [rng.random(len(y)) < 0.3 for y in NUMBERS]
    kept, remaining = (
        np.concatenate([v[~g] for v, g in zip(values, gone, strict=True)]) for values in (NUMBERS, answers)
    )
    marks = {
        -1: [np.where(g, -1, y) for y, g in zip(NUMBERS, gone, strict=True)],
        np.nan: [np.where(g, np.nan, y) for y, g in zip(NUMBERS, gone, strict=True)],
    }
    for mark, marked in marks.items():
        true, got = joined(marked, answers, ignore_label=mark)
        np.testing.assert_array_equal(true, kept)
        np.testing.assert_array_equal(got, remaining)
    np.testing.assert_array_equal(joined(marks[-1], esn.predict_proba(X), ignore_label=-1)[0], kept)
    marked = clone(CLASSIFIER).set_params(ignore_label=-1, washout=0).fit(X, marks[-1])
    score = sklearn_metrics.accuracy_score(*joined(marks[-1], marked.predict(X), ignore_label=-1))
    assert score == pytest.approx(marked.score(X, marks[-1]))
    with pytest.raises(ValueError, match="nothing to score: every entry of y_true is ignore_label=-1"):
        joined([-1, -1], [0, 1], ignore_label=-1)
    with pytest.raises(ValueError, match="they have 3 and 2 entries"):
        joined([0, 1, 1], [0, 1])


def test_ignored_labels_among_words_and_none():
    true, got = joined(["a", "b", "?", "b"], ["a", "b", "b", "a"], ignore_label="?")
    assert (true.tolist(), got.tolist()) == (["a", "b", "b"], ["a", "b", "a"])
    true, _ = joined(np.array(["a", None, "b"], object), ["a", "b", "b"], ignore_label=np.nan)
    assert true.dtype.kind == "U"


LAYOUTS = {
    "channels first": ("channels_first", lambda X: [x.T for x in X]),
    "one array, channels first": ("channels_first", lambda X: np.stack([x[:10].T for x in X])),
    "time first": ("time_first", lambda X: X),
    "auto": ("auto", lambda X: [x.T for x in X]),
}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("case", LAYOUTS)
def test_helpers_read_sequences_as_the_estimator_does(case, wrapped):
    """In every layout, alone or as the only step of a Pipeline: what they say of the same sequences with time first."""
    layout, given = LAYOUTS[case]
    steps = 10 if "array" in case else None
    X_first, y = [x[:steps] for x in X], [v[:steps] for v in ONE_VALUE]
    turned = given(X)
    esn = ESNRegressor(**grouped({**SETTINGS, "layout": layout}))
    plain = clone(REGRESSOR)
    model = make_pipeline("passthrough", esn) if wrapped else esn
    answers = metrics.cross_val_predict(model, turned, y, cv=3)
    expected = metrics.cross_val_predict(plain, X_first, y, cv=3)
    for own, other in zip(answers, expected, strict=True):
        np.testing.assert_array_equal(own, other)
    plain.fit(X_first, y)
    model.fit(turned, y)
    for scoring in (None, "r2"):
        found = metrics.permutation_importance(model, turned, y, scoring=scoring, n_repeats=2, random_state=0)
        wanted = metrics.permutation_importance(plain, X_first, y, scoring=scoring, n_repeats=2, random_state=0)
        np.testing.assert_array_equal(found.importances, wanted.importances)


def test_rows_are_series_for_the_helpers():
    series = [np.resize(x, (12, 1)) for x in RISING_X]
    rows = np.stack(series)[:, :, 0]
    for layout in ("rows", "auto"):
        model = SeriesClassifier(10, layout=layout)
        expected = metrics.cross_val_predict(SERIES, series, RISING, cv=3)
        np.testing.assert_array_equal(metrics.cross_val_predict(model, rows, RISING, cv=3), expected)
        found = metrics.permutation_importance(model.fit(rows, RISING), rows, RISING, n_repeats=2, random_state=0)
        wanted = metrics.permutation_importance(
            clone(SERIES).fit(series, RISING), series, RISING, n_repeats=2, random_state=0
        )
        np.testing.assert_array_equal(found.importances, wanted.importances)


@pytest.mark.parametrize("method", ["direct", "closed_loop"])
def test_exogenous_inputs_of_a_forecaster_have_an_effect_with_an_interval(method):
    covered = []
    for seed in range(3 if method == "closed_loop" else 12):
        rng = np.random.default_rng(seed)
        E = rng.normal(size=(240, 2))
        y = rng.normal(size=240) + 2 * E[:, 0]
        esn = ESNForecaster(10, method=method, learn="none", washout=10).fit(y, exogenous=E)
        found = metrics.permutation_importance(esn, E, y, n_repeats=3, random_state=0)
        assert found.importances.shape == (2, 3)
        assert found.effects[0] > 0.3
        assert found.effects_interval[0, 0] > 0
        covered.append(found.effects_interval[1, 0] < 0.02)
        assert found.importances_mean.argmax() == 0
    assert np.mean(covered) > 0.7
    with pytest.raises(ValueError, match="a forecaster has only its own score"):
        metrics.permutation_importance(esn, E, y, scoring="r2")


def test_standard_errors_of_means_allow_for_correlation():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 63))
    moving = x[:, :-3] + x[:, 1:-2] + x[:, 2:-1] + x[:, 3:]
    for values, lags in ((x, 0), (moving, 3)):
        found = np.array([mean_and_error(row, lags) for row in values])
        assert np.mean(np.abs(found[:, 0] / found[:, 1]) > stats.t.ppf(0.975, values.shape[1] - 1)) < 0.09
    assert mean_and_error(x[0], 0)[1] == pytest.approx(stats.sem(x[0]))
    # By hand, two steps ahead: variance 21 / 4, covariance 4.75 / 4, correction (n + 1 - 2 h + h (h - 1) / n) / n
    by_hand = (3.5, np.sqrt((21 + 2 * 4.75) / 4 / 4 / ((4 + 1 - 4 + 2 / 4) / 4)))
    assert mean_and_error(np.array([1.0, 2, 4, 7]), 1) == pytest.approx(by_hand)
    assert np.isnan(mean_and_error(x[0][:1], 0)[1])
