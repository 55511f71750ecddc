"""DeepESNClassifier and DeepESNRegressor: residual stacks of leaky, rotating layers, all weights learned."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from echolearn.estimators._base import store_parameters
from echolearn.estimators._classifier import StepClassifier, has_ridge_readout, label_encoding
from echolearn.estimators._regressor import RULE, StepRegressor
from echolearn.fitting.data import ClassWeight, Validation
from echolearn.fitting.depth import Augment, fit_deep
from echolearn.fitting.fit import open_by_rules
from echolearn.fitting.parameters import DEEP_LABEL_LEARNING, DEEP_LEARNING, Parameters
from echolearn.fitting.settings import DEEP_RULES
from echolearn.fitting.stages import Callback
from echolearn.validation import SequencesLike


class DeepESNClassifier(StepClassifier):
    """A deep echo state network that labels every time step, or whole sequences, with all its weights learned.

    Every layer normalises its inputs, feeds them to pairs of leaky units whose states turn by an angle, and adds a
    linear map of the rectified states to what passes through all layers (docs/explanation/depth.md). Leaks and angles
    are learned too; the network has echo states whatever is learned. All matrices but that of the readout are updated
    by Muon, all other weights by Adam.

    Parameters
    ----------
    units : int, default=128
        The number of units of each layer, an even number.
    layers : int, default=6
        The number of layers.
    ensemble : int, default=1
        How many such networks are learned, each on one core. They answer by the mean of their outputs.
    bidirectional : bool, default=False
        Whether half of the units of every layer read a sequence from its end. For whole sequences, not for streams.
    dropout : float, default=None
        The share of entries that are left out at random while learning, after the units and after what a layer adds.
        None: a tenth of the square root of the number of weights per label, and at most 0.3. With as many labelled
        steps, or labelled sequences, as weights this is 0.1.
    leak : (float, float), default=(0.03, 0.63)
        The range in which leaks 1 - a are drawn, evenly in logarithm; small ones remember longer. They are learned.
    angle : float, default=3.141592653589793
        The largest angle by which pairs of units turn at every step, in radians. Angles are drawn evenly, for half of
        the pairs, and learned. They are for sharp memory, leaks for long memory.
    standardize : bool, default=True
        Whether each feature is shifted and scaled to mean 0 and standard deviation 1 over the training data.
    missing : {"error", "carry", "mean"}, default="error"
        What NaN in X stands for. "error": it is refused. "carry": the last known value is carried forward, and a
        further input marks where a value is missing. "mean": the mean of the feature.
    readout : {"softmax", "ridge"}, default="softmax"
        "softmax": the readout is learned with the other weights, on the cross entropy. "ridge": it is then replaced by
        the closed form of eq. 9, which `partial_fit` and RLS on streams continue.
    ridge : float, list of float, or "auto", default="auto"
        The penalty of a ridge readout: a number, or numbers to choose from by generalised cross-validation.
    epochs : int, default=None
        Passes over the training data. None: enough for 2,000 updates, at least 5 and at most 40. 0: the layers stay as
        drawn, and the readout alone is fitted.
    augment : callable, default=None
        A function of a sequence (n_steps, n_features) and a `numpy.random.Generator` that returns a changed sequence of
        the same shape. It is called anew for every sequence in every epoch.
    learning : dict, default=None
        How weights are learned, where it differs from the defaults in parentheses. `step_size` (0.02): that of Muon at
        its peak; Adam takes 0.3 of it. `batch_size` (4): sequences per update. `patience` (None): epochs without a
        better validation error after which learning stops. `label_smoothing` (0): the share of a label that is
        spread over all classes. 0.1 can lower the share of wrong labels, and makes probabilities less extreme.
    validation_fraction : float, default=0.0
        The share of the sequences that is held out to choose the best epoch. 0: nothing is held out, and the last
        epoch counts, in which steps are smallest.
    class_weight : "balanced", dict or None, default=None
        How much the labels of each class count, beside `sample_weight`.
    ignore_label : label, default=None
        The label in y that marks steps, or sequences, without a target. None: no label.
    layout : {"auto", "time_first", "channels_first", "rows"}, default="auto"
        Which axis of X is time, as for `ESNClassifier`.
    dtype : {"float32", "float64"}, default="float32"
        The precision of weights and states.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of the weights, the order of mini-batches and dropout. The same seed and data give the same results,
        bit by bit, with any number of threads.
    verbose : int, default=0
        1 shows a bar over the epochs, 2 prints one line per epoch.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    network_ : DeepNetwork
        The fitted network: `stacks`, with their weights by name, and the readout.
    history_ : History
        One row per epoch: `error` is the cross entropy of the training labels (of rows of labels, the squared error),
        `valid_error` the share of wrong labels in held-out data.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        The names of the features, if X was a data frame.

    See Also
    --------
    ESNClassifier : One layer, the paper's network.
    DeepESNRegressor : Values instead of labels.
    SeriesClassifier : One label per series from fixed units, for few series.

    Examples
    --------
    Whether an input has the sign of the one before it:

    >>> import numpy as np
    >>> from echolearn import DeepESNClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((50, 1)) for _ in range(40)]
    >>> y = [x[:, 0] * np.roll(x[:, 0], 1) > 0 for x in X]
    >>> model = DeepESNClassifier(16, 2, epochs=20).fit(X[:30], y[:30])
    >>> model.score(X[30:], y[30:]) > 0.9
    True
    """

    groups: ClassVar[Mapping[str, Parameters]] = {"learning": DEEP_LABEL_LEARNING}

    def __init__(
        self,
        units: int = 128,
        layers: int = 6,
        *,
        ensemble: int = 1,
        bidirectional: bool = False,
        dropout: float | None = None,
        leak: tuple[float, float] = (0.03, 0.63),
        angle: float = np.pi,
        standardize: bool = True,
        missing: str = "error",
        readout: str = "softmax",
        ridge: str | ArrayLike = "auto",
        epochs: int | None = None,
        augment: Augment | None = None,
        learning: Mapping[str, object] | None = None,
        validation_fraction: float = 0.0,
        class_weight: ClassWeight = None,
        ignore_label: object = None,
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
    ) -> Self:
        """Learn all weights from sequences and their labels.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths. Other forms: docs/howto/data.md.
        y : array or list of arrays
            One label per time step, in the form of X, or one label per sequence: then the readout sees the mean of its
            features over time. Rows of 0 and 1, as integers or bools, are several labels at once.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.
        sample_weight : array or list of arrays, default=None
            How much each target counts: one number per sequence, or one per step in the form of y. None: 1.
        validation : (X, y) or (X, y, sample_weight), default=None
            Data that decide on the best epoch.
        callback : callable, default=None
            Called after each epoch with its row of `history_`; learning stops if it returns True.
        checkpoint : str or path-like, default=None
            A folder where the state of learning is kept; the same fit, started again, resumes from there and ends with
            the same bits.

        Returns
        -------
        DeepESNClassifier
            The estimator itself. After Ctrl-C it holds the best weights so far, and KeyboardInterrupt is raised.
        """
        rule = self._rule()
        data = open_by_rules(self, X, y, lengths, rules=DEEP_RULES, rule=rule, sample_weight=sample_weight)
        fitted = fit_deep(
            self, data, *label_encoding(data, rule), validation=validation, callback=callback, checkpoint=checkpoint
        )
        return self._adopt(*fitted)

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

        The first call is a fit. What it found stays: all weights but those of the readout and, with `standardize=True`,
        the scale of the inputs. One fit to all data would find others; the readout is that of all data for what was
        found.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths, with the features of the first call.
        y : array or list of arrays
            One label per time step, in the form of X, or per sequence, as in the first call.
        classes : array of labels, default=None
            All labels; needed in the first call if its y may lack some.
        lengths, sample_weight
            As in `fit`.

        Returns
        -------
        DeepESNClassifier
            The estimator itself.
        """
        labels, rule = self._all_labels(classes), self._rule()
        if not self.__sklearn_is_fitted__():
            data = open_by_rules(self, X, y, lengths, rules=DEEP_RULES, rule=rule, sample_weight=sample_weight)
            return self._adopt(*fit_deep(self, data, *label_encoding(data, rule, labels)))
        return self._add_labels(X, y, lengths, sample_weight)


