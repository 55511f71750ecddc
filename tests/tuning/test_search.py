"""Tests of the search for settings."""

import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toys
from echolearn import DeepESNClassifier, ESNClassifier, ESNRegressor, FrameWise, SeriesClassifier, SeriesRegressor
from echolearn.metrics import scorer
from echolearn.tuning import tune
from toys import grouped

X, VALUES = toys.echoes(sequences=12)
_, LABELS = toys.labels(sequences=12)
RISING_X, RISING = toys.rising()
SMALL = {**toys.FAST, "hidden_units": 8, "readout": "ridge"}
FIXED = {**SMALL, "learn": "none"}


def test_the_first_trial_has_the_estimators_own_settings():
    found = tune(ESNClassifier(spectral_radius=0.7, **grouped(FIXED)), X, LABELS, trials=2, refit=False)
    assert found.trials[0].settings["spectral_radius"] == pytest.approx(0.7)
    assert found.trials[0].settings["leak"] == (0.03, 0.9)
    assert found.estimator is None


@pytest.mark.filterwarnings(
    "ignore::echolearn.exceptions.PoorFitWarning", "ignore::echolearn.exceptions.PoorScoreWarning"
)
@pytest.mark.parametrize(("X", "y"), [(X, LABELS), (RISING_X, RISING)])
def test_deep_networks_are_tuned(X, y):
    found = tune(DeepESNClassifier(6, 2, epochs=2), X, y, trials=3, folds=2)
    assert found.trials[0].settings == {"layers": 2, "dropout": None, "leak": (0.03, 0.63), "learning__step_size": 0.02}
    assert found.estimator.score(X, y) > 0.3


def test_the_score_is_the_mean_over_folds_and_the_best_is_refitted():
    found = tune(ESNClassifier(**grouped(FIXED)), X, LABELS, space={"spectral_radius": (0.2, 1.2)}, trials=3, folds=2)
    for trial in found.trials:
        scores = []
        for train, test in KFold(2, shuffle=True, random_state=0).split(X):
            esn = ESNClassifier(**grouped({**FIXED, **trial.settings}))
            esn.fit([X[i] for i in train], [LABELS[i] for i in train])
            scores.append(esn.score([X[i] for i in test], [LABELS[i] for i in test]))
        assert trial.score == pytest.approx(np.mean(scores))
    assert found.best_score == max(t.score for t in found.trials)
    again = ESNClassifier(**grouped({**FIXED, **found.best_settings})).fit(X, LABELS)
    np.testing.assert_array_equal(found.estimator.readout_weights_, again.readout_weights_)


def test_trials_that_lag_behind_are_stopped_after_an_epoch():
    class Lags(ESNClassifier):
        """Its held-out error is given by its leak."""

        def fit(self, X, y, *, validation=None, callback=None, **more):
            for epoch in range(1, 9):
                callback({"epoch": epoch, "valid_error": 1 - self.leak})
            return self

        def score(self, X, y):
            return self.leak

    space = {"leak": (0.01, 1.0)}
    found = tune(Lags(leak=0.5), X, LABELS, trials=25, space=space, validation=(X, LABELS), refit=False)
    stopped = [t for t in found.trials if t.score is None]
    assert stopped
    for trial in stopped:
        assert len(trial.curve) < 8
        before = [t.score for t in found.trials[: trial.number] if t.score is not None]
        assert trial.settings["leak"] < np.median(before)
    assert found.best_settings["leak"] == max(t.settings["leak"] for t in found.trials)


def test_a_trial_has_the_held_out_error_of_every_epoch():
    found = tune(ESNClassifier(**grouped(SMALL)), X, LABELS, trials=1, validation=(X[:3], LABELS[:3]))
    esn = ESNClassifier(**grouped(SMALL)).fit(X, LABELS, validation=(X[:3], LABELS[:3]))
    assert found.trials[0].curve == pytest.approx([row["valid_error"] for row in esn.history_])
    assert found.best_score == pytest.approx(esn.score(X[:3], LABELS[:3]))


