"""The table of docs/howto/scikit_learn.md: every tool on every form of data does what the table says."""

import re
from functools import partial

import numpy as np
import pytest
from sklearn import ensemble, metrics, model_selection
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.inspection import permutation_importance
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import toys
from echolearn import ESNClassifier, ESNRegressor, FrameWise, SeriesClassifier, SeriesRegressor
from echolearn import metrics as ours
from sourcetree import ROOT
from toys import grouped

SETTINGS = {"hidden_units": 8, "connections": 3, "learn": "none", "validation_fraction": 0.0}
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function")
X, VALUES = toys.echoes(sequences=12)
LABELS = [(v[:, 0] > 0).astype(int) for v in VALUES]
RISING_X, RISING = toys.rising(sequences=24)
SERIES = np.random.default_rng(0).normal(size=(120, 2))
LATE = np.roll(SERIES[:, 0], 1)
DATA = {  # X, labels, values, folds
    "one series": (SERIES, (LATE > 0).astype(int), LATE, TimeSeriesSplit(3)),
    "per series": (RISING_X, RISING, RISING + 0.5, KFold(2)),
    "per step": (X, LABELS, [v[:, 0] for v in VALUES], KFold(2)),
}


PER_STEP = partial(ESNClassifier, readout="ridge", **grouped(SETTINGS)), partial(ESNRegressor, **grouped(SETTINGS))
PER_SERIES = partial(SeriesClassifier, 8), partial(SeriesRegressor, 8)
now = {"estimators": PER_STEP}  # those of the data that are tried


@pytest.fixture(params=DATA)
def data(request, monkeypatch):
    monkeypatch.setitem(now, "estimators", PER_SERIES if request.param == "per series" else PER_STEP)
    return request.param


def classifier(seed=0):
    return now["estimators"][0](random_state=seed)


def regressor(seed=0):
    return now["estimators"][1](random_state=seed)


def scores(name, esn, y):
    """Return the tool and our line for a score by its name."""

    def tool(X, labels, values, cv):
        given = {"labels": labels, "values": values}[y]
        return model_selection.cross_val_score(esn(), X, given, cv=cv, scoring=name, error_score="raise")

    def line(X, labels, values, cv):
        given = {"labels": labels, "values": values}[y]
        return model_selection.cross_val_score(esn(), X, given, cv=cv, scoring=ours.scorer(name), error_score="raise")

    return tool, line


def search(**more):
    def tool(X, labels, values, cv):
        grid = model_selection.GridSearchCV(classifier(), {"hidden_units": [4, 8]}, cv=cv, error_score="raise", **more)
        return grid.fit(X, labels).predict(X)

    return tool


def several(make):
    def tool(X, labels, values, cv):
        scoring = {name: make(name) for name in ("f1_macro", "accuracy")}
        return model_selection.cross_validate(classifier(), X, labels, cv=cv, scoring=scoring, error_score="raise")

    return tool


def fitted(model, kind="labels"):
    def tool(X, labels, values, cv):
        return model().fit(X, labels if kind == "labels" else values).predict(X)

    return tool


def two(kind, make):
    return lambda: kind([("a", make(1)), ("b", make(2))])


def bagged(kind, make, y="labels", *, column=False):
    def tool(X, labels, values, cv):
        if column:
            table = np.empty((len(X), 1), object)
            table[:, 0] = X
            X = table
        return kind(make(), 2).fit(X, labels if y == "labels" else values).predict(X)

    return tool


def predicted(function):
    def tool(X, labels, values, cv):
        return [function(classifier(), X, labels, cv=KFold(3), method=method) for method in METHODS]

    return tool


def of_answers(metric):
    return lambda X, labels, values, cv: metric(labels, classifier().fit(X, labels).predict(X))


def joining(metric):
    return lambda y, answers: metric(*ours.joined(y, answers))


def of_model_selection(name, **more):
    def tool(X, labels, values, cv):
        how = {"error_score": "raise"} if name != "permutation_test_score" else {}
        return getattr(model_selection, name)(classifier(), X, labels, cv=cv, **how, **more)

    return tool


def randomized(X, labels, values, cv):
    space = {"hidden_units": [4, 8]}
    return model_selection.RandomizedSearchCV(classifier(), space, n_iter=2, cv=cv, error_score="raise").fit(X, labels)


def important(function):
    return lambda X, labels, values, cv: function(classifier().fit(X, labels), X, labels, n_repeats=2)


def selected(X, labels, values, cv):
    chosen = SequentialFeatureSelector(classifier(), n_features_to_select=1, cv=cv)
    return chosen.fit(X, labels).transform(X)


