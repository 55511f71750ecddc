"""SeriesClassifier and SeriesRegressor: one label, value or row of values per series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from echolearn import runtime
from echolearn.estimators._base import SequenceEstimator, store_parameters
from echolearn.estimators._classifier import LabelEstimator, label_encoding
from echolearn.estimators._regressor import RULE, ValueEstimator
from echolearn.fitting.codecs import LabelSetCodec
from echolearn.fitting.data import ClassWeight
from echolearn.fitting.fit import fit_series, open_by_rules, prefixes_of
from echolearn.fitting.parameters import Parameters
from echolearn.fitting.settings import SERIES_RULES
from echolearn.persistence.save import plan_of
from echolearn.streams._early import EarlyStream, check_stop_when
from echolearn.validation import Answers, SequencesLike, check_pair


class SeriesEstimator(SequenceEstimator):
    """An estimator with one target per series, whose network answers while the frames of a series arrive."""

    def stream(self) -> runtime.Stream:
        """Return the network as a stream, which answers after every frame for the series up to this frame.

        The answer after the last frame of a series is that of `predict`. The stream keeps the statistics of all states,
        not the states: its memory does not grow (docs/howto/streams.md).

        Returns
        -------
        Stream
            A stream at the start of a series: `step` of a frame (n_features,) returns probabilities or values,
            `predict` labels or values; `reset` begins another series.
        """
        check_is_fitted(self)
        return runtime.Model(plan_of(self.model_)).stream()


class SeriesClassifier(LabelEstimator, SeriesEstimator):
    """A classifier of whole series: a bank of fixed units, statistics of their states, and a linear readout.

    Two kinds of units are drawn for the data, detectors of levels and detectors of changes, each for the series and for
    its first differences. Of every unit the readout sees the mean, deviation, extremes, last state, and the shares of
    time above thresholds. Each of the four sets of units has its own ridge regression; the answer is their mean,
    weighted so that its exact leave-one-out error is small (docs/howto/classification.md). Only the readout is learned.

    Parameters
    ----------
    hidden_units : int or "auto", default="auto"
        The number of units in each of the four sets of units that the network consists of. "auto": 750 for up to 50
        series of up to 25,000 steps in total, fewer in proportion to more of either, and at least 250.
    readout : {"softmax", "ridge"}, default="softmax"
        What the outputs of the ridge regression become. "softmax": logits, scaled so that the probabilities of left-out
        series are calibrated. "ridge": values, moved to the nearest point that is a distribution.
    ridge : float, list of float, or "auto", default="auto"
        The penalty of the readout: a number, numbers to choose from, or "auto" for a path.
    standardize : bool, default=True
        Whether each feature is shifted and scaled to mean 0 and standard deviation 1 over the training data.
    missing : {"error", "carry", "mean"}, default="error"
        What NaN in X stands for. "error": it is refused. "carry": the last known value is carried forward, and a
        further input marks where a value is missing. "mean": the mean of the feature.
    washout : int, default=0
        Steps at the start of each series that do not count in its statistics.
    class_weight : "balanced", dict or None, default=None
        How much the labels of each class count, beside `sample_weight`. "balanced": in inverse proportion to how often
        each class occurs. A dict from labels to weights, 1 for those that it lacks.
    ignore_label : label, default=None
        The label in y that marks series without a target. NaN stands for NaN and None. None: no label.
    layout : {"auto", "time_first", "channels_first", "rows"}, default="auto"
        Which axis of X is time. "time_first": (n_steps, n_features); "channels_first": (n_features, n_steps), as in
        aeon; "rows": a 2-D array with one univariate series per row, as in the UCR archive. "auto": what shapes and
        targets decide; data with two readings are refused with both lines to write (docs/howto/data.md).
    dtype : {"float32", "float64"}, default="float32"
        The precision of the states. Statistics are summed up in float64 in any case.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of the units. The same seed and data give the same results, bit by bit, with any number of threads.
    verbose : int, default=0
        1 prints how much each set of units counts, and the leave-one-out errors.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted; with rows of labels, the numbers of the columns.
    network_ : Network
        The fitted network.
    ridge_ : float
        The ridge of the readout, given or chosen; of several, the mean over the sets of units.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        The names of the features, if X was a data frame.
    layout_ : {"time_first", "channels_first", "rows"}
        Which axis of X was taken as time; predictions read X in the same way.

    See Also
    --------
    ESNClassifier : One label per time step, all weights learned.
    SeriesRegressor : Values instead of labels.

    Examples
    --------
    Whether the waves of a series are fast or slow:

    >>> import numpy as np
    >>> from echolearn import SeriesClassifier
    >>> X = [np.sin((0.2 + 0.2 * (k % 2)) * np.arange(40) + k)[:, None] for k in range(20)]
    >>> y = ["fast" if k % 2 else "slow" for k in range(20)]
    >>> model = SeriesClassifier(20).fit(X[:12], y[:12])
    >>> model.predict(X[12:14]).tolist()
    ['slow', 'fast']
    """

    groups: ClassVar[Mapping[str, Parameters]] = {}
    per_series: ClassVar[bool] = True

    def __init__(
        self,
        hidden_units: int | str = "auto",
        *,
        readout: str = "softmax",
        ridge: str | ArrayLike = "auto",
        standardize: bool = True,
        missing: str = "error",
        washout: int = 0,
        class_weight: ClassWeight = None,
        ignore_label: object = None,
        layout: str = "auto",
        dtype: str = "float32",
        random_state: int | np.random.Generator | None = 0,
        verbose: int = 0,
    ):
        store_parameters(self, locals())

    def fit(
        self, X: SequencesLike, y: SequencesLike, *, lengths: ArrayLike | None = None, sample_weight: object = None
    ) -> Self:
        """Draw the units for the data, and fit the readout to the labels.

        Parameters
        ----------
        X : list of arrays of shape (n_steps, n_features), or 3-D array
            Several series of any lengths. Tables, panels, tensors, padded arrays and other layouts: docs/howto/data.md.
        y : array of shape (n_series,), or of shape (n_series, n_labels)
            One label per series. Rows of 0 and 1, as integers or bools, are several labels at once.
        lengths : array of int, default=None
            The lengths of the series, if X is one 2-D array of joined series; or their steps before the padding, if it
            is a padded 3-D array.
        sample_weight : array of shape (n_series,), default=None
            How much each series counts. None: 1.

        Returns
        -------
        SeriesClassifier
            The estimator itself.
        """
        rule = self._rule()
        data = open_by_rules(
            self, X, y, lengths, rules=SERIES_RULES, rule=rule, sample_weight=sample_weight, series=True
        )
        self.model_ = fit_series(self, data, *label_encoding(data, rule))
        return self

    def predict(self, X: SequencesLike, *, lengths: ArrayLike | None = None) -> Answers:
        """Return the label of each series.

        Parameters
        ----------
        X : list of arrays of shape (n_steps, n_features), 3-D array, or one such 2-D array
            Several series, or one.
        lengths : array of int, default=None
            The lengths of the series, if X is one 2-D array of joined series.

        Returns
        -------
        array of shape (n_series,)
            One label per series; with several labels at once, rows of 0 and 1.
        """
        return self._labels(X, lengths)

    def predict_proba(self, X: SequencesLike, *, lengths: ArrayLike | None = None) -> Answers:
        """Return the probabilities of the classes, calibrated on left-out series with ``readout="softmax"``.

        Parameters
        ----------
        X : list of arrays, 3-D array or 2-D array
            As in `predict`.
        lengths : array of int, default=None
            As in `predict`.

        Returns
        -------
        array of shape (n_series, n_classes)
            One row per series.
        """
        return self._probabilities(X, lengths)

    def predict_log_proba(self, X: SequencesLike, *, lengths: ArrayLike | None = None) -> Answers:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : list of arrays, 3-D array or 2-D array
            As in `predict`.
        lengths : array of int, default=None
            As in `predict`.

        Returns
        -------
        array of shape (n_series, n_classes)
            One row per series.
        """
        return self._probabilities(X, lengths, log=True)

    def decision_function(self, X: SequencesLike, *, lengths: ArrayLike | None = None) -> Answers:
        """Return the readout's outputs per class; for two classes their difference.

        Parameters
        ----------
        X : list of arrays, 3-D array or 2-D array
            As in `predict`.
        lengths : array of int, default=None
            As in `predict`.

        Returns
        -------
        array of shape (n_series,) or (n_series, n_classes)
            Positive values stand for the second of two classes, or for labels that hold.
        """
        return self._decisions(X, lengths)

    def stream(
        self, *, training: object = None, stop_when: float | Mapping[str, float] | None = None
    ) -> runtime.Stream | EarlyStream:
        """Return the network as a stream, which answers after every frame for the series up to this frame.

        Without `training`, the answer is `predict_proba` of the series so far as if it were whole. With it, the stream
        answers early for the whole series: readouts are fitted to the first steps of the training series at 20 lengths,
        and their probabilities are calibrated on series left out (docs/howto/classification.md).

        Parameters
        ----------
        training : (X, y), default=None
            The series and labels of the fit. Fitting the readouts takes several times as long as the fit; one stream
            serves any number of series, one after another.
        stop_when : float or {"cost_per_step": float}, default=None
            When to decide, with `training`. A number: as soon as the most likely class has this probability, or a
            larger one if decisions on training series left out are less often right than that. A cost of each further
            step, where that of an error is 1: the probability for which errors and steps together cost least on
            training series left out.

        Returns
        -------
        Stream
            A stream at the start of a series: `step` of a frame (n_features,) returns probabilities, `predict` the
            label; `reset` begins another series. With `training`, `decided` says after a frame whether to stop.
        """
        if training is None:
            if stop_when is not None:
                raise ValueError(
                    "stop_when= needs training=(X, y): other probabilities are too sure early in a series."
                )
            return super().stream()
        check_is_fitted(self)
        if stop_when is not None:
            check_stop_when(stop_when)
        if isinstance(self.codec_, LabelSetCodec):
            raise ValueError("training= needs one label per series; this classifier was fitted to rows of labels.")
        X, y = check_pair("training", training)
        given, rule = self._open(X, None), self._rule()
        targets = rule.open(y, given, None)
        prefixes = prefixes_of(self.model_, given, targets, rule.class_weights(self.codec_, self.classes_, targets))
        return EarlyStream(plan_of(self.model_), prefixes, stop_when)

    def score(
        self, X: SequencesLike, y: SequencesLike, *, lengths: ArrayLike | None = None, sample_weight: object = None
    ) -> float:
        """Return the share of correct labels; a row of labels counts as correct if all its labels are.

        Parameters
        ----------
        X : list of arrays, 3-D array or 2-D array
            As in `predict`.
        y : array of shape (n_series,), or of shape (n_series, n_labels)
            The true labels.
        lengths : array of int, default=None
            As in `predict`.
        sample_weight : array of shape (n_series,), default=None
            How much each series counts. None: 1.

        Returns
        -------
        float
            The accuracy. One that is no better than that of the most frequent label causes a warning.
        """
        return self._accuracy(X, y, lengths, sample_weight=sample_weight)


