"""The direct method of a forecaster: its fit as the file and attributes of an estimator know it, and its answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from echolearn.execution.blas import one_blas_thread
from echolearn.fitting.codecs import ValueCodec
from echolearn.fitting.model import ForecastState
from echolearn.fitting.settings import NetworkSettings
from echolearn.forecasting.members import Allowed
from echolearn.forecasting.model import DirectModel, FollowedSeries, fit_direct, seasons_for
from echolearn.readout.network import Network, Readout
from echolearn.readout.observation import ReadoutView
from echolearn.reservoir import Reservoir, intrinsic_plasticity
from echolearn.validation import Array

PLASTICITY_STEPS = 1000  # of noise by which intrinsic plasticity adapts
MIN_KNOWN_VALUES = 4  # that a series needs


@dataclass(frozen=True, kw_only=True)
class SeriesSettings:
    """The parameters that concern the series itself; seasons: those that a time index announces."""

    horizon: int | None
    season: str | int | None
    trend: str | bool
    log: str | bool
    seasons: tuple[int, int] | None


def drawing(settings: NetworkSettings) -> Callable[[int], Reservoir]:
    """Return the function that draws a reservoir for so many inputs; the same one every time."""

    def draw(n_in: int) -> Reservoir:
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
        if settings.plasticity is not None:  # its inputs are standardised
            noise = np.random.default_rng(0).standard_normal((PLASTICITY_STEPS, n_in))
            reservoir = intrinsic_plasticity(reservoir, [noise], spread=settings.plasticity)
        if settings.initial_state is not None:
            reservoir = replace(reservoir, initial_state=np.asarray(settings.initial_state))
        return reservoir

    return draw


def fit_direct_network(
    Y: Sequence[Array], E: Sequence[Array], settings: NetworkSettings, of_series: SeriesSettings
) -> tuple[DirectModel, Network]:
    """Return the direct model of series (n, dims) with exogenous inputs in their scale, and its network."""
    for i, y in enumerate(Y):
        for j in range(y.shape[1]):
            known = int((~np.isnan(y[:, j])).sum())
            if known < MIN_KNOWN_VALUES:
                raise ValueError(f"series {i} has {known} known values; expected at least {MIN_KNOWN_VALUES}.")
            if of_series.log is True and not np.nanmin(y[:, j]) > 0:
                raise ValueError(f"log=True, but series {i} holds {np.nanmin(y[:, j]):g}. Use log='auto' or False.")
    allowed = Allowed(log=_choice(of_series.log), trend=_choice(of_series.trend))
    with one_blas_thread():
        model = fit_direct(
            Y,
            E,
            seasons_for(of_series.seasons, of_series.season),
            horizon=of_series.horizon,
            allowed=allowed,
            draw=drawing(settings),
            sees_inputs=settings.direct,
            dtype=settings.dtype,
        )
    ridge = 0.0 if np.isinf(model.ridge) else model.ridge
    readout = Readout(np.ascontiguousarray(model.D[:, :: model.horizon]), False, ridge)
    return model, Network(model.reservoir, readout, ReadoutView(settings.washout_steps, settings.direct, None))


def _choice(value: str | bool) -> bool | None:
    """Return True or False, None for "auto"."""
    return None if isinstance(value, str) else bool(value)


def direct_state(
    model: DirectModel, Y: Sequence[Array], scale: tuple[Array, Array], many: bool, codec: ValueCodec
) -> ForecastState:
    """Return what the estimator keeps beside the network."""
    one_step = model.errors[:, :: model.horizon] * [c.spread[0] for c in model.series[0].columns]
    known = one_step[~np.isnan(one_step).any(axis=1)]
    return ForecastState(
        exogenous_mean=scale[0],
        exogenous_scale=scale[1],
        last_state=np.stack([series.state for series in model.series]),
        last_value=np.stack([(y[-1] - codec.mean) / codec.scale for y in Y]),
        residuals=known / codec.scale if len(known) else np.zeros((1, len(codec.mean))),
        many=many,
        direct=model,
    )


def followed(model: DirectModel, Y: Sequence[Array], E: Sequence[Array]) -> list[FollowedSeries]:
    """Return other series at their ends, with the columns of the training series in their order or of the first."""
    matched, ends = len(Y) == len(model.series), []
    with one_blas_thread():
        for j, (y, e) in enumerate(zip(Y, E, strict=True)):
            like = j if matched else 0
            start = model.start(like, model.series[like].without_effects(y, e[: len(y)]))
            ends.append(model.follow(start, y, e[: len(y)]))
    return ends


def one_value_ahead(model: DirectModel, y: Array, e: Array, horizon: int) -> Array:
    """Return the forecasts (n - horizon, dims) of y[horizon:], each made `horizon` steps before."""
    with one_blas_thread():
        start = model.start(0, model.series[0].without_effects(y, e))
        return model.forecasts_along(start, y, e, horizon)
