"""Shared parts of the sequence estimators: opening data, views of the fitted network, answers in the form of X."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from echolearn import cluster, runtime
from echolearn.estimators._display import ExportMixin, FittedFacts, NotebookMixin, PlotMixin, network_facts
from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.advice.after import look_for_cold_start
from echolearn.fitting.advice.baselines import Labelled, labelled
from echolearn.fitting.advice.before import explained_swap
from echolearn.fitting.codecs import TargetCodec, ValueCodec
from echolearn.fitting.data import TargetRule, Weighing, check_kind, check_names
from echolearn.fitting.fit import add_sequences, known_statistics
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import (
    FittedModel,
    Prediction,
    TrainingEnd,
    begin_prediction,
    unsettled_steps,
    warn_of_runaway,
)
from echolearn.fitting.parameters import GroupedSettings, flat_settings
from echolearn.fitting.settings import NetworkSettings, check_deep, ridge_choice
from echolearn.modelfile.layout import Facts
from echolearn.persistence.save import plan_of, save_model
from echolearn.readout.deep_network import DeepNetwork
from echolearn.readout.network import Network, hidden_states
from echolearn.reservoir import Reservoir
from echolearn.sequences.answers import UNNAMED, with_names
from echolearn.sequences.checks import check_finite
from echolearn.sequences.opening import Sequences, check_long_enough, is_remote_source, open_sequences, unpack
from echolearn.sequences.targets import concatenate_targets
from echolearn.training.history import History
from echolearn.validation import Answers, Array, SequencesLike, check_boolean


def store_parameters(estimator: BaseEstimator, values: Mapping[str, object]) -> None:
    """Store the arguments of __init__, its `locals()`, as they are; `fit` checks them."""
    for name, value in values.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)


class ModelViews:
    """Gives an estimator the views of `model_`."""

    model_: FittedModel

    @property
    def network_(self) -> Network | DeepNetwork:
        """The reservoir or the layers, and the readout."""
        return self.model_.network

    @property
    def history_(self) -> History:
        """One row of numbers per epoch."""
        return self.model_.history

    @property
    def feature_names_in_(self) -> Array:
        """The names of the features, if X was a data frame."""
        if not self.model_.feature_names:
            raise AttributeError(f"{type(self).__name__} was fitted to data without names of columns.")
        return np.array(self.model_.feature_names, dtype=object)

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return self.model_.inputs.n_features

    @property
    def reservoir_(self) -> Reservoir:
        """The reservoir: all weights of the state equation."""
        network = self.network_  # of which some forecasts have none
        return network.reservoir if isinstance(network, Network) else self.model_.single.reservoir

    @property
    def ridge_(self) -> float:
        """The ridge of the readout, given or chosen."""
        return self.network_.readout.ridge

    @property
    def input_weights_(self) -> Array:
        """W (features, hidden_units)."""
        return np.asarray(self.reservoir_.W)

    @property
    def recurrent_weights_(self) -> sparse.csr_array:
        """W_rec (hidden_units, hidden_units), sparse."""
        return self.reservoir_.W_rec

    @property
    def readout_weights_(self) -> Array:
        """U (hidden_units + features, outputs), without the intercept."""
        return np.asarray(self.network_.readout.U[:-1])

    @property
    def intercept_(self) -> Array:
        """The intercept of each output."""
        return np.asarray(self.network_.readout.U[-1])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _fitted_facts(self) -> FittedFacts:
        if not hasattr(self, "model_"):
            return []
        return network_facts(self.model_.network, self.model_.history, self.model_.settings.get("learn", "none"))


class SequenceEstimator(ModelViews, ExportMixin, PlotMixin, NotebookMixin, GroupedSettings):
    """An estimator with one fitted network: `model_` holds all that was fitted, other attributes are views of it."""

    def _adopt(self, model: FittedModel, interrupted: bool) -> Self:
        """Take over what was fitted, and only then pass on a Ctrl-C that ended the learning."""
        self.model_ = model
        if interrupted:
            raise KeyboardInterrupt
        return self

    def _open(self, X: SequencesLike, lengths: ArrayLike | None) -> Sequences:
        """Check the inputs of a prediction."""
        unpacked, layout = unpack(cluster.open_inputs(X) if is_remote_source(X) else X), self.layout_
        if unpacked.features is not None:
            check_names(self, unpacked, layout, reset=False)
        gaps = self.inputs_.missing != "error"
        return open_sequences(unpacked, lengths, self.n_features_in_, type(self).__name__, gaps=gaps, layout=layout)

    def _outputs(self, given: Sequences, warm_up: SequencesLike) -> tuple[list[Array], Prediction]:
        """Return readout outputs, one array per sequence: (steps, n_out), or (1, n_out) for one label per sequence."""
        if not self.per_step_:
            check_long_enough(given, self.network_.view.washout)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            prediction = begin_prediction(self.model_, given, warm_up)
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
        return answers if given.form is None else with_names(answers, names)

    def _target_names(self) -> list[str]:
        """Return the names of the targets in the fit, or that of answers to targets without a name."""
        return self.target_names_ or [UNNAMED]

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
        X, lengths, warm_up
            As in `predict`.

        Returns
        -------
        array or list of arrays
            One row of n_units numbers per step, in the form of X, in the precision `dtype`. A network with feedback is
            fed its own outputs. Of a deep network, the states of all layers side by side.
        """
        check_is_fitted(self)
        given = self._open(X, lengths)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            prediction = begin_prediction(self.model_, given, warm_up)
            network = self.network_
            if isinstance(network, DeepNetwork):
                states = network.states(prediction.data, prediction.start)
            else:
                states = hidden_states(network, prediction.data, prediction.start)
        for H in states:
            check_finite(H, "states")
        return given.in_given_form(states)

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
        return np.minimum(unsettled_steps(self.model_, given), given.lengths)

    @property
    def codec_(self) -> TargetCodec:
        """How targets are encoded."""
        return self.model_.codec

    @property
    def inputs_(self) -> InputCodec:
        """How inputs are encoded."""
        return self.model_.inputs

    @property
    def training_end_(self) -> TrainingEnd | None:
        """Where one training series ended; None: there were several, or it does not continue."""
        return self.model_.training_end

    @property
    def initial_reservoir_(self) -> Reservoir | None:
        """The weights before learning; None: they are not known, or the same."""
        return self.model_.initial_reservoir

    @property
    def layout_(self) -> str:
        """Which axis of X was taken as time."""
        return self.model_.layout

    @property
    def target_names_(self) -> list[str]:
        """The names of the targets in the fit, which the answers to tables have; [] without any."""
        return list(self.model_.target_names)

    @property
    def recipe_(self) -> Facts | None:
        """How raw data become X; None: it is not known."""
        return self.model_.recipe

    @property
    def per_step_(self) -> bool:
        """Whether there is one target per step; otherwise there is one per sequence."""
        return self.model_.per_step

    @property
    def input_mean_(self) -> Array:
        """The mean that is subtracted from each feature before it enters the network."""
        return self.inputs_.mean

    @property
    def input_scale_(self) -> Array:
        """The scale that each feature is divided by before it enters the network."""
        return self.inputs_.scale

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
            known_statistics(self.model_)
        save_model(replace(self.model_, settings=flat_settings(self)), path, statistics=sums)

    def streams(self, n: int) -> runtime.Streams:
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
        return runtime.Model(plan_of(self.model_)).streams(n)


class StepEstimator(SequenceEstimator):
    """An estimator with one target per step: its network runs as a stream, and its readout can grow."""

    @property
    def feedback_weights_(self) -> Array | None:
        """W_fb (hidden_units, outputs), or None."""
        return self.reservoir_.W_fb

    def _add_sequences(
        self, X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None, weighing: Weighing, sample_weight: object
    ) -> Self:
        """Add sequences to the statistics of a ridge readout, and solve it again."""
        params = flat_settings(self)
        if isinstance(self.network_, DeepNetwork):
            check_deep(params)
            ridge = ridge_choice(params["ridge"])
        else:
            ridge = NetworkSettings.of(params).ridge_choice()
        known_statistics(self.model_)
        if is_remote_source(X):
            X, y = cluster.open_source(X, y)
        given = self._open(X, lengths)
        check_long_enough(given, self.network_.view.washout)
        rule, class_weights = weighing
        targets = rule.open(y, given, sample_weight)
        self.model_ = add_sequences(self.model_, ridge, given, targets, class_weights)
        return self
