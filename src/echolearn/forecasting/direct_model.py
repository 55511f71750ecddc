"""The direct model of one series: smoothed level, trend and season of each column, corrected for every horizon.

Each column is forecast by members of its own (`smoothing.py`). A reservoir sees the deviations of the values from these
forecasts, from a season ago and from a slow level, and the phase of the season. The readout of a column has one output
per horizon, the error of the forecast there in units of the column's errors; without a gain it is zero, so a series
from which it learns nothing is not made worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from echolearn.exceptions import ForecastWarning
from echolearn.fitting.settings import NetworkSettings
from echolearn.fitting.stages import random_reservoir
from echolearn.forecasting._loops import advance_features
from echolearn.forecasting.correction import CORRECTION_RIDGES, fit_correction
from echolearn.forecasting.seasons import find_seasons
from echolearn.forecasting.smoothing import (
    Smoothing,
    errors_ahead,
    first_origin,
    fit_smoothing,
    from_scale,
    is_intermittent,
    to_scale,
    weighted_median,
)
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import pack
from echolearn.states.run import run
from echolearn.validation import Array, warn_user

MIN_HORIZON_STEPS, MAX_HORIZON_STEPS = 8, 48  # the horizon is two seasons within these bounds,
HORIZONS_PER_SERIES = 3  # and at most this part of the series
FITTED_PARAMETERS = 2.5  # that make errors of the training series smaller than those to come,
INDEPENDENT_HORIZONS = 2.0  # errors at all horizons say as much of their quantiles as those at so many,
MAX_KEPT_ORIGINS = 1000  # whose errors are kept, for intervals and paths
CORRECTION_DECAY_PER_STEP = 0.9  # beyond the last horizon the correction shrinks by this factor
MIN_KNOWN_VALUES = 4  # of a series
DEVIATIONS_PER_COLUMN = 3  # innovation, change since a season ago, deviation from a slow level
MIN_LEVEL_STEPS = 8  # the slow level averages over about three seasons, or three times so many steps
ODD_CHANGES = 2.0  # times the largest error that is learned from: a last value further off is reported
MAX_INPUT_DEVIATIONS = 4.0  # inputs of the network are cut at so many standard deviations


@dataclass(frozen=True)
class SeriesSettings:
    """The parameters that concern the series itself."""

    horizon: int | None
    season: str | int | None
    trend: bool | None
    log: bool | None

    def seasons_of(self, y: Array, usual: Sequence[int]) -> tuple[int, int]:
        """Return the seasons of values y (n,), 1 for none; usual: those that its calendar suggests."""
        if self.season is None:
            return 1, 1
        if isinstance(self.season, str):
            return find_seasons(y, usual)
        if len(y) < 2 * self.season:
            warn_user(
                f"season={self.season} is left out: a series has {len(y)} steps; two seasons have {2 * self.season}.",
                ForecastWarning,
            )
            return 1, 1
        return int(self.season), 1


@dataclass(frozen=True, eq=False)
class Column:
    """One column of one series, with what was fitted to it and where it is."""

    members: Smoothing
    log: bool  # whether errors are those of logarithms
    spread: Array  # (H,), the typical error at each horizon
    input_scale: Array  # (3,), of the network's inputs
    effects: Array  # (inputs,), of exogenous inputs
    unit: float  # the typical change from step to step
    expected: float  # the one-step forecast
    past: Array  # (m,), the last season
    level: float  # the slow level
    age: int  # the number of steps since the last known value
    never_negative: bool  # whether no value was, and logarithms were not ruled out: then no forecast is either

    def begin(self, y: Array) -> Self:
        """Return the column before the first value of a series y, in the unit of its values."""
        unit, P = typical_step(y), self.members.P.copy()
        ratio = unit / self.unit if unit > 0 and self.unit > 0 else 1.0
        P[~self.members.logs, 5:] *= ratio
        ratio = 1.0 if self.log else ratio
        begun = replace(
            self,
            members=replace(self.members, P=P).start(y),
            spread=self.spread * ratio,
            input_scale=self.input_scale * ratio,
            unit=unit,
            past=np.zeros(self.members.seasons[0]),
            level=0.0,
            age=0,
        )
        return replace(begun, expected=float(begun.forecast(1)[0]))

    def forecast(self, steps: int) -> Array:
        """Return the forecast (steps,) of the members in the scale of the errors."""
        return to_scale(self.members.forecast(steps), self.log)

    def follow(self, y: Array, horizon: int) -> Track:
        """Return the track over further values y."""
        F, members = self.members.advance(y, horizon)
        G, z = to_scale(weighted_median(F, self.members.weights), self.log), to_scale(y, self.log)
        time, expected = self.members.time, np.concatenate([[self.expected], G[:-1, 0]])
        if time == 0 and not np.isnan(z[0]):
            expected[0] = z[0]
        past, level, inputs = self.past.copy(), np.array([self.level]), np.empty((len(y), DEVIATIONS_PER_COLUMN))
        advance_features(z, expected, time, past, level, 2 / (3 * max(len(past), MIN_LEVEL_STEPS)), inputs)
        known = np.flatnonzero(~np.isnan(z))
        age = len(y) - 1 - int(known[-1]) if len(known) else self.age + len(y)
        end = replace(self, members=members, expected=float(G[-1, 0]), past=past, level=float(level[0]), age=age)
        return Track(y, z, G, expected, inputs, end)


@dataclass(frozen=True, eq=False)
class Track:
    """A column over a series."""

    y: Array  # (n,), the values
    z: Array  # (n,), in the scale of the errors
    G: Array  # (n, H), forecasts of z
    expected: Array  # (n,), of z
    inputs: Array  # (n, 3), of the network
    end: Column

    @property
    def errors(self) -> Array:
        """The errors (n, H) of forecasts from every known value; NaN where either is not known."""
        return np.where(np.isnan(self.z)[:, None], np.nan, errors_ahead(self.z, self.G))

    def warn_of_odd_end(self) -> None:
        """Warn if the last known value is far from what was expected of it."""
        column, t = self.end, len(self.z) - 1 - self.end.age
        usual = column.members.P[column.members.logs == column.log, 5].min()
        error = abs(self.z[t] - self.expected[t]) if t >= 0 else 0.0
        if error / ODD_CHANGES > usual:
            warn_user(
                f"the last known value, {self.y[t]:.6g}, is far from what the series led to expect: "
                f"{error / usual:.0f} times the largest error that trend and season learn from. If it is a mistake, "
                "replace it by NaN.",
                ForecastWarning,
            )


def fit_column(
    y: Array, E: Array, seasons: tuple[int, int], horizon: int, *, log: bool | None = None, trend: bool | None = None
) -> Track:
    """Return the track of a column over its values y (n,) with exogenous inputs E (n, inputs)."""
    effects = exogenous_effects(y, E, seasons[0])
    rest = y - E @ effects
    members, C = fit_smoothing(rest, seasons, horizon, log=log, trend=trend)
    in_logs = bool(members.weights[members.logs].sum() > 0.5 and np.nanmin(rest) > 0 and C.min() > 0)
    unit, ones, never_negative = typical_step(rest), np.ones(horizon), log is not False and bool(np.nanmin(y) >= 0)
    scales = np.ones(DEVIATIONS_PER_COLUMN)
    column = Column(members, in_logs, ones, scales, effects, unit, 0.0, ones, 0.0, 0, never_negative)
    track = column.begin(rest).follow(rest, horizon)
    first = first_origin(len(y), seasons)
    errors = track.errors[first:]
    counts = (~np.isnan(errors)).sum(axis=0)
    known = np.flatnonzero(counts >= 2)
    spread = np.sqrt(np.nansum(errors**2, axis=0)[known] / counts[known])
    spread = np.interp(np.arange(horizon), known, spread) if len(known) else ones
    input_scale = track.inputs[first:].std(axis=0)
    tiny = 1e-12 * max(unit, 1e-300)
    input_scale = np.where(input_scale > tiny, input_scale, 1.0)
    return replace(track, end=replace(track.end, spread=np.maximum(spread, tiny), input_scale=input_scale))


def with_signs(columns: Iterable[Column], Y: Array) -> tuple[Column, ...]:
    """Return columns that know whether they had negative values in Y (n, columns)."""
    each = zip(columns, Y.T, strict=True)
    return tuple(replace(c, never_negative=c.never_negative and not bool((y < 0).any())) for c, y in each)


def typical_step(y: Array) -> float:
    """Return the root mean squared change from step to step."""
    change = np.diff(y)
    known = change[~np.isnan(change)]
    return float(np.sqrt((known**2).mean())) if len(known) else 0.0


def exogenous_effects(y: Array, E: Array, m: int) -> Array:
    """Return least-squares effects (inputs,) of exogenous inputs, from changes over a season (or one step)."""
    if not E.shape[1]:
        return np.zeros(0)
    lag = m if len(y) > 3 * m else 1
    dy, dE = y[lag:] - y[:-lag], E[lag:] - E[:-lag]
    known = ~np.isnan(dy)
    A = dE[known].T @ dE[known]
    A.flat[:: len(A) + 1] += 1e-6 * np.trace(A) / len(A) + 1e-12
    return np.asarray(np.linalg.solve(A, dE[known].T @ dy[known]))


def network_inputs(tracks: Iterable[Track]) -> Array:
    """Return the inputs of the reservoir: of every column its deviations in their scale and the phase of its season."""
    inputs = []
    for track in tracks:
        column, n = track.end, len(track.z)
        inputs.append(np.clip(track.inputs / column.input_scale, -MAX_INPUT_DEVIATIONS, MAX_INPUT_DEVIATIONS))
        m = column.members.seasons[0]
        phase = 2 * np.pi * (column.members.time - n + np.arange(n)) / m
        inputs.append(np.stack([np.sin(phase), np.cos(phase)], axis=1) * (m > 1))
    return np.hstack(inputs)


def run_reservoir(reservoir: Reservoir, U: Array, h0: Array | None, dtype: str) -> Array:
    """Return the states (n, N) for inputs U."""
    batch = pack([U], np.dtype(dtype))
    return np.asarray(run(reservoir, batch, None if h0 is None else h0[None]).H, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class DirectModel:
    """All that was fitted to one series, and where it is in that series or in another one."""

    reservoir: Reservoir
    D: Array  # (M, columns * horizon), intercept last: the readout of the corrections
    sees_inputs: bool  # whether D sees the inputs of the reservoir beside its state
    horizon: int
    columns: tuple[Column, ...]
    state: Array  # (N,) and
    inputs: Array  # (inputs,): of the reservoir at the last step
    scale: Array  # (columns,), standard deviations; 1 for a constant column
    errors: Array  # (origins, columns * horizon), of forecasts of the training series, in units of the spread; or NaN
    ridge: float
    gain: float  # the share of the mean absolute error that the correction took off in the backtest
    dtype: str

    @property
    def dims(self) -> int:
        """The number of columns of the series."""
        return len(self.columns)

    def start(self, Y: Array, E: Array) -> Self:
        """Return the model before another series, in the units of its values Y (n, dims) with exogenous inputs E."""
        columns = (c.begin(y) for c, y in zip(self.columns, self._without_effects(Y, E), strict=True))
        r = self.reservoir
        state = np.zeros(r.N) if r.initial_state is None else np.asarray(r.initial_state, dtype=np.float64)
        return replace(self, columns=with_signs(columns, Y), state=state, inputs=np.zeros(r.n_in))

    def follow(self, Y: Array, E: Array) -> Self:
        """Return the model after further values Y (n, dims) with exogenous inputs E; warn of an odd last value."""
        tracks = self.tracks(Y, E, 1)
        for track in tracks:
            track.warn_of_odd_end()
            if track.end.log and np.nanmin(track.y, initial=np.inf) <= 0:
                warn_user(
                    f"a value of {np.nanmin(track.y):.6g} is taken as a gap: the series was forecast in logarithms, "
                    "because all its values were positive. Fit again with it.",
                    ForecastWarning,
                )
        moved = replace(self, columns=with_signs((track.end for track in tracks), Y))
        if not self.D.any():
            return moved
        U = network_inputs(tracks)
        return replace(moved, state=run_reservoir(self.reservoir, U, self.state, self.dtype)[-1], inputs=U[-1])

    def tracks(self, Y: Array, E: Array, horizon: int) -> list[Track]:
        """Return the tracks of the columns over further values Y (n, dims) with exogenous inputs E."""
        return [c.follow(y, horizon) for c, y in zip(self.columns, self._without_effects(Y, E), strict=True)]

    def in_units(self, Z: Array, E: Array) -> Array:
        """Return forecasts (..., steps, dims) in the units of the series, with the effects of inputs E (steps, ...)."""
        values = np.stack([from_scale(Z[..., j], c.log) + E @ c.effects for j, c in enumerate(self.columns)], axis=-1)
        return np.asarray(np.maximum(values, [0.0 if c.never_negative else -np.inf for c in self.columns]))

    def _without_effects(self, Y: Array, E: Array) -> list[Array]:
        """Return the values of each column less the effects of exogenous inputs."""
        return [y - E @ c.effects for y, c in zip(Y.T, self.columns, strict=True)]

    def forecast(self, steps: int) -> Array:
        """Return the forecast (steps, dims) in the scale of the errors; beyond the last horizon corrections fade."""
        Z = np.stack([column.forecast(steps) for column in self.columns], axis=1)
        if not self.D.any():
            return Z
        row = np.concatenate([self.state, self.inputs]) if self.sees_inputs else self.state
        per_column = (row @ self.D[:-1] + self.D[-1]).reshape(self.dims, self.horizon)
        h = np.arange(steps)
        last = np.minimum(h, self.horizon - 1)
        fade = CORRECTION_DECAY_PER_STEP ** np.maximum(h - self.horizon + 1, 0)
        spreads = np.stack([column.spread[last] for column in self.columns])
        return np.asarray(Z + (per_column[:, last] * fade * spreads).T)

    def forecasts_along(self, Y: Array, E: Array, horizon: int) -> Array:
        """Return, in units, the forecasts (n - horizon, dims) made `horizon` steps before each value Y[horizon:]."""
        tracks = self.tracks(Y, E, horizon)
        Z = np.stack([track.G[:, horizon - 1] for track in tracks], axis=1)
        if self.D.any():
            U = network_inputs(tracks)
            H = run_reservoir(self.reservoir, U, self.state, self.dtype)
            last = min(horizon, self.horizon) - 1
            scaled = (np.hstack([H, U]) if self.sees_inputs else H) @ self.D[:-1] + self.D[-1]
            spread = np.array([column.spread[last] for column in self.columns])
            fade = CORRECTION_DECAY_PER_STEP ** max(horizon - self.horizon, 0)
            Z = Z + scaled[:, last :: self.horizon] * spread * fade
        return self.in_units(Z[: len(Y) - horizon], E[horizon:])

    def interval(self, steps: int, coverage: float) -> tuple[Array, Array]:
        """Return bounds (steps, dims) in the scale of the errors: a quantile of a column's errors at all horizons."""
        Z, widths = self.forecast(steps), []
        for errors in np.split(self.errors, self.dims, axis=1):
            known = np.abs(errors[~np.isnan(errors)])
            count = INDEPENDENT_HORIZONS * np.median(independent_errors(errors))
            widths.append(float(np.quantile(known, min(1.0, coverage * (1 + 1 / count)))) if len(known) else 0.0)
        width = np.array(widths) * self._spreads(steps)[0]
        return Z - width, Z + width

    def paths(self, steps: int, count: int, rng: np.random.Generator) -> Array:
        """Return sample paths (count, steps, dims): the forecast and the whole run of errors of drawn origins.

        Errors that are not known are drawn from their column; signs too, as few origins say little of asymmetry.
        """
        errors = self.errors[rng.integers(len(self.errors), size=count)].copy()
        for j in np.flatnonzero(np.isnan(errors).any(axis=0)):
            known = self.errors[~np.isnan(self.errors[:, j]), j]
            gaps = np.isnan(errors[:, j])
            errors[gaps, j] = known[rng.integers(len(known), size=gaps.sum())] if len(known) else 0.0
        errors *= rng.choice([-1.0, 1.0], size=(count, 1))
        spreads, last = self._spreads(steps)
        per_column = errors.reshape(count, self.dims, self.horizon)
        by_step = np.stack([per_column[:, j, last[:, j]] for j in range(self.dims)], axis=2)
        return np.asarray(self.forecast(steps) + by_step * spreads)

    def _spreads(self, steps: int) -> tuple[Array, Array]:
        """Return the typical error and the index of its horizon, both (steps, dims), from the last known value on."""
        h = np.arange(1, steps + 1)[:, None] + np.array([column.age for column in self.columns])
        last = np.minimum(h, self.horizon) - 1
        each = zip(self.columns, np.split(self.errors, self.dims, axis=1), strict=True)
        spread = np.stack([(c.spread * widening(errors))[last[:, j]] for j, (c, errors) in enumerate(each)], axis=1)
        return spread * np.sqrt(np.maximum(h / self.horizon, 1.0)), last  # beyond the last horizon errors grow


