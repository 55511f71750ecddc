"""Errors of forecasts that can be compared between series: MASE, sMAPE, RMSSE and CRPS."""

from __future__ import annotations

import numpy as np

from echolearn.validation import Array


def seasonal_scale(known: Array, season: int, power: int = 1) -> float:
    """Return the mean absolute (power=1) or root mean squared (2) error of repeating the last season, over `known`."""
    lag = season if len(known) > season else 1
    change = np.abs(known[lag:] - known[:-lag])
    change = change[~np.isnan(change)]
    if not len(change):
        return float("nan")
    return float((change**power).mean() ** (1 / power)) or float("nan")


def mase(truth: Array, forecast: Array, scale: float) -> float:
    """Return the mean absolute error in units of that of repeating the last season."""
    return float(np.nanmean(np.abs(truth - forecast)) / scale)


def rmsse(truth: Array, forecast: Array, scale: float) -> float:
    """Return the root mean squared error in units of that of repeating the last season."""
    return float(np.sqrt(np.nanmean((truth - forecast) ** 2)) / scale)


def smape(truth: Array, forecast: Array) -> float:
    """Return the symmetric mean absolute percentage error, 0 to 200."""
    size = np.abs(truth) + np.abs(forecast)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(size > 0, 200 * np.abs(truth - forecast) / size, 0.0)
    return float(np.nanmean(np.where(np.isnan(truth), np.nan, shares)))


def crps(truth: Array, paths: Array) -> float:
    """Return the mean continuous ranked probability score of sample paths (n, ...) for truth (...).

    E|X - y| - E|X - X'| / 2, the second mean over all pairs by their order; of one path it is the absolute error.
    """
    n = len(paths)
    ordered = np.sort(paths, axis=0)
    weights = (2 * np.arange(1, n + 1) - n - 1).reshape(-1, *[1] * truth.ndim)
    spread = (weights * ordered).sum(axis=0) / n**2
    return float(np.nanmean(np.abs(paths - truth).mean(axis=0) - spread))
