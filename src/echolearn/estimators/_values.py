"""Answers of regressors: values and scores, per step or per series."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from echolearn.estimators._base import SequenceEstimator
from echolearn.fitting.advice.scores import warn_of_poor_values
from echolearn.fitting.codecs import ValueCodec
from echolearn.fitting.data import FitData, TargetRule
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
