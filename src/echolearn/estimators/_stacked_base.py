"""The shared parts of stacked estimators: opening data, the fitted layers, and predictions through all of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from numbers import Integral
from os import PathLike
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from echolearn.display.facts import counted
from echolearn.estimators._classifier import ESNClassifier
from echolearn.estimators._display import ExportMixin, FittedFacts, NotebookMixin, history_facts
from echolearn.estimators._regressor import ESNRegressor
from echolearn.fitting.advice.before import explained_swap
from echolearn.fitting.data import FitData, check_names, open_data, warn_of_input_scale
from echolearn.fitting.fit import check_job
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import FittedModel, FittedStack
from echolearn.fitting.parameters import NamedSettings, Parameters, flat_settings
from echolearn.fitting.settings import NetworkSettings, check_beside_reservoir, check_each
from echolearn.fitting.stack import FittedLayers, LayerRequest, Passing, StackLayer
from echolearn.persistence.save import save_model
from echolearn.readout.solver import solver_for
from echolearn.sequences.answers import UNNAMED, with_names
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import Sequences, check_long_enough, open_sequences, unpack
from echolearn.sequences.split import Split, hold_out
from echolearn.sequences.targets import open_targets
from echolearn.training.history import History
from echolearn.validation import Answers, Array, SequencesLike, check_pair

Layer = TypeVar("Layer", bound=ESNClassifier | ESNRegressor)


class StackedEstimator(ExportMixin, NotebookMixin, NamedSettings, Generic[Layer]):
    """A stack of fitted layers.

    It has these attributes when it is fitted: `layers_`, the layers as fitted estimators from the input to the top;
    `scales_`, the factors of what each but the top passes on; `history_` of the joint epochs; and `layout_`.
    """

    layers_: list[Layer]
    scales_: list[Array]
    history_: History
    layout_: str

    def _fitted_facts(self) -> FittedFacts:
        if not hasattr(self, "layers_"):
            return []
        sizes = ", ".join(f"{layer.network_.reservoir.N:,}" for layer in self.layers_)
        return [("size", f"{counted(len(self.layers_), 'layer')} of {sizes} units"), *history_facts(self.history_)]

    def _open_fit(
        self, X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None, layers: Sequence[LayerRequest]
    ) -> tuple[FitData, InputCodec]:
        """Check the data of a fit; return them as the first layer sees them, and how they were encoded."""
        first = layers[0].settings
        layout = self.get_params(deep=False)["layout"]
        opened = open_data(X, y, lengths, gaps=first.missing != "error", layout=layout)
        check_long_enough(opened.given, _longest_washout(layers))
        check_job(type(self).__name__, opened, per_step=True)
        data = Dataset(opened.given.X, (), None, opened.per_step, np.dtype(first.dtype))
        inputs = InputCodec.of(data, standardize=first.standardize, missing=first.missing)
        encoded = replace(opened, given=replace(opened.given, X=list(inputs.encode_all(data))))
        warn_of_input_scale(encoded.given.X, first)
        return encoded, inputs

    def _split(
        self,
        opened: FitData,
        inputs: InputCodec,
        validation: tuple[SequencesLike, SequencesLike] | None,
        layers: Sequence[LayerRequest],
        rng: np.random.Generator,
    ) -> Split:
        """Return training and held-out data, with targets as the user gave them."""
        params = self.get_params(deep=False)
        data = Dataset(opened.given.X, opened.entries, None, opened.per_step, np.dtype(layers[-1].settings.dtype))
        if validation is None:
            return hold_out(data, params["validation_fraction"], _longest_washout(layers), rng)
        X, y = check_pair("validation", validation)
        given = self._open(X, None, inputs, opened.layout)
        check_long_enough(given, _longest_washout(layers))
        entries, per_step = open_targets(y, given)
        if per_step != opened.per_step:
            raise ValueError(
                "validation: its y must be of the same kind as y (one entry per step, or one per sequence)."
            )
        return Split(data, replace(data, X=_encoded(given, inputs), y=entries), refit=False)

    def _open(self, X: SequencesLike, lengths: ArrayLike | None, inputs: InputCodec, layout: str) -> Sequences:
        """Check the inputs of validation data, or of a prediction."""
        gaps = inputs.missing != "error"
        return open_sequences(X, lengths, inputs.n_features, type(self).__name__, gaps=gaps, layout=layout)

    def _generators(self) -> dict[str, np.random.Generator]:
        """Return one random generator per purpose."""
        seed = self.get_params(deep=False)["random_state"]
        return dict(zip(("split", "order", "readout"), np.random.default_rng(seed).spawn(3), strict=True))

    def _adopt(self, estimators: list[Layer], fitted: FittedLayers, inputs: InputCodec, opened: FitData) -> Self:
        """Take over the fitted layers, and only then pass on a Ctrl-C that ended their learning.

        The first layer holds how the inputs of the stack are encoded; the others take what the one below passes on.
        """
        for number, (esn, layer) in enumerate(zip(estimators, fitted.layers, strict=True)):
            esn.model_ = FittedModel(
                estimator=type(esn).__name__,
                settings=flat_settings(esn),
                network=layer.network,
                codec=layer.codec,
                inputs=inputs if number == 0 else InputCodec.identity(layer.network.reservoir.n_in),
                history=layer.history,
                refinement=layer.refinement,
                feature_names=opened.feature_names if number == 0 else (),
            )
        self.layers_, self.history_, self.layout_ = estimators, fitted.history, opened.layout
        self.scales_ = [layer.scale for layer in fitted.layers[:-1]]
        if fitted.interrupted:
            raise KeyboardInterrupt
        return self

    @property
    def model_(self) -> FittedStack:
        """All that the model file of the stack holds."""
        return FittedStack(
            estimator=type(self).__name__,
            settings=self.get_params(deep=False),
            layers=[replace(layer.model_, settings=flat_settings(layer)) for layer in self.layers_],
            scales=self.scales_,
            history=self.history_,
            layout=self.layout_,
        )

    @property
    def per_step_(self) -> bool:
        """Whether there is one target per step; otherwise there is one per sequence."""
        return self.layers_[-1].per_step_

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return self.layers_[0].n_features_in_

    @property
    def feature_names_in_(self) -> Array:
        """The names of the features, if X was a data frame."""
        return self.layers_[0].feature_names_in_

    def _top_inputs(self, X: Sequence[Array]) -> Sequence[Array]:
        """Return the inputs of the top layer."""
        layers = [
            StackLayer(esn.network_, scale, esn.get_params(deep=False)["dtype"])
            for esn, scale in zip(self.layers_, [*self.scales_, np.ones(1)], strict=True)
        ]
        softmax = self.layers_[0].network_.readout.softmax
        return Passing(self.get_params(deep=False)["sees"], softmax).inputs(layers, X)[-1]

    def _open_fitted(self, X: SequencesLike, lengths: ArrayLike | None) -> tuple[Sequences, list[Array]]:
        """Check the inputs of a prediction; return them as given and as the first layer sees them."""
        check_is_fitted(self)
        unpacked, inputs = unpack(X), self.layers_[0].inputs_
        check_names(self, unpacked, self.layout_, reset=False)
        given = self._open(unpacked, lengths, inputs, self.layout_)
        return given, _encoded(given, inputs)

    def _answer(
        self,
        X: SequencesLike,
        lengths: ArrayLike | None,
        answer: Callable[[Layer, Sequence[Array]], Answers],
        names: Sequence[Hashable] = (),
    ) -> Answers:
        """Return what the top layer answers to its inputs, in the form in which X came; names: of its columns."""
        given, inputs = self._open_fitted(X, lengths)
        answers = answer(self.layers_[-1], self._top_inputs(inputs))
        formed = given.in_given_form(list(answers)) if self.per_step_ else given.per_sequence(np.asarray(answers))
        return with_names(formed, names)

    def predict(self, X: SequencesLike, *, lengths: ArrayLike | None = None) -> Answers:
        """Return the predictions of the top layer.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several of any lengths.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.

        Returns
        -------
        array or list of arrays
            One prediction per step in the form of X, or one per sequence, as in the targets of the fit.
        """
        return self._answer(X, lengths, lambda top, inputs: top.predict(inputs), [UNNAMED])

    def _score_top(self, X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None) -> float:
        with explained_swap(X, y, self.n_features_in_):
            given, inputs = self._open_fitted(X, lengths)
        return self.layers_[-1].score(self._top_inputs(inputs), open_targets(y, given)[0])

    def save(self, path: str | PathLike[str]) -> None:
        """Save the fitted stack to one safetensors file with every layer.

        Parameters
        ----------
        path : str or path-like
            The file to write, for example "model.safetensors". It appears when it is complete, and replaces one that
            exists. The endings of pickles, JSON and exported files are refused.

        See Also
        --------
        echolearn.load : Read the file back.
        """
        check_is_fitted(self)
        save_model(self.model_, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "layers_")


def draw_layers(params: Parameters, kind: type[Layer]) -> list[Layer]:
    """Return the layers of a stack with these parameters as they will learn, each with a seed of its own."""
    check_each(params)
    layers = params["layers"]
    if not isinstance(layers, (list, tuple)) or len(layers) < 2:
        raise ValueError(f"layers={layers!r}; expected a list of two or more, from the input to the top.")
    seeds = np.random.default_rng(params["random_state"]).integers(2**31, size=len(layers))
    drawn: list[Layer] = []
    for number, (layer, seed) in enumerate(zip(layers, seeds, strict=True), 1):
        if isinstance(layer, Integral) and not isinstance(layer, bool):
            layer = kind(int(layer))
        if not isinstance(layer, kind):
            raise ValueError(
                f"layers[{number - 1}] is {layer!r}; expected a number of hidden units or an {kind.__name__}."
            )
        check_beside_reservoir(layer)
        _check_layer(NetworkSettings.of(flat_settings(layer)), number)
        for name in ("class_weight", "ignore_label"):
            if getattr(layer, name, None) is not None:
                raise ValueError(
                    f"{name}={getattr(layer, name)!r:.80} in layer {number}; expected None: all targets of a stack "
                    "count alike."
                )
        changes = {"random_state": int(seed), "verbose": params["verbose"], "validation_fraction": 0.0}
        drawn.append(clone(layer).set_params(**changes))
    dtypes = [layer.dtype for layer in drawn]
    if len(set(dtypes)) > 1:
        raise ValueError(f"dtype={dtypes} of the layers; expected one for all of them.")
    return drawn


def layer_requests(layers: Sequence[ESNClassifier | ESNRegressor], opened: FitData | None = None) -> list[LayerRequest]:
    """Return what the fit of a stack needs to know of its layers; opened: the data, on which settings may depend."""
    requests = []
    for layer in layers:
        params = flat_settings(layer)
        settings = NetworkSettings.of(params)
        if opened is not None:
            settings = settings.resolved(opened.given.lengths)
        requests.append(LayerRequest(owner=type(layer).__name__, params=params, settings=settings))
    return requests


def _encoded(given: Sequences, inputs: InputCodec) -> list[Array]:
    """Return sequences as the first layer sees them."""
    return [inputs.encode(x, x.dtype) for x in given.X]


def _longest_washout(layers: Sequence[LayerRequest]) -> int:
    return max(layer.settings.washout_steps for layer in layers)


def _check_layer(settings: NetworkSettings, number: int) -> None:
    """Refuse settings that a layer of a stack cannot have."""
    for name, expected, why in (
        ("feedback", False, "outputs go up, not back"),
        ("gradient", "exact", "the paper's formulas end at one layer"),
        ("targets", "all", "the layer above sees every frame"),
        ("layout", "auto", "layout= of the stack says how X is read"),
        ("bidirectional", False, "the gradient through all layers follows one direction"),
    ):
        found = getattr(settings, name)
        if found != expected:
            raise ValueError(f"{name}={found!r} in layer {number}; expected {expected!r} in a stack: {why}.")
    units = settings.hidden_units
    if solver_for(units).iterative:
        raise ValueError(f"layer {number} has {units} units, too many for a stack: its readout has no Gram matrix.")
