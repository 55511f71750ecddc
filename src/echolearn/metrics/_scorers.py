"""Scores of sequences of different lengths: scikit-learn's metrics over the steps of all sequences joined."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn import metrics, model_selection
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch, Tags, get_tags

from echolearn.metrics._forecast_errors import mean_and_error
from echolearn.sequences.layouts import LAYOUTS, choose_layout, turned
from echolearn.sequences.opening import open_sequences, unpack
from echolearn.sequences.targets import concatenate_targets, open_targets
from echolearn.validation import Answers, Array, SequencesLike, check_integer, check_name

NORMAL_QUANTILE = 1.96  # standard errors about a mean within which it lies with a probability of 95 %
Metric = Callable[..., Any]  # of scikit-learn, called as metric(y_true, y_pred, **options)


def joined(y_true: object, y_pred: object, *, ignore_label: object = None) -> tuple[Array, Array]:
    """Return the targets and the answers of all sequences as two arrays, for any metric of scikit-learn.

    Parameters
    ----------
    y_true, y_pred : list of arrays, or array
        The true labels or values, and the answers of an estimator (labels, values or probabilities) in the same form; a
        list has one array per sequence. One array, or one label per sequence, stays as it is.
    ignore_label : label, default=None
        Entries of `y_true` that have this label are left out of both arrays, as `ESNClassifier(ignore_label=...)` does;
        NaN stands for NaN and None. None leaves out nothing.

    Returns
    -------
    tuple of two arrays
        The true ones and the answers, one row per step of every sequence.

    Raises
    ------
    ValueError
        If the two differ in the number or the lengths of their sequences.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics import accuracy_score
    >>> from echolearn.metrics import joined
    >>> y, answers = [np.array([0, 1, 1]), np.array([1, 0])], [np.array([0, 1, 0]), np.array([1, 0])]
    >>> accuracy_score(*joined(y, answers))
    0.8
    """
    _check_match(_lengths(y_true), _lengths(y_pred))
    true, answers = np.asarray(_joined(y_true, "y_true")), np.asarray(_joined(y_pred, "y_pred"))
    if len(answers) != len(true):
        raise ValueError(f"y_true and y_pred do not match: they have {len(true)} and {len(answers)} entries.")
    if ignore_label is None:
        return true, answers
    counts = ~_ignored(true, ignore_label)
    if not counts.any():
        raise ValueError(f"there is nothing to score: every entry of y_true is ignore_label={ignore_label!r}.")
    return _plain(true[counts]), _plain(answers[counts])


def _ignored(true: Array, ignore_label: object) -> Array:
    """Return whether each label is the one to ignore; a row of labels is if one of them is."""
    if isinstance(ignore_label, (float, np.floating)) and np.isnan(ignore_label):
        return _missing(true)
    same = np.array([label == ignore_label for label in true.ravel().tolist()], bool)
    return np.asarray(same.reshape(len(true), -1).any(axis=1))


def _plain(labels: Array) -> Array:
    """Return labels that came as objects, because None or NaN stood among them, in a type of their own."""
    return np.array(labels.tolist()) if labels.dtype == object else labels


def nrmse(true: ArrayLike | Sequence[ArrayLike], predicted: ArrayLike | Sequence[ArrayLike]) -> float:
    """Return the root mean square error over the standard deviation of the true values, averaged over outputs.

    Parameters
    ----------
    true, predicted : array, or list of arrays
        The true and the predicted values; a list has one array per sequence.

    Returns
    -------
    float
        0 for perfect predictions, 1 for predictions no better than the mean of the true values.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.metrics import nrmse
    >>> nrmse([np.array([1.0, 3.0]), np.array([5.0])], [np.array([1.0, 3.0]), np.array([5.0])])
    0.0
    """
    values, answers = (np.asarray(array, float) for array in joined(true, predicted))
    spread = values.std(axis=0)
    if not np.all(spread > 0):
        raise ValueError("the true values of an output are all the same; their NRMSE is not defined.")
    return float(np.mean(np.sqrt(((values - answers) ** 2).mean(axis=0)) / spread))


def _lengths(y: object) -> list[int] | None:
    """Return the number of steps of each sequence of a list of arrays, or None for anything else."""
    if not isinstance(y, (list, tuple)) and not (isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1):
        return None
    steps = [not isinstance(entry, str) and hasattr(entry, "__len__") and np.shape(entry) != () for entry in y]
    return [len(entry) for entry in y] if len(y) and all(steps) else None


def _joined(y: object, name: str) -> object:
    """Return the arrays of a list as one; anything else as it is."""
    if _lengths(y) is None:
        return y
    try:
        return np.concatenate([np.asarray(entry) for entry in y])  # type: ignore[attr-defined]
    except ValueError as problem:
        raise ValueError(f"the sequences of {name} cannot be joined: {problem}.") from None


def _weights(weights: object, lengths: list[int] | None) -> object:
    """Return one weight per step: joined, or that of each sequence repeated for its steps."""
    if lengths is None or weights is None or _lengths(weights) is not None:
        return _joined(weights, "sample_weight")
    array = np.asarray(weights)
    return np.repeat(array, lengths) if array.shape == (len(lengths),) else array


def _check_match(lengths: list[int] | None, others: list[int] | None) -> None:
    """Refuse lists of arrays that differ in the number or the lengths of their sequences."""
    if lengths is None or others is None or lengths == others:
        return
    i = next((i for i, pair in enumerate(zip(lengths, others, strict=False)) if pair[0] != pair[1]), None)
    where = (
        f"{len(lengths)} and {len(others)} sequences"
        if i is None
        else f"{lengths[i]} and {others[i]} steps in sequence {i}"
    )
    raise ValueError(f"y_true and y_pred do not match: they have {where}.")


OUR_SCORERS = {"neg_nrmse": metrics.make_scorer(nrmse, greater_is_better=False)}
SCORERS = (*metrics.get_scorer_names(), *OUR_SCORERS)


class _Joining:
    """A fitted estimator as scikit-learn's scorers see it: its answers are joined, all else is its own."""

    def __init__(self, estimator: BaseEstimator, join: Callable[[Answers], Array]):
        self._estimator, self._join = estimator, join

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._estimator, name)
        if name not in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            return method

        @wraps(method)
        def answer(X: SequencesLike) -> Array:
            return self._join(method(X))

        return answer

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self._estimator)


