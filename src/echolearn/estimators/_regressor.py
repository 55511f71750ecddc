"""ESNRegressor: values per time step; and what all regressors of sequences share."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from os import PathLike
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from echolearn import cluster
from echolearn.estimators._base import SequenceEstimator, StepEstimator, store_parameters
from echolearn.fitting.advice.scores import warn_of_poor_values
from echolearn.fitting.codecs import ValueCodec
from echolearn.fitting.data import FitData, TargetRule, Validation
from echolearn.fitting.fit import fit_model, open_fit
from echolearn.fitting.parameters import DRAWING, REGRESSION_LEARNING, Parameters
from echolearn.fitting.stages import Callback
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.online import OnlineRule
from echolearn.reservoir import Reservoir
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

        From 50 targets on, a score of 0 or less causes a warning (`echolearn.exceptions.PoorScoreWarning`).

        Parameters
        ----------
        X, lengths, warm_up
            As in `predict`.
        y : array or list of arrays
            The true values, or rows of values: one per time step, in the form of X.
        sample_weight
            As in `fit`.

        Returns
        -------
        float
            1 is perfect, 0 no better than the mean.
        """
        return self._r2(X, y, lengths, warm_up=warm_up, sample_weight=sample_weight)


class ESNRegressor(StepRegressor):
    """An echo state network that predicts values at every time step, with all its weights learned.

    Targets are standardised inside, so that step sizes and ridges mean the same for every scale.

    Parameters
    ----------
    hidden_units : int, default=300
        The number of hidden units N. More units fit more, cost more, and need more data.
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
    input_scaling : float or array of shape (n_features,), default=0.5
        W is drawn uniformly from [-input_scaling, input_scaling], for all features or for each. Raise it if the task is
        non-linear in the inputs, lower it if it needs long memory.
    feedback : bool, default=False
        Whether the outputs of the previous step are fed back to the units through W_fb: the targets while fitting, the
        network's own outputs in a prediction.
    state_noise : float, default=0.0
        The standard deviation of noise that every unit receives while fitting, the same in every epoch. A little, for
        example 1e-3, makes a network with feedback stable when it receives its own outputs.
    leak : float, (float, float) or array of shape (hidden_units,), default=(0.3, 1.0)
        The leak a of the units, in (0, 1]: 1 for no leak, small for slow units. A pair spreads the leaks evenly in
        logarithm between its ends, an array has one per unit.
    washout : int or "auto", default="auto"
        Steps at the start of each sequence that are not learned from and not scored on, unless `warm_up` settles the
        state before them. "auto": a tenth of the steps, at most 100, of fewer than five series of 100 steps or
        more with targets per step; 0 for others.
    ridge : float, list of float, or "auto", default="auto"
        The penalty mu of the ridge readout (eq. 9): a number, numbers to choose from, or "auto" for a path in units of
        the mean squared state. The choice is made on held-out data, or by generalised cross-validation without any.
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
        `learn_leak` (True): whether the leak of each unit is learned.
        For comparisons with the paper: `optimizer` ("adam", or "fista", eq. 36 and 37) with its `momentum` ("fista", or
        "printed"); `clip` (None): the norm to which longer gradients are shortened; `renormalize` (False): W_rec is
        scaled back to `spectral_radius` after every epoch; `gradient` ("exact", or "printed": the printed formulas);
        `case` (2: the readout is fresh at every gradient; 1: it is an older one); `targets` ("all", or "last": only
        the last frame of a block of `lookback` steps counts); `direct` (True): the readout sees the inputs too
        (eq. 7); `fit_intercept` (True): the readout has an intercept. They can be searched as `learning__step_size`.
    validation_fraction : float, default=0.1
        The share of the sequences that is held out to decide on stopping, ridge and penalty; with fewer than five
        sequences, the last steps of each. The final readout is fitted to them too. 0: nothing is held out.
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
    target_mean_ : array of shape (n_outputs,)
        The mean of each target.
    target_scale_ : array of shape (n_outputs,)
        The standard deviation of each target.
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
    feedback_weights_ : array of shape (n_units, n_outputs) or None
        W_fb.
    readout_weights_ : array of shape (n_units + n_features, n_outputs)
        U, without the intercept, for standardised targets.
    intercept_ : array of shape (n_outputs,)
        The intercept of each output.
    ridge_ : float
        The ridge of the readout, given or chosen.
    history_ : History
        One row per epoch of learning.
    per_step_ : bool
        Whether there are targets per step.
    layout_ : {"time_first", "channels_first", "rows"}
        Which axis of X was taken as time; predictions read X in the same way.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        The names of the features, if X was a data frame.

    See Also
    --------
    ESNForecaster : Continue a series, with its own values as inputs.
    ESNClassifier : Labels instead of values.
    DeepESNRegressor : Several layers, for noisy targets and more data.
    echolearn.diagnostics.diagnose : Find what limits a fit.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((50, 1)) for _ in range(10)]
    >>> y = [np.roll(x[:, 0], 2) for x in X]  # the input two steps ago
    >>> esn = ESNRegressor(30, epochs=2, washout=2).fit(X, y)
    >>> esn.predict(X[0]).shape
    (50,)
    """

    groups: ClassVar[Mapping[str, Parameters]] = {"learning": REGRESSION_LEARNING, "reservoir": DRAWING}

    def __init__(
        self,
        hidden_units: int = 300,
        *,
        reservoir: Reservoir | Mapping[str, object] | None = None,
        spectral_radius: float | None = 0.9,
        bidirectional: bool = False,
        standardize: bool = True,
        missing: str = "error",
        input_scaling: ArrayLike = 0.5,
        feedback: bool = False,
        state_noise: float = 0.0,
        leak: float | tuple[float, float] | Array = (0.3, 1.0),
        washout: int | str = "auto",
        ridge: str | ArrayLike = "auto",
        learn: str = "both",
        epochs: int | None = None,
        learning: Mapping[str, object] | None = None,
        validation_fraction: float = 0.1,
        layout: str = "auto",
        dtype: str = "float32",
        random_state: int | np.random.Generator | None = 0,
        verbose: int = 0,
    ):
        store_parameters(self, locals())

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
        """Learn all weights from sequences and their targets.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths. Time runs along the first axis of each sequence. Tables, panels,
            tensors, padded arrays and other layouts: docs/howto/data.md.
        y : array or list of arrays
            One value, or one row of values, per time step, in the form of X. NaN: no target there; a row with some NaN
            is left out as a whole.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences; or their steps before the padding,
            if it is a padded 3-D array.
        sample_weight : array or list of arrays, default=None
            How much each target counts: one number per sequence, or one per step in the form of y. A weight of 2
            counts like the same target twice, 0 as if there were no target there (docs/howto/targets.md). None: 1.
        validation : (X, y) or (X, y, sample_weight), default=None
            Data that decide on stopping and ridge, instead of held-out training sequences.
        callback : callable, default=None
            Called after each epoch with its row of `history_`; learning stops if it returns True.
        checkpoint : str or path-like, default=None
            A folder where the state of learning is kept; the same fit, started again, resumes from there and ends with
            the same bits.
        engine : str or distributed.Client, default=None
            "dask", a scheduler's address, or a client: work on a Dask cluster (docs/howto/scaling.md).

        Returns
        -------
        ESNRegressor
            The estimator itself. After Ctrl-C it holds the best weights so far, and KeyboardInterrupt is raised.
        """
        with nullcontext() if engine is None else cluster.on(engine):
            settings, data = open_fit(self, X, y, lengths, rule=RULE, sample_weight=sample_weight)
            model, interrupted = fit_model(
                self,
                settings,
                data,
                self._codec_for(data),
                (RULE, None),
                validation=validation,
                callback=callback,
                checkpoint=checkpoint,
            )
        return self._adopt(model, interrupted)

    def partial_fit(
        self, X: SequencesLike, y: SequencesLike, *, lengths: ArrayLike | None = None, sample_weight: object = None
    ) -> Self:
        """Add sequences to those that the readout was fitted to, and solve it again from all of them.

        The first call is a fit. What it found stays: weights, the scale of the targets and, with `standardize=True`,
        that of the inputs. One fit to all data would find others; the readout is that of all data for what was found.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths, with the features of the first call.
        y : array or list of arrays
            One value, or one row of values, per time step, in the form of X.
        lengths, sample_weight
            As in `fit`.

        Returns
        -------
        ESNRegressor
            The estimator itself.
        """
        if not self.__sklearn_is_fitted__():
            settings, data = open_fit(self, X, y, lengths, rule=RULE, sample_weight=sample_weight)
            return self._adopt(*fit_model(self, settings, data, self._codec_for(data), (RULE, None)))
        return self._add_sequences(X, y, lengths, (RULE, None), sample_weight)
