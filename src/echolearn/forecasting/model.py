"""The direct model of one or several series: fitted, followed step by step, and asked for forecasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from echolearn.forecasting.columns import (
    FADE,
    Column,
    Place,
    Track,
    begin,
    fit_column,
    follow,
    from_scale,
    network_inputs,
    run_reservoir,
    to_scale,
    typical_step,
)
from echolearn.forecasting.correction import Correction, fit_correction
from echolearn.forecasting.members import Allowed, errors_ahead, first_origin
from echolearn.forecasting.seasons import find_seasons
from echolearn.forecasting.smoothing import forecast_ahead
from echolearn.reservoir.reservoir import Reservoir
from echolearn.validation import Array

SHORTEST, LONGEST = 8, 48  # the horizon is two seasons within these bounds,
SHARE = 3  # and at most this part of the shortest series
LEARNED = 5  # numbers that a member learns from its series: smoothing, damping, autoregression and a start
KEPT = 1000  # origins whose errors are kept, for intervals and paths


@dataclass(frozen=True, eq=False)
class Part:
    """One series of the model: its columns, where they are, what the readout sees there: the state (N,) and inputs."""

    columns: tuple[Column, ...]
    places: tuple[Place, ...]
    state: Array
    inputs: Array


@dataclass(frozen=True, eq=False)
class DirectModel:
    """All that was fitted: reservoir, D (M, columns * horizon), whether D sees the inputs, the parts, and the errors.

    errors (origins, columns * horizon): what the forecasts of the training series left over, in units of each output's
    spread, row by row the errors of one origin; NaN where the truth was not known. widening: how much larger errors to
    come are than those that remain after a fit. gain: the share of the mean absolute error that the correction took
    off in the backtest.
    """

    reservoir: Reservoir
    D: Array
    sees_inputs: bool
    horizon: int
    parts: tuple[Part, ...]
    errors: Array
    widening: float
    ridge: float
    gain: float
    dtype: str

    @property
    def dims(self) -> int:
        """The number of columns of a series."""
        return len(self.parts[0].columns)


def default_horizon(seasons: tuple[int, int], shortest: int) -> int:
    """Return two seasons, within bounds and a share of the shortest series."""
    return max(1, min(int(np.clip(2 * seasons[0], SHORTEST, LONGEST)), shortest // SHARE))


def fit_direct(
    Y: Sequence[Array],
    E: Sequence[Array],
    seasons: Callable[[Array], tuple[int, int]],
    *,
    horizon: int | None,
    allowed: Allowed,
    draw: Callable[[int], Reservoir],
    direct: bool,
    dtype: str,
) -> DirectModel:
    """Fit members to every column, and one readout to the errors of all of them.

    Y: series (n, dims), NaN where a value is missing; E: exogenous inputs (n, inputs); seasons: those of one column;
    draw: a reservoir for so many inputs.
    """
    found = [seasons(y[:, 0]) for y in Y]
    ahead = horizon or default_horizon(max(found), min(map(len, Y)))
    fitted = [
        [fit_column(np.ascontiguousarray(y[:, j]), e, m, ahead, allowed) for j in range(y.shape[1])]
        for y, e, m in zip(Y, E, found, strict=True)
    ]
    columns = [tuple(column for column, _ in row) for row in fitted]
    tracks = [[track for _, track in row] for row in fitted]
    U = [network_inputs(c, t, 0) for c, t in zip(columns, tracks, strict=True)]
    reservoir = draw(U[0].shape[1])
    H = [run_reservoir(reservoir, u, None, dtype) for u in U]
    firsts = [first_origin(len(y), c[0].members.seasons) for y, c in zip(Y, columns, strict=True)]
    X = [(np.hstack([h, u]) if direct else h)[first:] for h, u, first in zip(H, U, firsts, strict=True)]
    T = [_scaled_errors(c, t)[first:] for c, t, first in zip(columns, tracks, firsts, strict=True)]
    correction = fit_correction(X, T, ahead)
    parts = tuple(
        Part(c, tuple(track.end for track in t), h[-1], u[-1]) for c, t, h, u in zip(columns, tracks, H, U, strict=True)
    )
    return DirectModel(
        reservoir=reservoir,
        D=correction.D,
        sees_inputs=direct,
        horizon=ahead,
        parts=parts,
        errors=_kept(correction),
        widening=_widening(Y),
        ridge=correction.ridge,
        gain=correction.gain,
        dtype=dtype,
    )


def _scaled_errors(columns: Sequence[Column], tracks: Sequence[Track]) -> Array:
    """Return the errors of the members' forecasts (n, columns * horizon), in units of their spread."""
    errors = [errors_ahead(t.z, t.G) / c.spread for c, t in zip(columns, tracks, strict=True)]
    return np.hstack(errors)


