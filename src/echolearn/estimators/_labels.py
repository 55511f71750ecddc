"""Answers of classifiers: labels, probabilities and scores, per step or per series."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, column_or_1d

from echolearn.estimators._base import SequenceEstimator, StepEstimator
from echolearn.fitting.advice.before import warn_of_whole_labels
from echolearn.fitting.advice.scores import check_comparable, warn_of_poor_labels
from echolearn.fitting.codecs import ClassCodec, LabelSetCodec, is_label_sets
from echolearn.fitting.data import ClassWeight, FitData, TargetRule, Weighing
from echolearn.fitting.settings import check_each
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.online import OnlineRule
from echolearn.sequences.targets import concatenate_targets
from echolearn.streams._estimator import ClassifierStream, DeepClassifierStream
from echolearn.validation import Answers, Array, SequencesLike


class LabelEstimator(ClassifierMixin, SequenceEstimator):
    """A classifier of sequences: how labels are encoded, decoded and scored."""

    ignore_label: object
    class_weight: ClassWeight

    @property
    def codec_(self) -> ClassCodec | LabelSetCodec:
        """How labels are encoded."""
        codec = self.model_.codec
        assert isinstance(codec, (ClassCodec, LabelSetCodec))
        return codec

    @property
    def classes_(self) -> Array:
        """The labels, sorted."""
        return self.codec_.labels

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _rule(self) -> TargetRule:
        """Return which labels are ignored, and what the classes weigh."""
        check_each({"ignore_label": self.ignore_label, "class_weight": self.class_weight})
        return TargetRule(ignore_label=self.ignore_label, class_weight=self.class_weight)

    def _labels(self, X: SequencesLike, lengths: ArrayLike | None, warm_up: SequencesLike = None) -> Answers:
        """Return the most likely labels."""
        check_is_fitted(self)
        return self._answer(X, lengths, self.codec_.decode, warm_up, names=self._target_names())

    def _decisions(self, X: SequencesLike, lengths: ArrayLike | None, warm_up: SequencesLike = None) -> Answers:
        """Return the outputs of the readout; for two classes their difference, for labels the distance from 1/2."""
        check_is_fitted(self)
        if isinstance(self.codec_, LabelSetCodec):
            return self._answer(X, lengths, lambda Y: Y - 0.5, names=self._label_names())
        if len(self.classes_) == 2:
            return self._answer(X, lengths, lambda Y: Y[:, 1] - Y[:, 0], warm_up)
        return self._answer(X, lengths, np.asarray, warm_up, names=self._label_names())

    def _probabilities(
        self, X: SequencesLike, lengths: ArrayLike | None, warm_up: SequencesLike = None, *, log: bool = False
    ) -> Answers:
        """Return the probabilities of the classes, or their logarithms."""
        check_is_fitted(self)
        codec, softmax = self.codec_, self.network_.readout.softmax

        def decode(Y: Array) -> Array:
            P = codec.probabilities(Y, softmax)
            return np.log(P) if log else P

        with np.errstate(divide="ignore"):
            return self._answer(X, lengths, decode, warm_up, names=self._label_names())

    def _label_names(self) -> list[Hashable]:
        """Return the names of the columns of probabilities: the classes, or the names of several labels."""
        several = isinstance(self.codec_, LabelSetCodec) and len(self._target_names()) == len(self.classes_)
        return list(self._target_names()) if several else list(self.classes_.tolist())

    def _accuracy(
        self,
        X: SequencesLike,
        y: SequencesLike,
        lengths: ArrayLike | None,
        *,
        sample_weight: object,
        warm_up: SequencesLike = None,
    ) -> float:
        """Return the share of correct labels, or of rows of labels that are entirely correct."""
        true, predicted, w = self._compare(X, y, lengths, self._rule(), warm_up=warm_up, sample_weight=sample_weight)
        if isinstance(self.codec_, LabelSetCodec):
            if true.shape != predicted.shape:
                raise ValueError(f"y has shape {true.shape}; expected rows of labels, {predicted.shape}.")
            right = (predicted == true).all(axis=1)
        else:
            true = column_or_1d(true)
            check_comparable(true, self.classes_)
            right = predicted == true
        if self.class_weight is None:  # weights give up some accuracy for the rare classes
            warn_of_poor_labels(true, right, w)
        return float(np.average(right, weights=w))


class StepClassifier(StepEstimator, LabelEstimator):
    """A classifier of steps: its public answers, and the stream."""

    def decision_function(
        self, X: SequencesLike, *, lengths: ArrayLike | None = None, warm_up: SequencesLike = None
    ) -> Answers:
        """Return the readout's outputs per class: logits, or the values of a ridge readout.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.
        warm_up : array, list of arrays, pair, or "cold", default=None
            The frames before X, as in `predict`.

        Returns
        -------
        array or list of arrays
            One row per step, in the form of X; for two classes the difference of their outputs. With
            several labels at once, positive values stand for labels that hold.
        """
        return self._decisions(X, lengths, warm_up)

    def predict(self, X: SequencesLike, *, lengths: ArrayLike | None = None, warm_up: SequencesLike = None) -> Answers:
        """Return the label of each step.

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
            Labels in the form of X. With several labels at once, rows of 0 and 1.
        """
        return self._labels(X, lengths, warm_up)

    def predict_proba(
        self, X: SequencesLike, *, lengths: ArrayLike | None = None, warm_up: SequencesLike = None
    ) -> Answers:
        """Return the probabilities of the classes.

        They are calibrated with ``readout="softmax"``; the values of a ridge readout are moved to the nearest point
        that is a distribution. With several labels at once there is one probability per label, a sigmoid of the value
        of the ridge readout whose slope makes the training labels most likely.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.
        warm_up : array, list of arrays, pair, or "cold", default=None
            The frames before X, as in `predict`.

        Returns
        -------
        array or list of arrays
            One row of probabilities per step, in the form of X.
        """
        return self._probabilities(X, lengths, warm_up)

    def predict_log_proba(
        self, X: SequencesLike, *, lengths: ArrayLike | None = None, warm_up: SequencesLike = None
    ) -> Answers:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.
        warm_up : array, list of arrays, pair, or "cold", default=None
            The frames before X, as in `predict`.

        Returns
        -------
        array or list of arrays
            One row per step, in the form of X.
        """
        return self._probabilities(X, lengths, warm_up, log=True)

    def score(
        self,
        X: SequencesLike,
        y: SequencesLike,
        *,
        lengths: ArrayLike | None = None,
        warm_up: SequencesLike = None,
        sample_weight: object = None,
    ) -> float:
        """Return the share of correct labels over all steps after the washout.

        Of rows of labels, those count as correct that are entirely so. Steps that are marked by `ignore_label` are
        not counted; `class_weight` has no influence. From 50 labels on, a score that is no better
        than the most frequent label's is warned of (`echolearn.exceptions.PoorScoreWarning`), unless
        `class_weight` is set.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.
        y : array or list of arrays
            The true labels, one per time step, in the form of X.
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
            The accuracy.
        """
        return self._accuracy(X, y, lengths, warm_up=warm_up, sample_weight=sample_weight)

    def stream(self, *, online: OnlineRule | None = None, warm_up: SequencesLike = None) -> ClassifierStream:
        """Return the network as a stream that takes one frame or a chunk of frames at a time (docs/howto/streams.md).

        Parameters
        ----------
        online : RLS or LMS, default=None
            The rule by which the readout continues to learn. None: it does not.
        warm_up : array of shape (n_steps, n_features), pair, or "cold", default=None
            Frames before those of the stream, from whose last state it continues; see `predict`.

        Returns
        -------
        ClassifierStream
            A stream in its first state.
        """
        check_is_fitted(self)
        kind = DeepClassifierStream if isinstance(self.network_, DeepNetwork) else ClassifierStream
        return kind(self.model_, online=online, warm_up=warm_up)


def label_encoding(
    data: FitData, rule: TargetRule, labels: Array | None = None
) -> tuple[ClassCodec | LabelSetCodec, Weighing]:
    """Return how labels are encoded, and what they weigh; labels: all classes, if y may lack some."""
    known = data.targets.known()
    codec: ClassCodec | LabelSetCodec
    if is_label_sets(concatenate_targets(known, data.per_step)):
        codec = LabelSetCodec.of(known, data.per_step)
    else:
        codec = ClassCodec.of(known, data.per_step, labels, weighted=rule.class_weight is not None)
        if data.per_step:
            warn_of_whole_labels(known, data.given)
    return codec, (rule, rule.class_weights(codec, codec.labels, data.targets))
