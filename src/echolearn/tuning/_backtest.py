"""Backtests: forecasts from rolling origins of a series, compared with simple baselines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.base import clone

from echolearn.display.facts import counted
from echolearn.display.figures import prepared_axes
from echolearn.display.progress import Bar, in_notebook
from echolearn.forecasting.calendar import on_calendar
from echolearn.forecasting.seasons import find_seasons
from echolearn.metrics._forecast_errors import mean_and_error
from echolearn.validation import Array, SequencesLike, check_integer

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


PATHS_PER_CRPS = 200  # sample paths behind each CRPS
COVERAGES = (0.8, 0.95)
BASELINES = ("naive", "seasonal naive", "mean")
SIGNIFICANT_CHANCE = 0.05  # below which a difference is marked
QUIET_SECONDS = 2.0  # after which progress is shown


@dataclass(frozen=True, eq=False)
class Origin:
    """The forecasts from one origin."""

    series: int  # the index of the series, from 0
    known: int  # the number of values that were known
    past: Array  # (n_steps,): the values that were known
    truth: Array  # (horizon,): the values that followed
    forecasts: dict[str, Array]  # (horizon,): the forecasts, by the names of the methods
    bounds: dict[str, dict[float, tuple[Array, Array]]]  # lower and upper bounds, by the models and their coverages
    crps: dict[str, float]  # the CRPS of the sample paths of models, in the units of the series
    season: int  # the season that the measures and the seasonal naive forecast use


@dataclass(frozen=True, eq=False)
class Backtest:
    """The forecasts and scores that `backtest` returns."""

    origins: list[Origin]  # the forecasts from every origin

    @property
    def scores(self) -> dict[str, dict[str, float]]:
        """The scores by the names of the methods: the means of each measure over the origins.

        p: the chance of a difference in MASE from the first method as large as this one, if both were equally good, by
        the test of Diebold and Mariano with the correction of Harvey, Leybourne and Newbold for few origins. The
        errors of one series are paired by origins, those of several series by their means.
        """
        found, errors = {}, {}
        for name, first in dict.fromkeys(self.origins[0].forecasts, next(iter(self.origins[0].forecasts))).items():
            rows = [_measures(origin, name) for origin in self.origins]
            found[name] = {measure: _mean([row[measure] for row in rows]) for measure in rows[0]}
            errors[name] = np.array([row["MASE"] for row in rows])
            if name != first:
                found[name]["p"] = self._chance(errors[name], errors[first])
            for coverage in self.origins[0].bounds.get(name, {}):
                inside = [_inside(origin, origin.bounds[name][coverage]) for origin in self.origins]
                found[name][f"coverage {coverage:g}"] = _mean(inside)
        return found

    def _chance(self, errors: Array, others: Array) -> float:
        """Return the p-value of equal means of paired errors, one per origin."""
        with np.errstate(invalid="ignore"):
            rest = errors - others
        number, known = (np.array([getattr(origin, name) for origin in self.origins]) for name in ("series", "known"))
        usable, lags = np.isfinite(rest), 0
        if number[-1] > 0:
            rest = np.array([rest[usable & (number == i)].mean() for i in np.unique(number[usable])])
        else:  # forecasts from neighbouring origins overlap
            horizon, rest = len(self.origins[0].truth), rest[usable]
            lags = int(np.ceil(horizon / max(1, np.diff(known).min(initial=horizon)))) - 1
        mean, error = mean_and_error(rest, lags)
        if not error > 0:
            return 1.0 if mean == 0 else float("nan")
        return float(2 * stats.t.sf(abs(mean) / error, len(rest) - 1))

    def __repr__(self) -> str:
        """Return a table: one row per method; a star marks a MASE that differs from that of the first method."""
        scores = self.scores
        names = [name for name in dict.fromkeys(name for row in scores.values() for name in row) if name != "p"]
        rows = [["", *names]]
        for method, row in scores.items():
            cells = [f"{row[name]:.3f}" if name in row else "" for name in names]
            cells[0] += "*" if row.get("p", 1.0) < SIGNIFICANT_CHANCE else " "
            rows.append([method, *cells])
        first_width, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
        lines = [
            f"{method:{first_width}}{''.join(f'  {cell:>{width}}' for cell, width in zip(cells, widths, strict=True))}"
            for method, *cells in rows
        ]
        lines = [line.rstrip() for line in lines]
        horizon, first = len(self.origins[0].truth), next(iter(scores))
        star = f"; * differs from {first} (p < {SIGNIFICANT_CHANCE:g})" if any("*" in line for line in lines) else ""
        lines.append(f"{len(self.origins)} origins, {horizon} steps ahead{star}")
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return the scores as a DataFrame of pandas, one row per method."""
        try:
            import pandas as pd
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas. The dict `scores` has the same.") from None
        return pd.DataFrame.from_dict(self.scores, orient="index")

    def plot(self, origin: int = -1, ax: Axes | None = None) -> Axes:
        """Draw the forecasts from one origin beside the truth, with the widest intervals of the first model."""
        ax = prepared_axes(ax, (8, 4))
        chosen = self.origins[origin]
        horizon = len(chosen.truth)
        shown = chosen.past[-4 * max(horizon, chosen.season) :]
        before, after = np.arange(-len(shown) + 1, 1), np.arange(1, horizon + 1)
        ax.plot(before, shown, color="0.3", label="known")
        ax.plot(after, chosen.truth, color="black", marker=".", label="truth")
        first = next(iter(chosen.forecasts))
        if bounds := chosen.bounds.get(first):
            widest = max(bounds)
            lower, upper = bounds[widest]
            ax.fill_between(after, lower, upper, alpha=0.2, color="C0", label=f"{widest:.0%} interval")
        for number, (name, forecast) in enumerate(chosen.forecasts.items()):
            ax.plot(after, forecast, color=f"C{number}", lw=2 if name == first else 1, label=name)
        place = range(len(self.origins))[origin] + 1
        title = f"{counted(horizon, 'step')} ahead, from origin {place} of {len(self.origins)}"
        ax.set(title=title, xlabel="steps from the origin", ylabel="value of the series")
        ax.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1.0))  # beside the data
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
    model : ESNForecaster, other forecaster with `fit(series)` and `predict(horizon)`, callable, or dict of such
        The forecaster, which is cloned and fitted anew at every origin (see `refit_every`). A callable takes the known
        values and the horizon and returns the forecast; use one to compare with another library. A dict has several
        of them by name, which stand side by side in one table; differences from the first are tested.
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
        since the last one (`update`): faster, and the way in which a model is used that is fitted only now and then.

    Returns
    -------
    Backtest
        The forecasts from every origin, and the scores of the model beside those of three baselines: the last value,
        the last season and the mean. It has a table (`to_frame`) and a plot (`plot`). A forecast that is not finite
        has infinite errors, and so has the mean over the origins. After two seconds, a terminal or notebook shows how
        far it is.

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
    models = dict(model) if isinstance(model, Mapping) else {"model": model}
    _check_models(models, refit_every)
    several = isinstance(series, (list, tuple)) and any(np.ndim(s) > 0 for s in series)
    opened = []
    for one in cast("Sequence[ArrayLike]", series) if several else [series]:
        table, calendar = on_calendar(one, "series")
        values = np.asarray(table, dtype=np.float64)
        if values.ndim != 1:
            raise ValueError(
                f"series has shape {values.shape}; expected one column (n_steps,). Pass its columns as a list."
            )
        m = season or find_seasons(values, calendar.seasons if calendar else ())[0]
        # a series of pandas keeps its index
        opened.append((getattr(table, "iloc", values), values, m, _origins(len(values), horizon, origins, step)))
    found: list[Origin] = []
    total, started = sum(len(places) for _, _, _, places in opened), time.perf_counter()
    with Bar(total, shown=in_notebook() or sys.stderr.isatty()) as bar:
        for number, (rows, values, m, places) in enumerate(opened):
            before, fitted = 0, models
            for count, known in enumerate(places):
                if count % refit_every:
                    for one in fitted.values():
                        cast("Any", one).update(rows[before:known])
                else:
                    fitted = {
                        name: clone(one).fit(rows[:known]) if hasattr(one, "fit") else one
                        for name, one in models.items()
                    }
                before = known
                found.append(_from_origin(fitted, rows[:known], values, (number, known, horizon, m), coverages))
                if time.perf_counter() - started > QUIET_SECONDS:
                    bar.step(len(found), f"backtest: {len(found)} of {total} origins")
    return Backtest(found)


