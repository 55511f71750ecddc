"""Direct forecasts of every horizon: smoothed level, trend and season, corrected by the readout of a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeAlias

import numpy as np

from echolearn.display.facts import brief
from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.settings import NetworkSettings
from echolearn.forecasting.direct_model import MIN_KNOWN_VALUES, DirectModel, SeriesSettings, fit_direct
from echolearn.forecasting.series import (
    Continuation,
    OpenedSeries,
    Seed,
    SeriesData,
    SeriesForm,
    check_scorable,
    path_generator,
)
from echolearn.readout.network import Network, Readout
from echolearn.readout.view import ReadoutView
from echolearn.validation import Answers, Array, SequencesLike

SeriesEnd: TypeAlias = tuple[DirectModel, Array]  # a model at the end of its series, and exogenous inputs to come


@dataclass(frozen=True, eq=False)
class DirectForecast:
    """One direct model per series, which knows where its series is: a `Forecast`."""

    form: SeriesForm
    network: Network  # the reservoir, with the readout of the corrections one step ahead of the first series
    models: tuple[DirectModel, ...]
    last_value: Array  # (series, dims), standardised; NaN where it is not known
    residuals: Array

    method: ClassVar[str] = "direct"

    def __repr__(self) -> str:
        return brief(self)

    @property
    def last_state(self) -> Array:
        """The states of the reservoir (series, N)."""
        return np.stack([model.state for model in self.models])

    def predict(self, ahead: Continuation) -> Answers:
        """Return the next values, in the form of the series."""
        each, series = self._begin(ahead)
        return self._answer([model.forecast(ahead.steps) for model, _ in each], each, series)

    def interval(self, ahead: Continuation, coverage: float, count: int, seed: Seed) -> tuple[Answers, Answers]:
        """Return bounds by the errors of past origins; they need no paths, hence neither count nor seed."""
        each, series = self._begin(ahead)
        lower, upper = zip(*(model.interval(ahead.steps, coverage) for model, _ in each), strict=True)
        return self._answer(lower, each, series), self._answer(upper, each, series)

    def paths(self, ahead: Continuation, count: int, seed: Seed) -> Answers:
        """Return the forecast with the runs of errors of past origins, (count, steps, ...) per series."""
        each, series = self._begin(ahead)
        paths = [model.paths(ahead.steps, count, path_generator(seed)) for model, _ in each]
        return self._answer(paths, each, series)

    def update(self, new: SequencesLike, exogenous: SequencesLike) -> Self:
        """Return the forecast after further values of each series."""
        opened, form = self.form.open_new(new, gaps=True)
        E = self.form.open_exogenous(exogenous, opened)
        values = np.stack([z[-1] for z in self.form.standardised(opened.X)])
        with one_blas_thread():
            models = tuple(model.follow(y, e) for model, y, e in zip(self.models, opened.X, E, strict=True))
        return replace(self, form=form, models=models, last_value=values)

    def errors(self, series: SequencesLike, exogenous: SequencesLike, horizon: int) -> tuple[Array, Array]:
        """Return errors, and deviations of the truth from its mean, (n, dims), in standard deviations of each series.

        The washout has two seasons at least, and at most half of the series; a model starts from its values alone.
        """
        opened = self.form.open(series, "series", gaps=True)
        rows = self.form.open_exogenous(exogenous, opened)
        errors, truth = [], []
        for model, y, e in zip(self._models_for(opened, "series"), opened.X, rows, strict=True):
            half = max(0, len(y) - horizon - 2) // 2
            seasons = max(column.members.seasons[0] for column in model.columns)
            washout = min(max(self.network.view.washout, 2 * seasons), half)
            check_scorable(np.array([len(y)]), washout, horizon)
            counts = np.cumsum(~np.isnan(y), axis=0).min(axis=1)
            first = max(washout + 1, int(np.searchsorted(counts, MIN_KNOWN_VALUES)) + 1)  # values at the start
            with one_blas_thread():
                forecasts = model.start(y[:first], e[:first]).forecasts_along(y, e, horizon)
            known = ~np.isnan(y[horizon:]).any(axis=1) & (np.arange(len(y) - horizon) >= first)
            errors.append((forecasts - y[horizon:])[known] / model.scale)
            truth.append((y[horizon:][known] - y[horizon:][known].mean(axis=0)) / model.scale)
        return np.concatenate(errors), np.concatenate(truth)

    def _models_for(self, series: OpenedSeries, name: str) -> Sequence[DirectModel]:
        """Return the model of each series: its own; a single model serves any number of them."""
        count = len(series.X)
        if count != len(self.models) > 1:
            raise ValueError(
                f"{name} has {count} series; expected {len(self.models)}, those of fit in their order: direct "
                "forecasts have one model per series. Fit a forecaster to each kind of series."
            )
        return self.models if count == len(self.models) else self.models * count

    def _begin(self, ahead: Continuation) -> tuple[list[SeriesEnd], OpenedSeries]:
        """Return each model with the end of its series and exogenous inputs to come, and the series."""
        if ahead.warm_up is None:
            E = self.form.open_exogenous(ahead.exogenous, self.form.ends, ahead.steps)
            return list(zip(self.models, E, strict=True)), self.form.ends
        series = self.form.open(ahead.warm_up, "warm_up", gaps=True)
        least = min(int((~np.isnan(y)).sum(axis=0).min()) for y in series.X)
        if least < MIN_KNOWN_VALUES:
            raise ValueError(f"warm_up has {least} known values; expected at least {MIN_KNOWN_VALUES}.")
        E = self.form.open_exogenous(ahead.exogenous, series, ahead.steps)
        each = []
        with one_blas_thread():
            for model, y, e in zip(self._models_for(series, "warm_up"), series.X, E, strict=True):
                known = e[: len(y)]
                each.append((model.start(y, known).follow(y, known), e[len(y) :]))
        return each, series

    def _answer(self, Z: Sequence[Array], each: list[SeriesEnd], series: OpenedSeries) -> Answers:
        """Return values (..., steps, dims), in the scale of the errors, in the units and form of the series."""
        return self.form.answer([model.in_units(z, e) for z, (model, e) in zip(Z, each, strict=True)], series)


def fit_direct_forecast(data: SeriesData, settings: NetworkSettings, how: SeriesSettings) -> DirectForecast:
    """Return the direct forecast of series, one model for each."""
    models, residuals = [], []
    for i, (y, e, calendar) in enumerate(zip(data.Y, data.E, data.form.calendars, strict=True)):
        _check_values(i, y, how)
        with one_blas_thread():
            model = fit_direct(y, e, [] if calendar is None else calendar.seasons, settings, how)
        models.append(model)
        rest = y[1:] - model.start(y, e).forecasts_along(y, e, 1)
        known = rest[len(rest) // 3 :]
        residuals.append(known[~np.isnan(known).any(axis=1)] / model.scale)
    first, found = models[0], np.concatenate(residuals)
    U = np.ascontiguousarray(first.D[:, :: first.horizon])
    readout = Readout(U, False, 0.0 if np.isinf(first.ridge) else first.ridge)
    return DirectForecast(
        form=data.form,
        network=Network(first.reservoir, readout, ReadoutView(settings.washout_steps, settings.direct)),
        models=tuple(models),
        last_value=np.stack([z[-1] for z in data.Z]),
        residuals=found if len(found) else np.zeros((1, data.form.dims)),
    )


def _check_values(i: int, y: Array, how: SeriesSettings) -> None:
    """Refuse a series with too few known values, and values that have no logarithm where log=True."""
    for column in y.T:
        known = int((~np.isnan(column)).sum())
        if known < MIN_KNOWN_VALUES:
            raise ValueError(f"series {i} has {known} known values; expected at least {MIN_KNOWN_VALUES}.")
        if how.log is True and not np.nanmin(column) > 0:
            raise ValueError(f"log=True, but series {i} holds {np.nanmin(column):g}. Use log='auto' or False.")
