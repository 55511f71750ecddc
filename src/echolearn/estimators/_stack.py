"""What stacked estimators share: opening data, the fitted layers, and predictions through all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from echolearn._typing import Array
from echolearn.estimators._base import (
    OpenedData,
    SequenceEstimator,
    fitted_model,
    open_data,
    warn_of_input_scale,
)
from echolearn.estimators.models import FittedStack
from echolearn.estimators.parameters import check_each
from echolearn.estimators.saving import save_model
from echolearn.estimators.settings import NetworkSettings
from echolearn.estimators.stack_fitting import FittedLayer, layer_inputs
from echolearn.readout.solver import solver_for
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import Split, hold_out
from echolearn.sequences.validation import check_long_enough, open_sequences, open_targets
from echolearn.training.history import History
from echolearn.validation.values import check_pair


class StackedEstimator(BaseEstimator):
    """Fitted layers, and predictions with them.

    Attributes of a fitted stack: `layers_`, the layers as fitted estimators from the input to the top; `scales_`, the
    factors of what each but the top passes on; `history_` of the joint epochs.
    """

    layers_: list[SequenceEstimator]
    scales_: list[Array]
    history_: History
    per_step_: bool
    n_features_in_: int

    def _open_fit(self, X: Any, y: Any, lengths: ArrayLike | None, layers: Sequence[SequenceEstimator]) -> OpenedData:
        """Check the data of a fit."""
        opened = open_data(X, y, lengths)
        check_long_enough(opened.given, _longest_washout(layers))
        for layer in layers:
            NetworkSettings.of(layer.get_params(deep=False)).check_targets(opened.per_step)
        warn_of_input_scale(opened.given.X, NetworkSettings.of(layers[0].get_params(deep=False)))
        return opened

    def _split(
        self, opened: OpenedData, validation: Any, layers: Sequence[SequenceEstimator], rng: np.random.Generator
    ) -> Split:
        """Return training and held-out data, their targets as they came."""
        params = self.get_params(deep=False)
        dtype = np.dtype(layers[-1].get_params(deep=False)["dtype"])
        data = Dataset(opened.given.X, opened.entries, None, opened.per_step, dtype)
        if validation is None:
            return hold_out(data, params["validation_fraction"], _longest_washout(layers), rng)
        X, y = check_pair("validation", validation)
        given = open_sequences(X, None, opened.given.X[0].shape[1])
        check_long_enough(given, _longest_washout(layers))
        entries, per_step = open_targets(y, given)
        if per_step != opened.per_step:
            raise ValueError(
                "validation: its y must be of the same kind as y (one entry per step, or one per sequence)."
            )
        return Split(data, replace(data, X=given.X, y=entries), refit=False)

    def _generators(self) -> dict[str, np.random.Generator]:
        """Return one random generator per purpose."""
        seed = self.get_params(deep=False)["random_state"]
        return dict(zip(("split", "order", "readout"), np.random.default_rng(seed).spawn(3), strict=True))

    def _adopt(self, layers: Sequence[FittedLayer], history: History, interrupted: bool, opened: OpenedData) -> Self:
        for layer in layers:
            esn, network = layer.estimator, layer.network
            esn.network_, esn.codec_, esn.history_ = network, layer.codec, layer.history
            esn.refinement_ = layer.refinement
            esn.per_step_, esn.n_features_in_ = network.view.pooling is None, network.reservoir.n_in
        self.layers_ = [layer.estimator for layer in layers]
        self.scales_ = [layer.scale for layer in layers[:-1]]
        self.history_, self.per_step_, self.n_features_in_ = history, opened.per_step, opened.given.X[0].shape[1]
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _top_inputs(self, X: Sequence[Array]) -> Sequence[Array]:
        """Return the inputs of the top layer."""
        layers = [
            FittedLayer(
                esn,
                NetworkSettings.of(esn.get_params(deep=False)),
                esn.network_,
                esn.codec_,
                scale,
                History(),
                History(),
            )
            for esn, scale in zip(self.layers_, [*self.scales_, np.ones(1)], strict=True)
        ]
        sees = self.get_params(deep=False)["sees"]
        return layer_inputs(layers, X, sees, entropy=self.layers_[0].network_.readout.softmax)[-1]

    def _ask_top(self, method: str, X: Any, lengths: ArrayLike | None) -> Any:
        """Return what the top layer answers, in the form in which X came."""
        check_is_fitted(self)
        given = open_sequences(X, lengths, self.n_features_in_, type(self).__name__)
        answer = getattr(self.layers_[-1], method)(self._top_inputs(given.X))
        return given.in_given_form(answer) if self.per_step_ else answer

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> Any:
        """Return the predictions of the top layer.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.

        Returns
        -------
        array or list of arrays
            Predictions per step in the form of X, or one per sequence.
        """
        return self._ask_top("predict", X, lengths)

    def _score_top(self, X: Any, y: Any, lengths: ArrayLike | None) -> float:
        check_is_fitted(self)
        given = open_sequences(X, lengths, self.n_features_in_, type(self).__name__)
        return float(self.layers_[-1].score(self._top_inputs(given.X), open_targets(y, given)[0]))

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted stack to one safetensors file with every layer.

        Parameters
        ----------
        path : str or path-like
            Where to write. The file appears when it is complete; an existing one is replaced.

        See Also
        --------
        echolearn.load : Read the file back.
        """
        check_is_fitted(self)
        stack = FittedStack(
            estimator=type(self).__name__,
            settings=self.get_params(deep=False),
            layers=[fitted_model(layer) for layer in self.layers_],
            scales=self.scales_,
            history=self.history_,
        )
        save_model(stack, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "layers_")


