"""The mean of a closed loop and of direct forecasts of one series."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self, cast

import numpy as np

from echolearn.display.facts import brief
from echolearn.forecasting.direct_forecast import DirectForecast
from echolearn.forecasting.forecast import Continuation, Seed
from echolearn.forecasting.loop_forecast import LoopForecast
from echolearn.forecasting.series import SeriesForm
from echolearn.readout.network import Network
from echolearn.validation import Answers, Array, SequencesLike


@dataclass(frozen=True, eq=False)
class MeanForecast:
    """A closed loop, and direct forecasts without a correction, of one series: a `Forecast`."""

    loop: LoopForecast
    direct: DirectForecast

    method: ClassVar[str] = "mean"

    def __repr__(self) -> str:
        return brief(self)

    @classmethod
    def of(cls, loop: LoopForecast, direct: DirectForecast) -> Self:
        """Return the mean; the network of the closed loop takes the place of the one that corrects direct forecasts."""
        reservoir, (model,) = loop.network.reservoir, direct.models
        D = np.zeros((len(loop.network.readout.U), model.D.shape[1]))
        end = replace(model.end, state=np.zeros(reservoir.N), inputs=np.zeros(reservoir.n_in))
        plain = replace(model, reservoir=reservoir, D=D, end=end)
        return cls(loop, replace(direct, network=loop.network, models=(plain,)))

    @property
    def form(self) -> SeriesForm:
        """The form of the series."""
        return self.loop.form

    @property
    def network(self) -> Network:
        """The network of the closed loop."""
        return self.loop.network

    @property
    def last_state(self) -> Array:
        """The state of the closed loop (1, N) before the last known step."""
        return self.loop.last_state

    @property
    def last_value(self) -> Array:
        """The last known value (1, dims), standardised."""
        return self.loop.last_value

    @property
    def residuals(self) -> Array:
        """The one-step errors of the closed loop, in standard deviations."""
        return self.loop.residuals

    def predict(self, ahead: Continuation) -> Answers:
        """Return the next values, in the form of the series."""
        return _moved(self.direct.predict(ahead), self._distance(ahead))

    def interval(self, ahead: Continuation, coverage: float, count: int, seed: Seed) -> tuple[Answers, Answers]:
        """Return the bounds of the direct forecasts about the mean."""
        lower, upper = self.direct.interval(ahead, coverage, count, seed)
        return _moved(lower, self._distance(ahead)), _moved(upper, self._distance(ahead))

    def paths(self, ahead: Continuation, count: int, seed: Seed) -> Answers:
        """Return the paths of the direct forecasts about the mean."""
        return _moved(self.direct.paths(ahead, count, seed), self._distance(ahead))

    def update(self, new: SequencesLike, exogenous: SequencesLike) -> Self:
        """Return the forecast after further values of the series."""
        return replace(self, loop=self.loop.update(new, exogenous), direct=self.direct.update(new, exogenous))

    def errors(self, series: SequencesLike, exogenous: SequencesLike, horizon: int) -> tuple[Array, Array]:
        """Return errors, and deviations of the truth from its mean, (n, dims), from the origins that both have."""
        of_loop, _ = self.loop.errors(series, exogenous, horizon)
        of_direct, truth = self.direct.errors(series, exogenous, horizon)
        n = min(len(of_loop), len(of_direct))
        return (of_loop[-n:] + of_direct[-n:]) / 2, truth[-n:]

    def _distance(self, ahead: Continuation) -> list[Array]:
        """Return how far the mean of each series is from its direct forecast."""
        both = (self.loop.predict(ahead), self.direct.predict(ahead))
        loops, directs = (each if isinstance(each, list) else [each] for each in both)
        return [(np.asarray(loop) - np.asarray(direct)) / 2 for loop, direct in zip(loops, directs, strict=True)]


def _moved(answers: Answers, distances: list[Array]) -> Answers:
    """Return answers that are moved by as much."""
    if isinstance(answers, list):
        return [answer + distance for answer, distance in zip(answers, distances, strict=True)]
    return cast(Array, answers) + distances[0]
