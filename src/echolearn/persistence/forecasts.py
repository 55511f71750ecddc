"""Forecasts as arrays of a file, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import cast

import numpy as np

from echolearn.fitting.codecs import ValueCodec
from echolearn.fitting.model import FittedModel
from echolearn.forecasting.calendar import Calendar
from echolearn.forecasting.direct_forecast import DirectForecast
from echolearn.forecasting.direct_model import Column, DirectModel
from echolearn.forecasting.forecast import FittedForecaster, Forecast, MeanForecast
from echolearn.forecasting.loop_forecast import LoopForecast
from echolearn.forecasting.series import SeriesForm
from echolearn.forecasting.smoothing import TRENDS, Smoothing
from echolearn.modelfile.layout import Facts
from echolearn.modelfile.schema import DIRECT_FORECAST, MAX_LAGS, named
from echolearn.modelfile.values import as_truth, as_words
from echolearn.reservoir import Reservoir
from echolearn.validation import Array


def forecast_tensors(model: FittedModel) -> dict[str, Array]:
    """Return the arrays of a forecast beside its network, by their names in a file."""
    forecast = _forecast_of(model)
    arrays = {
        "exogenous_mean": forecast.form.exogenous_mean,
        "exogenous_scale": forecast.form.exogenous_scale,
        "last_state": forecast.last_state,
        "last_value": forecast.last_value,
        "residuals": forecast.residuals,
    }
    direct = forecast.direct if isinstance(forecast, MeanForecast) else forecast
    return arrays | (_direct_tensors(direct.models) if isinstance(direct, DirectForecast) else {})


def _direct_tensors(models: Sequence[DirectModel]) -> dict[str, Array]:
    columns = [column for model in models for column in model.columns]
    smoothings = [column.members for column in columns]
    members = [np.column_stack([m.P, m.logs, m.trends, m.second, m.weights, m.L, m.A, m.R]) for m in smoothings]
    seasonal = [np.concatenate([c.members.S1.ravel(), c.members.S2.ravel(), c.past]) for c in columns]
    counts = [
        [len(c.members.P), *c.members.seasons, c.members.time, int(c.log), c.age, int(c.never_negative)]
        for c in columns
    ]
    numbers = [[*c.input_scale, c.unit, c.expected, c.level] for c in columns]
    arrays = {
        "D": np.hstack([model.D for model in models]),
        "errors": np.concatenate([model.errors.ravel() for model in models]),
        "members": np.concatenate(members).astype(np.float64),
        "seasonal": np.concatenate(seasonal),
        "counts": np.array(counts, dtype=np.int64),
        "columns": np.array(numbers, dtype=np.float64),
        "spread": np.concatenate([c.spread for c in columns]),
        "effects": np.stack([c.effects for c in columns]),
        "sizes": np.array([[model.horizon, len(model.errors)] for model in models], dtype=np.int64),
        "models": np.array([[model.ridge, model.gain] for model in models]),
        "scale": np.stack([model.scale for model in models]),
        "states": np.stack([model.state for model in models]),
        "inputs": np.stack([model.inputs for model in models]),
    }
    return {
        DIRECT_FORECAST + name: np.nan_to_num(v, posinf=-1.0) if name == "models" else v for name, v in arrays.items()
    }


def _forecast_of(model: FittedModel) -> Forecast:
    assert isinstance(model, FittedForecaster)
    return model.forecast


def forecast_facts(model: FittedModel) -> Facts:
    """Return the single values of a forecast: whether of many series, and of what kind."""
    forecast = _forecast_of(model)
    calendars = [calendar and asdict(calendar) for calendar in forecast.form.calendars]
    facts: Facts = {"many": forecast.form.many} | ({"calendars": calendars} if any(calendars) else {})
    if any(forecast.form.names) and not model.feature_names:  # some columns have names
        facts["names"] = forecast.form.names
    direct = forecast.direct if isinstance(forecast, MeanForecast) else forecast
    if not isinstance(direct, DirectForecast):
        return facts
    first, with_loop = direct.models[0], isinstance(forecast, MeanForecast)
    return facts | {"direct": {"sees_inputs": first.sees_inputs, "dtype": first.dtype, "with_loop": with_loop}}


def restore_forecaster(model: FittedModel, tensors: Mapping[str, Array], facts: Facts) -> FittedForecaster:
    """Return the model of a file with its forecast, or raise ValueError where its arrays do not fit."""
    last_state, last_value, residuals = (tensors[name] for name in ("last_state", "last_value", "residuals"))
    series, many = len(last_value), as_truth(facts["many"])
    codec = cast(ValueCodec, model.codec)
    calendars = tuple(facts_ and Calendar(**facts_) for facts_ in facts.get("calendars") or [None] * series)
    if len(calendars) != series:
        raise ValueError(f"{len(calendars)} calendars of {series} series")
    names = as_words(facts.get("names", list(model.feature_names)))
    form = SeriesForm(codec, tensors["exogenous_mean"], tensors["exogenous_scale"], many, names, calendars)
    if len(names) not in (0, form.n_features):
        raise ValueError(f"{len(names)} names of {form.n_features} columns")
    if series < 1 or (series > 1 and not many) or len(residuals) < 1:
        raise ValueError(f"{series} series and {len(residuals)} residuals")
    network = model.single
    inputs, local = facts["features"], model.settings.get("neighbourhood") is not None
    fits = network.readout.U.shape[1] <= inputs <= form.dims == form.n_features if local else inputs == form.n_features
    if not (fits or "direct" in facts) or not (form.exogenous_scale > 0).all():
        raise ValueError(f"{inputs} inputs; expected {form.n_features}, values and exogenous inputs")
    forecast: Forecast = LoopForecast(form, network, last_state, last_value, residuals)
    if "direct" in facts:
        models = _restore_direct(tensors, facts["direct"], network.reservoir)
        direct = DirectForecast(form, network, models, last_value, residuals)
        forecast = MeanForecast(**vars(forecast), direct=direct) if facts["direct"]["with_loop"] else direct
    return FittedForecaster(**vars(model), forecast=forecast)


def _restore_direct(
    tensors: Mapping[str, Array], facts: Mapping[str, object], reservoir: Reservoir
) -> tuple[DirectModel, ...]:
    """Return the direct models of a file, or raise ValueError where its arrays contradict each other."""
    t = {name.removeprefix(DIRECT_FORECAST): tensors[name] for name in named(DIRECT_FORECAST)}
    counts, sizes, series = t["counts"], t["sizes"], len(t["states"])
    if (counts[:, :3] < 1).any() or (counts[:, 3:] < 0).any() or len(counts) % series:
        raise ValueError("the columns of the series are not counted as they should be")
    effects = counts[:, 0] * (counts[:, 1] + counts[:, 2]) + counts[:, 1]
    if counts[:, 0].sum() != len(t["members"]) or effects.sum() != len(t["seasonal"]):
        raise ValueError("the members of the series are not as many as counted")
    dims = len(counts) // series
    widths = dims * sizes[:, 0]
    fits = (sizes > 0).all() and widths.sum() == t["D"].shape[1] == len(t["spread"])
    if not fits or (widths * sizes[:, 1]).sum() != len(t["errors"]):
        raise ValueError("the horizons of the forecasts do not fit")
    rows, seasonal, spread = (
        np.split(t[name], np.cumsum(lengths)[:-1])
        for name, lengths in (("members", counts[:, 0]), ("seasonal", effects), ("spread", sizes[:, 0].repeat(dims)))
    )
    restored = [
        _column(c, rows[i], seasonal[i], spread[i], (t["columns"][i], t["effects"][i]))
        for i, c in enumerate(counts.tolist())
    ]
    D, errors = (
        np.split(t[name], np.cumsum(lengths)[:-1], axis=-1)
        for name, lengths in (("D", widths), ("errors", widths * sizes[:, 1]))
    )
    models = []
    for j, (horizon, origins) in enumerate(sizes.tolist()):
        columns = tuple(restored[j * dims : (j + 1) * dims])
        ridge, gain = t["models"][j].tolist()
        models.append(
            DirectModel(
                reservoir=reservoir,
                D=np.ascontiguousarray(D[j]),
                sees_inputs=bool(facts["sees_inputs"]),
                horizon=horizon,
                columns=columns,
                state=np.asarray(t["states"][j]),
                inputs=np.asarray(t["inputs"][j]),
                scale=t["scale"][j],
                errors=errors[j].reshape(origins, dims * horizon),
                ridge=np.inf if ridge < 0 else ridge,
                gain=gain,
                dtype=str(np.dtype(cast(str, facts["dtype"]))),
            )
        )
    return tuple(models)


def _column(count: list[int], rows: Array, seasonal: Array, spread: Array, others: tuple[Array, Array]) -> Column:
    """Return one column; others: its numbers, and the effects of exogenous inputs."""
    K, m1, m2, time, log, age, never_negative = count
    trends = rows[:, 8].astype(np.int64)
    if not ((trends >= 0) & (trends < len(TRENDS))).all():
        raise ValueError("a member has a trend of no known kind")
    members = Smoothing(
        P=np.ascontiguousarray(rows[:, :7]),
        logs=rows[:, 7] != 0,
        trends=trends,
        second=rows[:, 9] != 0,
        weights=np.ascontiguousarray(rows[:, 10]),
        L=np.ascontiguousarray(rows[:, 11:13]),
        A=np.ascontiguousarray(rows[:, 13 : 13 + MAX_LAGS]),
        R=np.ascontiguousarray(rows[:, 13 + MAX_LAGS :]),
        S1=seasonal[: K * m1].reshape(K, m1).copy(),
        S2=seasonal[K * m1 : K * (m1 + m2)].reshape(K, m2).copy(),
        time=time,
    )
    numbers, effects = others
    unit, expected, level = numbers[3:].tolist()
    past = seasonal[K * (m1 + m2) :].copy()
    return Column(
        members, bool(log), spread, numbers[:3], effects, unit, expected, past, level, age, bool(never_negative)
    )