def test_pipelines_regressors_and_scorers():
    pipeline = make_pipeline(FrameWise(StandardScaler()), ESNRegressor(**grouped({**toys.FAST, "hidden_units": 8})))
    space = {"leak": [0.3, 1.0], "framewise__transformer__with_mean": [True, False]}
    found = tune(pipeline, X, VALUES, trials=2, folds=2, space=space, scoring=scorer("neg_nrmse"))
    assert set(found.best_settings) == {"esnregressor__leak", "framewise__transformer__with_mean"}
    assert found.best_score < 0
    assert len(found.estimator.predict(X)) == len(X)


def test_with_one_label_per_series_every_fold_has_every_class():
    rare = np.where(np.arange(40) < 5, "rare", "usual")  # in order: folds without shuffled strata would lack a class
    seen = []

    def classes_of(estimator, X, y):
        seen.append((sorted(estimator.classes_), sorted(set(y))))
        return estimator.score(X, y)

    found = tune(SeriesClassifier(10), RISING_X, rare, trials=1, folds=5, scoring=classes_of, refit=False)
    assert seen == [(["rare", "usual"], ["rare", "usual"])] * 5
    assert found.best_score > 0.5


def test_estimators_of_whole_series_have_a_space_of_their_own():
    found = tune(SeriesClassifier(20), RISING_X, RISING, trials=3, folds=2)
    assert set(found.trials[0].settings) == {"hidden_units", "standardize"}
    assert found.trials[0].settings == {"hidden_units": 20, "standardize": True}
    assert len({str(trial.settings) for trial in found.trials}) == 3
    for trial in found.trials:
        scores = [
            SeriesClassifier(**trial.settings)
            .fit([RISING_X[i] for i in train], RISING[train])
            .score([RISING_X[i] for i in test], RISING[test])
            for train, test in StratifiedKFold(2, shuffle=True, random_state=0).split(RISING_X, RISING)
        ]
        assert trial.score == pytest.approx(np.mean(scores))
    again = SeriesClassifier(**found.best_settings).fit(RISING_X, RISING)
    np.testing.assert_array_equal(found.estimator.readout_weights_, again.readout_weights_)


def test_values_of_series_and_pipelines_are_searched_too():
    values = np.array([x.mean() for x in RISING_X])
    given = tune(SeriesRegressor(10), RISING_X[:30], values[:30], trials=2, validation=(RISING_X[30:], values[30:]))
    again = SeriesRegressor(**given.best_settings).fit(RISING_X[:30], values[:30])
    assert given.best_score == pytest.approx(again.score(RISING_X[30:], values[30:]))
    np.testing.assert_array_equal(given.estimator.readout_weights_, again.readout_weights_)
    pipeline = make_pipeline(FrameWise(StandardScaler()), SeriesClassifier(10))
    found = tune(pipeline, RISING_X, RISING, trials=2, folds=2)
    assert set(found.best_settings) == {"seriesclassifier__hidden_units", "seriesclassifier__standardize"}


@pytest.mark.parametrize("layout", ["auto", "rows", "channels_first"])
def test_folds_are_of_series_in_every_layout(layout):
    """The folds of rows, of channels first and of a list of series are the same, and so are their scores."""
    series = [np.resize(x, (12, 1)) for x in RISING_X]
    X = np.stack(series)[:, :, 0] if layout != "channels_first" else np.stack(series).swapaxes(1, 2)
    how = {"space": {"hidden_units": [5, 9]}, "trials": 2, "folds": 2}
    found = tune(SeriesClassifier(5, layout=layout), X, RISING, **how)
    expected = tune(SeriesClassifier(5), series, RISING, **how)
    assert [t.score for t in found.trials] == [t.score for t in expected.trials]
    assert found.estimator.layout_ == ("channels_first" if layout == "channels_first" else "rows")
    np.testing.assert_array_equal(found.estimator.predict(X), expected.estimator.predict(series))