def _reader(estimator: BaseEstimator) -> BaseEstimator:
    """Return what reads X: an estimator, or the last step of a Pipeline in which nothing comes before it."""
    if not isinstance(estimator, Pipeline) or any(
        step not in (None, "passthrough") for _, step in estimator.steps[:-1]
    ):
        return estimator  # other steps have no layout: they read time first
    return estimator.steps[-1][1]


def reading_time_first(estimator: BaseEstimator, X: SequencesLike, y: SequencesLike) -> tuple[BaseEstimator, str]:
    """Return a copy that reads sequences with time first, and the layout of X, as a fit of the estimator reads it."""
    copy, layout = clone(estimator), getattr(_reader(estimator), "layout", None)
    if layout not in LAYOUTS:
        return copy, "time_first"  # there is none, or the first fit refuses it
    _reader(copy).set_params(layout="time_first")
    return copy, choose_layout(unpack(X), y, layout, series=getattr(_reader(estimator), "per_series", False))


def _missing(true: Array) -> Array:
    """Return whether each target is missing: NaN in values (of any output), NaN or None among labels."""
    if true.dtype.kind == "O":
        return np.array([entry is None or entry != entry for entry in true], bool)
    gaps = np.isnan(true) if true.dtype.kind == "f" else np.zeros(true.shape, bool)
    return np.asarray(gaps.reshape(len(true), -1).any(axis=1))


def _counted(estimator: BaseEstimator, X: SequencesLike, true: Array, lengths: Array | None) -> Array:
    """Return whether each target counts: neither in the washout nor missing; lengths: with one target per step."""
    last = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    counts = ~_missing(true)
    ignored = getattr(last, "ignore_label", None)
    if ignored is not None:
        counts &= true != ignored
    if lengths is not None and hasattr(last, "unsettled_steps"):
        inputs = estimator[:-1].transform(X) if isinstance(estimator, Pipeline) and len(estimator) > 1 else X
        place = np.concatenate([np.arange(n) for n in lengths])
        counts &= place >= np.repeat(last.unsettled_steps(inputs), lengths)
    if not counts.any():
        raise ValueError("there is nothing to score: every step is in the washout, or lacks a target.")
    return counts


