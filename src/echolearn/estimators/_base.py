"""Shared parts of the sequence estimators: opening data, views of the fitted network, answers in the form of X."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from echolearn.cluster.sources import open_inputs, open_source
from echolearn.estimators._display import ExportMixin, FittedFacts, NotebookMixin, PlotMixin, network_facts
from echolearn.estimators._names import NamedSettings
from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.advice.after import Labelled, labelled, look_for_cold_start, warn_of_outcome
from echolearn.fitting.advice.before import explained_swap
from echolearn.fitting.codecs import LabelSetCodec, TargetCodec, ValueCodec
from echolearn.fitting.data import (
    OpenedData,
    TargetRule,
    Validation,
    Weighing,
    check_kind,
    check_names,
    encoded_inputs,
    open_data,
    open_validation,
    warn_of_input_scale,
)
from echolearn.fitting.ensemble import fit_ensemble
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import FittedModel, TrainingEnd
from echolearn.fitting.settings import NetworkSettings, check_beside_reservoir
from echolearn.fitting.stages import Callback, FitRequest, FittedNetwork, fit_network
from echolearn.fitting.start import (
    FittedParts,
    Prediction,
    begin_prediction,
    end_of_training,
    unsettled_steps,
    warn_of_runaway,
)
from echolearn.fitting.summaries import fit_summary, needs_more, settle_pooling
from echolearn.modelfile.layout import Facts
from echolearn.persistence.save import model_parts, save_model
from echolearn.readout.collect import collect
from echolearn.readout.hidden_states import hidden_states
from echolearn.readout.network import Network, Readout
from echolearn.readout.ridge import solve
from echolearn.readout.solver import LARGE, chosen_ridge
from echolearn.readout.statistics import Statistics
from echolearn.reservoir import Reservoir
from echolearn.runtime._model import Model
from echolearn.runtime._planning import plan_from_contents
from echolearn.runtime._streams import Streams
from echolearn.sequences.answers import UNNAMED, with_names
from echolearn.sequences.checks import check_finite
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import Sequences, check_long_enough, open_sequences, unpack
from echolearn.sequences.targets import concatenate_targets
from echolearn.training.history import History
from echolearn.validation import Answers, Array, SequencesLike, check_boolean


class SequenceEstimator(ExportMixin, PlotMixin, NotebookMixin, NamedSettings):
    """An estimator with one fitted network.

    It has six attributes when it is fitted: `network_` (reservoir, readout and what the readout sees), `codec_` (how
    targets are encoded), `inputs_` (how inputs are), `history_`, `training_end_` (where one training series ended,
    or None), and `initial_reservoir_` (the weights before learning, for `plot`; None where they are not known or the
    same). All others are views of them. `target_names_` are the names of the targets of the fit, which the answers to
    tables have; [] without any. `recipe_`, where it is there, says how raw data become X; whoever made X has set it,
    and it is saved with the model.
    """

    network_: Network
    codec_: TargetCodec
    inputs_: InputCodec
    history_: History
    training_end_: TrainingEnd | None
    initial_reservoir_: Reservoir | None
    layout_: str
    target_names_: list[str]
    recipe_: Facts

    def _fit_network(
        self,
        opened: OpenedData,
        codec: TargetCodec,
        weighing: Weighing,
        validation: Validation | None,
        callback: Callback | None,
        *,
        checkpoint: str | PathLike[str] | None,
        grows: bool = False,
    ) -> FittedEstimator:
        """Fit a network, or an ensemble, to opened data; grows: whether `partial_fit` will add to it."""
        params, given, per_step = self.get_params(deep=False), opened.given, opened.per_step
        settings = NetworkSettings.of(params).resolved(given.lengths, per_step)
        if isinstance(codec, LabelSetCodec):
            settings = replace(settings, readout="ridge")
        placed = Dataset.place(given.X, (), None, per_step=per_step, dtype=settings.dtype)
        more = grows or needs_more(placed, validation, callback, checkpoint)
        settings = settle_pooling(settings, params, _defaults(self), per_step=per_step, asks_for_more=more)
        summarizes = settings.pooling == "summary" and not per_step
        inputs = InputCodec.of(placed, standardize=settings.standardize, missing=settings.missing)
        data = opened.targets.dataset(inputs.encode_all(placed), codec, settings.dtype, weighing[1])
        if not data.target_weights(settings.washout_steps).any():
            raise ValueError("no target counts after the washout; use a smaller washout, or other weights.")
        settings = settings.for_inputs(inputs.n_features, inputs.n_in)
        if not summarizes:
            warn_of_input_scale(data.X, settings)
        request = FitRequest(
            owner=type(self).__name__,
            params=params,
            settings=settings,
            data=data,
            validation=open_validation(
                validation,
                codec,
                inputs,
                weighing,
                like=data,
                washout=settings.washout_steps,
                layout=opened.layout,
            ),
            loss=codec.error,
            callback=callback,
            checkpoint=checkpoint,
        )
        fitted = _fitted(request, summarizes)
        with one_blas_thread():
            end = end_of_training(fitted.network, data, given, inputs)
        warn_of_outcome(fitted.examination, codec)
        return FittedEstimator(fitted, codec, inputs, end, opened.feature_names, opened.layout, opened.target_names)

    def _open_fit(
        self, X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None, rule: TargetRule, sample_weight: object
    ) -> OpenedData:
        """Check parameters and data of a fit; rule: which targets are missing."""
        settings = NetworkSettings.of(self.get_params(deep=False))
        check_beside_reservoir(self)
        opened = open_data(
            X,
            y,
            lengths,
            gaps=settings.missing != "error",
            layout=settings.layout,
            rule=rule,
            sample_weight=sample_weight,
        )
        check_long_enough(opened.given, settings.washout_steps)
        settings.check_targets(opened.per_step)
        return opened

    def _adopt(self, fitted: FittedEstimator) -> Self:
        """Take over what was fitted, and only then pass on a Ctrl-C that ended the learning."""
        set_fitted(self, fitted.network.network, fitted.codec, fitted.network.history, fitted.inputs)
        self.training_end_, self.layout_ = fitted.training_end, fitted.layout
        self.initial_reservoir_ = fitted.network.start
        feature_names = fitted.feature_names
        if feature_names is not None:
            self.feature_names_in_ = feature_names
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        self.target_names_ = fitted.target_names
        if hasattr(self, "recipe_"):  # how the data of an earlier fit were made
            del self.recipe_
        if fitted.network.interrupted:
            raise KeyboardInterrupt
        return self

    def _add_sequences(
        self, X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None, weighing: Weighing, sample_weight: object
    ) -> Self:
        """Add sequences to the statistics of a ridge readout, and solve it again."""
        network, settings = self.network_, NetworkSettings.of(self.get_params(deep=False))
        before = self._known_statistics()
        X, y = open_source(X, y)
        given = self._open(X, lengths)
        check_long_enough(given, network.view.washout)
        rule, class_weights = weighing
        targets = rule.open(y, given, sample_weight)
        check_kind(targets, per_step=self.per_step_, name="partial_fit")
        inputs = encoded_inputs(given, self.inputs_, per_step=self.per_step_, dtype=settings.dtype)
        data = targets.dataset(inputs.X, self.codec_, settings.dtype, class_weights)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            s = collect(network.reservoir, data, network.view)
            s += before
            ridge = chosen_ridge(s, settings.ridge_choice())
            readout = Readout(solve(s, ridge, intercept=True), False, ridge, statistics=s)
        self.network_ = replace(network, readout=readout)
        self.training_end_ = end_of_training(self.network_, data, given, self.inputs_)
        return self

    def _known_statistics(self) -> Statistics:
        """Return the statistics that the ridge readout was solved from, or raise ValueError if there are none."""
        statistics = self.network_.readout.statistics
        if statistics is None:
            raise ValueError(
                "this model has no statistics of its fit to add to: it was saved without them, its readout is a "
                f"softmax, it is an ensemble, it sees sequences as summaries, or it has {LARGE} units or more. Fit a "
                "smaller one with a ridge readout, pooling='mean' and ensemble=1, and save it with "
                "save(path, sums=True) to continue later."
            )
        return statistics

    def _open(self, X: SequencesLike, lengths: ArrayLike | None) -> Sequences:
        """Check the inputs of a prediction."""
        unpacked = unpack(open_inputs(X))
        layout = getattr(self, "layout_", "time_first")
        check_names(self, unpacked, layout, reset=False)
        gaps = self.inputs_.missing != "error"
        return open_sequences(unpacked, lengths, self.n_features_in_, type(self).__name__, gaps=gaps, layout=layout)

    def _fitted_parts(self) -> FittedParts:
        """Return what a prediction needs."""
        dtype = self.get_params(deep=False)["dtype"]
        layout = getattr(self, "layout_", "time_first")
        names = getattr(self, "feature_names_in_", None)
        return FittedParts(self.network_, self.codec_, self.inputs_, dtype, self.training_end_, layout, names)

    def _outputs(self, given: Sequences, warm_up: SequencesLike) -> tuple[list[Array], Prediction]:
        """Return readout outputs, one array per sequence: (steps, n_out), or (1, n_out) for one label per sequence."""
        if not self.per_step_:
            check_long_enough(given, self.network_.view.washout)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            prediction = begin_prediction(self._fitted_parts(), given, warm_up)
            outputs = self.network_.outputs(prediction.data, prediction.start)
        for Y in outputs:
            check_finite(Y, "outputs")
        if self.network_.reservoir.W_fb is not None:
            warn_of_runaway(outputs, self.codec_)
        return outputs, prediction

    def _answer(
        self,
        X: SequencesLike,
        lengths: ArrayLike | None,
        decode: Callable[[Array], Array],
        warm_up: SequencesLike = None,
        *,
        names: Sequence[Hashable] = (),
    ) -> Answers:
        """Return decoded outputs in the form in which X came; names: of the columns of a data frame of them."""
        check_is_fitted(self)
        given = self._open(X, lengths)
        parts = [decode(Y) for Y in self._outputs(given, warm_up)[0]]
        answers = given.in_given_form(parts) if self.per_step_ else given.per_sequence(np.concatenate(parts))
        return with_names(answers, names)

    def _target_names(self) -> list[str]:
        """Return the names of the targets in the fit, or that of answers to targets without a name."""
        return getattr(self, "target_names_", None) or [UNNAMED]

    def _compare(
        self,
        X: SequencesLike,
        y: SequencesLike,
        lengths: ArrayLike | None,
        rule: TargetRule,
        *,
        warm_up: SequencesLike,
        sample_weight: object,
    ) -> tuple[Array, Array, Array | None]:
        """Return true and predicted entries and their weights (None: 1) after the washout, without missing ones."""
        check_is_fitted(self)
        with explained_swap(X, y, self.n_features_in_):
            given = self._open(X, lengths)
        targets = rule.open(y, given, sample_weight)
        per_step = targets.per_step
        if per_step != self.per_step_:
            kinds = "one entry per sequence", "one entry per step"
            raise ValueError(f"y has {kinds[per_step]}, but this network was fitted with {kinds[self.per_step_]}.")
        outputs, prediction = self._outputs(given, warm_up)
        predicted = [self.codec_.decode(Y) for Y in outputs]
        if per_step:
            skip = np.minimum(prediction.unsettled, given.lengths)
            if skip.sum() == given.lengths.sum():
                raise ValueError(
                    f"X has no step after the washout of {self.network_.view.washout} steps; there is nothing to "
                    "score. Give warm_up= with the frames before X, or longer sequences."
                )
            targets = targets.after(skip)
            predicted = [answers[n:] for answers, n in zip(predicted, skip, strict=True)]
            if prediction.start is None and isinstance(self.codec_, ValueCodec):
                rest = [Y[n:] for Y, n in zip(outputs, skip, strict=True)]
                look_for_cold_start(self.codec_, targets, rest, self.network_.view.washout)
        answers = np.concatenate(predicted)
        w = None if targets.weights is None else np.concatenate([np.ravel(v) for v in targets.weights])
        if w is not None and not w.any():
            raise ValueError("no target of y counts (after the washout): there is nothing to score.")
        if targets.present is not None:
            there = np.concatenate([np.ravel(p) for p in targets.present])
            assert w is not None
            answers, w = answers[there], w[there]
        return concatenate_targets(targets.known(), per_step), answers, w

    def outcome_of(self, X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None, rule: TargetRule) -> Labelled:
        """Return inputs, targets and outputs as the network has them, for `echolearn.diagnostics.diagnose`.

        Parameters
        ----------
        X, y : arrays or lists of arrays
            As in `fit`.
        lengths : array of int or None
            As in `fit`.
        rule : TargetRule
            Which targets are missing.

        Returns
        -------
        Labelled
            The sequences, where they start, and the outcome.
        """
        check_is_fitted(self)
        given = self._open(X, lengths)
        targets = rule.open(y, given, None)
        check_kind(targets, per_step=self.per_step_, name="diagnose")
        outputs, prediction = self._outputs(given, None)
        skip = np.minimum(prediction.unsettled, given.lengths)
        return labelled(given, targets, prediction, outputs, codec=self.codec_, skip=skip)

    def states(self, X: SequencesLike, *, lengths: ArrayLike | None = None, warm_up: SequencesLike = None) -> Answers:
        """Return the hidden states of the fitted network, from which its readout makes the answers of `predict`.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.
        lengths : array of int, default=None
            The lengths of the sequences, if X is one 2-D array of joined sequences.
        warm_up : array, list of arrays, (array, array) or "cold", default=None
            The frames before X, as in `predict`.

        Returns
        -------
        array or list of arrays
            One row of n_units numbers per step, in the form of X, in the precision `dtype`. A network with feedback is
            fed its own outputs.
        """
        check_is_fitted(self)
        given = self._open(X, lengths)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            prediction = begin_prediction(self._fitted_parts(), given, warm_up)
            states = hidden_states(self.network_, prediction.data, prediction.start)
        for H in states:
            check_finite(H, "states")
        return given.in_given_form(states)

    def streams(self, n: int) -> Streams:
        """Return several streams of the network that advance together: one frame of each per call.

        Parameters
        ----------
        n : int
            The number of devices, each of which has a state of its own.

        Returns
        -------
        Streams
            Streams in the initial state: `step` of frames (n, n_features) returns probabilities or values
            (n, n_outputs). They do not learn.

        See Also
        --------
        echolearn.runtime.load : The same without the rest of the library.
        """
        check_is_fitted(self)
        return Model(plan_from_contents(*model_parts(fitted_model(self)))).streams(n)

    def unsettled_steps(self, X: SequencesLike) -> Array:
        """Return how many first steps of each sequence `score` leaves out: the washout, where a prediction starts cold.

        Parameters
        ----------
        X : array of shape (n_steps, n_features), list of such arrays, or 3-D array
            One sequence, or several.

        Returns
        -------
        array of shape (n_sequences,)
            Numbers of steps; 0 with one target per sequence.
        """
        check_is_fitted(self)
        given = self._open(X, None)
        if not self.per_step_:
            return np.zeros(len(given.X), int)
        return np.minimum(unsettled_steps(self._fitted_parts(), given), given.lengths)

    @property
    def per_step_(self) -> bool:
        """Whether there is one target per step; otherwise there is one per sequence."""
        return self.network_.view.pooling is None

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return self.inputs_.n_features

    @property
    def input_mean_(self) -> Array:
        """The mean that is subtracted from each feature before it enters the network."""
        return self.inputs_.mean

    @property
    def input_scale_(self) -> Array:
        """The scale that each feature is divided by before it enters the network."""
        return self.inputs_.scale

    @property
    def reservoir_(self) -> Reservoir:
        """The reservoir: all weights of the state equation."""
        return self.network_.reservoir

    @property
    def ridge_(self) -> float:
        """The ridge of the readout, given or chosen."""
        return self.network_.readout.ridge

    @property
    def input_weights_(self) -> Array:
        """W (features, hidden_units)."""
        return np.asarray(self.network_.reservoir.W)

    @property
    def recurrent_weights_(self) -> sparse.csr_array:
        """W_rec (hidden_units, hidden_units), sparse."""
        return self.network_.reservoir.W_rec

    @property
    def feedback_weights_(self) -> Array | None:
        """W_fb (hidden_units, outputs), or None."""
        return self.network_.reservoir.W_fb

    @property
    def readout_weights_(self) -> Array:
        """U (hidden_units + features, outputs), without the intercept."""
        return np.asarray(self.network_.readout.U[:-1])

    @property
    def intercept_(self) -> Array:
        """The intercept of each output."""
        return np.asarray(self.network_.readout.U[-1])

    def save(self, path: str | PathLike[str], *, sums: bool = False) -> None:
        """Save the fitted estimator to one safetensors file: weights, settings, classes, version and a checksum.

        Parameters
        ----------
        path : str or path-like
            Where to write, for example "model.safetensors". The file appears when it is complete; an existing one is
            replaced. The endings of pickles, JSON and exported files are refused.
        sums : bool, default=False
            Whether to save the statistics G and Q too, from which `partial_fit` and RLS continue (as many numbers as
            a dense W_rec would have).

        See Also
        --------
        echolearn.load : Read the file back.
        """
        check_is_fitted(self)
        if check_boolean("sums", sums):
            self._known_statistics()
        save_model(fitted_model(self), path, statistics=sums)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "network_")

    def _fitted_facts(self) -> FittedFacts:
        if not hasattr(self, "network_"):
            return []
        return network_facts(self.network_, self.history_, self.get_params(deep=False)["learn"])


def _defaults(esn: SequenceEstimator) -> dict[str, object]:
    """Return the parameters of an estimator as it comes."""
    return {name: parameter.default for name, parameter in signature(type(esn)).parameters.items()}


def _fitted(request: FitRequest, summarizes: bool) -> FittedNetwork:
    """Fit summaries of whole sequences, one network, or an ensemble."""
    if summarizes:
        return fit_summary(request)
    count = request.settings.networks()
    return fit_network(request) if count == 1 else fit_ensemble(request, count)


@dataclass(frozen=True)
class FittedEstimator:
    """All that a fit gives to an estimator."""

    network: FittedNetwork
    codec: TargetCodec
    inputs: InputCodec
    training_end: TrainingEnd | None = None
    feature_names: Array | None = None
    layout: str = "time_first"
    target_names: list[str] = field(default_factory=list)


def set_fitted(
    esn: SequenceEstimator, network: Network, codec: TargetCodec, history: History, inputs: InputCodec
) -> None:
    """Give an estimator what makes it a fitted one."""
    esn.network_, esn.codec_, esn.history_, esn.inputs_ = network, codec, history, inputs
    esn.training_end_ = esn.initial_reservoir_ = None


def fitted_model(esn: SequenceEstimator) -> FittedModel:
    """Return all that the model file of a fitted estimator holds."""
    return FittedModel(
        estimator=type(esn).__name__,
        settings=esn.get_params(deep=False),
        network=esn.network_,
        codec=esn.codec_,
        history=esn.history_,
        feature_names=list(getattr(esn, "feature_names_in_", [])),
        target_names=list(getattr(esn, "target_names_", [])),
        inputs=esn.inputs_,
        training_end=esn.training_end_,
        layout=getattr(esn, "layout_", "time_first"),
        recipe=getattr(esn, "recipe_", None),
    )


def store_parameters(estimator: BaseEstimator, values: Mapping[str, object]) -> None:
    """Store the arguments of __init__, its `locals()`, as they are; `fit` checks them."""
    for name, value in values.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
