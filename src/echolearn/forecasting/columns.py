"""Direct forecasts: smoothed level, trend and season of each column of a series, corrected for every horizon.

The members of `members.py` forecast each column alone, with seasons of its own. The inputs of the reservoir of a series
are the deviations of the values of its columns from these forecasts, from a season ago and from a slow level, and the
phase of the season. The readout of a column has one output per horizon; the target is the error of the forecast there,
in units of the column's errors. Without a gain it is zero, so a series from which it learns nothing is not made worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from echolearn.exceptions import ForecastWarning
from echolearn.forecasting._loops import advance_features
from echolearn.forecasting.smoothing import (
    Position,
    Smoothing,
    errors_ahead,
    first_origin,
    fit_smoothing,
    forecast_ahead,
    from_scale,
    to_scale,
    weighted_median,
)
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import pack
from echolearn.states.run import run
from echolearn.validation import Array, warn_user

DEVIATIONS_PER_COLUMN = 3  # innovation, change since a season ago, deviation from a slow level
MIN_LEVEL_STEPS = 8  # the slow level averages over about three seasons, or three times so many steps
ODD_CHANGES = 2.0  # times the largest error that is learned from: a last value further off is reported
MAX_INPUT_DEVIATIONS = 4.0  # inputs of the network are cut at so many standard deviations


@dataclass(frozen=True, eq=False)
class Column:
    """One column of one series: its members, the scale they are corrected in, and how large its errors are.

    log: whether errors are of logarithms; spread (H,): the typical error at each horizon; input_scale (3,): of the
    network's inputs; effects (inputs,): the effect of exogenous inputs; unit: the typical change from step to step.
    """

    members: Smoothing
    log: bool
    spread: Array
    input_scale: Array
    effects: Array
    unit: float

    def begin(self, y: Array) -> ColumnState:
        """Return where the column is before the first value of y."""
        position = self.members.start(y)
        expected = float(to_scale(forecast_ahead(self.members, position, 1), self.log)[0])
        return ColumnState(position, expected, np.zeros(self.members.seasons[0]), 0.0, 0)

    def follow(self, y: Array, state: ColumnState, horizon: int) -> Track:
        """Return the track over values y from a state on."""
        F, position = self.members.advance(y, state.position, horizon)
        G, z = to_scale(weighted_median(F, self.members.weights), self.log), to_scale(y, self.log)
        time, expected = state.position.time, np.concatenate([[state.expected], G[:-1, 0]])
        if time == 0 and not np.isnan(z[0]):
            expected[0] = z[0]
        past, level, inputs = state.past.copy(), np.array([state.level]), np.empty((len(y), DEVIATIONS_PER_COLUMN))
        advance_features(z, expected, time, past, level, 2 / (3 * max(len(past), MIN_LEVEL_STEPS)), inputs)
        known = np.flatnonzero(~np.isnan(z))
        age = len(y) - 1 - int(known[-1]) if len(known) else state.age + len(y)
        return Track(z, G, inputs, ColumnState(position, float(G[-1, 0]), past, float(level[0]), age))


@dataclass(frozen=True, eq=False)
class ColumnState:
    """Where a column is: its members, the one-step forecast, the last season and the slow level.

    age: the number of steps since the last known value.
    """

    position: Position
    expected: float
    past: Array
    level: float
    age: int


@dataclass(frozen=True, eq=False)
class Track:
    """A column over a series: z (n,), forecasts of z (n, H), inputs of the network (n, 3), and where it ends."""

    z: Array
    G: Array
    inputs: Array
    end: ColumnState

    @property
    def errors(self) -> Array:
        """The errors (n, H) of forecasts from every known value; NaN where either is not known."""
        return np.where(np.isnan(self.z)[:, None], np.nan, errors_ahead(self.z, self.G))


def fit_column(
    y: Array, E: Array, seasons: tuple[int, int], horizon: int, *, log: bool | None = None, trend: bool | None = None
) -> tuple[Column, Track]:
    """Return the column of values y (n,) with exogenous inputs E (n, inputs), and its track over them."""
    effects = exogenous_effects(y, E, seasons[0])
    rest = y - E @ effects
    members, C = fit_smoothing(rest, seasons, horizon, log=log, trend=trend)
    in_logs = bool(members.weights[members.logs].sum() > 0.5 and np.nanmin(rest) > 0 and C.min() > 0)
    unit = typical_step(rest)
    column = Column(members, in_logs, np.ones(horizon), np.ones(DEVIATIONS_PER_COLUMN), effects, unit)
    track = column.follow(rest, column.begin(rest), horizon)
    first = first_origin(len(y), seasons)
    errors = track.errors[first:]
    counts = (~np.isnan(errors)).sum(axis=0)
    known = np.flatnonzero(counts >= 2)
    spread = np.sqrt(np.nansum(errors**2, axis=0)[known] / counts[known])
    spread = np.interp(np.arange(horizon), known, spread) if len(known) else np.ones(horizon)
    input_scale = track.inputs[first:].std(axis=0)
    tiny = 1e-12 * max(unit, 1e-300)
    input_scale = np.where(input_scale > tiny, input_scale, 1.0)
    return replace(column, spread=np.maximum(spread, tiny), input_scale=input_scale), track


def warn_of_odd_end(column: Column, track: Track, expected: float) -> None:
    """Warn if the last value is far from what was expected of it; expected: of the first value of the track."""
    t = len(track.z) - 1 - track.end.age
    if t < 0:
        return
    error = abs(track.z[t] - (track.G[t - 1, 0] if t else expected))
    usual = column.members.P[column.members.logs == column.log, 6].min()
    if error / ODD_CHANGES > usual:
        value = from_scale(track.z[t], column.log)
        warn_user(
            f"the last known value, {value:.6g}, is far from what the series led to expect: {error / usual:.0f} times "
            "the largest error that trend and season learn from. If it is a mistake, replace it by NaN.",
            ForecastWarning,
        )


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


def network_inputs(columns: Sequence[Column], tracks: Sequence[Track], time: int) -> Array:
    """Return the inputs of the reservoir: of every column its deviations in their scale and the phase of its season."""
    inputs = []
    for column, track in zip(columns, tracks, strict=True):
        inputs.append(np.clip(track.inputs / column.input_scale, -MAX_INPUT_DEVIATIONS, MAX_INPUT_DEVIATIONS))
        m = column.members.seasons[0]
        phase = 2 * np.pi * (time + np.arange(len(track.z))) / m
        inputs.append(np.stack([np.sin(phase), np.cos(phase)], axis=1) * (m > 1))
    return np.hstack(inputs)


def run_reservoir(reservoir: Reservoir, U: Array, h0: Array | None, dtype: str) -> Array:
    """Return the states (n, N) for inputs U."""
    batch = pack([U], np.dtype(dtype))
    return np.asarray(run(reservoir, batch, None if h0 is None else h0[None]).H, dtype=np.float64)