@dataclass(frozen=True)
class Scorer:
    """A score over the steps that the estimator's own `score` counts: after the washout, with a target."""

    scoring: str | Metric

    def __call__(
        self, estimator: BaseEstimator, X: SequencesLike, y: SequencesLike, *, sample_weight: object = None
    ) -> float:
        sequences = open_sequences(X, gaps=True, layout=getattr(_reader(estimator), "layout_", "time_first"))
        entries, per_step = open_targets(y, sequences, missing=True)
        true = concatenate_targets(entries, per_step)
        counts = _counted(estimator, X, true, sequences.lengths if per_step else None)

        def join(answers: Answers) -> Array:
            return (concatenate_targets(sequences.split(answers), True) if per_step else np.asarray(answers))[counts]

        how = {}
        if sample_weight is not None:
            weights = _weights(sample_weight, sequences.lengths.tolist() if per_step else None)
            how["sample_weight"] = np.asarray(weights)[counts]
        return float(self._of_joined(estimator)(_Joining(estimator, join), X, true[counts], **how))

    def _of_joined(self, estimator: BaseEstimator) -> Metric:
        """Return scikit-learn's scorer."""
        if not isinstance(self.scoring, str):
            return self.scoring
        if self.scoring == "neg_log_loss":  # with all classes: a few sequences may lack some
            options = {"response_method": "predict_proba", "greater_is_better": False, "labels": estimator.classes_}
            return metrics.make_scorer(metrics.log_loss, **options)  # type: ignore[no-any-return]
        return OUR_SCORERS.get(self.scoring) or metrics.get_scorer(self.scoring)  # type: ignore[no-any-return]

    def _accept_sample_weight(self) -> bool:
        """Return whether a weight may be passed on; scikit-learn asks every scorer."""
        return True


def scorer(scoring: str | Metric) -> Scorer:
    """Return a score over all steps, for ``scoring=`` of scikit-learn's GridSearchCV, cross_val_score and similar.

    scikit-learn's own names of scores, as in ``scoring="f1_macro"``, work with one label per sequence and with one
    series; ``scoring=scorer("f1_macro")`` works also with one label per step of several sequences.

    Parameters
    ----------
    scoring : str or callable
        The name of any scorer of scikit-learn ("accuracy", "f1_macro", "roc_auc", "neg_log_loss", "r2", ...),
        "neg_nrmse" (the root mean square error in standard deviations of the true values), or what
        `sklearn.metrics.make_scorer` returns. Those that begin with "neg_" are errors with the opposite sign, so that
        greater is better.

    Returns
    -------
    Scorer
        A callable that takes a fitted estimator, X and y, and returns a float.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from echolearn import ESNClassifier
    >>> from echolearn.metrics import scorer
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((n, 2)) for n in range(30, 42)]
    >>> y = [x[:, 0] > 0 for x in X]
    >>> esn = ESNClassifier(10, learn="none", readout="ridge")
    >>> cross_val_score(esn, X, y, cv=2, scoring=scorer("balanced_accuracy")).shape
    (2,)
    """
    if not callable(scoring):
        check_name(scoring, SCORERS, "scorer")
    return Scorer(scoring)


def cross_val_predict(
    estimator: BaseEstimator,
    X: SequencesLike,
    y: SequencesLike,
    *,
    cv: object = None,
    method: str = "predict",
    groups: ArrayLike | None = None,
) -> Answers:
    """Return predictions for every sequence, each from an estimator that was fitted without it.

    This is scikit-learn's function of the same name for sequences of different lengths with one target per step.

    Parameters
    ----------
    estimator : estimator or pipeline
        The estimator, which is cloned and fitted once per fold. The estimator itself is not changed.
    X : list of arrays of shape (n_steps, n_features), or 3-D array
        Several sequences.
    y : list of arrays, or array
        One target per time step (in the form of X), or one per sequence.
    cv : int, splitter or iterable, default=None
        The number of folds (None: 5), or a splitter or an iterable of splits as in scikit-learn. Each sequence must be
        in exactly one test part.
    method : {"predict", "predict_proba", "predict_log_proba", "decision_function"}, default="predict"
        The method of the estimator whose results are returned.
    groups : array of shape (n_sequences,), default=None
        The group of each sequence, for splitters that keep groups together, such as GroupKFold.

    Returns
    -------
    list of arrays, or array
        The predictions, in the order and the form of X: one per step, or one per sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNClassifier
    >>> from sklearn.metrics import confusion_matrix
    >>> from echolearn.metrics import cross_val_predict, joined
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((n, 2)) for n in range(30, 42)]
    >>> y = [x[:, 0] > 0 for x in X]
    >>> answers = cross_val_predict(ESNClassifier(10, learn="none", readout="ridge"), X, y, cv=3)
    >>> int(confusion_matrix(*joined(y, answers)).sum()) == sum(map(len, X))
    True
    """
    copy, layout = reading_time_first(estimator, X, y)
    sequences = open_sequences(X, gaps=True, layout=layout)
    entries, per_step = open_targets(y, sequences, missing=True)
    if sequences.kind == "one":
        raise ValueError("X is one sequence, which has no folds of sequences; use sklearn.model_selection's function.")
    by_label = None if per_step else concatenate_targets(entries, per_step)
    folds = model_selection.check_cv(cv, by_label, classifier=not per_step and is_classifier(estimator))
    answers: list[Array | None] = [None] * len(sequences.X)
    for train, test in folds.split(np.zeros(len(sequences.X)), by_label, groups):
        fitted = clone(copy).fit([sequences.X[i] for i in train], [entries[i] for i in train])
        for i, answer in zip(test, getattr(fitted, method)([sequences.X[i] for i in test]), strict=True):
            if answers[i] is not None:
                raise ValueError(f"cv puts sequence {i} into two test parts; expected one for each sequence.")
            answers[i] = answer
    left = [i for i, answer in enumerate(answers) if answer is None]
    if left:
        raise ValueError(f"cv puts sequence {left[0]} into no test part; expected one for each sequence.")
    arrays = [np.asarray(answer) for answer in answers]
    return sequences.in_given_form(arrays) if per_step else np.stack(arrays)


