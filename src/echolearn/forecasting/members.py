"""The members of one series and their weights, by their errors from every origin of the training series."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from echolearn.forecasting.smoothing import (
    MEMBER_KINDS,
    SHORT_SERIES_KINDS,
    TRENDS,
    TWO_SEASON_KINDS,
    Kind,
    Smoothing,
    fit_member,
    weighted_median,
)
from echolearn.validation import Array

MAX_WEIGHT_POWER = 4.0  # weights are errors to the power of minus this;
STEPS_PER_POWER = 8  # in a short series, whose errors say less, at most one per so many steps
MIN_ZERO_SHARE = 0.3  # of the values of an intermittent series
MIN_STEPS_AHEAD = 60  # of a series, from which on parameters are fitted to errors further ahead than one step
JUDGED_FROM_SHARE = 2 / 3  # members are judged by their forecasts in the last third: what was good lately
FIRST_ORIGIN_DIVISOR = 3  # errors count from a third of the series on


def kinds_for(y: Array, seasons: tuple[int, int], log: bool | None, trend: bool | None) -> list[Kind]:
    """Return the kinds of members for a series; log: only of the logarithm, never, or both (None); trend: likewise."""
    is_short = len(y) < MIN_STEPS_AHEAD
    kinds = [*(SHORT_SERIES_KINDS if is_short else MEMBER_KINDS), *(TWO_SEASON_KINDS if seasons[1] > 1 else ())]
    if trend is False or (trend is None and seasons == (1, 1) and is_intermittent(y)):
        plain = Kind("none", ahead=not is_short)
        kinds = [plain, replace(plain, ahead=False)] if trend is None else [plain, replace(plain, ar=True)]
        kinds += [kind for kind in TWO_SEASON_KINDS if kind.trend == "none" and seasons[1] > 1]
    elif trend:
        kinds = [kind for kind in kinds if kind.trend != "none"]
    positive = bool(np.nanmin(y) > 0)
    scales = ([False, True] if positive else [False]) if log is None else [log]
    return [replace(kind, log=scale) for scale in scales for kind in kinds]


def is_intermittent(y: Array) -> bool:
    """Return whether values are counts, or amounts, with many zeros: only their rate can be forecast."""
    known = y[~np.isnan(y)]
    return bool(known.min() >= 0 and known.max() > 0 and (known == 0).mean() >= MIN_ZERO_SHARE)


def fit_smoothing(
    y: Array, seasons: tuple[int, int], horizon: int, *, log: bool | None = None, trend: bool | None = None
) -> tuple[Smoothing, Array]:
    """Return the weighted members of a series, and the forecasts C (n, horizon) of their mean after each value."""
    kinds = kinds_for(y, seasons, log, trend)
    members = Smoothing(
        P=np.array([fit_member(y, kind, seasons, horizon) for kind in kinds]),
        logs=np.array([kind.log for kind in kinds]),
        trends=np.array([TRENDS.index(kind.trend) for kind in kinds]),
        second=np.array([kind.second for kind in kinds]),
        seasons=seasons,
        weights=np.full(len(kinds), 1 / len(kinds)),
    )
    F, _ = members.advance(y, members.start(y), horizon)
    n = len(y)
    weights = member_weights(y, F, min(max(seasons[0], int(JUDGED_FROM_SHARE * n)), n - 2))
    return replace(members, weights=weights), weighted_median(F, weights)


def first_origin(n: int, seasons: tuple[int, int]) -> int:
    """Return the first step after which forecasts are judged."""
    return int(min(max(seasons[0], n // FIRST_ORIGIN_DIVISOR), n - 2))


def errors_ahead(y: Array, C: Array) -> Array:
    """Return y[t + h] - C[t, h - 1] (n, horizon), NaN where the value is not known."""
    n, horizon = C.shape
    padded = np.concatenate([y, np.full(horizon, np.nan)])
    truth = np.lib.stride_tricks.sliding_window_view(padded, horizon)[1 : n + 1]
    return truth - C


def member_weights(y: Array, F: Array, first: int) -> Array:
    """Return weights (K,) by the mean absolute errors of forecasts after step `first`."""
    n, K, _ = F.shape
    losses = np.empty(K)
    for k in range(K):
        E = errors_ahead(y[first:], F[first:, k])
        known = np.abs(E[~np.isnan(E)])
        losses[k] = known.mean() if len(known) else 1.0
    losses = np.where(np.isfinite(losses), losses, np.inf)
    if not losses.min() > 0:
        best = losses == losses.min()
        return np.asarray(best / best.sum())
    weights = (losses.min() / losses) ** min(MAX_WEIGHT_POWER, n / STEPS_PER_POWER)
    return np.asarray(weights / weights.sum())
