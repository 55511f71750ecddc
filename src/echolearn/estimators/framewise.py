"""Frames of ragged sequences as scikit-learn's samples: `FrameWise` for its transformers, `scorer` for its scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import metrics
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from echolearn.sequences.validation import InputSequences, concatenate_targets, open_sequences, open_targets
from echolearn.validation.names import check_name

Array = NDArray[Any]


def _can_invert(self: FrameWise) -> bool:
    return hasattr(getattr(self, "transformer_", self.transformer), "inverse_transform")


class FrameWise(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """A transformer of scikit-learn that sees every frame of every sequence as one sample.

    Fitted on all frames together; sequences come back in the form in which they went in: one array, a list of them,
    or a 3-D array. `Pipeline([("scale", FrameWise(StandardScaler())), ("esn", ESNClassifier())])` takes ragged lists.
    """

    def __init__(self, transformer: Any):
        self.transformer = transformer

    def fit(self, X: Any, y: Any = None) -> Self:
        """y goes to the transformer with an entry a frame; one entry a sequence stands for each of its frames."""
        given = open_sequences(X)
        per_frame = None if y is None else _every_frame(y, given)
        self.transformer_ = clone(self.transformer).fit(np.concatenate(given.X), per_frame)
        self.n_features_in_ = given.X[0].shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """X with each frame transformed."""
        check_is_fitted(self)
        return self._apply(self.transformer_.transform, open_sequences(X, None, self.n_features_in_, "FrameWise"))

    @available_if(_can_invert)
    def inverse_transform(self, X: Any) -> Any:
        """Frames back to what they were; only where the transformer knows how."""
        check_is_fitted(self)
        return self._apply(self.transformer_.inverse_transform, open_sequences(X))

    def _apply(self, function: Callable[[Array], Any], given: InputSequences) -> Any:
        frames = function(np.concatenate(given.X))
        if sparse.issparse(frames) or len(frames) != given.lengths.sum():
            raise ValueError(
                f"{type(self.transformer_).__name__} gave {_words(frames)} for {given.lengths.sum()} frames; FrameWise "
                "needs a transformer that gives one dense row a frame."
            )
        return given.in_given_form(np.split(np.asarray(frames), np.cumsum(given.lengths)[:-1]))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "transformer_")


def _words(frames: Any) -> str:
    return "a sparse matrix" if sparse.issparse(frames) else f"{len(frames)} rows"


def _every_frame(y: Any, given: InputSequences) -> Array:
    entries, per_step = open_targets(y, given)
    targets = concatenate_targets(entries, per_step)
    return targets if per_step else np.repeat(targets, given.lengths, axis=0)


def nrmse(true: Array, predicted: Array) -> float:
    """Root mean square error over the standard deviation of the true values, averaged over outputs."""
    true, predicted = np.asarray(true, float), np.asarray(predicted, float)
    spread = true.std(axis=0)
    if not np.all(spread > 0):
        raise ValueError("the true values of an output are all the same; their NRMSE is not defined.")
    return float(np.mean(np.sqrt(((true - predicted) ** 2).mean(axis=0)) / spread))


def _f1_macro(true: Array, predicted: Array) -> float:
    return float(metrics.f1_score(true, predicted, average="macro", zero_division=0))


def _neg_nrmse(true: Array, predicted: Array) -> float:
    return -nrmse(true, predicted)


_SCORES: dict[str, Callable[[Array, Array], float]] = {
    "accuracy": metrics.accuracy_score,
    "balanced_accuracy": metrics.balanced_accuracy_score,
    "f1_macro": _f1_macro,
    "r2": metrics.r2_score,
    "neg_nrmse": _neg_nrmse,
}
SCORERS = (*_SCORES, "neg_log_loss")


@dataclass(frozen=True)
class Scorer:
    """scorer(estimator, X, y): greater is better, every frame of every sequence counts the same."""

    name: str

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        given = open_sequences(X)
        entries, per_step = open_targets(y, given)
        log_loss = self.name == "neg_log_loss"
        answers = (estimator.predict_proba if log_loss else estimator.predict)(X)
        predicted = concatenate_targets(given.split(answers), True) if per_step else np.asarray(answers)
        true = concatenate_targets(entries, per_step)
        if log_loss:
            return -float(metrics.log_loss(true, predicted, labels=estimator.classes_))
        return float(_SCORES[self.name](true, predicted))


def scorer(name: str) -> Scorer:
    """A frame-wise score for `scoring=` of GridSearchCV and the like: accuracy, balanced_accuracy, f1_macro,
    neg_log_loss, r2 or neg_nrmse."""
    check_name(name, SCORERS, "scorer")
    return Scorer(name)
