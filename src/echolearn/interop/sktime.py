"""Estimators for sktime: classifier and regressor of whole series, and forecaster, with the interface of sktime.

They require sktime to be installed, and pass its `check_estimator` (docs/howto/interop.md).
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
    as_columns,
    chosen_parameters,
    one_or_many,
    parameters_of,
    time_first,
)
from echolearn.validation import Array

try:
    import pandas as pd
    from sktime.classification.base import BaseClassifier
    from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
    from sktime.regression.base import BaseRegressor
except ImportError as problem:
    raise ImportError("echolearn.interop.sktime needs sktime: pip install 'echolearn[sktime]'.") from problem

__all__ = ["ESNForecaster", "SeriesClassifier", "SeriesRegressor"]

Panel = Array | Sequence[pd.DataFrame]
COMMON_TAGS: Parameters = {
    "authors": ["The echolearn developers"],
    "maintainers": ["The echolearn developers"],
    "capability:random_state": True,
    "property:randomness": "derandomized",
}
PANEL_TAGS: Parameters = {
    **COMMON_TAGS,
    "X_inner_mtype": ["df-list", "numpy3D"],  # whatever is neither becomes the first, which may be ragged
    "capability:multivariate": True,
    "capability:unequal_length": True,
    "capability:categorical_in_X": False,
}


class _Checked:
    """What sktime asks of every estimator: parameters with which to check it."""

    _settings: ClassVar[list[Parameters]] = PANEL_SETTINGS

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[Parameters]:
        """Return the parameters with which sktime checks this estimator.

        Parameters
        ----------
        parameter_set : str, default="default"
            Not used: there is one set for all checks.

        Returns
        -------
        list of dict
            Two small networks, one of which takes missing values.
        """
        return cls._settings


class SeriesClassifier(_Checked, PanelAdapter, BaseClassifier):
    """`echolearn.SeriesClassifier` for sktime: one label per series of any length and any number of channels.

    Parameters
    ----------
    **parameters : dict
        The parameters of `echolearn.SeriesClassifier`, with the same defaults, except `layout`, which sktime
        prescribes. With ``missing="carry"`` or ``"mean"`` series may have missing values.

    Attributes
    ----------
    esn_ : echolearn.SeriesClassifier
        The fitted network.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn.interop.sktime import SeriesClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((20, 1, 30)) + np.arange(20)[:, None, None] % 2  # cases, channels, time
    >>> y = np.arange(20) % 2
    >>> esn = SeriesClassifier(20).fit(X, y)
    >>> esn.predict(X[:4])
    array([0, 1, 0, 1])
    """

    _tags: ClassVar[Parameters] = {**PANEL_TAGS, "capability:predict_proba": True, "capability:class_weight": True}
    _estimator = Classifier

    @parameters_of(Classifier, without=["layout"])
    def __init__(self, **parameters: object):
        super().__init__()
        self.set_tags(**{"capability:missing_values": parameters["missing"] != "error"})

    def _predict_proba(self, X: Panel) -> Array:
        return np.asarray(self.esn_.predict_proba(time_first(X)))


class SeriesRegressor(_Checked, PanelAdapter, BaseRegressor):
    """`echolearn.SeriesRegressor` for sktime: one value per series of any length and any number of channels.

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
    >>> from echolearn.interop.sktime import SeriesRegressor
    >>> X = np.random.default_rng(0).standard_normal((30, 1, 20))  # cases, channels, time
    >>> y = X[:, 0].mean(axis=1)
    >>> esn = SeriesRegressor(20).fit(X, y)
    >>> bool(esn.score(X, y) > 0.9)
    True
    """

    _tags: ClassVar[Parameters] = PANEL_TAGS
    _estimator = Regressor

    @parameters_of(Regressor, without=["layout"])
    def __init__(self, **parameters: object):
        super().__init__()
        self.set_tags(**{"capability:missing_values": parameters["missing"] != "error"})


class ESNForecaster(_Checked, BaseForecaster):
    """`echolearn.ESNForecaster` for sktime: one or several columns, exogenous inputs, intervals.

    ``update(y, update_params=False)`` runs the network over new values without changing its weights; ``update(y)`` fits
    it anew to all values so far. Forecasts are for steps after the last known one; there are none in sample.

    Parameters
    ----------
    **parameters : dict
        The parameters of `echolearn.ESNForecaster`, with the same defaults.

    Attributes
    ----------
    esn_ : echolearn.ESNForecaster
        The fitted network.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from echolearn.interop.sktime import ESNForecaster
    >>> months = pd.period_range("2010-01", periods=120, freq="M")
    >>> y = pd.Series(np.sin(np.arange(120) / 3), index=months)
    >>> esn = ESNForecaster(20, learn="none").fit(y, fh=[1, 2, 3])
    >>> esn.predict().index.astype(str).tolist()
    ['2020-01', '2020-02', '2020-03']
    """

    _tags: ClassVar[Parameters] = {
        **COMMON_TAGS,
        "y_inner_mtype": "pd.DataFrame",
        "X_inner_mtype": "pd.DataFrame",
        "capability:multivariate": True,
        "capability:exogenous": True,
        "capability:insample": False,
        "capability:pred_int": True,
        "capability:pred_int:insample": False,
        "capability:missing_values": False,
        "capability:non_contiguous_X": False,
        "capability:categorical_in_X": False,
        "capability:update": True,
        "requires-fh-in-fit": False,
    }
    _config: ClassVar[Parameters] = {"remember_data": False}  # it keeps what it needs itself
    _settings: ClassVar = [{**FORECASTER_SETTINGS, "learn": "none"}, {**FORECASTER_SETTINGS, "epochs": 2}]

    @parameters_of(Forecaster)
    def __init__(self, **parameters: object):
        super().__init__()
        self._y = self._X = None  # where sktime remembers data, if it is told to later

    def _fit(self, y: pd.DataFrame, X: pd.DataFrame | None, fh: ForecastingHorizon | None) -> Self:
        self._known, self._known_X = y, X
        self._moved = False
        self.esn_ = Forecaster(**chosen_parameters(self, Forecaster)).fit(
            one_or_many(y.to_numpy(dtype=np.float64)), exogenous=_values(X)
        )
        return self

    def _update(self, y: pd.DataFrame, X: pd.DataFrame | None = None, update_params: bool = True) -> Self:
        y = _joined(self._known, y)
        X = self._known_X if X is None or self._known_X is None else _joined(self._known_X, X)
        if update_params:
            return self._fit(y, X, None)
        self._known, self._known_X = y, X
        self._moved = True
        return self

    def _ahead(self, fh: ForecastingHorizon, X: pd.DataFrame | None) -> tuple[Array, Parameters]:
        """Return which steps ahead are requested, and the arguments of a forecast up to the last of them."""
        steps = np.asarray(fh.to_relative(self.cutoff).to_pandas(), dtype=int)
        warm_up = one_or_many(self._known.to_numpy(dtype=np.float64)) if self._moved else None
        rows = None
        if self._known_X is not None:
            rows = self._exogenous(int(steps.max()), X)
            if self._moved:
                rows = np.vstack([self._known_X.loc[self._known.index].to_numpy(dtype=np.float64), rows])
        return steps, {"horizon": int(steps.max()), "warm_up": warm_up, "exogenous": rows}

    def _exogenous(self, steps: int, X: pd.DataFrame | None) -> Array:
        """Return the rows of X for the next steps."""
        wanted = ForecastingHorizon(np.arange(1, steps + 1)).to_absolute_index(self.cutoff)
        absent = wanted if X is None else wanted.difference(X.index)
        if X is None or len(absent):
            raise ValueError(
                f"this forecaster was fitted with X: forecasts {steps} steps ahead need its rows for every step from "
                f"{wanted[0]} to {wanted[-1]}; missing: {', '.join(map(str, absent[:5]))}."
            )
        return np.asarray(X.loc[wanted].to_numpy(dtype=np.float64))

    def _predict(self, fh: ForecastingHorizon, X: pd.DataFrame | None) -> pd.DataFrame:
        steps, how = self._ahead(fh, X)
        values = as_columns(np.asarray(self.esn_.predict(**how)))
        return pd.DataFrame(values[steps - 1], index=fh.to_absolute_index(self.cutoff), columns=self._known.columns)

    def _predict_interval(
        self, fh: ForecastingHorizon, X: pd.DataFrame | None, coverage: Sequence[float]
    ) -> pd.DataFrame:
        steps, how = self._ahead(fh, X)
        names = self._get_varnames()
        columns = pd.MultiIndex.from_product([names, coverage, ["lower", "upper"]])
        bounds = [self.esn_.forecast_interval(coverage=min(max(c, 1e-9), 1 - 1e-9), **how) for c in coverage]
        sides = [as_columns(np.asarray(side))[steps - 1] for both in bounds for side in both]
        cells = [side[:, column] for column in range(len(names)) for side in sides]
        return pd.DataFrame(np.stack(cells, axis=1), index=fh.to_absolute_index(self.cutoff), columns=columns)


def _values(X: pd.DataFrame | None) -> Array | None:
    return None if X is None else np.asarray(X.to_numpy(dtype=np.float64))


def _joined(before: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return all rows in the order of time; where both have one, the new one."""
    return new.combine_first(before)[list(before.columns)]
