"""What every forecast can do: the protocol of `LoopForecast` and `DirectForecast`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import FittedModel
from echolearn.fitting.parameters import Parameters
from echolearn.forecasting.series import SeriesForm
from echolearn.readout.network import Network
from echolearn.validation import Answers, Array, SequencesLike

Seed: TypeAlias = int | np.random.Generator | None


class Continuation(NamedTuple):
    """How many steps to forecast, after which series (None: those of the fit), and exogenous inputs for all of them."""

    steps: int
    warm_up: SequencesLike = None
    exogenous: SequencesLike = None


class Forecast(Protocol):
    """The fitted part of a forecaster. It is never changed: `update` returns another one.

    method: "closed_loop" or "direct"; network: of the closed loop, or the one that corrects direct forecasts;
    last_value (series, dims): standardised; residuals (n, dims): one-step errors of the training series, in standard
    deviations.
    """

    @property
    def method(self) -> str: ...

    @property
    def form(self) -> SeriesForm: ...

    @property
    def network(self) -> Network: ...

    @property
    def last_state(self) -> Array: ...

    @property
    def last_value(self) -> Array: ...

    @property
    def residuals(self) -> Array: ...

    def predict(self, ahead: Continuation) -> Answers:
        """Return the next values, in the form of the series."""

    def interval(self, ahead: Continuation, coverage: float, count: int, seed: Seed) -> tuple[Answers, Answers]:
        """Return bounds between which each value lies with probability `coverage`; count: of sample paths."""

    def paths(self, ahead: Continuation, count: int, seed: Seed) -> Answers:
        """Return sample paths of the future, (count, steps) or (count, steps, dims) per series."""

    def update(self, new: SequencesLike, exogenous: SequencesLike) -> Self:
        """Return the forecast after further values of each series."""

    def errors(self, series: SequencesLike, exogenous: SequencesLike, horizon: int) -> tuple[Array, Array]:
        """Return errors, and deviations of the truth from its mean, (n, dims), in standard deviations."""


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
            feature_names=forecast.form.names,
            forecast=forecast,
            **learned,
        )


def path_generator(seed: Seed) -> np.random.Generator:
    """Return the generator of sample paths; a generator as seed is advanced."""
    return np.random.default_rng(seed).spawn(6)[-1]


def check_scorable(lengths: Array, washout: int, horizon: int) -> None:
    """Refuse series that are too short for forecasts `horizon` steps ahead after the washout."""
    least = washout + horizon + 2
    if lengths.min() < least:
        raise ValueError(
            f"a series has {lengths.min()} steps; washout={washout} and horizon={horizon} need at least {least}."
        )