def test_folds_of_a_pipeline_without_other_steps_are_read_in_its_layout():
    series = [np.resize(x, (12, 1)) for x in RISING_X]
    how = {"space": {"hidden_units": [5, 9]}, "trials": 2, "folds": 2}
    pipeline = make_pipeline("passthrough", SeriesClassifier(5, layout="channels_first"))
    found = tune(pipeline, np.stack(series).swapaxes(1, 2), RISING, **how)
    expected = tune(SeriesClassifier(5), series, RISING, **how)
    assert [t.score for t in found.trials] == [t.score for t in expected.trials]


def _scorer_of(factor):
    return lambda estimator, X, y: factor * estimator.score(X, y)


def _squared(estimator, X, y, power=2):
    return estimator.score(X, y) ** power


OTHERS = {
    "another factor": {"scoring": _scorer_of(2.0)},
    "another lambda": {"scoring": lambda estimator, X, y: -estimator.score(X, y)},
    "another power": {"scoring": partial(_squared, power=3)},
    "a metric": {"scoring": scorer("f1_macro")},
    "another metric": {"scoring": scorer(make_scorer(f1_score, average="weighted"))},
    "none": {},
    "other folds": {"folds": 3, "scoring": _scorer_of(1.0)},
    "folds of another seed": {"random_state": 1, "scoring": _scorer_of(1.0)},
}


@pytest.mark.parametrize("first", ["this one", *OTHERS])
def test_a_search_is_resumed_with_the_same_scorer_and_folds_only(tmp_path, first):
    cases = {"this one": {"scoring": _scorer_of(1.0)}, **OTHERS}
    how = {"space": {"hidden_units": [5, 9]}, "storage": tmp_path / "s.sqlite", "refit": False}

    def search(case, trials):
        return tune(SeriesClassifier(5), RISING_X, RISING, trials=trials, **{"folds": 2, **how, **case})

    search(cases[first], 1)
    again = {"this one": {"scoring": _scorer_of(1.0)}}.get(first, cases[first])  # the same, made anew
    assert len(search(again, 2).trials) == 2
    for name, case in cases.items():
        if name != first:
            with pytest.raises(ValueError, match=r"holds another search: (held out|scoring)"):
                search(case, 2)


def test_a_layout_that_is_none_is_refused():
    with pytest.raises(ValueError, match="layout='turned'; expected one of"):
        tune(SeriesClassifier(5, layout="turned"), RISING_X, RISING)


def test_one_long_series_is_searched_on_folds_that_follow_each_other(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    y = np.roll(x[:, 0], 3)
    starts = []
    real = ESNRegressor.score

    def score(self, X, y):
        starts.append((len(X), self.training_end_ is not None))
        return real(self, X, y)

    monkeypatch.setattr(ESNRegressor, "score", score)
    found = tune(ESNRegressor(20, learn="none"), x, y, trials=2, folds=3, space={"leak": [0.9, 0.8]}, refit=False)
    assert starts == [(100, True)] * 6  # each fold continues the steps that it was fitted to
    assert found.best_score > 0.5


def test_too_few_sequences_are_reported():
    with pytest.raises(ValueError, match=r"3 folds of 1 sequence.*validation=\(X, y\)"):
        tune(ESNClassifier(**grouped(FIXED)), X[0], LABELS[0])
    with pytest.raises(ValueError, match="5 folds of 3"):
        tune(ESNClassifier(**grouped(FIXED)), X[:3], LABELS[:3], folds=5)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"trials": 0}, "trials=0; expected a whole number >= 1"),
        ({"folds": 1.5}, "folds=1.5"),
        ({"random_state": 2**32}, "below 2\\*\\*32"),
        ({"validation": [X]}, "expected a pair"),
        ({"scoring": "accuracy"}, "expected a function of"),
    ],
)
def test_impossible_arguments_are_reported(arguments, word):
    with pytest.raises((ValueError, TypeError), match=word):
        tune(ESNClassifier(**grouped(FIXED)), X, LABELS, **arguments)


def test_something_other_than_an_estimator_is_refused():
    with pytest.raises(TypeError, match="expected a network, or a Pipeline"):
        tune(ESNClassifier, X, LABELS)


