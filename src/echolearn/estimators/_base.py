"""What the estimators for sequences share: opening data, views of the fitted network, answers in the form of X."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from echolearn._typing import Array
from echolearn.cluster.sources import open_inputs, open_source
from echolearn.estimators.data_warnings import warn_of_scale
from echolearn.estimators.ensemble import fit_ensemble
from echolearn.estimators.fitting import Callback, FitRequest, FittedNetwork, fit_network
from echolearn.estimators.models import FittedModel
from echolearn.estimators.saving import save_model
from echolearn.estimators.settings import NetworkSettings
from echolearn.estimators.targets import TargetCodec
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
    check_has_time,
    check_long_enough,
    concatenate_targets,
    open_sequences,
    open_targets,
)
from echolearn.training.history import History
from echolearn.validation.values import check_boolean, check_pair


class _ColumnNames(BaseEstimator):
    """Records the column names of a data frame as scikit-learn does, so that a fit that fails leaves no trace."""


@dataclass(frozen=True, eq=False)
class OpenedData:
    """Checked sequences and targets of a fit; feature_names: of a data frame's columns."""

    given: InputSequences
    entries: list[Any]
    per_step: bool
    feature_names: Array | None = None


def open_data(X: Any, y: Any, lengths: Any = None) -> OpenedData:
    """Check what the user gave to fit."""
    X, y = open_source(X, y)
    names = None
    if _is_data_frame(X):
        columns = _ColumnNames()
        X = validate_data(columns, X, dtype=[np.float64, np.float32])
        names = getattr(columns, "feature_names_in_", None)
    given = open_sequences(X, lengths)
    check_has_time(given)
    entries, per_step = open_targets(y, given)
    return OpenedData(given, entries, per_step, names)


def open_validation(validation: Any, codec: TargetCodec, *, like: Dataset, washout: int) -> Dataset | None:
    """Check the held-out data that the user gave, if any; they must be of the kind of the training data `like`."""
    if validation is None:
        return None
    X, y = open_source(*check_pair("validation", validation))
    given = open_sequences(X, None, like.X[0].shape[1])
    check_long_enough(given, washout)
    return encoded_data(given, y, codec, like.per_step, like.dtype, name="validation")


def encoded_data(
    given: InputSequences, y: Any, codec: TargetCodec, per_step: bool, dtype: DTypeLike, *, name: str
) -> Dataset:
    """Return sequences and their encoded targets, refused unless they are of the kind that is fitted."""
    entries, found = open_targets(y, given)
    if found != per_step:
        raise ValueError(f"{name}: its y must be of the same kind as y (one entry per step, or one per sequence).")
    encoded = codec.encode(entries, per_step)
    return Dataset.place(given.X, encoded, codec.classes, per_step=per_step, dtype=dtype)


def _is_data_frame(X: Any) -> bool:
    return getattr(X, "ndim", 0) == 2 and not isinstance(X, np.ndarray) and hasattr(X, "columns")


def warn_of_input_scale(X: list[Array], settings: NetworkSettings) -> None:
    """Warn of inputs that hardly move the units or saturate them; those on a cluster are not fetched for this."""
    scaling = settings.input_scaling  # one that does not fit is refused when the reservoir is drawn
    fits = np.ndim(scaling) == 0 or np.shape(scaling) == X[0].shape[1:]
    if fits and isinstance(X[0], np.ndarray):
        warn_of_scale(X, scaling, settings.activation)


