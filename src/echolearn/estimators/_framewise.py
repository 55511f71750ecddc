"""FrameWise: frames of sequences of any lengths as the samples of scikit-learn's estimators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from echolearn.fitting.data import check_names
from echolearn.sequences.layouts import warn_of_more_features_than_steps
from echolearn.sequences.opening import Sequences, open_sequences, unpack
from echolearn.sequences.targets import concatenate_targets, open_targets
from echolearn.validation import Answers, Array, SequencesLike


def _can(method: str) -> Callable[[FrameWise], bool]:
    """Return the function that says whether what is applied to the frames has this method."""
    return lambda self: hasattr(self.transformer_ if hasattr(self, "transformer_") else self.transformer, method)


def _takes_gaps(transformer: BaseEstimator) -> bool:
    """Return whether a transformer of scikit-learn takes NaN, as imputers and scalers do."""
    return bool(get_tags(transformer).input_tags.allow_nan)


class FrameWise(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """A transformer, classifier or regressor of scikit-learn for which every frame of every sequence is one sample.

    It is fitted to the frames of all sequences at once. Sequences come back in the form in which they were given: one
    array, a list of arrays, or a 3-D array.

    Parameters
    ----------
    transformer : transformer, classifier or regressor of scikit-learn
        What is applied to the frames, for example ``StandardScaler()`` or ``PCA(10)``, which must return one dense row
        per frame; or, as the last step of a Pipeline, a readout such as ``LogisticRegression()``. A copy of it is
        fitted; the given one is not changed. One that takes NaN, such as ``SimpleImputer()``, may be given
        sequences with gaps.

    Attributes
    ----------
    transformer_ : transformer, classifier or regressor of scikit-learn
        The fitted copy.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        The names of the features, if X was a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from echolearn import ESNClassifier, FrameWise
    >>> rng = np.random.default_rng(0)
    >>> X = [100 + 20 * rng.standard_normal((n, 2)) for n in (30, 45, 60)]  # sequences of different lengths
    >>> y = [x[:, 0] > 100 for x in X]
    >>> model = make_pipeline(FrameWise(StandardScaler()), ESNClassifier(10, epochs=1, readout="ridge"))
    >>> [len(labels) for labels in model.fit(X, y).predict(X)]
    [30, 45, 60]
    """

    def __init__(self, transformer: BaseEstimator):
        self.transformer = transformer

    def fit(self, X: SequencesLike, y: SequencesLike = None) -> Self:
        """Fit the transformer to all frames.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        y : array or list of arrays, default=None
            Targets for a transformer that needs them: one per time step (in the form of X), or one per sequence, which
            stands for each of its frames.

        Returns
        -------
        FrameWise
            The transformer itself.
        """
        unpacked = unpack(X)
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        check_names(self, unpacked, "time_first", reset=True)
        given = open_sequences(unpacked, gaps=_takes_gaps(self.transformer))
        warn_of_more_features_than_steps(given.X)
        per_frame = None if y is None else _every_frame(y, given)
        self.transformer_ = clone(self.transformer).fit(np.concatenate(given.X), per_frame)
        self.n_features_in_ = given.X[0].shape[1]
        return self

    @available_if(_can("transform"))
    def transform(self, X: SequencesLike) -> Answers:
        """Transform every frame.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.

        Returns
        -------
        array or list of arrays
            The transformed frames, in the form of X.
        """
        check_is_fitted(self)
        return self._apply(self.transformer_.transform, self._open(X, gaps=_takes_gaps(self.transformer_)))

    @available_if(_can("inverse_transform"))
    def inverse_transform(self, X: SequencesLike) -> Answers:
        """Undo the transformation of every frame; only where the transformer can.

        Parameters
        ----------
        X : array of shape (n_steps, n_outputs), list of such arrays, or 3-D array
            Transformed sequences.

        Returns
        -------
        array or list of arrays
            The frames before the transformation, in the form of X.
        """
        check_is_fitted(self)
        return self._apply(self.transformer_.inverse_transform, open_sequences(X))

    @available_if(_can("predict"))
    def predict(self, X: SequencesLike) -> Answers:
        """Return the answer of a classifier or regressor to every frame.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.

        Returns
        -------
        array or list of arrays
            One label or value per frame, in the form of X.
        """
        check_is_fitted(self)
        return self._apply(self.transformer_.predict, self._open(X))

    @available_if(_can("predict_proba"))
    def predict_proba(self, X: SequencesLike) -> Answers:
        """Return the probabilities that a classifier gives to its classes at every frame.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.

        Returns
        -------
        array or list of arrays
            One row of probabilities per frame, in the form of X.
        """
        check_is_fitted(self)
        return self._apply(self.transformer_.predict_proba, self._open(X))

    @available_if(_can("score"))
    def score(self, X: SequencesLike, y: SequencesLike = None) -> float:
        """Return the score of a classifier or regressor over all frames.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        y : array or list of arrays, default=None
            The true targets: one per time step (in the form of X), or one per sequence, which stands for each of its
            frames.

        Returns
        -------
        float
            Its own score: the accuracy of a classifier, R² of a regressor.
        """
        check_is_fitted(self)
        given = self._open(X)
        per_frame = None if y is None else _every_frame(y, given)
        return float(self.transformer_.score(np.concatenate(given.X), per_frame))

    def _open(self, X: SequencesLike, *, gaps: bool = False) -> Sequences:
        """Check sequences with the features of the fit."""
        unpacked = unpack(X)
        check_names(self, unpacked, "time_first", reset=False)
        return open_sequences(unpacked, None, self.n_features_in_, "FrameWise", gaps=gaps)

    def _apply(self, function: Callable[[Array], Array], given: Sequences) -> Answers:
        frames = function(np.concatenate(given.X))
        total = given.lengths.sum()
        if sparse.issparse(frames) or len(frames) != total:
            name = type(self.transformer_).__name__
            found = "a sparse matrix" if sparse.issparse(frames) else f"{len(frames)} rows"
            raise ValueError(f"{name} gave {found} for {total} frames; FrameWise needs one dense row per frame.")
        return given.in_given_form(np.split(np.asarray(frames), np.cumsum(given.lengths)[:-1]))

    def get_feature_names_out(self, input_features: list[str] | None = None) -> Array:
        """Return the names of the transformer's outputs.

        Parameters
        ----------
        input_features : list of str, default=None
            The names of the features. None: those that the transformer was fitted with, or x0, x1, ...

        Returns
        -------
        array of str
            One name per output.
        """
        check_is_fitted(self)
        return np.asarray(self.transformer_.get_feature_names_out(input_features))

    @property
    def classes_(self) -> Array:
        """The classes of a classifier."""
        return np.asarray(self.transformer_.classes_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "transformer_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.transformer)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.target_tags = inner.target_tags
        return tags


def _every_frame(y: SequencesLike, given: Sequences) -> Array:
    """Return one target per frame."""
    entries, per_step = open_targets(y, given, missing=True)
    targets = concatenate_targets(entries, per_step)
    return targets if per_step else np.repeat(targets, given.lengths, axis=0)
