"""The direct model of one or several series: how it is fitted, follows series step by step, and forecasts them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.settings import NetworkSettings
from echolearn.forecasting.columns import (
    Column,
    ColumnState,
    Track,
    begin,
    fit_column,
    follow,
    network_inputs,
    run_reservoir,
    typical_step,
)
from echolearn.forecasting.correction import fit_correction
from echolearn.forecasting.members import errors_ahead, first_origin
from echolearn.forecasting.seasons import find_seasons
from echolearn.forecasting.series import SeriesData
from echolearn.forecasting.smoothing import forecast_ahead, from_scale, to_scale
from echolearn.reservoir import Reservoir
from echolearn.validation import Array

MIN_HORIZON_STEPS, MAX_HORIZON_STEPS = 8, 48  # the horizon is two seasons within these bounds,
HORIZONS_PER_SERIES = 3  # and at most this part of the shortest series
PARAMETERS_PER_MEMBER = 5  # that a series determines: smoothing, damping, autoregression and a start
MAX_KEPT_ORIGINS = 1000  # whose errors are kept, for intervals and paths
CORRECTION_DECAY_PER_STEP = 0.9  # beyond the last horizon the correction shrinks by this factor
MIN_KNOWN_VALUES = 4  # of a series
ORIGINS_PER_INDEPENDENT_ERROR = 2  # neighbouring origins share most of their errors: so many count as one


@dataclass(frozen=True)
class SeriesSettings:
    """The parameters that concern the series itself; announced: the seasons that belong to a time index."""

    horizon: int | None
    season: str | int | None
    trend: bool | None
    log: bool | None
    announced: tuple[int, int] | None

    def seasons_of(self, y: Array) -> tuple[int, int]:
        """Return the seasons of values y (n,), 1 for none."""
        if self.season is None:
            return 1, 1
        if isinstance(self.season, str):
            return find_seasons(y, self.announced)
        return (int(self.season) if len(y) >= 2 * self.season else 1), 1


@dataclass(frozen=True, eq=False)
class FollowedSeries:
    """One series of a model: its columns, where they are, and what the readout sees there: state (N,) and inputs."""

    columns: tuple[Column, ...]
    column_states: tuple[ColumnState, ...]
    state: Array
    inputs: Array

    def without_effects(self, Y: Array, E: Array) -> Array:
        """Return values Y (n, dims) less the effects of their exogenous inputs."""
        return np.asarray(Y - self._effects(E))

    def in_units(self, Z: Array, E: Array) -> Array:
        """Return forecasts (..., steps, dims) in the units of the series, with the effects of inputs E (steps, ...)."""
        values = np.stack([from_scale(Z[..., j], column.log) for j, column in enumerate(self.columns)], axis=-1)
        return np.asarray(values + self._effects(E))

    def tracks(self, rest: Array, horizon: int) -> list[Track]:
        """Return the tracks of the columns over further values without exogenous effects (n, dims)."""
        each = zip(self.columns, self.column_states, rest.T, strict=True)
        return [follow(column, np.ascontiguousarray(y), state, horizon) for column, state, y in each]

    @property
    def seasons(self) -> tuple[int, int]:
        """The steps of the seasons, 1 for none."""
        return self.columns[0].members.seasons

    @property
    def time(self) -> int:
        """The number of steps so far."""
        return self.column_states[0].position.time

    def _effects(self, E: Array) -> Array:
        return np.stack([E @ column.effects for column in self.columns], axis=1)


@dataclass(frozen=True, eq=False)
class DirectModel:
    """All that was fitted: reservoir, D (M, columns * horizon), whether D sees the inputs, the series, and the errors.

    errors (origins, columns * horizon): what the forecasts of the training series left over, in units of each output's
    spread, row by row the errors of one origin; NaN where the truth was not known. widening: how much larger errors to
    come are than those that remain after a fit. gain: the share of the mean absolute error that the correction took
    off in the backtest.
    """

    reservoir: Reservoir
    D: Array
    sees_inputs: bool
    horizon: int
    series: tuple[FollowedSeries, ...]
    errors: Array
    widening: float
    ridge: float
    gain: float
    dtype: str

    @property
    def dims(self) -> int:
        """The number of columns of a series."""
        return len(self.series[0].columns)

    def start(self, j: int, Y: Array) -> FollowedSeries:
        """Return another series Y (n, dims) at its beginning: with the columns of series j, in the units of Y."""
        columns = []
        for column, y in zip(self.series[j].columns, Y.T, strict=True):
            unit = typical_step(y)
            ratio = 1.0 if column.log or not unit > 0 or not column.unit > 0 else unit / column.unit
            input_scale = column.input_scale if column.log else column.input_scale * ratio
            columns.append(replace(column, spread=column.spread * ratio, input_scale=input_scale, unit=unit))
        states = tuple(begin(c, np.ascontiguousarray(y)) for c, y in zip(columns, Y.T, strict=True))
        r = self.reservoir
        state = np.zeros(r.N) if r.initial_state is None else np.asarray(r.initial_state, dtype=np.float64)
        return FollowedSeries(tuple(columns), states, state, np.zeros(r.n_in))

    def follow(self, series: FollowedSeries, Y: Array, E: Array) -> FollowedSeries:
        """Return a series after further values Y (n, dims) with their exogenous inputs."""
        tracks = series.tracks(series.without_effects(Y, E), 1)
        U = network_inputs(series.columns, tracks, series.time)
        state = run_reservoir(self.reservoir, U, series.state, self.dtype)[-1]
        return FollowedSeries(series.columns, tuple(track.end for track in tracks), state, U[-1])

    def forecast(self, series: FollowedSeries, steps: int) -> Array:
        """Return the forecast (steps, dims) of a series in the scale of its errors, without exogenous effects."""
        bases = [
            to_scale(forecast_ahead(column.members, state.position, steps), column.log)
            for column, state in zip(series.columns, series.column_states, strict=True)
        ]
        return np.stack(bases, axis=1) + self._corrections(series, steps)

    def _corrections(self, series: FollowedSeries, steps: int) -> Array:
        """Return the corrections (steps, dims) of a series; beyond the last horizon they fade."""
        if not self.D.any():
            return np.zeros((steps, self.dims))
        row = np.concatenate([series.state, series.inputs]) if self.sees_inputs else series.state
        per_column = (row @ self.D[:-1] + self.D[-1]).reshape(self.dims, self.horizon)
        h = np.arange(steps)
        last = np.minimum(h, self.horizon - 1)
        fade = CORRECTION_DECAY_PER_STEP ** np.maximum(h - self.horizon + 1, 0)
        spreads = np.stack([column.spread[last] for column in series.columns])
        return np.asarray((per_column[:, last] * fade * spreads).T)

    def forecasts_along(self, series: FollowedSeries, Y: Array, E: Array, horizon: int) -> Array:
        """Return, in units, the forecasts (n - horizon, dims) made `horizon` steps before each value Y[horizon:]."""
        tracks = series.tracks(series.without_effects(Y, E), horizon)
        Z = np.stack([track.G[:, horizon - 1] for track in tracks], axis=1)
        if self.D.any():
            U = network_inputs(series.columns, tracks, series.time)
            H = run_reservoir(self.reservoir, U, series.state, self.dtype)
            last = min(horizon, self.horizon) - 1
            scaled = (np.hstack([H, U]) if self.sees_inputs else H) @ self.D[:-1] + self.D[-1]
            spread = np.array([column.spread[last] for column in series.columns])
            fade = CORRECTION_DECAY_PER_STEP ** max(horizon - self.horizon, 0)
            Z = Z + scaled[:, last :: self.horizon] * spread * fade
        return series.in_units(Z[: len(Y) - horizon], E[horizon:])

    def interval(self, series: FollowedSeries, steps: int, coverage: float) -> tuple[Array, Array]:
        """Return bounds (steps, dims) around the forecast, in the scale of the errors.

        They lie at a quantile of the absolute errors of all horizons, corrected for the number of origins.
        """
        Z, errors = self.forecast(series, steps), np.abs(self.errors[~np.isnan(self.errors)])
        origins = max(len(self.errors) / ORIGINS_PER_INDEPENDENT_ERROR, 1.0)
        level = min(1.0, coverage * (1 + 1 / origins))
        width = (float(np.quantile(errors, level)) if len(errors) else 0.0) * self._spreads(series, steps)
        return Z - width, Z + width

    def paths(self, series: FollowedSeries, steps: int, count: int, rng: np.random.Generator) -> Array:
        """Return sample paths (count, steps, dims): the forecast and the whole run of errors of drawn origins.

        An error that is not known is drawn from its column. Beyond the last horizon its error is kept, and grows as in
        the intervals. Signs are drawn too: the errors of few origins say little of their asymmetry.
        """
        errors = self.errors[rng.integers(len(self.errors), size=count)].copy()
        for j in np.flatnonzero(np.isnan(errors).any(axis=0)):
            known = self.errors[~np.isnan(self.errors[:, j]), j]
            gaps = np.isnan(errors[:, j])
            errors[gaps, j] = known[rng.integers(len(known), size=gaps.sum())] if len(known) else 0.0
        errors *= rng.choice([-1.0, 1.0], size=(count, 1))
        last = np.minimum(np.arange(steps), self.horizon - 1)
        by_step = errors.reshape(count, self.dims, self.horizon)[:, :, last]
        return np.asarray(self.forecast(series, steps) + by_step.swapaxes(1, 2) * self._spreads(series, steps))

    def _spreads(self, series: FollowedSeries, steps: int) -> Array:
        """Return the typical error (steps, dims); beyond the last horizon it grows like the square root."""
        h = np.arange(1, steps + 1)
        last = np.minimum(h, self.horizon) - 1
        growth = np.sqrt(np.maximum(h / self.horizon, 1.0))[:, None]
        return np.stack([column.spread[last] for column in series.columns], axis=1) * growth * self.widening


def default_horizon(seasons: tuple[int, int], shortest: int) -> int:
    """Return two seasons, within bounds and a share of the shortest series."""
    steps = int(np.clip(2 * seasons[0], MIN_HORIZON_STEPS, MAX_HORIZON_STEPS))
    return max(1, min(steps, shortest // HORIZONS_PER_SERIES))


def draw_reservoir(settings: NetworkSettings, n_in: int) -> Reservoir:
    """Return the reservoir of a forecast for so many inputs, all of them standardised; the same one every time."""
    reservoir = Reservoir.random(
        n_in,
        settings.hidden_units,
        spectral_radius=settings.spectral_radius,
        connections=settings.connections,
        topology=settings.topology,
        input_scaling=settings.input_scaling if np.ndim(settings.input_scaling) == 0 else 0.5,
        bias_scaling=settings.bias_scaling,
        activation=settings.activation,
        leak=settings.leak,
        random_state=np.random.default_rng(deepcopy(settings.random_state)).spawn(1)[0],
    )
    if settings.initial_state is not None:
        reservoir = replace(reservoir, initial_state=np.asarray(settings.initial_state))
    return reservoir


def fit_direct(data: SeriesData, settings: NetworkSettings, series: SeriesSettings) -> DirectModel:
    """Fit members to every column, and one readout to the errors of all of them."""
    _check_values(data.Y, series)
    with one_blas_thread():
        periods = [series.seasons_of(y[:, 0]) for y in data.Y]
        horizon = series.horizon or default_horizon(max(periods), int(data.lengths.min()))
        kinds = {"log": series.log, "trend": series.trend}
        fitted = [
            [fit_column(np.ascontiguousarray(column), e, m, horizon, **kinds) for column in y.T]
            for y, e, m in zip(data.Y, data.E, periods, strict=True)
        ]
        columns = [tuple(column for column, _ in row) for row in fitted]
        tracks = [[track for _, track in row] for row in fitted]
        U = [network_inputs(c, t, 0) for c, t in zip(columns, tracks, strict=True)]
        reservoir = draw_reservoir(settings, U[0].shape[1])
        H = [run_reservoir(reservoir, u, None, settings.dtype) for u in U]
        firsts = [first_origin(len(y), m) for y, m in zip(data.Y, periods, strict=True)]
        X = [(np.hstack([h, u]) if settings.direct else h)[n:] for h, u, n in zip(H, U, firsts, strict=True)]
        T = [
            np.hstack([errors_ahead(track.z, track.G) / column.spread for column, track in row])[n:]
            for row, n in zip(fitted, firsts, strict=True)
        ]
        correction = fit_correction(X, T, horizon)
    kept, n = max(1, MAX_KEPT_ORIGINS // len(data.Y)), float(np.mean(data.lengths))
    df = min(PARAMETERS_PER_MEMBER, n / 2)
    return DirectModel(
        reservoir=reservoir,
        D=correction.D,
        sees_inputs=settings.direct,
        horizon=horizon,
        series=tuple(
            FollowedSeries(c, tuple(track.end for track in t), h[-1], u[-1])
            for c, t, h, u in zip(columns, tracks, H, U, strict=True)
        ),
        errors=np.concatenate([r[:-1][-kept:] for r in correction.residuals]),  # the last row of a series has none
        widening=float(np.sqrt((n + df) / (n - df))),
        ridge=correction.ridge,
        gain=correction.gain,
        dtype=settings.dtype,
    )


def _check_values(Y: Sequence[Array], series: SeriesSettings) -> None:
    """Refuse series with too few known values, and values that have no logarithm where it is asked for."""
    for i, y in enumerate(Y):
        for column in y.T:
            known = int((~np.isnan(column)).sum())
            if known < MIN_KNOWN_VALUES:
                raise ValueError(f"series {i} has {known} known values; expected at least {MIN_KNOWN_VALUES}.")
            if series.log is True and not np.nanmin(column) > 0:
                raise ValueError(f"log=True, but series {i} holds {np.nanmin(column):g}. Use log='auto' or False.")
