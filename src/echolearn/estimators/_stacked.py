"""StackedClassifier and StackedRegressor: layers of networks, each of which takes the outputs of the layer below."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import Tags

from echolearn.estimators._base import store_parameters
from echolearn.estimators._classifier import ESNClassifier
from echolearn.estimators._regressor import ESNRegressor
from echolearn.estimators._stacked_base import StackedEstimator, draw_layers, layer_requests
from echolearn.fitting.advice.before import warn_of_whole_labels
from echolearn.fitting.codecs import ClassCodec, ValueCodec
from echolearn.fitting.stack import Passing, StackRequest, fit_stack
from echolearn.fitting.stages import Callback
from echolearn.validation import Answers, Array, SequencesLike


class StackedClassifier(ClassifierMixin, StackedEstimator[ESNClassifier]):
    """Layers of echo state networks that label time steps or whole sequences (docs/howto/stacks.md).

    Each layer first learns by itself, with the outputs of the layer below as its inputs. Then all layers learn jointly,
    by exact gradients through the whole stack.

    Parameters
    ----------
    layers : list of int or of ESNClassifier, default=(150, 150)
        The layers from the input to the top: numbers of hidden units, or estimators with their settings. Pass
        estimators to set anything but the number of units.
    sees : {"output", "output+input", "output+hidden"}, default="output"
        The inputs of a layer above the first: the outputs of the layer below, alone or together with the input of the
        stack or with the hidden states of the layer below. More inputs give a layer more information and more weights.
    joint_epochs : int, default=6
        The number of epochs in which all layers learn jointly, after each has learned by itself. 0: no joint learning.
        Use more if the error in `history_` still falls in the last one.
    step_size : float, default=None
        The step size of the joint epochs. None: 0.3 times that of a layer that learns by itself. Use a smaller one if
        the error grows.
    validation_fraction : float, default=0.1
        The share of the sequences that is held out to decide on stopping, ridge and penalty. It has no effect if `fit`
        is given `validation`.
    layout : {"auto", "time_first", "channels_first", "rows"}, default="auto"
        Which axis of X is time, as in `ESNClassifier`.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of all layers, of the choice of held-out sequences and of the order of mini-batches. The same seed
        gives the same results; None gives different ones each time.
    verbose : int, default=0
        1 shows a bar over the epochs: live in a notebook, with the curve of the errors, and on a terminal; in a log, a
        line every few seconds. 2 prints one line per epoch.

    Attributes
    ----------
    layers_ : list of ESNClassifier
        The fitted layers, from the input to the top.
    scales_ : list of arrays
        The factors by which the outputs of each layer but the top are scaled for the layer above.
    history_ : History
        One row per joint epoch. Each layer of `layers_` has a history of its own.
    per_step_ : bool
        Whether there is one target per step; otherwise there is one per sequence.
    layout_ : {"time_first", "channels_first", "rows"}
        Which axis of X was taken as time.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        The names of the features, if X was a data frame.
    classes_ : array of shape (n_classes,)
        The labels, sorted.

    See Also
    --------
    echolearn.ESNClassifier : A single network, and the settings of a layer.
    echolearn.StackedRegressor : The stack for values.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNClassifier, StackedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((30, 2)) for _ in range(10)]
    >>> y = [np.roll(x[:, 0], 1) > 0 for x in X]
    >>> layer = ESNClassifier(10, epochs=1, readout="ridge")
    >>> stack = StackedClassifier([layer, layer], joint_epochs=1).fit(X, y)
    >>> stack.predict(X[0]).shape
    (30,)
    """

    def __init__(
        self,
        layers: Sequence[int | ESNClassifier] = (150, 150),
        *,
        sees: str = "output",
        joint_epochs: int = 6,
        step_size: float | None = None,
        validation_fraction: float = 0.1,
        layout: str = "auto",
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
        validation: tuple[SequencesLike, SequencesLike] | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn all layers from sequences and their labels.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        y : array or list of arrays
            One label per time step (in the form of X), or one per sequence.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.
        validation : (X, y), default=None
            Data that decide on stopping, ridge and penalty, instead of held-out training sequences.
        callback : callable, default=None
            A function that is called after each epoch with its row of the history. While a layer learns by itself, the
            row also has the number of the layer. The layer, or the joint learning, stops if the function returns True.
        checkpoint : str or path-like, default=None
            A folder in which the epochs of each layer, and the joint ones, are kept. The same fit, started again,
            resumes from there and ends with the same bits. Use one for fits that may be interrupted.

        Returns
        -------
        StackedClassifier
            The estimator itself. After Ctrl-C in the top layer or later it has the best weights so far, and
            KeyboardInterrupt is raised.
        """
        params = self.get_params(deep=False)
        layers = draw_layers(params, ESNClassifier)
        opened, inputs = self._open_fit(X, y, lengths, layer_requests(layers))
        codec = ClassCodec.of(opened.entries, True)
        warn_of_whole_labels(opened.entries, opened.given)
        softmax = layers[-1].readout == "softmax"
        for number, layer in enumerate(layers, 1):
            if layer.ensemble > 1:
                raise ValueError(f"ensemble={layer.ensemble} in layer {number}; expected 1: a layer has one readout.")
            if layer is not layers[-1]:
                layer.set_params(readout="softmax" if softmax else "ridge")
        requests, rng = layer_requests(layers, opened), self._generators()
        request = StackRequest(
            owner=type(self).__name__,
            params=params,
            layers=requests,
            split=self._split(opened, inputs, validation, requests, rng["split"]),
            codec=codec,
            passing=Passing(self.sees, softmax),
            callback=callback,
            checkpoint=checkpoint,
            rng=rng,
        )
        return self._adopt(layers, fit_stack(request), inputs, opened)

    @property
    def classes_(self) -> Array:
        """The labels, sorted."""
        return self.layers_[-1].classes_

    def decision_function(self, X: SequencesLike, *, lengths: ArrayLike | None = None) -> Answers:
        """Return the outputs of the top layer for every class; for two classes, their difference.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.

        Returns
        -------
        array of shape (n_steps, n_classes), or list of such arrays
            One row per step in the form of X; with one label per sequence, an array of shape (n_sequences, n_classes).
            With two classes the last axis is missing.
        """
        return self._answer(X, lengths, lambda top, inputs: top.decision_function(inputs), self.classes_.tolist())

    def predict_proba(self, X: SequencesLike, *, lengths: ArrayLike | None = None) -> Answers:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.

        Returns
        -------
        array of shape (n_steps, n_classes), or list of such arrays
            One row per step in the form of X; with one label per sequence, an array of shape (n_sequences, n_classes).
        """
        return self._answer(X, lengths, lambda top, inputs: top.predict_proba(inputs), self.classes_.tolist())

    def predict_log_proba(self, X: SequencesLike, *, lengths: ArrayLike | None = None) -> Answers:
        """Return the logarithms of `predict_proba`.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.

        Returns
        -------
        array of shape (n_steps, n_classes), or list of such arrays
            One row per step in the form of X; with one label per sequence, an array of shape (n_sequences, n_classes).
        """
        return self._answer(X, lengths, lambda top, inputs: top.predict_log_proba(inputs), self.classes_.tolist())

    def score(self, X: SequencesLike, y: SequencesLike, *, lengths: ArrayLike | None = None) -> float:
        """Return the share of correct labels over all steps (or sequences).

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.
        y : array or list of arrays
            The true labels: one per time step (in the form of X), or one per sequence.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.

        Returns
        -------
        float
            The accuracy, from 0 to 1.
        """
        return self._score_top(X, y, lengths)


class StackedRegressor(RegressorMixin, StackedEstimator[ESNRegressor]):
    """Layers of echo state networks that predict values per time step or per sequence (docs/howto/stacks.md).

    Each layer first learns by itself, with the outputs of the layer below as its inputs. Then all layers learn jointly,
    by exact gradients through the whole stack.

    Parameters
    ----------
    layers : list of int or of ESNRegressor, default=(150, 150)
        The layers from the input to the top: numbers of hidden units, or estimators with their settings. Pass
        estimators to set anything but the number of units.
    sees : {"output", "output+input", "output+hidden"}, default="output"
        The inputs of a layer above the first: the outputs of the layer below, alone or together with the input of the
        stack or with the hidden states of the layer below. More inputs give a layer more information and more weights.
    joint_epochs : int, default=6
        The number of epochs in which all layers learn jointly, after each has learned by itself. 0: no joint learning.
        Use more if the error in `history_` still falls in the last one.
    step_size : float, default=None
        The step size of the joint epochs. None: 0.3 times that of a layer that learns by itself. Use a smaller one if
        the error grows.
    validation_fraction : float, default=0.1
        The share of the sequences that is held out to decide on stopping, ridge and penalty. It has no effect if `fit`
        is given `validation`.
    layout : {"auto", "time_first", "channels_first", "rows"}, default="auto"
        Which axis of X is time, as in `ESNClassifier`.
    random_state : int, numpy.random.Generator or None, default=0
        The seed of all layers, of the choice of held-out sequences and of the order of mini-batches. The same seed
        gives the same results; None gives different ones each time.
    verbose : int, default=0
        1 shows a bar over the epochs: live in a notebook, with the curve of the errors, and on a terminal; in a log, a
        line every few seconds. 2 prints one line per epoch.

    Attributes
    ----------
    layers_ : list of ESNRegressor
        The fitted layers, from the input to the top.
    scales_ : list of arrays
        The factors by which the outputs of each layer but the top are scaled for the layer above.
    history_ : History
        One row per joint epoch. Each layer of `layers_` has a history of its own.
    per_step_ : bool
        Whether there is one target per step; otherwise there is one per sequence.
    layout_ : {"time_first", "channels_first", "rows"}
        Which axis of X was taken as time.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : array of str
        The names of the features, if X was a data frame.

    See Also
    --------
    echolearn.ESNRegressor : A single network, and the settings of a layer.
    echolearn.StackedClassifier : The stack for labels.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNRegressor, StackedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.standard_normal((30, 1)) for _ in range(10)]
    >>> y = [np.roll(x[:, 0], 1) for x in X]
    >>> layer = ESNRegressor(10, epochs=1)
    >>> stack = StackedRegressor([layer, layer], joint_epochs=1).fit(X, y)
    >>> stack.predict(X[0]).shape
    (30,)
    """

    def __init__(
        self,
        layers: Sequence[int | ESNRegressor] = (150, 150),
        *,
        sees: str = "output",
        joint_epochs: int = 6,
        step_size: float | None = None,
        validation_fraction: float = 0.1,
        layout: str = "auto",
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
        validation: tuple[SequencesLike, SequencesLike] | None = None,
        callback: Callback | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Learn all layers from sequences and their targets.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        y : array or list of arrays
            One value, or one row of values, per time step (in the form of X), or one per sequence.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.
        validation : (X, y), default=None
            Data that decide on stopping, ridge and penalty, instead of held-out training sequences.
        callback : callable, default=None
            A function that is called after each epoch with its row of the history. While a layer learns by itself, the
            row also has the number of the layer. The layer, or the joint learning, stops if the function returns True.
        checkpoint : str or path-like, default=None
            A folder in which the epochs of each layer, and the joint ones, are kept. The same fit, started again,
            resumes from there and ends with the same bits. Use one for fits that may be interrupted.

        Returns
        -------
        StackedRegressor
            The estimator itself. After Ctrl-C in the top layer or later it has the best weights so far, and
            KeyboardInterrupt is raised.
        """
        params = self.get_params(deep=False)
        layers = draw_layers(params, ESNRegressor)
        opened, inputs = self._open_fit(X, y, lengths, layer_requests(layers))
        requests, rng = layer_requests(layers, opened), self._generators()
        split = self._split(opened, inputs, validation, requests, rng["split"])
        dtype = requests[-1].settings.dtype
        request = StackRequest(
            owner=type(self).__name__,
            params=params,
            layers=requests,
            split=split,
            codec=ValueCodec.of(list(split.train.y), True, dtype),
            passing=Passing(self.sees, softmax=False),
            callback=callback,
            checkpoint=checkpoint,
            rng=rng,
        )
        return self._adopt(layers, fit_stack(request), inputs, opened)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def score(self, X: SequencesLike, y: SequencesLike, *, lengths: ArrayLike | None = None) -> float:
        """Return R² over all steps (or sequences), averaged over outputs.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.
        y : array or list of arrays
            The true values, or rows of values: one per time step (in the form of X), or one per sequence.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.

        Returns
        -------
        float
            1 for perfect predictions, 0 for predictions no better than the mean of the targets.
        """
        return self._score_top(X, y, lengths)
