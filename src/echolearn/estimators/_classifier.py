"""ESNClassifier: one label per time step; and what all classifiers of sequences share."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import nullcontext
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, column_or_1d

from echolearn import cluster
from echolearn.estimators._base import SequenceEstimator, StepEstimator, store_parameters
from echolearn.fitting.advice.before import warn_of_whole_labels
from echolearn.fitting.advice.scores import check_comparable, warn_of_poor_labels
from echolearn.fitting.codecs import ClassCodec, LabelSetCodec, is_label_sets
from echolearn.fitting.data import ClassWeight, FitData, OpenedTargets, TargetRule, Validation, Weighing
from echolearn.fitting.fit import fit_model, open_fit
from echolearn.fitting.parameters import Parameters, flat_settings, merged_settings
from echolearn.fitting.settings import NetworkSettings, check_each
from echolearn.fitting.stages import Callback
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.online import OnlineRule
from echolearn.reservoir import Reservoir
from echolearn.sequences.targets import concatenate_targets
from echolearn.streams._estimator import ClassifierStream, DeepClassifierStream
from echolearn.training.history import History
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
        X, lengths, warm_up
            As in `predict`.

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
        X, lengths, warm_up
            As in `predict`.

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
        X, lengths, warm_up
            As in `predict`.

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

        A row of labels counts as correct if all its labels are. Steps that are marked by `ignore_label` are
        not counted; `class_weight` has no influence. From 50 labels on, a score that is no better
        than that of the most frequent label causes a warning (`echolearn.exceptions.PoorScoreWarning`), unless
        `class_weight` is set.

        Parameters
        ----------
        X, lengths, warm_up
            As in `predict`.
        y : array or list of arrays
            The true labels, one per time step, in the form of X.
        sample_weight
            As in `fit`.

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

    def _all_labels(self, classes: ArrayLike | None) -> Array | None:
        """Return the labels given to `partial_fit`; refuse others than those of the first call, and unknown weights."""
        if isinstance(self.class_weight, str):
            raise ValueError(
                f"class_weight={self.class_weight!r} counts the labels of all sequences at once, and partial_fit never "
                "sees all of them. Give the weights as a dict, or as sample_weight."
            )
        try:
            labels = None if classes is None else np.unique(classes)
        except (TypeError, ValueError):
            raise ValueError(f"classes={classes!r:.80}; expected labels of one type, as in y.") from None
        if self.__sklearn_is_fitted__() and labels is not None and not np.array_equal(labels, self.classes_):
            raise ValueError(f"classes={classes!r:.80}; expected those of the first call, {self.classes_.tolist()}.")
        return labels

    def _add_labels(self, X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None, sample_weight: object) -> Self:
        """Add sequences with labels to the statistics of a ridge readout."""
        rule = self._rule()
        class_weights = rule.class_weights(self.codec_, self.classes_, OpenedTargets([], per_step=self.per_step_))
        return self._add_sequences(X, y, lengths, (rule, class_weights), sample_weight)


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


def has_ridge_readout(esn: StepClassifier) -> bool:
    """Return True for a ridge readout, to which `partial_fit` can add; otherwise raise AttributeError."""
    if esn.readout == "ridge":
        return True
    raise AttributeError(
        "partial_fit adds to the statistics of a ridge readout; a softmax readout has none and needs all the data at "
        "once. Set readout='ridge', or learn on a stream: stream(online=LMS())."
    )


class ESNClassifier(StepClassifier):
    """An echo state network that labels every time step, with all its weights learned.

    The defaults learn W, W_rec, the bias and the leaks on mini-batches by exact gradients, and end in a softmax
    readout. `ESNClassifier.paper(hidden_units)` has the settings of the paper.

    Parameters
    ----------
    hidden_units : int, default=300
        The number of hidden units N. More units fit more, cost more, and need more data.
    ensemble : int, default=1
        How many networks the hidden units are divided among. 1: one reservoir of all units. More: each network is
        fitted by itself, on one core, and the answer is the mean of their outputs, which had fewer errors on speech
        from 500 units on. Fixed networks (``learn="none"``) form an ensemble too, each with its own readout.
    reservoir : dict or Reservoir, default=None
        How the reservoir is drawn, as a dict of arguments of `Reservoir.random`: `connections` (10), `topology`
        ("random"), `activation` ("tanh"), `bias_scaling` (0.1), `feedback_scaling` (0.1), `initial_state` (zero). Or
        your own `Reservoir` to begin with: its weights are learned as random ones are, or left as they are with
        ``learn="none"``; it decides on `hidden_units`, `leak`, `feedback` and `bidirectional`, which are left out then.
        Its inputs are standardised if `standardize` is True.
    spectral_radius : float or None, default=0.9
        The spectral radius lambda to which W_rec is scaled at the start (eq. 3). Larger values remember longer; above 1
        (tanh) or 4 (sigmoid) a network without leak never forgets. None leaves a matrix given as topology unscaled.
    bidirectional : bool, default=False
        Whether half of the units read every sequence from its end. For whole sequences, not for streams.
    standardize : bool, default=True
        Whether each feature is shifted and scaled to mean 0 and standard deviation 1 over the training data before it
        enters the network, so that a feature in any unit of measurement gives the same network. The scales are part of
        the model. False uses X unchanged.
    missing : {"error", "carry", "mean"}, default="error"
        What NaN in X stands for. "error": it is refused. "carry": the last known value is carried forward, and a
        further input marks where a value is missing. "mean": the mean of the feature.
    input_scaling : float or array of shape (n_features,), default=0.1
        W is drawn uniformly from [-input_scaling, input_scaling], for all features or for each. Raise it if the task is
        non-linear in the inputs, lower it if it needs long memory.
    feedback : bool, default=False
        Whether the outputs of the previous step are fed back to the units through W_fb: the targets while fitting, the
        network's own outputs in a prediction.
    leak : float, (float, float) or array of shape (hidden_units,), default=(0.03, 0.9)
        The leak a of the units, in (0, 1]: 1 for no leak, small for slow units. A pair spreads the leaks evenly in
        logarithm between its ends, an array has one per unit.
    washout : int or "auto", default=0
        Steps at the start of each sequence that are not learned from and not scored on, unless `warm_up` settles the
        state before them. Raise it if the initial transient disturbs the fit. "auto": a tenth of the steps, at most
        100, of fewer than five series of 100 steps or more with labels per step; 0 for others.
    ridge : float, list of float, or "auto", default="auto"
        The penalty mu of the ridge readout (eq. 9): a number, numbers to choose from, or "auto" for a path in units of
        the mean squared state. The choice is made on held-out data, or by generalised cross-validation without any.
    readout : {"softmax", "ridge"}, default="softmax"
        The final readout. "softmax": multinomial logistic regression on the learned states, with calibrated
        probabilities. "ridge": the closed form of the paper, faster, and required by `partial_fit` and RLS.
    learn : {"both", "input", "none"}, default="both"
        Which weights are learned: W, W_rec, W_fb and the bias ("both"), all but W_rec ("input"), or only the readout
        ("none": a classical echo state network).
    epochs : int, default=None
        Passes over the training data while the weights are learned. None: 40 if each is one update (see `learning`),
        otherwise enough for 400 updates, at least 8.
    learning : dict, default=None
        How weights are learned, where it differs from the defaults in parentheses. `step_size`: alpha at the start
        (0.01 for Adam, less above 300 units, and six times that if `batch_size` is "auto" and each epoch one update;
        0.07 for FISTA). `batch_size` ("auto"): sequences per mini-batch; None for all, one update per epoch; "auto"
        for all up to 20,000 steps in all, 8 for more. `lookback` (None): how many steps the gradient follows back in
        time, m in the paper; None for the whole sequence. `patience` ("auto"): epochs without a better validation
        error after which learning stops; "auto" for a quarter of the epochs, at least 5; None for no early stopping.
        `refine_epochs` (5): last epochs in which all weights, those of the softmax readout too, are learned on the
        cross entropy. `learn_leak` (True): whether the leak of each unit is learned.
        For comparisons with the paper: `optimizer` ("adam", or "fista", eq. 36 and 37) with its `momentum` ("fista", or
        "printed"); `clip` (None): the norm to which longer gradients are shortened; `renormalize` (False): W_rec is
        scaled back to `spectral_radius` after every epoch; `gradient` ("exact", or "printed": the printed formulas);
        `case` (2: the readout is fresh at every gradient; 1: it is an older one); `targets` ("all", or "last": only
        the last frame of a block of `lookback` steps counts); `direct` (True): the readout sees the inputs too
        (eq. 7); `fit_intercept` (True): the readout has an intercept. They can be searched as `learning__step_size`.
    validation_fraction : float, default=0.1
        The share of the sequences that is held out to decide on stopping, ridge and penalty; with fewer than five
        sequences, the last steps of each. The final readout is fitted to them too. 0: nothing is held out.
    class_weight : "balanced", dict or None, default=None
        How much the labels of each class count, beside `sample_weight`. "balanced": as scikit-learn defines it, in
        inverse proportion to how often each class occurs. A dict from labels to weights, 1 for those that it lacks.
    ignore_label : label, default=None
        The label in y that marks steps without a target: they run through the network, but nothing is learned from
        them or scored on them. It is not a class. NaN stands for NaN and None. None: no label.
    layout : {"auto", "time_first", "channels_first", "rows"}, default="auto"
        Which axis of X is time. "time_first": (n_steps, n_features); "channels_first": (n_features, n_steps), as in
        aeon; "rows": a 2-D array with one univariate series per row, as in the UCR archive. "auto": what shapes and
        targets decide; data with two readings are refused with both lines to write (docs/howto/data.md).
    dtype : {"float32", "float64"}, default="float32"
        The precision of the states. Statistics and gradients are summed up in float64 in any case.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of the weights, the held-out sequences and the order of mini-batches. The same seed and data give the
        same results, bit by bit, with any number of threads. None: another network in every fit.
    verbose : int, default=0
        1 shows a bar over the epochs: live in a notebook, with the curve of the errors, and on a terminal; in a log, a
        line every few seconds. 2 prints one line per epoch.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted; with rows of labels, the numbers of the columns.
    input_mean_, input_scale_ : arrays of shape (n_features,)
        What is subtracted from each feature, and what the result is divided by, before it enters the network.
    network_ : Network
        The fitted network; the weights below are views of it.
    reservoir_ : Reservoir
        All weights of the state equation.
    input_weights_ : array of shape (n_features, n_units)
        W.
    recurrent_weights_ : sparse array of shape (n_units, n_units)
        W_rec.
    feedback_weights_ : array of shape (n_units, n_classes) or None
        W_fb.
    readout_weights_ : array of shape (n_units + n_features, n_classes)
        U, without the intercept.
    intercept_ : array of shape (n_classes,)
        The intercept of each class.
    ridge_ : float
        The ridge of the readout, given or chosen.
    strength_ : float
        The penalty of the softmax readout; a ridge readout does not have it.
    history_ : History
        One row per epoch of learning.
    refinement_ : History
        One row per epoch on the cross entropy. A model that was loaded from a file does not have it.
    layout_ : {"time_first", "channels_first", "rows"}
        Which axis of X was taken as time; predictions read X in the same way.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        The names of the features, if X was a data frame.

    See Also
    --------
    SeriesClassifier : One label per series.
    ESNRegressor : Values instead of labels.
    DeepESNClassifier : Several layers, for more data.
    echolearn.tuning.tune : Search for settings.
    echolearn.diagnostics.diagnose : Find what limits a fit.

    References
    ----------
    H. Palangi, L. Deng, R. Ward, "Learning Input and Recurrent Weight Matrices in Echo State Networks". Equation
    numbers are those of docs/explanation/notation.md.

    Examples
    --------
    One label per step, the sign of the previous input:

    >>> import numpy as np
    >>> from echolearn import ESNClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((rng.integers(20, 40), 2)) for _ in range(20)]
    >>> y = [np.roll(x[:, 0], 1) > 0 for x in X]
    >>> esn = ESNClassifier(20, epochs=2, readout="ridge").fit(X, y)
    >>> esn.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        hidden_units: int = 300,
        *,
        ensemble: int = 1,
        reservoir: Reservoir | Mapping[str, object] | None = None,
        spectral_radius: float | None = 0.9,
        bidirectional: bool = False,
        standardize: bool = True,
        missing: str = "error",
        input_scaling: ArrayLike = 0.1,
        feedback: bool = False,
        leak: float | tuple[float, float] | Array = (0.03, 0.9),
        washout: int | str = 0,
        ridge: str | ArrayLike = "auto",
        readout: str = "softmax",
        learn: str = "both",
        epochs: int | None = None,
        learning: Mapping[str, object] | None = None,
        validation_fraction: float = 0.1,
        class_weight: ClassWeight = None,
        ignore_label: object = None,
        layout: str = "auto",
        dtype: str = "float32",
        random_state: int | np.random.Generator | None = 0,
        verbose: int = 0,
    ):
        store_parameters(self, locals())

    @classmethod
    def paper(cls, hidden_units: int, **changes: Any) -> ESNClassifier:
        """Return a classifier with the settings of the paper.

        Sigmoid units, λ = 3.9, μ = 1e-8, α = 0.07, FISTA on the whole data with clipped gradients, W_rec renormalised,
        ridge readout, no leak. The paper does not state the norm at which it clips. Ours is 0.8 times the root of the
        number of units, as the norms of W and W_rec grow, and at least 8; it was chosen on validation data.

        Parameters
        ----------
        hidden_units : int
            The number of hidden units.
        **changes : dict
            Any parameter of the classifier, in place of the paper's; `learning` and `reservoir` are completed by those
            of the paper. ``learn="none"`` is its fixed network; ``learn="input", learning={"lookback": 1}`` and
            ``learn="both"`` with a lookback of 1 or 3 are the columns of its table.

        Returns
        -------
        ESNClassifier
            The classifier, not yet fitted.
        """
        settings: Parameters = {
            "standardize": False,
            "reservoir": {"activation": "sigmoid", "bias_scaling": 0.0},
            "spectral_radius": 3.9,
            "leak": 1.0,
            "ridge": 1e-8,
            "readout": "ridge",
            "epochs": 40,
            "learning": {
                "step_size": 0.07,
                "batch_size": None,
                "lookback": 3,
                "patience": None,
                "learn_leak": False,
                "optimizer": "fista",
                "clip": max(8.0, round(0.8 * hidden_units**0.5, 1)),
                "renormalize": True,
            },
            "validation_fraction": 0.0,
        }
        return cls(hidden_units, **merged_settings(settings, changes))

    def fit(
        self,
        X: SequencesLike,
        y: SequencesLike,
        *,
        lengths: ArrayLike | None = None,
        sample_weight: object = None,
        validation: Validation | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
        engine: object = None,
    ) -> Self:
        """Learn all weights from sequences and their labels.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths. Time runs along the first axis of each sequence. Tables, panels,
            tensors, padded arrays and other layouts: docs/howto/data.md.
        y : array or list of arrays
            One label per time step, in the form of X. Rows of 0 and 1, as integers or bools, are several labels at
            once: one column per label.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences; or their steps before the padding,
            if it is a padded 3-D array.
        sample_weight : array or list of arrays, default=None
            How much each target counts: one number per sequence, or one per step in the form of y. A weight of 2
            counts like the same target twice, 0 as if there were no target there (docs/howto/targets.md). None: 1.
        validation : (X, y) or (X, y, sample_weight), default=None
            Data that decide on stopping, ridge and penalty, instead of held-out training sequences.
        callback : callable, default=None
            Called after each epoch with its row of `history_`; learning stops if it returns True.
        checkpoint : str or path-like, default=None
            A folder where the state of learning is kept after each epoch and, in long ones, every five minutes. The
            same fit, started again, resumes from there and ends with the same bits.
        engine : str or distributed.Client, default=None
            "dask", a scheduler's address, or a client: work on a Dask cluster (docs/howto/scaling.md).

        Returns
        -------
        ESNClassifier
            The estimator itself. After Ctrl-C it holds the best weights so far, and KeyboardInterrupt is raised.
        """
        with nullcontext() if engine is None else cluster.on(engine):
            rule = self._rule()
            settings, data = open_fit(self, X, y, lengths, rule=rule, sample_weight=sample_weight)
            codec, weighing = label_encoding(data, rule)
            model, interrupted = fit_model(
                self, settings, data, codec, weighing, validation=validation, callback=callback, checkpoint=checkpoint
            )
        return self._adopt(model, interrupted)

    @available_if(has_ridge_readout)
    def partial_fit(
        self,
        X: SequencesLike,
        y: SequencesLike,
        classes: ArrayLike | None = None,
        *,
        lengths: ArrayLike | None = None,
        sample_weight: object = None,
    ) -> Self:
        """Add sequences to those that the ridge readout was fitted to, and solve it again from all of them.

        The first call is a fit. What it found stays: weights and, with `standardize=True`, the scale of the inputs.
        One fit to all data would find others; the readout is that of all data for what was found.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths, with the features of the first call.
        y : array or list of arrays
            One label per time step, in the form of X.
        classes : array of labels, default=None
            All labels; needed in the first call if its y may lack some.
        lengths, sample_weight
            As in `fit`.

        Returns
        -------
        ESNClassifier
            The estimator itself.
        """
        networks = NetworkSettings.of(flat_settings(self)).networks()
        if networks > 1:
            raise ValueError(
                f"partial_fit adds to the statistics of one readout of all units, and these {self.hidden_units} are "
                f"an ensemble of {networks} networks with one each. Set ensemble=1."
            )
        labels, rule = self._all_labels(classes), self._rule()
        if not self.__sklearn_is_fitted__():
            settings, data = open_fit(self, X, y, lengths, rule=rule, sample_weight=sample_weight)
            return self._adopt(*fit_model(self, settings, data, *label_encoding(data, rule, labels)))
        return self._add_labels(X, y, lengths, sample_weight)

    @property
    def refinement_(self) -> History:
        """One row per epoch of the last ones, on the cross entropy."""
        return self.model_.refinement

    @property
    def strength_(self) -> float:
        """The penalty of the softmax readout."""
        strength = self.network_.readout.strength
        if strength is None:
            raise AttributeError("a ridge readout has no strength_; its penalty is ridge_.")
        return strength
