"""Answers of regressors: values and scores, per step or per series."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators._base import SequenceEstimator, StepEstimator
from echolearn.fitting.advice.scores import warn_of_poor_values
from echolearn.fitting.codecs import ValueCodec
from echolearn.fitting.data import FitData, TargetRule
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.online import OnlineRule
from echolearn.streams._estimator import DeepStream, EstimatorStream
from echolearn.validation import Answers, Array, SequencesLike

RULE = TargetRule(values=True)  # NaN in y: there is no target


class ValueEstimator(RegressorMixin, SequenceEstimator):
    """A regressor of sequences: how values are encoded, decoded and scored."""

    dtype: str

    @property
    def codec_(self) -> ValueCodec:
        """How values are encoded."""
        codec = self.model_.codec
        assert isinstance(codec, ValueCodec)
        return codec

    @property
    def target_mean_(self) -> Array:
        """The mean of each target."""
        return self.codec_.mean

    @property
    def target_scale_(self) -> Array:
        """The standard deviation of each target."""
        return self.codec_.scale

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _codec_for(self, data: FitData) -> ValueCodec:
        return ValueCodec.of(data.targets.known(), data.per_step, self.dtype)

    def _values(self, X: SequencesLike, lengths: ArrayLike | None, warm_up: SequencesLike = None) -> Answers:
        """Return the predicted values."""
        check_is_fitted(self)
        return self._answer(X, lengths, self.codec_.decode, warm_up, names=self._target_names())

    def _r2(
        self,
        X: SequencesLike,
        y: SequencesLike,
        lengths: ArrayLike | None,
        *,
        sample_weight: object,
        warm_up: SequencesLike = None,
    ) -> float:
        """Return R², averaged over outputs."""
        true, predicted, w = self._compare(X, y, lengths, RULE, warm_up=warm_up, sample_weight=sample_weight)
        if true.dtype.kind not in "fiub" or true.size != predicted.size:
            raise ValueError(f"y holds {true.dtype} of shape {true.shape}; expected numbers, {predicted.shape}.")
        r2 = float(r2_score(true.reshape(predicted.shape), predicted, sample_weight=w))
        warn_of_poor_values(r2, np.ones(len(predicted)) if w is None else w)
        return r2


class StepRegressor(StepEstimator, ValueEstimator):
    """A regressor of steps: its public answers, and the stream."""

    def stream(self, *, online: OnlineRule | None = None, warm_up: SequencesLike = None) -> EstimatorStream:
        """Return the network as a stream that takes one frame or a chunk of frames at a time (docs/howto/streams.md).

        Parameters
        ----------
        online : RLS or LMS, default=None
            The rule by which the readout continues to learn. None: it does not.
        warm_up : array of shape (n_steps, n_features), pair, or "cold", default=None
            Frames before those of the stream, from whose last state it continues; see `predict`.

        Returns
        -------
        EstimatorStream
            A stream in its first state.
        """
        check_is_fitted(self)
        kind = DeepStream if isinstance(self.network_, DeepNetwork) else EstimatorStream
        return kind(self.model_, online=online, warm_up=warm_up)

    def predict(self, X: SequencesLike, *, lengths: ArrayLike | None = None, warm_up: SequencesLike = None) -> Answers:
        """Return the values of each step.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.
        warm_up : array, list of arrays, pair, or "cold", default=None
            Frames before X, in the form of X, from whose last state the prediction continues. For a network with
            feedback a pair (frames, targets), so that the last known outputs are fed back. None: a network that was
            fitted to one series continues from its end, unless X is that series itself; others start in the initial
            state, as every sequence did in training. "cold": start in the initial state.

        Returns
        -------
        array or list of arrays
            Values in the form of X.
        """
        return self._values(X, lengths, warm_up)

    def score(
        self,
        X: SequencesLike,
        y: SequencesLike,
        *,
        lengths: ArrayLike | None = None,
        warm_up: SequencesLike = None,
        sample_weight: object = None,
    ) -> float:
        """Return R² over all steps after the washout that have a target, averaged over outputs.

        From 50 targets on, a score of 0 or less is warned of (`echolearn.exceptions.PoorScoreWarning`).

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.
        y : array or list of arrays
            The true values, or rows of values: one per time step, in the form of X.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.
        warm_up : array, list of arrays, pair, or "cold", default=None
            The frames before X, as in `predict`.
        sample_weight : array or list of arrays, default=None
            How much each target counts: one number per sequence, or one per step in the form of y. A weight of 2
            counts like the same target twice, 0 as if there were no target there (docs/howto/targets.md). None: 1.

        Returns
        -------
        float
            1 is perfect, 0 no better than the mean.
        """
        return self._r2(X, y, lengths, warm_up=warm_up, sample_weight=sample_weight)