def permutation_importance(
    estimator: BaseEstimator,
    X: SequencesLike,
    y: SequencesLike,
    *,
    scoring: str | Metric | None = None,
    n_repeats: int = 5,
    random_state: int | None = None,
) -> Bunch:
    """Return how much the score drops when one feature is shuffled over the frames of all sequences.

    This is scikit-learn's function of the same name for sequences of different lengths. A shuffled feature has the same
    values, but no longer any information about this step or those before it. For a forecaster, X are its exogenous
    inputs, and y is the series.

    Parameters
    ----------
    estimator : estimator or pipeline
        A fitted estimator. It is not fitted again.
    X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
        One sequence, or several of any lengths.
    y
        As in `cross_val_predict`.
    scoring : str or callable, default=None
        As in `scorer`. None: the estimator's own score. A forecaster has no other.
    n_repeats : int, default=5
        How often each feature is shuffled.
    random_state : int, default=None
        The seed of the shuffling. None: different at every call.

    Returns
    -------
    sklearn.utils.Bunch
        `importances` of shape (n_features, n_repeats): the drops of the score. `importances_mean` and
        `importances_std`, both of shape (n_features,): their means and standard deviations. Of a forecaster, also
        `effects` and `effects_interval`, of shape (n_features,) and (n_features, 2): by how much the mean absolute
        error of forecasts one step ahead grows, in standard deviations of the series, and where this growth lies with
        a probability of 95 %.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNRegressor
    >>> from echolearn.metrics import permutation_importance
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((n, 2)) for n in range(30, 42)]
    >>> y = [np.roll(x[:, 1], 1) for x in X]
    >>> esn = ESNRegressor(20, learn="none").fit(X, y)
    >>> int(permutation_importance(esn, X, y, random_state=0).importances_mean.argmax())
    1
    """
    layout = getattr(_reader(estimator), "layout_", "time_first")
    sequences = open_sequences(X, gaps=True, layout=layout)
    check_integer("n_repeats", n_repeats, 1)
    forecast, measure = getattr(estimator, "forecast_", None), None if scoring is None else scorer(scoring)
    if forecast is not None and scoring is not None:
        raise ValueError(f"scoring={scoring!r}, but a forecaster has only its own score. Leave scoring out.")
    errors: list[Array] = []  # of forecasts, first with all features as they are

    def score(frames: Array) -> float:
        inputs = sequences.in_given_form(np.split(frames, np.cumsum(sequences.lengths)[:-1]))
        if forecast is not None:
            errors.append(np.abs(forecast.errors(y, inputs, 1)[0]).mean(axis=1))
            return float(cast("Any", estimator).score(y, exogenous=inputs))
        given = cast("Answers", turned(inputs)) if layout == "channels_first" else inputs
        return float(estimator.score(given, y) if measure is None else measure(estimator, given, y))

    frames, rng = np.concatenate(sequences.X), np.random.default_rng(random_state)
    importances = np.empty((frames.shape[1], n_repeats))
    whole = score(frames)
    for feature, repeat in np.ndindex(importances.shape):
        shuffled = frames.copy()
        shuffled[:, feature] = rng.permutation(frames[:, feature])
        with warnings.catch_warnings():  # a poor score is what shuffling is for
            warnings.simplefilter("ignore", UserWarning)
            importances[feature, repeat] = whole - score(shuffled)
    found = Bunch(
        importances=importances, importances_mean=importances.mean(axis=1), importances_std=importances.std(axis=1)
    )
    if forecast is not None:
        growth = np.array(errors[1:]).reshape(*importances.shape, -1).mean(axis=1) - errors[0]
        lags = int(np.cbrt(growth.shape[1]))
        means, deviations = np.transpose([mean_and_error(steps, lags) for steps in growth])
        found.effects, found.effects_interval = (
            means,
            np.stack([means - NORMAL_QUANTILE * deviations, means + NORMAL_QUANTILE * deviations], axis=1),
        )
    return found
