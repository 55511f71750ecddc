"""Closed loops: a forecaster whose every output is its next input."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from echolearn.runtime._opening import decode
from echolearn.runtime._plan import Plan, Standardize
from echolearn.runtime._running import Floats, Running, RunningLayer
from echolearn.validation import Answers, Array, check_columns, check_integer

MAX_FORECAST_DEVIATIONS = 100.0  # from the mean, at which a forecast has left its series


class Forecasts:
    """The continuation of series by the network of a forecaster."""

    def __init__(self, plan: Plan):
        if plan.series_dims is None:
            raise TypeError(f"{plan.estimator} does not continue series; use predict.")
        self._plan, self._dims = plan, plan.series_dims
        self._inputs = plan.n_features - plan.series_dims
        (scaling,) = plan.inputs
        assert isinstance(scaling, Standardize)
        self._mean, self._scale = scaling.mean, scaling.scale
        self._warming = RunningLayer(plan.top, Floats(plan.precision))
        self._looping = RunningLayer(plan.top, Floats("float64"))  # in which the library runs closed loops

    def forecast(self, steps: int, X: object, exogenous: object) -> Answers:
        """Return the next values of each series, in the form of the series."""
        check_integer("steps", steps, 1)
        if X is None:
            many, before = self._plan.many, [np.empty((0, self._dims))] * len(self._plan.ends)
        else:
            before, many = _series(X, self._dims, self._plan.feature_names[: self._dims], "X")
            if min(map(len, before)) < 2:
                raise ValueError("a series of X has a single step; expected at least two, from which to continue.")
        rows = self._exogenous(exogenous, [len(x) + steps for x in before], many)
        begins = [self._begin(i, x, e) for i, (x, e) in enumerate(zip(before, rows, strict=True))]
        E = np.stack([e[len(x) :] for x, e in zip(before, rows, strict=True)], axis=1)
        Y = self._closed_loop(np.stack([h for h, _ in begins]), np.stack([x for _, x in begins]), E)
        values = decode(self._plan.answer, Y.swapaxes(0, 1))
        values = values[..., 0] if self._plan.answer.one_value else values
        return list(values) if many else np.asarray(values[0])

    def _begin(self, number: int, x: Array, e: Array) -> tuple[Array, Array]:
        """Return the state before, and the standardised value at, the last known step of a series."""
        if len(x) == 0:
            end = self._plan.ends[number]
            assert end.fed_back is not None
            return end.state, end.fed_back
        z = (x - self._mean[: self._dims]) / self._scale[: self._dims]
        inputs = np.hstack([z[:-1], e[1 : len(x)]])  # beside a value, what is known of the step after it
        units = self._warming.forward
        return units.run(inputs.astype(self._warming.dtype), units.initial_state)[-1].astype(np.float64), z[-1]

    def _closed_loop(self, h: Array, x: Array, E: Array) -> Array:
        """Return B paths (steps, B, dims) from states h (B, N) and values x (B, dims) on, with exogenous inputs E."""
        layer, out = self._looping, np.empty((len(E), *x.shape))
        now = Running(h, x)
        with np.errstate(over="ignore", invalid="ignore"):
            for t, e in enumerate(E):
                out[t], now = layer.step(np.concatenate([x, e], axis=1), now)
                x = out[t]
            far = ~(np.abs(out) < MAX_FORECAST_DEVIATIONS).all(axis=(1, 2))
        if far.any():
            warnings.warn(
                f"the forecast runs away: after {int(far.argmax()) + 1} steps it is {MAX_FORECAST_DEVIATIONS:g} "
                "standard deviations from the mean of its series. Fit with some noise (for example noise=1e-3), a "
                "larger ridge, or more data.",
                stacklevel=4,
            )
        return out

    def _exogenous(self, exogenous: object, lengths: list[int], many: bool) -> list[Array]:
        """Return standardised exogenous inputs, one array (steps, inputs) per series."""
        if exogenous is None:
            if self._inputs:
                raise ValueError(f"this forecaster was fitted with {self._inputs} exogenous inputs: give exogenous=.")
            return [np.empty((n, 0)) for n in lengths]
        if not self._inputs:
            raise ValueError("exogenous is given, but this forecaster was fitted without. Leave it out.")
        rows, found_many = _series(exogenous, self._inputs, self._plan.feature_names[self._dims :], "exogenous")
        if found_many != many or [len(e) for e in rows] != lengths:
            wanted = f"a list of {len(lengths)} arrays" if many else "one array"
            raise ValueError(
                f"exogenous has {[len(e) for e in rows]!r:.60} rows; expected {wanted} of {lengths!r:.60} rows, one "
                "per step that is known and one per step to come."
            )
        return [(e - self._mean[self._dims :]) / self._scale[self._dims :] for e in rows]


def _series(container: object, width: int, columns: Sequence[str], name: str) -> tuple[list[Array], bool]:
    """Return series as a list of finite arrays (steps, width), and whether they came as a list."""
    listed = list(container) if isinstance(container, (list, tuple)) else []
    many = any(np.ndim(s) > 0 for s in listed)
    for table in listed if many else [container]:
        if hasattr(table, "columns"):
            check_columns(table, columns, name)
    try:
        series = [np.asarray(s, np.float64) for s in (listed if many else [container])]
    except (TypeError, ValueError):
        raise ValueError(f"{name} does not hold numbers; expected a series, or a list of series.") from None
    series = [s[:, None] if s.ndim == 1 else s for s in series]
    for s in series:
        if s.ndim != 2 or s.shape[1] != width or len(s) == 0 or not np.isfinite(s).all():
            raise ValueError(f"{name} has shape {s.shape}; expected (steps, {width}) with finite numbers.")
    return series, many