class SequenceEstimator(BaseEstimator):
    """The fitted network of an estimator, and predictions with it.

    Attributes of a fitted estimator: `network_` (reservoir, readout and what the readout sees), `codec_` (how targets
    are encoded), `per_step_`, `n_features_in_`, `history_`; everything else is a view of them.
    """

    network_: Network
    codec_: TargetCodec
    per_step_: bool
    n_features_in_: int
    history_: History

    def _fit_network(
        self,
        opened: OpenedData,
        codec: TargetCodec,
        validation: Any,
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

    def _unless_interrupted(self, fitted: FittedNetwork) -> Self:
        if fitted.interrupted:
            raise KeyboardInterrupt
        return self

    def _open_fit(self, X: Any, y: Any, lengths: Any) -> OpenedData:
        """Check parameters and data of a fit."""
        settings = NetworkSettings.of(self.get_params(deep=False))
        opened = open_data(X, y, lengths)
        check_long_enough(opened.given, settings.washout)
        settings.check_targets(opened.per_step)
        warn_of_input_scale(opened.given.X, settings)
        return opened

    def _adopt(self, fitted: FittedNetwork, codec: TargetCodec, opened: OpenedData) -> None:
        self.network_, self.codec_, self.history_ = fitted.network, codec, fitted.history
        self.per_step_, self.n_features_in_ = opened.per_step, opened.given.X[0].shape[1]
        if opened.feature_names is not None:
            self.feature_names_in_ = opened.feature_names
        elif hasattr(self, "feature_names_in_"):  # of an earlier fit
            del self.feature_names_in_

    def _add_sequences(self, X: Any, y: Any, lengths: Any) -> Self:
        """Add sequences to the statistics of a ridge readout, and solve it again."""
        network, settings = self.network_, NetworkSettings.of(self.get_params(deep=False))
        before = self._known_statistics()
        X, y = open_source(X, y)
        given = self._open(X, lengths)
        check_long_enough(given, settings.washout)
        data = encoded_data(given, y, self.codec_, self.per_step_, settings.dtype, name="partial_fit")
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            s = collect(network.reservoir, data, network.view)
            s += before
            ridge = chosen_ridge(s, settings.ridge_choice())
            readout = Readout(solve(s, ridge, intercept=True), False, ridge, statistics=s)
        self.network_ = replace(network, readout=readout)
        return self

    def _known_statistics(self) -> Statistics:
        statistics = self.network_.readout.statistics
        if statistics is None:
            raise ValueError(
                "this model has no statistics of its fit to add to: it was saved without them, its readout is a "
                f"softmax, it learned in blocks, or it has {LARGE} units or more. Fit a smaller one with a ridge "
                "readout and blocks=1, and save it with save(path, sums=True) to continue later."
            )
        return statistics

    def _open(self, X: Any, lengths: Any) -> InputSequences:
        """Check the inputs of a prediction."""
        if _is_data_frame(X):  # scikit-learn compares its column names with those of the fit
            X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return open_sequences(open_inputs(X), lengths, self.n_features_in_, type(self).__name__)

    def _outputs(self, given: InputSequences) -> list[Array]:
        """Return readout outputs, one array per sequence: (steps, n_out), or (1, n_out) for one label per sequence."""
        params = self.get_params(deep=False)
        if not self.per_step_:
            check_long_enough(given, params["washout"])
        data = Dataset.place(given.X, (), None, per_step=self.per_step_, dtype=params["dtype"])
        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            outputs = self.network_.outputs(data)
        for Y in outputs:
            check_finite(Y, "outputs")
        return outputs

    def _answer(self, X: Any, lengths: Any, decode: Callable[[Array], Array]) -> Any:
        """Return decoded outputs in the form in which X came."""
        check_is_fitted(self)
        given = self._open(X, lengths)
        parts = [decode(Y) for Y in self._outputs(given)]
        return given.in_given_form(parts) if self.per_step_ else np.concatenate(parts)

    def _compare(self, X: Any, y: Any, lengths: Any) -> tuple[Array, Array]:
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


def fitted_model(esn: SequenceEstimator) -> FittedModel:
    """Return all that the model file of a fitted estimator holds."""
    return FittedModel(
        estimator=type(esn).__name__,
        settings=esn.get_params(deep=False),
        network=esn.network_,
        codec=esn.codec_,
        history=esn.history_,
        per_step=esn.per_step_,
        n_features=esn.n_features_in_,
        feature_names=list(getattr(esn, "feature_names_in_", [])),
        forecast=getattr(esn, "forecast_", None),
    )


def store_parameters(estimator: BaseEstimator, values: Mapping[str, Any]) -> None:
    """Store the arguments of __init__ as they are; `fit` checks them."""
    for name, value in values.items():
        if name not in ("self", "__class__"):
            setattr(estimator, name, value)
