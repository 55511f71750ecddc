"""Forecasts as arrays of a file, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from echolearn.fitting.codecs import ValueCodec
from echolearn.fitting.model import FittedModel
from echolearn.forecasting.columns import Column, ColumnState
from echolearn.forecasting.direct_forecast import DirectForecast
from echolearn.forecasting.direct_model import DirectModel, FollowedSeries
from echolearn.forecasting.forecast import FittedForecaster, Forecast
from echolearn.forecasting.loop_forecast import LoopForecast
from echolearn.forecasting.series import SeriesForm
from echolearn.forecasting.smoothing import TRENDS, Position, Smoothing
from echolearn.modelfile.layout import Facts
from echolearn.modelfile.schema import DIRECT_FORECAST, named
from echolearn.modelfile.values import as_finite, as_truth
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
    return arrays | (_direct_tensors(forecast.model) if isinstance(forecast, DirectForecast) else {})


def _direct_tensors(model: DirectModel) -> dict[str, Array]:
    columns = [(c, p) for series in model.series for c, p in zip(series.columns, series.column_states, strict=True)]
    members = [
        np.column_stack(
            [c.members.P, c.members.logs, c.members.trends, c.members.second, c.members.weights, p.position.L]
        )
        for c, p in columns
    ]
    seasonal = [np.concatenate([p.position.S1.ravel(), p.position.S2.ravel(), p.past]) for _, p in columns]
    counts = [[len(c.members.P), *c.members.seasons, p.position.time, int(c.log)] for c, p in columns]
    numbers = [[*c.input_scale, c.unit, p.expected, p.level] for c, p in columns]
    arrays = {
        "D": model.D,
        "errors": model.errors,
        "members": np.concatenate(members).astype(np.float64),
        "seasonal": np.concatenate(seasonal),
        "counts": np.array(counts, dtype=np.int64),
        "columns": np.array(numbers, dtype=np.float64),
        "spread": np.stack([c.spread for c, _ in columns]),
        "effects": np.stack([c.effects for c, _ in columns]),
        "states": np.stack([series.state for series in model.series]),
        "inputs": np.stack([series.inputs for series in model.series]),
    }
    return {DIRECT_FORECAST + name: value for name, value in arrays.items()}


def _forecast_of(model: FittedModel) -> Forecast:
    assert isinstance(model, FittedForecaster)
    return model.forecast


def forecast_facts(model: FittedModel) -> Facts:
    """Return the single values of a forecast: whether of many series, and of what kind."""
    forecast = _forecast_of(model)
    many: Facts = {"many": forecast.form.many}
    if not isinstance(forecast, DirectForecast):
        return many
    direct = forecast.model
    facts = {
        "sees_inputs": direct.sees_inputs,
        "widening": float(direct.widening),
        "ridge": None if np.isinf(direct.ridge) else float(direct.ridge),
        "gain": float(direct.gain),
        "dtype": direct.dtype,
    }
    return many | {"direct": facts}


def restore_forecaster(model: FittedModel, tensors: Mapping[str, Array], facts: Facts) -> FittedForecaster:
    """Return the model of a file with its forecast, or raise ValueError where its arrays do not fit."""
    last_state, last_value, residuals = (tensors[name] for name in ("last_state", "last_value", "residuals"))
    series, many = len(last_state), as_truth(facts["many"])
    codec = cast(ValueCodec, model.codec)
    form = SeriesForm(codec, tensors["exogenous_mean"], tensors["exogenous_scale"], many, list(model.feature_names))
    if series < 1 or (series > 1 and not many) or len(residuals) < 1:
        raise ValueError(f"{series} series and {len(residuals)} residuals")
    if form.n_features != model.inputs.n_features or not (form.exogenous_scale > 0).all():
        raise ValueError(f"{facts['features']} inputs; expected {form.n_features}, values and exogenous inputs")
    network = model.single
    forecast: Forecast = LoopForecast(form, network, last_state, last_value, residuals)
    if "direct" in facts:
        direct = _restore_direct(tensors, facts["direct"], network.reservoir)
        forecast = DirectForecast(form, network, direct, last_value, residuals)
    return FittedForecaster(**vars(model), forecast=forecast)


def _restore_direct(tensors: Mapping[str, Array], facts: Mapping[str, object], reservoir: Reservoir) -> DirectModel:
    """Return the direct model of a file, or raise ValueError where its arrays contradict each other."""
    t = {name.removeprefix(DIRECT_FORECAST): tensors[name] for name in named(DIRECT_FORECAST)}
    counts, series = t["counts"], len(t["states"])
    if (counts[:, :3] < 1).any() or (counts[:, 3:] < 0).any() or len(counts) % series:
        raise ValueError("the columns of the series are not counted as they should be")
    sizes = counts[:, 0] * (counts[:, 1] + counts[:, 2]) + counts[:, 1]
    if counts[:, 0].sum() != len(t["members"]) or sizes.sum() != len(t["seasonal"]):
        raise ValueError("the members of the series are not as many as counted")
    dims = len(counts) // series
    if t["D"].shape[1] != dims * t["spread"].shape[1] or t["errors"].shape[1:] != t["D"].shape[1:]:
        raise ValueError("the horizons of the forecasts do not fit")
    rows = np.split(t["members"], np.cumsum(counts[:, 0])[:-1])
    seasonal = np.split(t["seasonal"], np.cumsum(sizes)[:-1])
    restored = [_column(c, rows[i], seasonal[i], t, i) for i, c in enumerate(counts.tolist())]
    followed = tuple(
        FollowedSeries(
            tuple(c for c, _ in restored[j * dims : (j + 1) * dims]),
            tuple(p for _, p in restored[j * dims : (j + 1) * dims]),
            np.asarray(t["states"][j]),
            np.asarray(t["inputs"][j]),
        )
        for j in range(series)
    )
    return DirectModel(
        reservoir=reservoir,
        D=t["D"],
        sees_inputs=bool(facts["sees_inputs"]),
        horizon=int(t["spread"].shape[1]),
        series=followed,
        errors=t["errors"],
        widening=as_finite(facts["widening"]),
        ridge=np.inf if facts["ridge"] is None else as_finite(facts["ridge"]),
        gain=as_finite(facts["gain"]),
        dtype=str(np.dtype(cast(str, facts["dtype"]))),
    )


def _column(
    count: list[int], rows: Array, seasonal: Array, t: Mapping[str, Array], i: int
) -> tuple[Column, ColumnState]:
    """Return one column and its place."""
    K, m1, m2, time, log = count
    trends = rows[:, 7].astype(np.int64)
    if not ((trends >= 0) & (trends < len(TRENDS))).all():
        raise ValueError("a member has a trend of no known kind")
    members = Smoothing(
        P=np.ascontiguousarray(rows[:, :6]),
        logs=rows[:, 6] != 0,
        trends=trends,
        second=rows[:, 8] != 0,
        seasons=(m1, m2),
        weights=np.ascontiguousarray(rows[:, 9]),
    )
    S1, S2 = seasonal[: K * m1].reshape(K, m1), seasonal[K * m1 : K * (m1 + m2)].reshape(K, m2)
    position = Position(np.ascontiguousarray(rows[:, 10:13]), S1.copy(), S2.copy(), time)
    numbers = t["columns"][i]
    column = Column(members, bool(log), t["spread"][i], numbers[:3], t["effects"][i], float(numbers[3]))
    return column, ColumnState(position, float(numbers[4]), seasonal[K * (m1 + m2) :].copy(), float(numbers[5]))
