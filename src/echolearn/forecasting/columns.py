"""Direct forecasts: smoothed level, trend and season of each column of a series, corrected for every horizon.

The members of `members.py` forecast each column alone, with seasons of its own. The inputs of the reservoir of a series
are the deviations of the values of its columns from these forecasts, from a season ago and from a slow level, and the
phase of the season. The readout of a column has one output per horizon; the target is the error of the forecast there,
in units of the column's errors. Without a gain it is zero, so a series from which it learns nothing is not made worse.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from echolearn.exceptions import ForecastWarning
from echolearn.forecasting._loops import advance_features
from echolearn.forecasting.smoothing import (
    Smoothing,
    errors_ahead,
    first_origin,
    fit_smoothing,
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

    def begin(self, y: Array) -> Self:
        """Return the column before the first value of a series y, in the unit of its values."""
        unit, P = typical_step(y), self.members.P.copy()
        ratio = unit / self.unit if unit > 0 and self.unit > 0 else 1.0
        P[~self.members.logs, 6:] *= ratio
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
        usual = column.members.P[column.members.logs == column.log, 6].min()
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
    unit, ones = typical_step(rest), np.ones(horizon)
    column = Column(members, in_logs, ones, np.ones(DEVIATIONS_PER_COLUMN), effects, unit, 0.0, ones, 0.0, 0)
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