class SeriesRegressor(ValueEstimator, SeriesEstimator):
    """A regressor of whole series: a bank of fixed units, statistics of their states, and a linear readout.

    The units and their statistics are those of `SeriesClassifier`. Only the readout is learned.

    Parameters
    ----------
    hidden_units : int or "auto", default="auto"
        The number of units in each of the four sets of units that the network consists of. "auto": 750 for up to 50
        series of up to 25,000 steps in total, fewer in proportion to more of either, and at least 250.
    ridge : float, list of float, or "auto", default="auto"
        The penalty of the readout: a number, numbers to choose from, or "auto" for a path.
    standardize : bool, default=True
        Whether each feature is shifted and scaled to mean 0 and standard deviation 1 over the training data.
    missing : {"error", "carry", "mean"}, default="error"
        What NaN in X stands for. "error": it is refused. "carry": the last known value is carried forward, and a
        further input marks where a value is missing. "mean": the mean of the feature.
    washout : int, default=0
        Steps at the start of each series that do not count in its statistics.
    layout : {"auto", "time_first", "channels_first", "rows"}, default="auto"
        Which axis of X is time, as for `SeriesClassifier`.
    dtype : {"float32", "float64"}, default="float32"
        The precision of the states. Statistics are summed up in float64 in any case.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of the units. The same seed and data give the same results, bit by bit, with any number of threads.
    verbose : int, default=0
        1 prints how much each set of units counts, and the leave-one-out errors.

    Attributes
    ----------
    network_ : Network
        The fitted network.
    ridge_ : float
        The ridge of the readout, given or chosen; of several, the mean over the sets of units.
    target_mean_, target_scale_ : arrays of shape (n_outputs,)
        The mean and standard deviation of each target.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        The names of the features, if X was a data frame.
    layout_ : {"time_first", "channels_first", "rows"}
        Which axis of X was taken as time; predictions read X in the same way.

    See Also
    --------
    ESNRegressor : Values per time step, all weights learned.
    SeriesClassifier : Labels instead of values.

    Examples
    --------
    The frequency of a wave:

    >>> import numpy as np
    >>> from echolearn import SeriesRegressor
    >>> frequency = np.linspace(0.1, 0.5, 40)
    >>> X = [np.sin(f * np.arange(60) + 7 * f)[:, None] for f in frequency]
    >>> model = SeriesRegressor(20).fit(X[::2], frequency[::2])
    >>> model.score(X[1::2], frequency[1::2]) > 0.9
    True
    """

    groups: ClassVar[Mapping[str, Parameters]] = {}
    per_series: ClassVar[bool] = True

    def __init__(
        self,
        hidden_units: int | str = "auto",
        *,
        ridge: str | ArrayLike = "auto",
        standardize: bool = True,
        missing: str = "error",
        washout: int = 0,
        layout: str = "auto",
        dtype: str = "float32",
        random_state: int | np.random.Generator | None = 0,
        verbose: int = 0,
    ):
        store_parameters(self, locals())

    def fit(
        self, X: SequencesLike, y: SequencesLike, *, lengths: ArrayLike | None = None, sample_weight: object = None
    ) -> Self:
        """Draw the units for the data, and fit the readout to the values.

        Parameters
        ----------
        X : list of arrays of shape (n_steps, n_features), or 3-D array
            Several series of any lengths. Tables, panels, tensors, padded arrays and other layouts: docs/howto/data.md.
        y : array of shape (n_series,) or (n_series, n_outputs)
            One value, or one row of values, per series. NaN: no target; a row with some NaN is left out as a whole.
        lengths : array of int, default=None
            The lengths of the series, if X is one 2-D array of joined series; or their steps before the padding, if it
            is a padded 3-D array.
        sample_weight : array of shape (n_series,), default=None
            How much each series counts. None: 1.

        Returns
        -------
        SeriesRegressor
            The estimator itself.
        """
        data = open_by_rules(
            self, X, y, lengths, rules=SERIES_RULES, rule=RULE, sample_weight=sample_weight, series=True
        )
        self.model_ = fit_series(self, data, self._codec_for(data), (RULE, None))
        return self

    def predict(self, X: SequencesLike, *, lengths: ArrayLike | None = None) -> Answers:
        """Return the value, or the row of values, of each series.

        Parameters
        ----------
        X : list of arrays of shape (n_steps, n_features), 3-D array, or one such 2-D array
            Several series, or one.
        lengths : array of int, default=None
            The lengths of the series, if X is one 2-D array of joined series.

        Returns
        -------
        array of shape (n_series,) or (n_series, n_outputs)
            The predicted values.
        """
        return self._values(X, lengths)

    def score(
        self, X: SequencesLike, y: SequencesLike, *, lengths: ArrayLike | None = None, sample_weight: object = None
    ) -> float:
        """Return R² over all series that have a target, averaged over outputs.

        Parameters
        ----------
        X : list of arrays, 3-D array or 2-D array
            As in `predict`.
        y : array of shape (n_series,) or (n_series, n_outputs)
            The true values.
        lengths : array of int, default=None
            As in `predict`.
        sample_weight : array of shape (n_series,), default=None
            How much each series counts. None: 1.

        Returns
        -------
        float
            1 is perfect; 0 is no better than the mean, and causes a warning.
        """
        return self._r2(X, y, lengths, sample_weight=sample_weight)
