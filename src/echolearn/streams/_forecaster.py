"""A forecast that takes values one by one."""

from __future__ import annotations

from typing import Self

from echolearn.forecasting.forecast import Forecast
from echolearn.forecasting.series import Continuation
from echolearn.validation import Answers, SequencesLike


class ForecastStream:
    """A forecaster that takes values one by one: what `ESNForecaster.stream` returns."""

    def __init__(self, forecast: Forecast):
        self._forecast = forecast

    def predict(
        self, new: SequencesLike, horizon: int = 1, *, exogenous: SequencesLike = None, ahead: SequencesLike = None
    ) -> Answers:
        """Take in the values since the last call, and return the next ones; ahead: exogenous inputs to come."""
        self._forecast = self._forecast.update(new, exogenous)
        return self._forecast.predict(Continuation(horizon, exogenous=ahead))

    def update(self, new: SequencesLike, *, exogenous: SequencesLike = None) -> Self:
        """Take in the newest values without a forecast."""
        self._forecast = self._forecast.update(new, exogenous)
        return self
