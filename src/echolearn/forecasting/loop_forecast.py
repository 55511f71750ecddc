"""Forecasts in a closed loop: a network whose every output is its next input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import ClassVar, Self

import numpy as np

from echolearn.display.facts import brief
from echolearn.exceptions import ForecastWarning
from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.codecs import squared_error
from echolearn.fitting.loops import fit_through_loop
from echolearn.fitting.parameters import Parameters
from echolearn.fitting.settings import NetworkSettings
from echolearn.fitting.stages import Callback, Fit, FitRequest, fit_network
from echolearn.forecasting.series import (
    Continuation,
    OpenedSeries,
    Seed,
    SeriesData,
    SeriesForm,
    check_scorable,
    inputs_of,
    path_generator,
)
from echolearn.readout.network import Network
from echolearn.readout.view import stack
from echolearn.sequences.batch import pack
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import Sequences, check_has_time, check_long_enough
from echolearn.states.closed_loop import Ring, run_closed_loop
from echolearn.states.run import run
from echolearn.validation import Answers, Array, SequencesLike, warn_user

MAX_SCALE_RATIO = 3.0  # of the spreads of series that one network learns, and of their means' distance to the spread
RUNAWAY_DEVIATIONS = 100.0  # standard deviations from the mean at which a forecast has left its series
MAX_LOOPS_PER_PASS = 2000  # that run side by side when forecasts are scored


@dataclass(frozen=True, eq=False)
class LoopForecast:
    """A network and where its series are: a `Forecast`."""

    form: SeriesForm
    network: Network
    last_state: Array  # (series * blocks of a ring, N), before the last known step
    last_value: Array  # (series, dims), there, standardised
    residuals: Array

    method: ClassVar[str] = "closed_loop"

    def __repr__(self) -> str:
        return brief(self)

    def predict(self, ahead: Continuation) -> Answers:
        """Return the next values, in the form of the series."""
        h, x, E, series = self._begin(ahead)
        return self._answer(self._loop(h, x, E).swapaxes(0, 1), series)

    def interval(self, ahead: Continuation, coverage: float, count: int, seed: Seed) -> tuple[Answers, Answers]:
        """Return bounds between which each value lies with probability `coverage`: quantiles of `count` paths."""
        h, x, E, series = self._begin(ahead)
        shares = np.array([0.5 - coverage / 2, 0.5 + coverage / 2])
        bounds = [np.quantile(Y, shares, axis=1) for Y in self._shocked_loops(h, x, E, count, seed)]
        lower, upper = np.stack(bounds, axis=1)
        return self._answer(lower, series), self._answer(upper, series)

    def paths(self, ahead: Continuation, count: int, seed: Seed) -> Answers:
        """Return loops with one-step residuals added after every step, (count, steps, ...) per series."""
        h, x, E, series = self._begin(ahead)
        return self._answer([Y.swapaxes(0, 1) for Y in self._shocked_loops(h, x, E, count, seed)], series)

    def update(self, new: SequencesLike, exogenous: SequencesLike) -> Self:
        """Return the forecast after further values of each series."""
        opened, form = self.form.open_new(new, gaps=False)
        E = self.form.open_exogenous(exogenous, opened)
        states, Z = np.split(self.last_state, len(E)), self.form.standardised(opened.X)
        for i, (x, z, e) in enumerate(zip(self.last_value, Z, E, strict=True)):
            H, _, blocks = open_loop(self.form, self.network, np.vstack([x, z]), np.vstack([e[:1], e]), states[i])
            states[i] = H[-blocks:]
        return replace(self, form=form, last_state=np.vstack(states), last_value=np.stack([z[-1] for z in Z]))

    def errors(self, series: SequencesLike, exogenous: SequencesLike, horizon: int) -> tuple[Array, Array]:
        """Return errors, and deviations of the truth from its mean, (n, dims), in standard deviations.

        They are of forecasts `horizon` steps ahead, after the washout.
        """
        opened = self.form.open(series, "series", gaps=False)
        rows = self.form.open_exogenous(exogenous, opened)
        washout, errors, truth = self.network.view.washout, [], []
        check_scorable(opened.lengths, washout, horizon)
        for z, e in zip(self.form.standardised(opened.X), rows, strict=True):
            H = open_loop(self.form, self.network, z, e)[0].reshape(len(z) - 1, -1, self.network.reservoir.N)
            first = np.arange(washout + 1, len(z) - horizon)  # the last known value
            for t in np.array_split(first, np.ceil(len(first) / MAX_LOOPS_PER_PASS)):
                E = e[t + 1 + np.arange(horizon)[:, None]]
                errors.append(self._loop(np.concatenate(H[t - 1]), z[t], E)[-1] - z[t + horizon])
                truth.append(z[t + horizon])
        joined = np.concatenate(truth)
        return np.concatenate(errors), joined - joined.mean(axis=0)

    def _begin(self, ahead: Continuation) -> tuple[Array, Array, Array, OpenedSeries]:
        """Return the state before and the value at the last known step, (B * blocks, N) and (B, dims); E (steps, B,
        inputs) to come; and the series that are continued."""
        h, x, series = self.last_state, self.last_value, self.form.ends
        if ahead.warm_up is not None:
            series = self.form.open(ahead.warm_up, "warm_up", gaps=False)
            check_long_enough(series, max(1, self.network.view.washout))
        E = self.form.open_exogenous(ahead.exogenous, series, ahead.steps)
        if ahead.warm_up is not None:
            Z = self.form.standardised(series.X)
            runs = [open_loop(self.form, self.network, z, e[: len(z)]) for z, e in zip(Z, E, strict=True)]
            ends = [H[-blocks:] for H, _, blocks in runs]
            h, x = np.vstack(ends), np.stack([z[-1] for z in Z])
        return h, x, np.stack([e[-ahead.steps :] for e in E], axis=1), series

    def _loop(self, h: Array, x: Array, E: Array, shocks: Array | None = None) -> Array:
        """Return closed loops from here on, (steps, B, dims); warn of one that leaves its series."""
        network = self.network
        with one_blas_thread():
            Y = run_closed_loop(network.reservoir, network.readout.U, network.view.direct, h, x, E=E, shocks=shocks)
        with np.errstate(invalid="ignore"):
            far = ~(np.abs(Y) < RUNAWAY_DEVIATIONS).all(axis=(1, 2))
        if far.any():
            warn_user(
                f"the forecast diverges: after {int(far.argmax()) + 1} steps it is {RUNAWAY_DEVIATIONS:g} standard "
                "deviations from the mean of its series. Fit with some noise (for example input_noise=1e-3), a larger "
                "ridge, or more data.",
                ForecastWarning,
            )
        return Y

    def _shocked_loops(self, h: Array, x: Array, E: Array, count: int, seed: Seed) -> Iterator[Array]:
        """Yield, for each series, closed loops (steps, count, dims) with residuals added after every step."""
        rng = path_generator(seed)
        for i, states in enumerate(np.split(h, len(x))):
            shocks = self.residuals[rng.integers(len(self.residuals), size=(len(E), count))]
            x_i, E_i = (np.repeat(v, count, axis=-2) for v in (x[i : i + 1], E[:, i : i + 1]))
            yield self._loop(np.tile(states, (count, 1)), x_i, E_i, shocks)

    def _answer(self, Y: Array | Sequence[Array], series: OpenedSeries) -> Answers:
        """Return standardised values (..., steps, dims) in the units and form of the series."""
        return self.form.answer([y * self.form.codec.scale + self.form.codec.mean for y in Y], series)


def block_inputs(ring: Ring, z: Array, e: Array) -> list[Array]:
    """Return [x_t, e_{t+1}] for every step but the last, as each block of a ring sees it."""
    return [inputs_of(z[:, columns], e) for columns in ring.columns]


def open_loop(
    form: SeriesForm, network: Network, z: Array, e: Array, h: Array | None = None
) -> tuple[Array, Array, int]:
    """Return the states after each value but the last, ((steps - 1) * blocks, N), inputs, and the number of blocks."""
    ring = Ring.of(form.dims, network.readout.U.shape[1], network.reservoir.n_in - len(form.exogenous_mean))
    batch = pack(block_inputs(ring, z, e), np.dtype(form.codec.dtype))
    with one_blas_thread():
        return run(network.reservoir, batch, h).H, batch.X, len(ring.columns)


def ring_of(neighbourhood: int | tuple[int, int] | None, data: SeriesData) -> Ring:
    """Return the blocks that a setting announces, or refuse it for these series."""
    dims = data.form.dims
    if neighbourhood is None:
        return Ring.of(dims, dims, dims)
    *size_or_none, reach = np.ravel(neighbourhood).tolist()
    size = size_or_none[0] if size_or_none else 1
    if len(data.form.exogenous_mean):
        raise ValueError("exogenous is given with neighbourhood=, which has no place for it. Leave one of them out.")
    if dims % size or size + 2 * reach > dims:
        raise ValueError(
            f"neighbourhood={neighbourhood!r} and a series of {dims} columns; expected blocks that divide the columns, "
            "each of which sees at most all of them."
        )
    if not have_one_scale([y[:, [j]] for y in data.Y for j in range(dims)]):
        raise ValueError(
            "the columns of the series differ in scale: neighbourhood= is for the points of one field in one unit, "
            "which follow each other around a ring. Leave it out for a table of different quantities."
        )
    return Ring.of(dims, size, size + 2 * reach)


def fit_loop_forecast(
    data: SeriesData,
    settings: NetworkSettings,
    *,
    owner: str,
    params: Parameters,
    callback: Callback | None,
    checkpoint: str | PathLike[str] | None,
) -> tuple[LoopForecast, Fit]:
    """Return the forecast of a network, and its fit; params: of the estimator."""
    shortest, least = data.lengths.min(), settings.washout_steps + 3
    if shortest < least:
        raise ValueError(
            f"a series has {shortest} steps; washout={settings.washout} and learning one step from another need at "
            f"least {least}. Give longer series, or a smaller washout."
        )
    if not have_one_scale(data.Y):
        raise ValueError(
            "the series of the list differ in scale: the network of a closed loop learns one system in one unit. "
            "Divide each series by its own scale, fit one forecaster to each, or use method='direct', which has one "
            "model per series."
        )
    ring = ring_of(params["neighbourhood"], data)
    request = FitRequest(
        owner=owner,
        params=params,
        settings=settings,
        data=_one_step_data(data, ring, settings, params["input_noise"]),
        validation=None,
        loss=squared_error,
        callback=callback,
        checkpoint=checkpoint,
    )
    if params["solver"] == "qr":
        clean = [x for z, e in zip(data.Z, data.E, strict=True) for x in block_inputs(ring, z, e)]
        fitted = fit_through_loop(request, clean, params["loop_steps"], len(ring.columns))
    else:
        fitted = fit_network(request)
    return _loop_forecast(data, fitted), fitted


def have_one_scale(series: list[Array]) -> bool:
    """Return whether in each dimension the spreads of the series, and the distances of their means, are alike."""
    with np.errstate(over="ignore"):
        spread = np.array([y.std(axis=0) for y in series])
    means = np.array([y.mean(axis=0) for y in series])
    widest, varied = spread.max(axis=0), np.where(spread > 0, spread, np.inf).min(axis=0)
    alike = (widest <= MAX_SCALE_RATIO * varied) & (np.ptp(means, axis=0) <= MAX_SCALE_RATIO * widest)
    return bool((alike | (widest == 0)).all())


def _one_step_data(data: SeriesData, ring: Ring, settings: NetworkSettings, noise: float) -> Dataset:
    """Return pairs of inputs and the next values, as a dataset; one sequence per block."""
    rng = np.random.default_rng(settings.random_state).spawn(5)[-1]
    noisy = [z + noise * rng.standard_normal(z.shape) for z in data.Z] if noise else data.Z
    inputs = [x for z, e in zip(noisy, data.E, strict=True) for x in block_inputs(ring, z, e)]
    targets = [part for z in data.Z for part in np.split(z[1:], len(ring.columns), axis=1)]
    opened = Sequences(inputs, "list")
    check_has_time(opened)
    check_long_enough(opened, settings.washout_steps)
    return Dataset.place(inputs, targets, None, per_step=True, dtype=settings.dtype)


def _loop_forecast(data: SeriesData, fitted: Fit) -> LoopForecast:
    """Return the forecast at the ends of its series, with the one-step residuals of all of them.

    Residuals of a fitted readout are too small; divided by 1 - df / n (df: its degrees of freedom) they have about the
    size that leaving each one out would give.
    """
    network, ridge_fit = fitted.network, fitted.ridge_fit
    assert ridge_fit is not None
    residuals, states = [], []
    for z, e in zip(data.Z, data.E, strict=True):
        H, X, blocks = open_loop(data.form, network, z, e)
        H_c = stack(H, X, direct=network.view.direct, intercept=True)
        rest = z[1:] - np.asarray(H_c @ network.readout.U.astype(H.dtype), np.float64).reshape(len(z) - 1, -1)
        residuals.append(rest[network.view.washout :])
        states.append(H[-blocks:])
    return LoopForecast(
        form=data.form,
        network=network,
        last_state=np.vstack(states),
        last_value=np.stack([z[-1] for z in data.Z]),
        residuals=np.concatenate(residuals) / (1 - ridge_fit.degrees_of_freedom() / ridge_fit.n),
    )
