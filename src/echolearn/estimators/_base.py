"""Shared parts of the sequence estimators: opening data, views of the fitted network, answers in the form of X."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from echolearn._typing import Answers, Array, SequencesLike
from echolearn.cluster.sources import open_inputs, open_source
from echolearn.estimators.codecs import TargetCodec
from echolearn.estimators.ensemble import fit_ensemble
from echolearn.estimators.fit_data import (
    OpenedData,
    encoded_data,
    is_data_frame,
    open_data,
    open_validation,
    warn_of_input_scale,
)
from echolearn.estimators.fitting import Callback, FitRequest, FittedNetwork, fit_network
from echolearn.estimators.models import FittedModel
from echolearn.estimators.saving import save_model
from echolearn.estimators.settings import NetworkSettings
from echolearn.execution.blas import one_blas_thread
from echolearn.readout.collect import collect
from echolearn.readout.network import Network, Readout
from echolearn.readout.ridge import solve
from echolearn.readout.solver import LARGE, chosen_ridge
from echolearn.readout.statistics import Statistics
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.validation import (
    InputSequences,
    check_finite,
    check_long_enough,
    concatenate_targets,
    open_sequences,
    open_targets,
)
from echolearn.training.history import History
from echolearn.validation.values import check_boolean


class SequenceEstimator(BaseEstimator):
    """An estimator with one fitted network.

    It has three attributes when it is fitted: `network_` (reservoir, readout and what the readout sees), `codec_` (how
    targets are encoded) and `history_`. All others are views of them.
    """

    network_: Network
    codec_: TargetCodec
    history_: History

    def _fit_network(
        self,
        opened: OpenedData,
        codec: TargetCodec,
        validation: tuple[SequencesLike, SequencesLike] | None,
        callback: Callback | None,
        checkpoint: str | PathLike[str] | None,
    ) -> FittedNetwork:
        """Fit a network, or an ensemble, to opened data."""
        params = self.get_params(deep=False)
        settings = NetworkSettings.of(params)
        encoded = codec.encode(opened.entries, opened.per_step)
        data = Dataset.place(opened.given.X, encoded, codec.classes, per_step=opened.per_step, dtype=settings.dtype)
        request = FitRequest(
            owner=type(self).__name__,
            params=params,
            settings=settings,
            data=data,
            validation=open_validation(validation, codec, like=data, washout=settings.washout),
            loss=codec.error,
            callback=callback,
            checkpoint=checkpoint,
        )
        count = settings.networks()
        return fit_network(request) if count == 1 else fit_ensemble(request, count)

    def _open_fit(self, X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None) -> OpenedData:
        """Check parameters and data of a fit."""
        settings = NetworkSettings.of(self.get_params(deep=False))
        opened = open_data(X, y, lengths)
        check_long_enough(opened.given, settings.washout)
        settings.check_targets(opened.per_step)
        warn_of_input_scale(opened.given.X, settings)
        return opened

    def _adopt(self, fitted: FittedNetwork, codec: TargetCodec, feature_names: Array | None = None) -> Self:
        """Take over a fitted network, and only then pass on a Ctrl-C that ended its learning."""
        set_fitted(self, fitted.network, codec, fitted.history)
        if feature_names is not None:
            self.feature_names_in_ = feature_names
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_
        if fitted.interrupted:
            raise KeyboardInterrupt
        return self

    def _add_sequences(self, X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None) -> Self:
        """Add sequences to the statistics of a ridge readout, and solve it again."""
        network, settings = self.network_, NetworkSettings.of(self.get_params(deep=False))
        before = self._known_statistics()
        X, y = open_source(X, y)
        given = self._open(X, lengths)
        check_long_enough(given, settings.washout)
        data = encoded_data(given, y, self.codec_, per_step=self.per_step_, dtype=settings.dtype, name="partial_fit")
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            s = collect(network.reservoir, data, network.view)
            s += before
            ridge = chosen_ridge(s, settings.ridge_choice())
            readout = Readout(solve(s, ridge, intercept=True), False, ridge, statistics=s)
        self.network_ = replace(network, readout=readout)
        return self

    def _known_statistics(self) -> Statistics:
        """Return the statistics that the ridge readout was solved from, or raise ValueError if there are none."""
        statistics = self.network_.readout.statistics
        if statistics is None:
            raise ValueError(
                "this model has no statistics of its fit to add to: it was saved without them, its readout is a "
                f"softmax, it learned in blocks, or it has {LARGE} units or more. Fit a smaller one with a ridge "
                "readout and blocks=1, and save it with save(path, sums=True) to continue later."
            )
        return statistics

    def _open(self, X: SequencesLike, lengths: ArrayLike | None) -> InputSequences:
        """Check the inputs of a prediction."""
        if is_data_frame(X):  # scikit-learn compares its column names with those of the fit
            X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return open_sequences(open_inputs(X), lengths, self.n_features_in_, type(self).__name__)

    def _outputs(self, given: InputSequences) -> list[Array]:
        """Return readout outputs, one array per sequence: (steps, n_out), or (1, n_out) for one label per sequence."""
        if not self.per_step_:
            check_long_enough(given, self.network_.view.washout)
        dtype = self.get_params(deep=False)["dtype"]
        data = Dataset.place(given.X, (), None, per_step=self.per_step_, dtype=dtype)
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            outputs = self.network_.outputs(data)
        for Y in outputs:
            check_finite(Y, "outputs")
        return outputs

    def _answer(self, X: SequencesLike, lengths: ArrayLike | None, decode: Callable[[Array], Array]) -> Answers:
        """Return decoded outputs in the form in which X came."""
        check_is_fitted(self)
        given = self._open(X, lengths)
        parts = [decode(Y) for Y in self._outputs(given)]
        return given.in_given_form(parts) if self.per_step_ else np.concatenate(parts)

    def _compare(self, X: SequencesLike, y: SequencesLike, lengths: ArrayLike | None) -> tuple[Array, Array]:
        """Return true and predicted entries, all sequences joined."""
        check_is_fitted(self)
        given = self._open(X, lengths)
        entries, per_step = open_targets(y, given)
        if per_step != self.per_step_:
            kinds = "one entry per sequence", "one entry per step"
            raise ValueError(f"y has {kinds[per_step]}, but this network was fitted with {kinds[self.per_step_]}.")
        predicted = [self.codec_.decode(Y) for Y in self._outputs(given)]
        return concatenate_targets(entries, per_step), np.concatenate(predicted)

    @property
    def per_step_(self) -> bool:
        """Whether there is one target per step; otherwise there is one per sequence."""
        return self.network_.view.pooling is None

    @property
    def n_features_in_(self) -> int:
        """The number of features."""
        return self.network_.reservoir.n_in

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
            Where to write. The file appears when it is complete; an existing one is replaced.
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


def set_fitted(esn: SequenceEstimator, network: Network, codec: TargetCodec, history: History) -> None:
    """Give an estimator what makes it a fitted one."""
    esn.network_, esn.codec_, esn.history_ = network, codec, history


def fitted_model(esn: SequenceEstimator) -> FittedModel:
    """Return all that the model file of a fitted estimator holds."""
    return FittedModel(
        estimator=type(esn).__name__,
        settings=esn.get_params(deep=False),
        network=esn.network_,
        codec=esn.codec_,
        history=esn.history_,
        feature_names=list(getattr(esn, "feature_names_in_", [])),
        forecast=getattr(esn, "forecast_", None),
    )


def store_parameters(estimator: BaseEstimator, values: Mapping[str, object]) -> None:
    """Store the arguments of __init__, its `locals()`, as they are; `fit` checks them."""
    for name, value in values.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