def _kept(correction: Correction) -> Array:
    """Return the errors of the last origins of all series; the last row of a series, which has none, is left out."""
    each = max(1, KEPT // len(correction.residuals))
    return np.concatenate([r[:-1][-each:] for r in correction.residuals])


def _widening(Y: Sequence[Array]) -> float:
    """Return sqrt((n + df) / (n - df)) of the whole model, df the numbers that the members learned."""
    n = float(np.mean([len(y) for y in Y]))
    df = min(LEARNED, n / 2)
    return float(np.sqrt((n + df) / (n - df)))


def part_for(model: DirectModel, j: int, Y: Array) -> Part:
    """Return the part for another series Y (n, dims): the columns of part j in the units of Y, at its beginning."""
    columns = []
    for column, y in zip(model.parts[j].columns, Y.T, strict=True):
        unit = typical_step(y)
        ratio = 1.0 if column.log or not unit > 0 or not column.unit > 0 else unit / column.unit
        heard = column.heard if column.log else column.heard * ratio
        columns.append(replace(column, spread=column.spread * ratio, heard=heard, unit=unit))
    places = tuple(begin(c, np.ascontiguousarray(y)) for c, y in zip(columns, Y.T, strict=True))
    r = model.reservoir
    state = np.zeros(r.N) if r.initial_state is None else np.asarray(r.initial_state, dtype=np.float64)
    return Part(tuple(columns), places, state, np.zeros(r.n_in))


def without_effects(part: Part, Y: Array, E: Array) -> Array:
    """Return a series less the effects of its exogenous inputs."""
    return np.asarray(Y - np.stack([E @ column.effects for column in part.columns], axis=1))


def advance_part(model: DirectModel, part: Part, Y: Array, E: Array) -> Part:
    """Return a part after further values Y (n, dims) with their exogenous inputs."""
    rest, time = without_effects(part, Y, E), part.places[0].position.time
    tracks = [
        follow(c, np.ascontiguousarray(y), p, 1) for c, p, y in zip(part.columns, part.places, rest.T, strict=True)
    ]
    U = network_inputs(part.columns, tracks, time)
    state = run_reservoir(model.reservoir, U, part.state, model.dtype)[-1]
    return Part(part.columns, tuple(track.end for track in tracks), state, U[-1])


def forecast_scaled(model: DirectModel, part: Part, steps: int) -> Array:
    """Return the forecast (steps, dims) of a part in the scale of its errors, without exogenous effects."""
    bases = [
        to_scale(forecast_ahead(c.members, p.position, steps), c.log)
        for c, p in zip(part.columns, part.places, strict=True)
    ]
    return np.stack(bases, axis=1) + _corrections(model, part, steps)


def _corrections(model: DirectModel, part: Part, steps: int) -> Array:
    """Return the corrections (steps, dims) of a part; beyond the last horizon they fade."""
    if not model.D.any():
        return np.zeros((steps, model.dims))
    row = np.concatenate([part.state, part.inputs]) if model.sees_inputs else part.state
    per_column = (row @ model.D[:-1] + model.D[-1]).reshape(model.dims, model.horizon)
    h = np.arange(steps)
    last = np.minimum(h, model.horizon - 1)
    fade = FADE ** np.maximum(h - model.horizon + 1, 0)
    spreads = np.stack([column.spread[last] for column in part.columns])
    return np.asarray((per_column[:, last] * fade * spreads).T)


def forecasts_along(model: DirectModel, part: Part, Y: Array, E: Array, horizon: int) -> Array:
    """Return, in units, the forecasts (n - horizon, dims) made `horizon` steps before each value Y[horizon:]."""
    rest = without_effects(part, Y, E)
    tracks = [
        follow(c, np.ascontiguousarray(y), p, horizon)
        for c, p, y in zip(part.columns, part.places, rest.T, strict=True)
    ]
    Z = np.stack([track.G[:, horizon - 1] for track in tracks], axis=1)
    if model.D.any():
        U = network_inputs(part.columns, tracks, part.places[0].position.time)
        H = run_reservoir(model.reservoir, U, part.state, model.dtype)
        last = min(horizon, model.horizon) - 1
        scaled = (np.hstack([H, U]) if model.sees_inputs else H) @ model.D[:-1] + model.D[-1]
        spread = np.array([column.spread[last] for column in part.columns])
        Z = Z + scaled[:, last :: model.horizon] * spread * FADE ** max(horizon - model.horizon, 0)
    return in_units(part, Z[: len(Y) - horizon], E[horizon:])


def spreads_ahead(model: DirectModel, part: Part, steps: int) -> Array:
    """Return the typical error (steps, dims) of forecasts; beyond the last horizon it grows like the square root."""
    h = np.arange(1, steps + 1)
    last = np.minimum(h, model.horizon) - 1
    growth = np.sqrt(np.maximum(h / model.horizon, 1.0))[:, None]
    return np.stack([column.spread[last] for column in part.columns], axis=1) * growth * model.widening


def in_units(part: Part, Z: Array, E: Array) -> Array:
    """Return forecasts (..., steps, dims) in the units of the series, with the effects of inputs E (steps, inputs)."""
    values = np.stack([from_scale(Z[..., j], column.log) for j, column in enumerate(part.columns)], axis=-1)
    return np.asarray(values + np.stack([E @ column.effects for column in part.columns], axis=1))


def seasons_for(announced: tuple[int, int] | None, given: object) -> Callable[[Array], tuple[int, int]]:
    """Return the function from values to seasons; given: "auto", a number, or None for no season."""
    if given is None:
        return lambda y: (1, 1)
    if isinstance(given, str):
        return lambda y: find_seasons(y, announced)
    period = int(given)  # type: ignore[call-overload]
    return lambda y: (period if len(y) >= 2 * period else 1, 1)
