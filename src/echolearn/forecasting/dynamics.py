"""Whether a series follows dynamics of its own, so that a network may run on its own outputs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.settings import NetworkSettings
from echolearn.forecasting.correction import solve
from echolearn.forecasting.direct_model import default_horizon, draw_reservoir
from echolearn.forecasting.members import errors_ahead, fit_smoothing
from echolearn.forecasting.seasons import find_seasons
from echolearn.forecasting.series import SeriesData, inputs_of
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import pack
from echolearn.states.closed_loop import run_closed_loop
from echolearn.states.run import run
from echolearn.validation import Array

MAX_PROBED_COLUMNS = 8  # columns beyond which a series is a field, whose columns one by one say little
MIN_PROBE_UNITS = 100  # units of the network that looks for dynamics, at least
MIN_PROBE_STEPS = 60  # steps after the washout below which no dynamics can be told from noise
DOUBTFUL_ERROR_SHARE = 0.2  # one-step errors below this share of the changes from step to step: perhaps dynamics;
CERTAIN_ERROR_SHARE = 0.05  # below this, certainly
PROBE_FITTED_SHARE = 0.75  # the share of a series that the readout is fitted to; the rest is forecast
PROBE_RIDGES = 10.0 ** np.arange(-11.0, 2.0)
COMPARED_ORIGINS = 20  # closed loops that are compared with smoothing


def follows_dynamics(data: SeriesData, settings: NetworkSettings) -> bool:
    """Return whether the closed loop of a network should forecast these series.

    A readout of the reservoir as drawn, fitted to the first three quarters, must predict the rest one step ahead to a
    fifth of the changes from step to step. If it is not a twentieth, one series alone is then forecast from origins in
    its last quarter, by the closed loop and by smoothing, and the smaller error decides. Series of more than eight
    columns, such as fields in space, and constant ones are left to the closed loop.
    """
    Z, E, washout = data.Z, data.E, settings.washout_steps
    if data.lengths.min() < washout + MIN_PROBE_STEPS or any(np.isnan(z).any() for z in Z):
        return False
    if data.form.dims > MAX_PROBED_COLUMNS or all((z == z[0]).all() for z in Z):
        return True
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
        if not errors[best] < DOUBTFUL_ERROR_SHARE**2 * change:
            return False
        if errors[best] < CERTAIN_ERROR_SHARE**2 * change or len(Z) > 1 or data.form.n_features > 1:
            return True
        return _loop_is_better(reservoir, readouts[best], Z[0], X[0], washout + cuts[0])


def _probe(settings: NetworkSettings, n_in: int) -> Reservoir:
    """Return the reservoir that looks for dynamics; whether there are any does not depend on its size."""
    if isinstance(settings.topology, str):
        units = max(MIN_PROBE_UNITS, settings.hidden_units)
        leak = (0.3, 1.0) if isinstance(settings.leak, np.ndarray) else settings.leak
        settings = replace(settings, hidden_units=units, leak=leak, initial_state=None)
    return draw_reservoir(settings, n_in)


def _loop_is_better(reservoir: Reservoir, D: Array, z: Array, X: Array, first: int) -> bool:
    """Return whether closed loops from origins after `first` have smaller errors than smoothing."""
    n, y = len(z), np.ascontiguousarray(z[:, 0])
    seasons = find_seasons(y)
    horizon = min(default_horizon(seasons[0], n), n - first - 2)
    origins = np.unique(np.linspace(first, n - 1 - horizon, COMPARED_ORIGINS).astype(int))
    H = X[origins - 1 - (n - 1 - len(X)), : reservoir.N]
    E = np.empty((horizon, len(origins), 0))
    loops = run_closed_loop(reservoir, D, True, H, z[origins], E=E)[:, :, 0].T
    truth = y[origins[:, None] + np.arange(1, horizon + 1)]
    _, C = fit_smoothing(y, seasons, horizon, log=False)
    smoothed = np.abs(errors_ahead(y, C)[origins]).mean()
    return bool(np.abs(loops - truth).mean() < smoothed)
