"""Backtests: forecasts from rolling origins of a series, compared with simple baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from echolearn.display.figures import prepared_axes
from echolearn.forecasting.calendar import on_calendar
from echolearn.forecasting.seasons import find_seasons
from echolearn.validation import Array, SequencesLike, check_integer

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


PATHS_PER_CRPS = 200  # sample paths behind each CRPS
COVERAGES = (0.8, 0.95)


@dataclass(frozen=True, eq=False)
class Origin:
    """The forecasts from one origin."""

    series: int  # the index of the series, from 0
    known: int  # the number of values that were known
    past: Array  # (n_steps,): the values that were known
    truth: Array  # (horizon,): the values that followed
    forecasts: dict[str, Array]  # (horizon,): the forecasts, by the names of the methods
    bounds: dict[float, tuple[Array, Array]]  # the lower and upper bounds of the model's intervals, by their coverage
    crps: float | None  # the CRPS of the model's sample paths, in the units of the series
    season: int  # the season that the measures and the seasonal naive forecast use


@dataclass(frozen=True, eq=False)
class Backtest:
    """The forecasts and scores that `backtest` returns."""

    origins: list[Origin]  # the forecasts from every origin

    @property
    def scores(self) -> dict[str, dict[str, float]]:
        """The scores by the names of the methods: the means of each measure over the origins."""
        found = {}
        for name in self.origins[0].forecasts:
            rows = [_measures(origin, name) for origin in self.origins]
            found[name] = {measure: _mean([row[measure] for row in rows]) for measure in rows[0]}
        for coverage in self.origins[0].bounds:
            inside = [_inside(origin, coverage) for origin in self.origins]
            found["model"][f"coverage {coverage:g}"] = _mean(inside)
        return found

    def __repr__(self) -> str:
        """Return a table: one row per method."""
        scores = self.scores
        names = list(scores["model"])
        lines = [f"{'':16}" + "".join(f"{name:>15}" for name in names)]
        for method, row in scores.items():
            cells = "".join(f"{row[name]:15.3f}" if name in row else f"{'':15}" for name in names)
            lines.append(f"{method:16}{cells}")
        horizon = len(self.origins[0].truth)
        lines.append(f"{len(self.origins)} origins, {horizon} steps ahead")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return the scores as a DataFrame of pandas, one row per method."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas. The dict `scores` has the same.") from None
        return pd.DataFrame.from_dict(self.scores, orient="index")

    def plot(self, origin: int = -1, ax: Axes | None = None) -> Axes:
        """Draw the forecasts from one origin beside the truth, with the widest intervals of the model."""
        ax = prepared_axes(ax, (8, 4))
        chosen = self.origins[origin]
        horizon = len(chosen.truth)
        shown = chosen.past[-4 * max(horizon, chosen.season) :]
        before, after = np.arange(-len(shown) + 1, 1), np.arange(1, horizon + 1)
        ax.plot(before, shown, color="0.3", label="known")
        ax.plot(after, chosen.truth, color="black", marker=".", label="truth")
        if chosen.bounds:
            widest = max(chosen.bounds)
            lower, upper = chosen.bounds[widest]
            ax.fill_between(after, lower, upper, alpha=0.2, color="C0", label=f"{widest:.0%} interval")
        for number, (name, forecast) in enumerate(chosen.forecasts.items()):
            ax.plot(after, forecast, color=f"C{number}", lw=2 if name == "model" else 1, label=name)
        ax.set_xlabel("steps from the origin")
        ax.legend(fontsize="small")
        return ax


def backtest(
    model: object,
    series: SequencesLike,
    horizon: int,
    origins: int | Sequence[int] = 5,
    *,
    step: int | None = None,
    season: int | None = None,
    coverages: Sequence[float] = COVERAGES,
    refit_every: int = 1,
) -> Backtest:
    """Forecast a series from rolling origins, each time with only the values before it, and measure the errors.

    Parameters
    ----------
    model : ESNForecaster, other forecaster with `fit(series)` and `predict(steps)`, or callable
        The forecaster, which is cloned and fitted anew at every origin (see `refit_every`). A callable takes the known
        values and the horizon and returns the forecast; use one to compare with another library.
    series : array of shape (n_steps,), pandas Series, or list of such
        One series or several. NaN is a missing value, which is not scored.
    horizon : int
        The number of steps that each forecast covers. Use the number of steps that you need in practice.
    origins : int or list of int, default=5
        The number of origins, the last of which is `horizon` steps before the end. Or a list: the number of values that
        are known at each origin. More origins take proportionally longer and give less noisy scores.
    step : int, default=None
        The number of steps between origins. None: the horizon, or fewer if the series is too short for that.
    season : int, default=None
        The number of steps in a season, for the measures and for the seasonal naive forecast. None: the season that
        `ESNForecaster` finds.
    coverages : list of float, default=(0.8, 0.95)
        The coverages of the intervals that are scored, if the model has the method `forecast_interval`.
    refit_every : int, default=1
        The number of origins after which the model is fitted anew. At the origins between, it only takes in the values
        since the last one (`update`): faster, and how a model is used that is fitted now and then.

    Returns
    -------
    Backtest
        The forecasts from every origin, and the scores of the model beside those of three baselines: the last value,
        the last season and the mean. It has a table (`to_frame`) and a plot (`plot`). A forecast that is not finite
        has infinite errors, and so has the mean over the origins.

    Examples
    --------
    >>> import numpy as np
    >>> from echolearn import ESNForecaster, backtest
    >>> t = np.arange(96)
    >>> sales = 50 + t + 10 * np.sin(2 * np.pi * t / 12) + np.random.default_rng(0).normal(size=96)
    >>> found = backtest(ESNForecaster(season=12), sales, horizon=12, origins=2)
    >>> found.scores["model"]["MASE"] < found.scores["seasonal naive"]["MASE"]
    True
    """
    check_integer("horizon", horizon, 1)
    check_integer("refit_every", refit_every, 1)
    if refit_every > 1 and not hasattr(model, "update"):
        raise ValueError(f"refit_every={refit_every}, but the model has no method `update`. Use refit_every=1.")
    several = isinstance(series, (list, tuple)) and any(np.ndim(s) > 0 for s in series)
    found = []
    for number, one in enumerate(cast("Sequence[ArrayLike]", series) if several else [series]):
        table, calendar = on_calendar(one, "series")
        values = np.asarray(table, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(
                f"series has shape {values.shape}; expected one column (n_steps,). Pass its columns as a list."
            )
        m = season or find_seasons(values, calendar.seasons if calendar else ())[0]
        rows, before, fitted = getattr(table, "iloc", values), 0, model  # a series of pandas keeps its index
        for count, known in enumerate(_origins(len(values), horizon, origins, step)):
            if count % refit_every:
                cast("Any", fitted).update(rows[before:known])
            elif hasattr(model, "fit"):
                fitted = clone(model).fit(rows[:known])
            before = known
            found.append(_from_origin(fitted, rows[:known], values, (number, known, horizon, m), coverages))
    return Backtest(found)


def _origins(n: int, horizon: int, origins: int | Sequence[int], step: int | None) -> list[int]:
    """Return how many values are known at each origin."""
    if not isinstance(origins, (int, np.integer)):
        known = sorted(int(k) for k in origins)
        if not known or known[0] < 2 or known[-1] + horizon > n:
            raise ValueError(f"origins={origins!r:.60}; expected numbers of known values from 2 to {n - horizon}.")
        return known
    count = check_integer("origins", int(origins), 1)
    last, least = n - horizon, max(4, n // 4)
    if last < least:
        raise ValueError(f"a series has {n} steps; a horizon of {horizon} leaves {last} to fit to. Use a shorter one.")
    stride = step or max(1, min(horizon, (last - least) // max(count - 1, 1)))
    return [k for k in range(last - stride * (count - 1), last + 1, stride) if k >= least]


def _from_origin(
    fitted: object, past: object, values: Array, where: tuple[int, int, int, int], coverages: Sequence[float]
) -> Origin:
    """Return the forecasts of a fitted model, or a callable, from one origin.

    where: number of the series, known values, horizon, season.
    """
    number, known, horizon, m = where
    history, truth = values[:known], values[known : known + horizon]
    bounds: dict[float, tuple[Array, Array]] = {}
    score = None
    if hasattr(fitted, "predict"):
        forecast = np.asarray(fitted.predict(horizon), dtype=np.float64).reshape(horizon)
        if hasattr(fitted, "forecast_interval"):
            for coverage in coverages:
                lower, upper = fitted.forecast_interval(horizon, coverage)
                bounds[float(coverage)] = np.asarray(lower), np.asarray(upper)
        if hasattr(fitted, "forecast_paths"):
            score = crps(truth, np.asarray(fitted.forecast_paths(horizon, PATHS_PER_CRPS)))
    else:
        method = cast("Callable[[object, int], ArrayLike]", fitted)
        forecast = np.asarray(method(past, horizon), dtype=np.float64).reshape(horizon)
    known_values = history[~np.isnan(history)]
    lag = m if known >= m else 1
    last_season = _carried(history)[known - lag :][np.arange(horizon) % lag]
    forecasts = {
        "model": forecast,
        "naive": np.full(horizon, known_values[-1]),
        "seasonal naive": last_season,
        "mean": np.full(horizon, known_values.mean()),
    }
    return Origin(number, known, history, truth, forecasts, bounds, score, m)


def _carried(y: Array) -> Array:
    """Return values with gaps filled by the last known one."""
    is_known = ~np.isnan(y)
    newest = np.maximum.accumulate(np.where(is_known, np.arange(len(y)), is_known.argmax()))
    return np.asarray(y[newest])


def _measures(origin: Origin, name: str) -> dict[str, float]:
    truth, forecast = origin.truth, origin.forecasts[name]
    scale = seasonal_scale(origin.past, origin.season)
    errors = _errors(truth, forecast)
    point = float(np.nanmean(errors))
    score = origin.crps if name == "model" and origin.crps is not None else point
    return {
        "MASE": point / scale,
        "sMAPE": smape(truth, forecast),
        "RMSSE": float(np.sqrt(np.nanmean(errors**2)) / seasonal_scale(origin.past, origin.season, 2)),
        "CRPS": score / scale,
    }


def _inside(origin: Origin, coverage: float) -> float:
    lower, upper = origin.bounds[coverage]
    is_known = ~np.isnan(origin.truth)
    return float(((origin.truth >= lower) & (origin.truth <= upper))[is_known].mean())


def _errors(truth: Array, forecast: Array) -> Array:
    """Return absolute errors: NaN where the truth is not known, infinite where the forecast is not finite."""
    return np.where(np.isnan(truth), np.nan, np.abs(truth - np.where(np.isfinite(forecast), forecast, np.inf)))


def _mean(values: Sequence[float]) -> float:
    """Return the mean over the origins that have a measure: of constant values there is no scale."""
    known = [v for v in values if not np.isnan(v)]
    return float(np.mean(known)) if known else float("nan")


# Errors of forecasts that can be compared between series


def seasonal_scale(known: Array, season: int, power: int = 1) -> float:
    """Return the mean absolute (power=1) or root mean squared (2) error of repeating the last season, over `known`."""
    lag = season if len(known) > season else 1
    change = np.abs(known[lag:] - known[:-lag])
    change = change[~np.isnan(change)]
    if not len(change):
        return float("nan")
    return float((change**power).mean() ** (1 / power)) or float("nan")


def smape(truth: Array, forecast: Array) -> float:
    """Return the symmetric mean absolute percentage error, 0 to 200; infinite if a forecast is not finite."""
    size, errors = np.abs(truth) + np.abs(forecast), _errors(truth, forecast)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.nanmean(np.where(errors > 0, 200 * errors / np.where(np.isinf(errors), 1.0, size), errors)))


def crps(truth: Array, paths: Array) -> float:
    """Return the mean continuous ranked probability score of sample paths (n, ...) for truth (...).

    E|X - y| - E|X - X'| / 2, the second mean over all pairs by their order; of one path it is the absolute error.
    """
    n = len(paths)
    if not np.isfinite(paths).all():
        return float("inf")
    ordered = np.sort(paths, axis=0)
    weights = (2 * np.arange(1, n + 1) - n - 1).reshape(-1, *[1] * truth.ndim)
    spread = (weights * ordered).sum(axis=0) / n**2
    return float(np.nanmean(np.abs(paths - truth).mean(axis=0) - spread))