def draw_layers(stack: StackedEstimator, kind: type[SequenceEstimator]) -> list[SequenceEstimator]:
    """Return the layers as they will learn, each with a seed of its own."""
    params = stack.get_params(deep=False)
    check_each(params)
    layers = params["layers"]
    if not isinstance(layers, (list, tuple)) or len(layers) < 2:
        raise ValueError(f"layers={layers!r}; expected a list of two or more, from the input to the top.")
    seeds = np.random.default_rng(params["random_state"]).integers(2**31, size=len(layers))
    drawn = []
    for number, (layer, seed) in enumerate(zip(layers, seeds, strict=True), 1):
        if isinstance(layer, Integral) and not isinstance(layer, bool):
            layer = kind(int(layer))
        if not isinstance(layer, kind):
            raise ValueError(
                f"layers[{number - 1}] is {layer!r}; expected a number of hidden units or an {kind.__name__}."
            )
        own = layer.get_params(deep=False)
        NetworkSettings.of(own)
        _check_layer(own, number)
        changes = {"random_state": int(seed), "verbose": params["verbose"], "validation_fraction": 0.0}
        drawn.append(clone(layer).set_params(**changes))
    dtypes = [layer.get_params(deep=False)["dtype"] for layer in drawn]
    if len(set(dtypes)) > 1:
        raise ValueError(f"dtype={dtypes} of the layers; expected one for all of them.")
    return drawn


def _longest_washout(layers: Sequence[SequenceEstimator]) -> int:
    return max(int(layer.get_params(deep=False)["washout"]) for layer in layers)


def _check_layer(params: dict[str, Any], number: int) -> None:
    """Refuse settings that a layer of a stack cannot have."""
    for name, value, why in (
        ("feedback", False, "outputs go up, not back"),
        ("gradient", "exact", "the paper's formulas end at one layer"),
        ("targets", "all", "the layer above sees every frame"),
        ("bidirectional", False, "the way back runs in one direction"),
    ):
        if params.get(name, value) != value:
            raise ValueError(f"{name}={params[name]!r} in layer {number}; expected {value!r} in a stack: {why}.")
    units = params["hidden_units"]
    if solver_for(units).iterative:
        raise ValueError(f"layer {number} has {units} units, too many for a stack: its readout has no Gram matrix.")
