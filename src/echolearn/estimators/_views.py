"""Views of a fitted model: the attributes that every estimator with one network has."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from echolearn.estimators._display import FittedFacts, network_facts
from echolearn.fitting.model import FittedModel
from echolearn.readout.network import Network
from echolearn.reservoir import Reservoir
from echolearn.training.history import History
from echolearn.validation import Array


class ModelViews:
    """Gives an estimator the views of `model_`."""

    model_: FittedModel

    @property
    def network_(self) -> Network:
        """The reservoir, the readout, and what the readout sees."""
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
        return network_facts(self.model_.network, self.model_.history, self.model_.settings["learn"])
