"""Direct forecasts of every horizon: smoothed level, trend and season, corrected by the readout of a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from echolearn.display.facts import brief
from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.settings import NetworkSettings
from echolearn.forecasting.direct_model import MIN_KNOWN_VALUES, DirectModel, FollowedSeries, SeriesSettings, fit_direct
from echolearn.forecasting.forecast import Continuation, Seed, check_scorable, path_generator
from echolearn.forecasting.series import SeriesData, SeriesForm, check_steps_ahead
from echolearn.readout.network import Network, Readout
from echolearn.readout.view import ReadoutView
from echolearn.validation import Answers, Array, SequencesLike


@dataclass(frozen=True, eq=False)
class DirectForecast:
    """A direct model, which knows where its series are: a `Forecast`.

    network: the reservoir, with the readout of the corrections one step ahead; last_value (series, dims): standardised,
    NaN where it is not known.
    """

    form: SeriesForm
    network: Network
    model: DirectModel
    last_value: Array
    residuals: Array

    method: ClassVar[str] = "direct"

    def __repr__(self) -> str:
        return brief(self)

    @property
    def last_state(self) -> Array:
        """The states of the reservoir (series, N)."""
        return np.stack([series.state for series in self.model.series])

    def predict(self, ahead: Continuation) -> Answers:
        """Return the next values, in the form of the series."""
        ends, E, many = self._begin(ahead)
        return self._answer([self.model.forecast(end, ahead.steps) for end in ends], ends, E, many)

    def interval(self, ahead: Continuation, coverage: float, count: int, seed: Seed) -> tuple[Answers, Answers]:
        """Return bounds by the errors of past origins; they need no paths, hence neither count nor seed."""
        ends, E, many = self._begin(ahead)
        bounds = [self.model.interval(end, ahead.steps, coverage) for end in ends]
        lower, upper = zip(*bounds, strict=True)
        return self._answer(lower, ends, E, many), self._answer(upper, ends, E, many)

    def paths(self, ahead: Continuation, count: int, seed: Seed) -> Answers:
        """Return the forecast with the runs of errors of past origins, (count, steps, ...) per series."""
        rng = path_generator(seed)
        ends, E, many = self._begin(ahead)
        return self._answer([self.model.paths(end, ahead.steps, count, rng) for end in ends], ends, E, many)

    def update(self, new: SequencesLike, exogenous: SequencesLike) -> Self:
        """Return the forecast after further values of each series."""
        opened = self.form.open_new(new, len(self.last_value), gaps=True)
        E = self.form.open_exogenous(exogenous, opened.lengths, opened.kind != "one")
        values = np.stack([z[-1] for z in self.form.standardised(opened.X)])
        with one_blas_thread():
            each = zip(self.model.series, opened.X, E, strict=True)
            series = tuple(self.model.follow(before, y, e) for before, y, e in each)
        return replace(self, model=replace(self.model, series=series), last_value=values)

    def errors(self, series: SequencesLike, exogenous: SequencesLike, horizon: int) -> tuple[Array, Array]:
        """Return errors and truth (n, dims) of forecasts `horizon` steps ahead, standardised, after the washout.

        Of short series at most half is washout.
        """
        opened = self.form.open(series, "series", gaps=True)
        rows = self.form.open_exogenous(exogenous, opened.lengths, opened.kind != "one")
        washout = min(self.network.view.washout, max(0, int(opened.lengths.min()) - horizon - 2) // 2)
        check_scorable(opened.lengths, washout, horizon)
        codec, errors, truth = self.form.codec, [], []
        for y, z, e in zip(opened.X, self.form.standardised(opened.X), rows, strict=True):
            with one_blas_thread():
                start = self.model.start(0, self.model.series[0].without_effects(y, e))
                forecasts = (self.model.forecasts_along(start, y, e, horizon) - codec.mean) / codec.scale
            known = ~np.isnan(z[horizon:]).any(axis=1) & (np.arange(len(z) - horizon) > washout)
            errors.append((forecasts - z[horizon:])[known])
            truth.append(z[horizon:][known])
        return np.concatenate(errors), np.concatenate(truth)

    def _begin(self, ahead: Continuation) -> tuple[list[FollowedSeries], list[Array], bool]:
        """Return the series at their ends, their exogenous inputs to come, and whether the caller gave a list.

        Other series have the columns of the training series in their order or, if their number differs, of the first.
        """
        check_steps_ahead(ahead.steps)
        model = self.model
        if ahead.warm_up is None:
            lengths, many = np.full(len(model.series), ahead.steps), self.form.many
            return list(model.series), self.form.open_exogenous(ahead.exogenous, lengths, many), many
        opened = self.form.open(ahead.warm_up, "warm_up", gaps=True)
        known, many = opened.lengths, opened.kind != "one"
        if known.min() < MIN_KNOWN_VALUES:
            raise ValueError(f"warm_up has {known.min()} steps; expected at least {MIN_KNOWN_VALUES}.")
        E = self.form.open_exogenous(ahead.exogenous, known + ahead.steps, many)
        matched, ends = len(opened.X) == len(model.series), []
        with one_blas_thread():
            for j, (y, e) in enumerate(zip(opened.X, E, strict=True)):
                like = j if matched else 0
                start = model.start(like, model.series[like].without_effects(y, e[: len(y)]))
                ends.append(model.follow(start, y, e[: len(y)]))
        return ends, [e[n:] for e, n in zip(E, known, strict=True)], many

    def _answer(self, Z: Sequence[Array], ends: list[FollowedSeries], E: list[Array], many: bool) -> Answers:
        """Return values (..., steps, dims), in the scale of the errors, in the units and form of the series."""
        return self.form.answer([end.in_units(z, e) for end, z, e in zip(ends, Z, E, strict=True)], many)


def fit_direct_forecast(data: SeriesData, settings: NetworkSettings, series: SeriesSettings) -> DirectForecast:
    """Return the direct forecast of series."""
    model, codec = fit_direct(data, settings, series), data.form.codec
    one_step = model.errors[:, :: model.horizon] * [column.spread[0] for column in model.series[0].columns]
    known = one_step[~np.isnan(one_step).any(axis=1)]
    U = np.ascontiguousarray(model.D[:, :: model.horizon])
    readout = Readout(U, False, 0.0 if np.isinf(model.ridge) else model.ridge)
    return DirectForecast(
        form=data.form,
        network=Network(model.reservoir, readout, ReadoutView(settings.washout_steps, settings.direct)),
        model=model,
        last_value=np.stack([z[-1] for z in data.Z]),
        residuals=known / codec.scale if len(known) else np.zeros((1, len(codec.mean))),
    )