def _check_models(models: Mapping[str, object], refit_every: int) -> None:
    """Refuse names of baselines, no models, and models that cannot take in values between fits."""
    if not models or any(not isinstance(name, str) or name in BASELINES for name in models):
        raise ValueError(
            f"model is a dict with the names {list(models)}; expected at least one model, by names other than "
            f"{', '.join(BASELINES)}."
        )
    without = [name for name, model in models.items() if not hasattr(model, "update")]
    if refit_every > 1 and without:
        raise ValueError(f"refit_every={refit_every}, but the {without[0]} has no method `update`. Use refit_every=1.")


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
    models: Mapping[str, object], past: object, values: Array, where: tuple[int, int, int, int], shares: Sequence[float]
) -> Origin:
    """Return the forecasts of fitted models, or callables, from one origin. where: number of the series, known values,
    horizon, season; shares: the coverages of intervals."""
    number, known, horizon, m = where
    history, truth = values[:known], values[known : known + horizon]
    answers: dict[str, ArrayLike] = {}
    bounds: dict[str, dict[float, tuple[Array, Array]]] = {}
    distances: dict[str, float] = {}
    for name, model in models.items():
        if not hasattr(model, "predict"):
            answers[name] = cast("Callable[[object, int], ArrayLike]", model)(past, horizon)
            continue
        answers[name] = model.predict(horizon)
        if hasattr(model, "forecast_interval"):
            each = [model.forecast_interval(horizon, share) for share in shares]
            bounds[name] = {float(s): (np.asarray(b[0]), np.asarray(b[1])) for s, b in zip(shares, each, strict=True)}
        if hasattr(model, "forecast_paths"):
            distances[name] = crps(truth, np.asarray(model.forecast_paths(horizon, PATHS_PER_CRPS)))
    known_values = history[~np.isnan(history)]
    lag = m if known >= m else 1
    last_season = _carried(history)[known - lag :][np.arange(horizon) % lag]
    simple = (np.full(horizon, known_values[-1]), last_season, np.full(horizon, known_values.mean()))
    forecasts = {name: np.asarray(answer, dtype=np.float64).reshape(horizon) for name, answer in answers.items()}
    forecasts |= dict(zip(BASELINES, simple, strict=True))
    return Origin(number, known, history, truth, forecasts, bounds, distances, m)


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
    score = origin.crps.get(name, point)
    return {
        "MASE": point / scale,
        "sMAPE": smape(truth, forecast),
        "RMSSE": float(np.sqrt(np.nanmean(errors**2)) / seasonal_scale(origin.past, origin.season, 2)),
        "CRPS": score / scale,
    }


def _inside(origin: Origin, bounds: tuple[Array, Array]) -> float:
    lower, upper = bounds
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
    """Return the mean continuous ranked probability score of sample paths (n, ...) for truth (...): E|X - y| - E|X -
    X'| / 2, the second mean over all pairs by their order."""
    n = len(paths)
    if not np.isfinite(paths).all():
        return float("inf")
    ordered = np.sort(paths, axis=0)
    weights = (2 * np.arange(1, n + 1) - n - 1).reshape(-1, *[1] * truth.ndim)
    spread = (weights * ordered).sum(axis=0) / n**2
    return float(np.nanmean(np.abs(paths - truth).mean(axis=0) - spread))
