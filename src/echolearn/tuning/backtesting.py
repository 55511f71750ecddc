"""Backtests: forecasts from rolling origins of a series, compared with simple baselines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from echolearn.forecasting.seasons import find_seasons, seasons_of_index
from echolearn.tuning.measures import crps, mase, rmsse, seasonal_scale, smape
from echolearn.validation import Array, SequencesLike, check_integer

if TYPE_CHECKING:  # optional
    import pandas as pd
    from matplotlib.axes import Axes

PATHS = 200  # sample paths behind each CRPS
COVERAGES = (0.8, 0.95)


@dataclass(frozen=True, eq=False)
class Origin:
    """The forecasts from one origin.

    Attributes
    ----------
    series : int
        The index of the series, from 0.
    known : int
        The number of values that were known.
    past : array of shape (n_steps,)
        The values that were known.
    truth : array of shape (horizon,)
        The values that followed.
    forecasts : dict of str to array of shape (horizon,)
        The forecasts, by the names of the methods.
    bounds : dict of float to (array, array)
        The lower and upper bounds of the model's intervals, by their coverage.
    crps : float or None
        The CRPS of the model's sample paths, in the units of the series.
    season : int
        The season that the measures and the seasonal naive forecast use.
    """

    series: int
    known: int
    past: Array
    truth: Array
    forecasts: dict[str, Array]
    bounds: dict[float, tuple[Array, Array]]
    crps: float | None
    season: int


@dataclass(frozen=True, eq=False)
class Backtest:
    """The forecasts and scores that `backtest` returns.

    Attributes
    ----------
    origins : list of Origin
        The forecasts from every origin.
    scores : dict of str to dict
        The scores of each method: the means of MASE, sMAPE, RMSSE and CRPS (in the unit of MASE) over the origins. The
        model also has the share of values inside its intervals, under names such as "coverage 0.8".
    """

    origins: list[Origin]

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
        """Return the scores as a DataFrame of pandas, one row per method.

        Returns
        -------
        DataFrame
            One row per method and one column per measure.
        """
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas. The dict `scores` has the same.") from None
        return pd.DataFrame.from_dict(self.scores, orient="index")

    def plot(self, origin: int = -1, ax: Axes | None = None) -> Axes:
        """Draw the forecasts from one origin beside the truth, with the widest intervals of the model.

        Parameters
        ----------
        origin : int, default=-1
            The index of the origin; -1 is the last one.
        ax : matplotlib Axes, default=None
            The axes to draw into. None: those of a new figure.

        Returns
        -------
        Axes
            The axes that were drawn into.
        """
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("plot needs matplotlib: pip install 'echolearn[report]'.") from None
        if ax is None:
            _, ax = plt.subplots(figsize=(8, 4))
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
) -> Backtest:
    """Forecast a series from rolling origins, each time with only the values before it, and measure the errors.

    Parameters
    ----------
    model : ESNForecaster, other forecaster with `fit(series)` and `predict(steps)`, or callable
        The forecaster, which is cloned and fitted anew at every origin. A callable takes the known values and the
        horizon and returns the forecast; use one to compare with another library.
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

    Returns
    -------
    Backtest
        The forecasts from every origin, and the scores of the model beside those of three baselines: the last value,
        the last season and the mean. It has a table (`to_frame`) and a plot (`plot`).

    See Also
    --------
    echolearn.tuning.tune : Search for the settings with the smallest error of a backtest.
    echolearn.metrics.valid_time : A measure for forecasts of chaotic series.

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
    several = isinstance(series, (list, tuple)) and any(np.ndim(s) > 0 for s in series)
    found = []
    for number, one in enumerate(cast("Sequence[ArrayLike]", series) if several else [series]):
        values = np.asarray(one, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(
                f"series has shape {values.shape}; expected one column (n_steps,). Pass its columns as a list."
            )
        index = getattr(one, "index", None)
        announced = None if index is None or callable(index) else seasons_of_index(index)
        m = season or find_seasons(values, announced)[0]
        for known in _origins(len(values), horizon, origins, step):
            rows = getattr(one, "iloc", values)  # a series of pandas keeps its index
            past = rows[:known]
            found.append(_from_origin(model, past, values, (number, known, horizon, m), coverages))
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
    model: object, past: object, values: Array, where: tuple[int, int, int, int], coverages: Sequence[float]
) -> Origin:
    """Return the forecasts from one origin; where: number of the series, known values, horizon, season."""
    number, known, horizon, m = where
    history, truth = values[:known], values[known : known + horizon]
    bounds: dict[float, tuple[Array, Array]] = {}
    score = None
    if hasattr(model, "fit"):
        fitted = clone(model).fit(past)
        forecast = np.asarray(fitted.predict(horizon), dtype=np.float64).reshape(horizon)
        if hasattr(fitted, "forecast_interval"):
            for coverage in coverages:
                lower, upper = fitted.forecast_interval(horizon, coverage)
                bounds[float(coverage)] = np.asarray(lower), np.asarray(upper)
        if hasattr(fitted, "forecast_paths"):
            score = crps(truth, np.asarray(fitted.forecast_paths(horizon, PATHS)))
    else:
        method = cast("Callable[[object, int], ArrayLike]", model)
        forecast = np.asarray(method(past, horizon), dtype=np.float64).reshape(horizon)
    there = history[~np.isnan(history)]
    lag = m if known >= m else 1
    last_season = _carried(history)[known - lag :][np.arange(horizon) % lag]
    forecasts = {
        "model": forecast,
        "naive": np.full(horizon, there[-1]),
        "seasonal naive": last_season,
        "mean": np.full(horizon, there.mean()),
    }
    return Origin(number, known, history, truth, forecasts, bounds, score, m)


def _carried(y: Array) -> Array:
    """Return values with gaps filled by the last known one."""
    there = ~np.isnan(y)
    newest = np.maximum.accumulate(np.where(there, np.arange(len(y)), there.argmax()))
    return np.asarray(y[newest])


def _measures(origin: Origin, name: str) -> dict[str, float]:
    truth, forecast = origin.truth, origin.forecasts[name]
    scale = seasonal_scale(origin.past, origin.season)
    point = float(np.nanmean(np.abs(truth - forecast)))
    score = origin.crps if name == "model" and origin.crps is not None else point
    return {
        "MASE": mase(truth, forecast, scale),
        "sMAPE": smape(truth, forecast),
        "RMSSE": rmsse(truth, forecast, seasonal_scale(origin.past, origin.season, 2)),
        "CRPS": score / scale,
    }


def _inside(origin: Origin, coverage: float) -> float:
    lower, upper = origin.bounds[coverage]
    there = ~np.isnan(origin.truth)
    return float(((origin.truth >= lower) & (origin.truth <= upper))[there].mean())


def _mean(values: Sequence[float]) -> float:
    finite = [v for v in values if np.isfinite(v)]
    return float(np.mean(finite)) if finite else float("nan")