class DeepESNRegressor(StepRegressor):
    """A deep echo state network that predicts values at every time step, or per sequence, with all weights learned.

    Its layers are those of `DeepESNClassifier`; the readout is the closed form of eq. 9 on the features of the last
    layer. For smooth dynamics without noise, `ESNRegressor` is more accurate.

    Parameters
    ----------
    units : int, default=128
        The number of units of each layer, an even number.
    layers : int, default=6
        The number of layers.
    ensemble : int, default=1
        How many such networks are learned, each on one core, for one readout of all their features.
    bidirectional : bool, default=False
        Whether half of the units of every layer read a sequence from its end. For whole sequences, not for streams.
    dropout : float, default=None
        The share of entries that are left out at random while learning. None: a tenth of the square root of the number
        of weights per target, and at most 0.3. For smooth targets without noise, 0 is better.
    leak : (float, float), default=(0.03, 0.63)
        The range in which leaks 1 - a are drawn, evenly in logarithm; small ones remember longer. They are learned.
    angle : float, default=3.141592653589793
        The largest angle by which pairs of units turn at every step, in radians. Angles are learned.
    standardize : bool, default=True
        Whether each feature is shifted and scaled to mean 0 and standard deviation 1 over the training data.
    missing : {"error", "carry", "mean"}, default="error"
        What NaN in X stands for, as for `DeepESNClassifier`.
    ridge : float, list of float, or "auto", default="auto"
        The penalty of the readout: a number, or numbers to choose from by generalised cross-validation.
    epochs : int, default=None
        Passes over the training data. None: enough for 2,000 updates, at least 5 and at most 40. 0: the layers stay as
        drawn, and the readout alone is fitted.
    augment : callable, default=None
        A function of a sequence and a generator, as for `DeepESNClassifier`.
    learning : dict, default=None
        `step_size` (0.02), `batch_size` (4) and `patience` (None), as for `DeepESNClassifier`.
    validation_fraction : float, default=0.0
        The share of the sequences that is held out to choose the best epoch. 0: the last epoch counts.
    layout : {"auto", "time_first", "channels_first", "rows"}, default="auto"
        Which axis of X is time, as for `ESNRegressor`.
    dtype : {"float32", "float64"}, default="float32"
        The precision of weights and states.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of the weights, the order of mini-batches and dropout.
    verbose : int, default=0
        1 shows a bar over the epochs, 2 prints one line per epoch.

    Attributes
    ----------
    network_ : DeepNetwork
        The fitted network: `stacks`, with their weights by name, and the readout.
    history_ : History
        One row per epoch.
    ridge_ : float
        The ridge of the readout, given or chosen.
    target_mean_, target_scale_ : arrays of shape (n_outputs,)
        The mean and standard deviation of each target.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        The names of the features, if X was a data frame.

    See Also
    --------
    ESNRegressor : One layer, the paper's network.
    DeepESNClassifier : Labels instead of values.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import DeepESNRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((60, 1)) for _ in range(30)]
    >>> y = [np.abs(x[:, 0] + np.roll(x[:, 0], 1)) for x in X]
    >>> model = DeepESNRegressor(16, 2).fit(X[:25], y[:25])
    >>> model.score(X[25:], y[25:]) > 0.8
    True
    """

    groups: ClassVar[Mapping[str, Parameters]] = {"learning": DEEP_LEARNING}

    def __init__(
        self,
        units: int = 128,
        layers: int = 6,
        *,
        ensemble: int = 1,
        bidirectional: bool = False,
        dropout: float | None = None,
        leak: tuple[float, float] = (0.03, 0.63),
        angle: float = np.pi,
        standardize: bool = True,
        missing: str = "error",
        ridge: str | ArrayLike = "auto",
        epochs: int | None = None,
        augment: Augment | None = None,
        learning: Mapping[str, object] | None = None,
        validation_fraction: float = 0.0,
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
    ) -> Self:
        """Learn all weights from sequences and their values.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths. Other forms: docs/howto/data.md.
        y : array or list of arrays
            One value, or one row of values, per time step, in the form of X, or per sequence. NaN: no target there.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.
        sample_weight : array or list of arrays, default=None
            How much each target counts: one number per sequence, or one per step in the form of y. None: 1.
        validation : (X, y) or (X, y, sample_weight), default=None
            Data that decide on the best epoch.
        callback : callable, default=None
            Called after each epoch with its row of `history_`; learning stops if it returns True.
        checkpoint : str or path-like, default=None
            A folder where the state of learning is kept; the same fit, started again, resumes from there and ends with
            the same bits.

        Returns
        -------
        DeepESNRegressor
            The estimator itself. After Ctrl-C it holds the best weights so far, and KeyboardInterrupt is raised.
        """
        data = open_by_rules(self, X, y, lengths, rules=DEEP_RULES, rule=RULE, sample_weight=sample_weight)
        fitted = fit_deep(
            self,
            data,
            self._codec_for(data),
            (RULE, None),
            validation=validation,
            callback=callback,
            checkpoint=checkpoint,
        )
        return self._adopt(*fitted)

    def partial_fit(
        self, X: SequencesLike, y: SequencesLike, *, lengths: ArrayLike | None = None, sample_weight: object = None
    ) -> Self:
        """Add sequences to those that the readout was fitted to, and solve it again from all of them.

        The first call is a fit. What it found stays: all weights but those of the readout, the scale of the targets
        and, with `standardize=True`, that of the inputs. One fit to all data would find others; the readout is that of
        all data for what was found.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths, with the features of the first call.
        y : array or list of arrays
            One value, or one row of values, per time step, in the form of X, or per sequence, as in the first call.
        lengths, sample_weight
            As in `fit`.

        Returns
        -------
        DeepESNRegressor
            The estimator itself.
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, lengths=lengths, sample_weight=sample_weight)
        return self._add_sequences(X, y, lengths, (RULE, None), sample_weight)
