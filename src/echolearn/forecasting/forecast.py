"""The forecast of a fitted forecaster: a closed loop, direct forecasts, or the mean of both, with the same verbs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np

from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import FittedModel
from echolearn.fitting.parameters import Parameters
from echolearn.forecasting.direct_forecast import DirectForecast
from echolearn.forecasting.loop_forecast import LoopForecast
from echolearn.forecasting.series import Continuation, Seed
from echolearn.validation import Answers, Array, SequencesLike


@dataclass(frozen=True, eq=False, repr=False)
class MeanForecast(LoopForecast):
    """A closed loop, and beside it direct forecasts without a correction: their mean is a `Forecast`, too."""

    direct: DirectForecast

    method: ClassVar[str] = "mean"

    @classmethod
    def of(cls, loop: LoopForecast, direct: DirectForecast) -> Self:
        """Return the mean; the network of the closed loop takes the place of the one that corrects direct forecasts."""
        reservoir, (model,) = loop.network.reservoir, direct.models
        D = np.zeros((len(loop.network.readout.U), model.D.shape[1]))
        state, inputs = np.zeros(reservoir.N), np.zeros(reservoir.n_in)
        plain = replace(model, reservoir=reservoir, D=D, state=state, inputs=inputs)
        return cls(**vars(loop), direct=replace(direct, network=loop.network, models=(plain,)))

    def predict(self, ahead: Continuation) -> Answers:
        """Return the next values, in the form of the series."""
        return self._about_mean(self.direct.predict(ahead), ahead)

    def interval(self, ahead: Continuation, coverage: float, count: int, seed: Seed) -> tuple[Answers, Answers]:
        """Return the bounds of the direct forecasts about the mean."""
        lower, upper = self.direct.interval(ahead, coverage, count, seed)
        return self._about_mean(lower, ahead), self._about_mean(upper, ahead)

    def paths(self, ahead: Continuation, count: int, seed: Seed) -> Answers:
        """Return the paths of the direct forecasts about the mean."""
        return self._about_mean(self.direct.paths(ahead, count, seed), ahead)

    def update(self, new: SequencesLike, exogenous: SequencesLike) -> Self:
        """Return the forecast after further values of the series."""
        return replace(super().update(new, exogenous), direct=self.direct.update(new, exogenous))

    def errors(self, series: SequencesLike, exogenous: SequencesLike, horizon: int) -> tuple[Array, Array]:
        """Return errors, and deviations of the truth from its mean, (n, dims), from the origins that both have."""
        of_loop, _ = super().errors(series, exogenous, horizon)
        of_direct, truth = self.direct.errors(series, exogenous, horizon)
        n = min(len(of_loop), len(of_direct))
        return (of_loop[-n:] + of_direct[-n:]) / 2, truth[-n:]

    def _about_mean(self, answers: Answers, ahead: Continuation) -> Answers:
        """Return answers about the direct forecasts, moved so that they are about the mean."""
        listed = [
            values if isinstance(values, list) else [values]
            for values in (answers, super().predict(ahead), self.direct.predict(ahead))
        ]
        moved = [
            cast(Array, answer) + (np.asarray(loop) - np.asarray(direct)) / 2
            for answer, loop, direct in zip(*listed, strict=True)
        ]
        return moved if isinstance(answers, list) else moved[0]


Forecast: TypeAlias = LoopForecast | DirectForecast  # a MeanForecast is a LoopForecast


@dataclass(frozen=True, kw_only=True)
class FittedForecaster(FittedModel):
    """All that was fitted of a forecaster, and all that its file holds: a model and its forecast."""

    forecast: Forecast

    @classmethod
    def of(cls, estimator: str, settings: Parameters, forecast: Forecast, **learned: Any) -> Self:
        """Return the model of a forecast; learned: other fields of a model, such as its history."""
        return cls(
            estimator=estimator,
            settings=settings,
            network=forecast.network,
            codec=forecast.form.codec,
            inputs=InputCodec.identity(forecast.form.n_features),
            feature_names=forecast.form.names if all(forecast.form.names) else [],
            forecast=forecast,
            **learned,
        )
