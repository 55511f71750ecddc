"""Estimators for aeon: classifier and regressor of whole series, and forecaster, with the interface of aeon.

They require aeon to be installed, and pass its `check_estimator` (docs/howto/interop.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

import numpy as np

from echolearn.estimators import ESNForecaster as Forecaster
from echolearn.estimators import SeriesClassifier as Classifier
from echolearn.estimators import SeriesRegressor as Regressor
from echolearn.fitting.parameters import Parameters
from echolearn.interop._adapter import (
    FORECASTER_SETTINGS,
    PANEL_SETTINGS,
    PanelAdapter,
    chosen_parameters,
    one_or_many,
    parameters_of,
    time_first,
)
from echolearn.validation import Array

try:
    from aeon.classification.base import BaseClassifier
    from aeon.forecasting.base import BaseForecaster, DirectForecastingMixin, IterativeForecastingMixin
    from aeon.regression.base import BaseRegressor
except ImportError as problem:
    raise ImportError("echolearn.interop.aeon needs aeon: pip install 'echolearn[aeon]'.") from problem

__all__ = ["ESNForecaster", "SeriesClassifier", "SeriesRegressor"]

Panel = Array | Sequence[Array]


class _Panel(PanelAdapter):
    """The tags and test settings that aeon requires of a classifier or regressor."""

    _tags: ClassVar[Parameters] = {
        "X_inner_type": ["np-list", "numpy3D"],
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "algorithm_type": "feature",
    }

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[Parameters]:
        return PANEL_SETTINGS


class SeriesClassifier(_Panel, BaseClassifier):
    """`echolearn.SeriesClassifier` for aeon: one label per series of any length and any number of channels.

    Parameters
    ----------
    **parameters : dict
        The parameters of `echolearn.SeriesClassifier`, with the same defaults, except `layout`, which aeon prescribes.
        With ``missing="carry"`` or ``"mean"`` series may have missing values.

    Attributes
    ----------
    esn_ : echolearn.SeriesClassifier
        The fitted network.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.interop.aeon import SeriesClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20, 1, 30)) + np.arange(20)[:, None, None] % 2  # cases, channels, time
    >>> y = np.arange(20) % 2
    >>> esn = SeriesClassifier(20).fit(X, y)
    >>> esn.predict(X[:4])
    array([0, 1, 0, 1])
    """

    _estimator = Classifier

    @parameters_of(Classifier, without=["layout"])
    def __init__(self, **parameters: object):
        super().__init__()
        self.set_tags(**{"capability:missing_values": parameters["missing"] != "error"})

    def _predict_proba(self, X: Panel) -> Array:
        return np.asarray(self.esn_.predict_proba(time_first(X)))


class SeriesRegressor(_Panel, BaseRegressor):
    """`echolearn.SeriesRegressor` for aeon: one value per series of any length and any number of channels.

    Parameters
    ----------
    **parameters : dict
        Those of `echolearn.SeriesRegressor`, as for `SeriesClassifier`.

    Attributes
    ----------
    esn_ : echolearn.SeriesRegressor
        The fitted network.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.interop.aeon import SeriesRegressor
    >>> X = np.random.default_rng(0).standard_normal((30, 1, 20))  # cases, channels, time
    >>> y = X[:, 0].mean(axis=1)
    >>> esn = SeriesRegressor(20).fit(X, y)
    >>> bool(esn.score(X, y) > 0.9)
    True
    """

    _estimator = Regressor

    @parameters_of(Regressor, without=["layout"])
    def __init__(self, **parameters: object):
        super().__init__()
        self.set_tags(**{"capability:missing_values": parameters["missing"] != "error"})


class ESNForecaster(BaseForecaster, DirectForecastingMixin, IterativeForecastingMixin):
    """`echolearn.ESNForecaster` for aeon: a forecast `horizon` steps after the end of a series.

    `fit` learns from one series; `predict` continues any series from its end.

    Parameters
    ----------
    horizon : int, default=1
        The number of steps between the end of the series and the forecast value. For more than one step, the forecasts
        of the steps between are the inputs of the network.
    **parameters : dict
        The parameters of `echolearn.ESNForecaster`, with the same defaults.

    Attributes
    ----------
    esn_ : echolearn.ESNForecaster
        The fitted network.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.interop.aeon import ESNForecaster
    >>> y = np.sin(np.arange(120) / 3)
    >>> esn = ESNForecaster(hidden_units=20, learn="none")
    >>> esn.iterative_forecast(y, 3).shape
    (3,)
    """

    _tags: ClassVar[Parameters] = {"capability:horizon": True, "capability:exogenous": False}

    @parameters_of(Forecaster)
    def __init__(self, horizon: int = 1, **parameters: object):
        super().__init__(horizon=horizon, axis=0)

    def _fit(self, y: Array, exog: Array | None) -> Self:
        self.esn_ = Forecaster(**chosen_parameters(self, Forecaster)).fit(one_or_many(y))
        return self

    def _predict(self, y: Array, exog: Array | None) -> float:
        return float(np.asarray(self.esn_.predict(self.horizon, warm_up=one_or_many(y)))[-1])

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> list[Parameters]:
        return [{**FORECASTER_SETTINGS, "learn": "none"}, {**FORECASTER_SETTINGS, "epochs": 2, "horizon": 3}]