def independent_errors(errors: Array) -> Array:
    """Return how many independent errors say as much of the spread at each horizon as errors (origins, horizon) do.

    Errors h steps ahead of neighbouring origins have up to h - 1 steps in common: so far, squares of their
    autocorrelations are counted. Those of noise about a level count fully, those of a random walk by few.
    """
    n, horizon = errors.shape
    power = np.abs(np.fft.rfft(np.nan_to_num(errors), 2 * n, axis=0)) ** 2
    products = np.fft.irfft(power, axis=0)[: min(n, horizon)]
    r = products[1:] / np.maximum(products[0], np.finfo(float).tiny)
    shared = np.arange(1, len(r) + 1)[:, None] <= np.arange(horizon)
    counts = np.maximum((~np.isnan(errors)).sum(axis=0), 1)
    return np.asarray(counts / (1 + 2 * (r**2 * shared).sum(axis=0)))


def widening(errors: Array) -> Array:
    """Return how much larger errors to come are at each horizon than those that remain after a fit."""
    count = independent_errors(errors)
    fitted = np.minimum(FITTED_PARAMETERS, count / 2)
    return np.asarray(np.sqrt((count + fitted) / (count - fitted)))


def default_horizon(season: int, n: int) -> int:
    """Return two seasons, within bounds and a share of the series."""
    steps = int(np.clip(2 * season, MIN_HORIZON_STEPS, MAX_HORIZON_STEPS))
    return max(1, min(steps, n // HORIZONS_PER_SERIES))


def draw_reservoir(settings: NetworkSettings, n_in: int) -> Reservoir:
    """Return the reservoir of a forecast for so many inputs, all of them standardised; the same one every time."""
    scaling = settings.input_scaling if np.ndim(settings.input_scaling) == 0 else 0.5
    rng = np.random.default_rng(deepcopy(settings.random_state)).spawn(1)[0]
    return random_reservoir(replace(settings, input_scaling=scaling), n_in, 0, rng)


def fit_direct(Y: Array, E: Array, usual: Sequence[int], settings: NetworkSettings, how: SeriesSettings) -> DirectModel:
    """Fit members to every column of a series Y (n, dims) with exogenous inputs E, and readouts to their errors."""
    n, values = len(Y), [np.ascontiguousarray(y) for y in Y.T]
    periods = [how.seasons_of(y, usual) for y in values]
    horizon = how.horizon or default_horizon(max(m for m, _ in periods), n)
    each = zip(values, periods, strict=True)
    tracks = [fit_column(y, E, m, horizon, log=how.log, trend=how.trend) for y, m in each]
    for track in tracks:
        track.warn_of_odd_end()
    U = network_inputs(tracks)
    reservoir = draw_reservoir(settings, U.shape[1])
    H = run_reservoir(reservoir, U, None, settings.dtype)
    first = max(first_origin(n, m) for m in periods)
    X = (np.hstack([H, U]) if settings.direct else H)[first:]
    corrections = []
    for track in tracks:
        ridges = CORRECTION_RIDGES[: 0 if is_intermittent(track.z) else None]  # absolute errors would favour zeros
        corrections.append(fit_correction(X, track.errors[first:] / track.end.spread, horizon, ridges))
    spread = np.nanstd(Y, axis=0)
    return DirectModel(
        reservoir=reservoir,
        D=np.hstack([correction.D for correction in corrections]),
        sees_inputs=settings.direct,
        horizon=horizon,
        columns=tuple(track.end for track in tracks),
        state=H[-1],
        inputs=U[-1],
        scale=np.where(spread > 0, spread, 1.0),
        errors=np.hstack([correction.residuals for correction in corrections])[:-1][-MAX_KEPT_ORIGINS:],
        ridge=min(correction.ridge for correction in corrections),
        gain=max(correction.gain for correction in corrections),
        dtype=settings.dtype,
    )
