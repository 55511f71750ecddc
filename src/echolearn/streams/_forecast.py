"""A forecast that takes values one by one."""

from __future__ import annotations

from typing import Self

from echolearn.forecasting.forecast import Continuation, Forecast
from echolearn.validation import Answers, SequencesLike


class ForecastStream:
    """A forecaster that takes values one by one: what `ESNForecaster.stream` returns.

    Parameters
    ----------
    forecast : LoopForecast or DirectForecast
        The forecast to begin with, which is not changed.
    """

    def __init__(self, forecast: Forecast):
        self._forecast = forecast

    def predict(
        self, new: SequencesLike, steps: int = 1, *, exogenous: SequencesLike = None, ahead: SequencesLike = None
    ) -> Answers:
        """Take in the newest values, and return the next ones.

        Parameters
        ----------
        new : float, array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays
            The values since the last call.
        steps : int, default=1
            How many values to forecast.
        exogenous : array of shape (n_steps, n_inputs), default=None
            One row for each new value.
        ahead : array of shape (steps, n_inputs), default=None
            One row for each step to come.

        Returns
        -------
        array of shape (steps,) or (steps, n_dims), or list of such arrays
            The forecast.
        """
        self._forecast = self._forecast.update(new, exogenous)
        return self._forecast.predict(Continuation(steps, exogenous=ahead))

    def update(self, new: SequencesLike, *, exogenous: SequencesLike = None) -> Self:
        """Take in the newest values without a forecast.

        Parameters
        ----------
        new : float, array of shape (n_steps,) or (n_steps, n_dims), or list of such arrays
            The values since the last call.
        exogenous : array of shape (n_steps, n_inputs), default=None
            One row for each new value.

        Returns
        -------
        ForecastStream
            The stream itself.
        """
        self._forecast = self._forecast.update(new, exogenous)
        return self
