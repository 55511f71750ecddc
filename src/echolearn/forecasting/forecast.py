"""The forecast of a fitted forecaster: a closed loop, direct forecasts, or the mean of both; and which of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias, cast

import numpy as np

from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import FittedModel
from echolearn.fitting.parameters import Parameters
from echolearn.fitting.settings import NetworkSettings
from echolearn.forecasting.correction import solve
from echolearn.forecasting.direct_forecast import DirectForecast, fit_direct_forecast
from echolearn.forecasting.direct_model import DirectModel, SeriesSettings, draw_reservoir
from echolearn.forecasting.loop_forecast import LoopForecast, have_one_scale
from echolearn.forecasting.series import Continuation, Seed, SeriesData, inputs_of
from echolearn.forecasting.smoothing import from_scale, to_scale
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import pack
from echolearn.states.closed_loop import run_closed_loop
from echolearn.states.run import run
from echolearn.validation import Answers, Array, SequencesLike

MAX_PROBED_COLUMNS = 8  # columns beyond which a series is a field, whose columns one by one say little
MIN_PROBE_UNITS = 100  # units of the network that looks for dynamics, at least
MIN_PROBE_STEPS = 60  # steps after the washout below which dynamics and noise cannot be distinguished
DOUBTFUL_ERROR_SHARE = 0.2  # one-step errors below this share of the changes from step to step: perhaps dynamics;
CERTAIN_ERROR_SHARE = 0.05  # below this, certainly
PROBE_FITTED_SHARE = 0.75  # the share of a series that the readout is fitted to; the rest is forecast
PROBE_RIDGES = 10.0 ** np.arange(-11.0, 2.0)
COMPARED_ORIGINS = 20  # from which closed loops are compared with direct forecasts
MAX_LOOP_EXCESS = 1.3  # times the least error of loops, up to which the readout with the least one-step error is kept
MIN_LOOP_GAIN_SHARE = 0.1  # of the error of direct forecasts, to be taken off in both halves of these origins


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
        if not isinstance(answers, list):
            return self._about_mean([answers], ahead)[0]
        loops, directs = (forecast(ahead) for forecast in (super().predict, self.direct.predict))
        each = zip(answers, *(v if isinstance(v, list) else [v] for v in (loops, directs)), strict=True)
        return [cast(Array, answer) + (np.asarray(loop) - np.asarray(direct)) / 2 for answer, loop, direct in each]


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


def choose_method(
    data: SeriesData, settings: NetworkSettings, how: SeriesSettings
) -> tuple[str, NetworkSettings, DirectForecast | None]:
    """Return "closed_loop", "direct" or "mean", the settings of its network, and the direct forecast, if any.

    The closed loop is certain if a readout of the first three quarters predicts the rest one step ahead to a twentieth
    of the changes. Otherwise one series alone is forecast from origins in its last quarter by each method; several
    series and columns need a fifth of the changes. A loop that was chosen by its forecasts keeps the reservoir as drawn
    and a ridge that forecast well: weights and ridges chosen by one-step errors let loops of noisy series diverge.
    Fields and constant series are left to the closed loop; short ones, gaps and lists of different scales are not.
    """
    Z, E, washout = data.Z, data.E, settings.washout_steps
    gaps = any(np.isnan(z).any() for z in Z)
    if data.lengths.min() < washout + MIN_PROBE_STEPS or gaps or not have_one_scale(data.Y):
        return "direct", settings, None
    if data.form.dims > MAX_PROBED_COLUMNS or all((z == z[0]).all() for z in Z):
        return "closed_loop", settings, None
    reservoir = _probe(settings, data.form.n_features)
    with one_blas_thread(), np.errstate(all="ignore"):
        U = [inputs_of(z, e) for z, e in zip(Z, E, strict=True)]
        X = [np.hstack([run(reservoir, pack([u], np.dtype(settings.dtype))).H, u])[washout:] for u in U]
        T = [z[1 + washout :] for z in Z]
        cuts = [int(PROBE_FITTED_SHARE * len(x)) for x in X]
        heads, targets = ([rows[:c] for rows, c in zip(each, cuts, strict=True)] for each in (X, T))
        readouts = solve(heads, targets, PROBE_RIDGES)
        change = sum(float((np.diff(z[washout + c :], axis=0) ** 2).sum()) for z, c in zip(Z, cuts, strict=True))
        errors = [
            sum(float(((x[c:] @ D[:-1] + D[-1] - t[c:]) ** 2).sum()) for x, t, c in zip(X, T, cuts, strict=True))
            for D in readouts
        ]
        best = int(np.nanargmin(errors))
        share = np.sqrt(errors[best] / change) if change > 0 else 0.0
        if share < CERTAIN_ERROR_SHARE or len(Z) > 1 or data.form.n_features > 1:
            return "closed_loop" if share < DOUBTFUL_ERROR_SHARE else "direct", settings, None
        direct = fit_direct_forecast(data, settings, how)
        if not share < 1:
            return "direct", settings, direct
        method, best = _least_error(reservoir, readouts, best, (X[0], data, direct.models[0]))
        return method, replace(settings, learn="none", ridge_path=(float(PROBE_RIDGES[best]),)), direct


def _probe(settings: NetworkSettings, n_in: int) -> Reservoir:
    """Return the reservoir that looks for dynamics; whether there are any does not depend on its size."""
    if isinstance(settings.topology, str):
        units = max(MIN_PROBE_UNITS, settings.hidden_units)
        leak = (0.3, 1.0) if isinstance(settings.leak, np.ndarray) else settings.leak
        settings = replace(settings, hidden_units=units, leak=leak, initial_state=None)
    return draw_reservoir(settings, n_in)


def _least_error(
    reservoir: Reservoir, readouts: list[Array], start: int, of_series: tuple[Array, SeriesData, DirectModel]
) -> tuple[str, int]:
    """Return the method with the least error from origins in the last quarter of one series, and the best readout.

    start: the readout with the least one-step error, which is taken unless others are clearly better; of_series: what
    readouts read, the series, and its direct model. The mean is that with direct forecasts without a correction.
    """
    X, data, model = of_series
    z, y, column = data.Z[0], data.Y[0][:, 0], model.columns[0]
    n, kept = len(y), len(model.errors)  # the last row of these errors is of the origin n - 2
    first = max(int(PROBE_FITTED_SHARE * len(X)) + n - 1 - len(X), n - 1 - kept)
    horizon = min(model.horizon, n - first - 2)
    origins = np.unique(np.linspace(first, n - 1 - horizon, COMPARED_ORIGINS).astype(int))
    H = X[origins - 1 - (n - 1 - len(X)), : reservoir.N]
    ahead, E = origins[:, None] + np.arange(1, horizon + 1), np.empty((horizon, len(origins), 0))
    loops = [run_closed_loop(reservoir, D, True, H, z[origins], E=E)[:, :, 0].T for D in readouts]
    of_loops = [np.nan_to_num(np.abs(values - z[ahead, 0]).mean(), nan=np.inf) for values in loops]
    index = start if of_loops[start] < MAX_LOOP_EXCESS * min(of_loops) else int(np.argmin(of_loops))
    loop, truth = loops[index] * data.form.codec.scale + data.form.codec.mean, y[ahead]
    (track,) = model.start(data.Y[0], data.E[0]).tracks(data.Y[0], data.E[0], horizon)
    of_direct = model.errors[origins - (n - 1 - kept), :horizon] * column.spread[:horizon]
    direct = from_scale(to_scale(truth, column.log) - of_direct, column.log)
    forecasts = {
        "closed_loop": loop,
        "mean": (loop + from_scale(track.G[origins], column.log)) / 2,
        "direct": direct,
    }
    errors = {name: np.abs(truth - values) for name, values in forecasts.items()}
    halves = {name: np.array([half.mean() for half in np.array_split(e, 2)]) for name, e in errors.items()}
    best = "closed_loop" if halves["closed_loop"].sum() < halves["mean"].sum() else "mean"
    pays = bool((halves[best] < (1 - MIN_LOOP_GAIN_SHARE) * halves["direct"]).all())
    return best if pays else "direct", index