def without_score(X, labels, values, cv):
    return model_selection.cross_val_score(classifier(), X, labels, cv=cv, error_score="raise")


BAGGING, BAGGING_VALUES = ensemble.BaggingClassifier, ensemble.BaggingRegressor
TOOLS = {  # name -> the tool, and our line in its place
    "cross_val_score, without scoring": (without_score, None),
    'cross_val_score, scoring="f1_macro"': scores("f1_macro", classifier, "labels"),
    'cross_val_score, scoring="roc_auc"': scores("roc_auc", classifier, "labels"),
    'cross_val_score, scoring="neg_log_loss"': scores("neg_log_loss", classifier, "labels"),
    'cross_val_score, scoring="neg_mean_squared_error"': scores("neg_mean_squared_error", regressor, "values"),
    "cross_validate, several scores": (several(str), several(ours.scorer)),
    "cross_val_predict, each method": (
        predicted(model_selection.cross_val_predict),
        predicted(ours.cross_val_predict),
    ),
    "GridSearchCV": (search(), None),
    'GridSearchCV, scoring="f1_macro"': (search(scoring="f1_macro"), search(scoring=ours.scorer("f1_macro"))),
    "RandomizedSearchCV": (randomized, None),
    "learning_curve": (of_model_selection("learning_curve", train_sizes=[0.5, 1.0]), None),
    "validation_curve": (of_model_selection("validation_curve", param_name="hidden_units", param_range=[4, 8]), None),
    "permutation_test_score": (of_model_selection("permutation_test_score", n_permutations=2, random_state=0), None),
    "train_test_split": (lambda X, labels, values, cv: model_selection.train_test_split(X, labels), None),
    "confusion_matrix": (of_answers(metrics.confusion_matrix), of_answers(joining(metrics.confusion_matrix))),
    "classification_report": (
        of_answers(metrics.classification_report),
        of_answers(joining(metrics.classification_report)),
    ),
    "permutation_importance": (important(permutation_importance), important(ours.permutation_importance)),
    "Pipeline with FrameWise": (fitted(lambda: make_pipeline(FrameWise(StandardScaler()), classifier())), None),
    "VotingClassifier": (fitted(two(ensemble.VotingClassifier, classifier)), None),
    "VotingRegressor": (fitted(two(ensemble.VotingRegressor, regressor), "values"), None),
    "StackingClassifier": (fitted(two(ensemble.StackingClassifier, classifier)), None),
    "StackingRegressor": (fitted(two(ensemble.StackingRegressor, regressor), "values"), None),
    "CalibratedClassifierCV": (fitted(lambda: CalibratedClassifierCV(classifier(), cv=2)), None),
    "OneVsRestClassifier": (fitted(lambda: OneVsRestClassifier(classifier())), None),
    "TunedThresholdClassifierCV": (
        fitted(lambda: model_selection.TunedThresholdClassifierCV(classifier(), cv=2)),
        None,
    ),
    "TransformedTargetRegressor": (fitted(lambda: TransformedTargetRegressor(regressor()), "values"), None),
    "BaggingClassifier": (bagged(BAGGING, classifier), bagged(BAGGING, classifier, column=True)),
    "BaggingRegressor": (
        bagged(BAGGING_VALUES, regressor, "values"),
        bagged(BAGGING_VALUES, regressor, "values", column=True),
    ),
    "SequentialFeatureSelector": (selected, None),
}


def table():
    """Return the table of the document: (tool, data) -> yes, ours or no."""
    rows = re.findall(
        r"^\| (.+?) \| (\w+) \| (\w+) \| (\w+) \|$", (ROOT / "docs/howto/scikit_learn.md").read_text(), re.M
    )
    return {(name, data): cell for name, *cells in rows for data, cell in zip(DATA, cells, strict=True)}


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.filterwarnings("ignore:Scoring failed")
@pytest.mark.filterwarnings("ignore::echolearn.exceptions.PoorScoreWarning")
def test_the_tool_does_what_the_table_says(name, data, monkeypatch):
    monkeypatch.setitem(globals(), "WHOLE", [data] if data == "per sequence" else [])
    tool, line = TOOLS[name]
    expected = table()[name, data]
    if expected == "yes":
        tool(*DATA[data])
        return
    with pytest.raises((TypeError, ValueError, AttributeError)):  # of scikit-learn's own code
        tool(*DATA[data])
    if expected == "ours":
        line(*DATA[data])


def test_the_table_is_complete():
    assert set(table()) == {(name, data) for name in TOOLS for data in DATA}
    assert set(table().values()) == {"yes", "ours", "no"}