def test_a_failed_trial_is_not_taken_for_a_finished_one(tmp_path):
    calls = []

    def broken_once(estimator, X, y):
        calls.append(estimator)
        if len(calls) == 1:
            raise RuntimeError("no score today")
        return estimator.score(X, y)

    esn, how = (
        ESNClassifier(spectral_radius=0.7, **grouped(FIXED)),
        {"storage": tmp_path / "search.sqlite", "refit": False},
    )
    with pytest.raises(RuntimeError):
        tune(esn, X, LABELS, trials=2, scoring=broken_once, **how)
    found = tune(esn, X, LABELS, trials=2, scoring=broken_once, **how)
    assert len(found.trials) == 2
    assert found.trials[0].settings["spectral_radius"] == pytest.approx(0.7)  # the one that failed, tried again


def test_a_score_that_is_not_finite_counts_as_stopped_early():
    found = tune(ESNClassifier(**grouped(FIXED)), X, LABELS, trials=2, scoring=lambda *_: float("nan"), refit=False)
    assert [t.score for t in found.trials] == [None, None]


def test_without_optuna_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['optuna'] = None\n"
        "from echolearn import ESNClassifier, tuning\n"
        "try: tuning.tune(ESNClassifier(), [], [])\n"
        "except ImportError as problem: print(problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'echolearn[tune]'" in done.stdout, done.stderr


class WarningClassifier(ESNClassifier):
    """A classifier whose every fit warns."""

    def fit(self, X, y, **how):
        warnings.warn("poor", UserWarning, stacklevel=2)
        return super().fit(X, y, **how)


def test_poor_trials_do_not_warn_but_the_final_fit_does():
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((40, 1)) for _ in range(12)]
    y = [np.roll(x[:, 0], 1) > 0 for x in X]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        tune(WarningClassifier(10, learn="none"), X, y, space={"leak": [0.3, 1.0]}, trials=3, random_state=0)
    assert [str(w.message) for w in seen].count("poor") == 1


# Tests of the record of a search in a file


X_study, _ = toys.echoes(sequences=12)
FIXED_study = {**toys.FAST, "hidden_units": 8, "readout": "ridge", "learn": "none"}


def test_a_search_resumes_after_its_last_trial(tmp_path, capsys):
    esn, path = ESNClassifier(**grouped(FIXED_study)), tmp_path / "search.sqlite"
    first = tune(esn, X_study, LABELS, trials=3, storage=path, refit=False)
    more = tune(esn, X_study, LABELS, trials=5, storage=path, refit=False, verbose=1)
    assert more.trials[:3] == first.trials
    assert len({str(t.settings) for t in more.trials}) == 5  # none proposed twice
    printed = capsys.readouterr().err
    assert "resuming after 3 finished trials" in printed
    assert "trial 5/5  score" in printed
    assert tune(esn, X_study, LABELS, trials=5, storage=path, refit=False).trials == more.trials


def test_resuming_with_other_data_or_settings_is_refused(tmp_path):
    path = tmp_path / "search.sqlite"
    tune(ESNClassifier(**grouped(FIXED_study)), X_study, LABELS, trials=1, storage=path, refit=False)
    with pytest.raises(ValueError, match="holds another search: data differ"):
        tune(ESNClassifier(**grouped(FIXED_study)), [2 * x for x in X_study], LABELS, storage=path)
    with pytest.raises(ValueError, match="estimator differ"):
        tune(ESNClassifier(**grouped({**FIXED_study, "direct": False})), X_study, LABELS, storage=path)
    with pytest.raises(ValueError, match="space"):
        tune(ESNClassifier(**grouped(FIXED_study)), X_study, LABELS, storage=path, space={"leak": [0.05, 1.0]})
    with pytest.raises(ValueError, match="its folder does not exist"):
        tune(ESNClassifier(**grouped(FIXED_study)), X_study, LABELS, storage=tmp_path / "none" / "search.sqlite")
