"""Exponential smoothing: members with different trends and scales, their parameters, starts and weights.

Every member is the additive recursion of level, trend and up to two seasons, with damping; on the logarithm of a
positive series it is multiplicative. Members with a fixed level and fixed seasons have an autoregression of what these
leave, or of its changes. The recursion gives forecasts from every step of a series in one pass, so that comparing
members by rolling origins costs no more than running them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from echolearn.forecasting._loops import LARGEST_LOG, advance, forecast, mean_squared_error
from echolearn.modelfile.schema import MAX_LAGS
from echolearn.validation import Array

ALPHA_LOGITS = (-1.5, 1.5)  # logits of alpha from which the search begins
START_LOGITS = {"beta": -2.0, "gamma1": -1.5, "gamma2": -1.5, "phi": 1.0}  # logits of the other parameters
PHI_RANGE = (0.8, 0.99)  # the range of phi
MAX_ERRORS_PER_SEARCH = 8000  # about how many errors the search for parameters looks at
MAX_LEARNED_CHANGES = 8.0  # typical changes from step to step: trend and season learn from no larger error
STEPS_PER_LAG = 6  # of a series, at least
LAG_RIDGE = 1e-9  # of the mean squared value
MAX_AUTOREGRESSION_WEIGHT = 4.0  # as many members with the same error weigh as much as one autoregression;
STEPS_PER_AUTOREGRESSION_WEIGHT = 150  # in a short series, to which its lags and seasons fit too well, at most n / 150
NO_BOUND = 1e150  # on the errors that are learned from, in any unit
LOGIT_PENALTY = 1e-3  # on the squared logits, against parameters that the series says nothing about
MAX_WEIGHT_POWER = 4.0  # weights are errors to the power of minus this;
STEPS_PER_POWER = 8  # in a short series, whose errors say less, at most one per so many steps
MIN_ZERO_SHARE = 0.3  # of the values of an intermittent series
MIN_STEPS_AHEAD = 60  # of a series, from which on parameters are fitted to errors further ahead than one step
JUDGED_FROM_SHARE = 2 / 3  # members are judged by their forecasts in the last third: what was good lately
FIRST_ORIGIN_DIVISOR = 3  # errors count from a third of the series on


@dataclass(frozen=True)
class Kind:
    """The kind of a member."""

    trend: str  # "none", "theta" (half the overall slope), "damped", or "fixed" (no trend; level and seasons of all)
    log: bool = False  # whether it follows the logarithm
    ahead: bool = True  # whether its parameters minimise the error over the whole horizon, or one step ahead
    second: bool = False  # whether it has the second season, too
    changes: bool = False  # whether the autoregression of a fixed level is one of changes, which is that of a walk


MEMBER_KINDS = (Kind("none"), Kind("theta"), Kind("damped"), Kind("damped", ahead=False))
SHORT_SERIES_KINDS = (Kind("none", ahead=False), Kind("theta", ahead=False), Kind("damped", ahead=False))
TWO_SEASON_KINDS = (Kind("none", second=True), Kind("damped", second=True))
AUTOREGRESSIONS = (Kind("fixed", second=True), Kind("fixed", second=True, changes=True))
TRENDS = ("none", "theta", "damped", "fixed")


@dataclass(frozen=True, eq=False)
class Smoothing:
    """The K members of one series, and where they are in it."""

    P: Array  # (K, 7), their parameters
    A: Array  # (K, MAX_LAGS), coefficients of their autoregressions
    logs: Array  # (K,), whether they follow the logarithm
    trends: Array  # (K,), as indices of TRENDS
    second: Array  # (K,), whether they have the second season
    weights: Array  # (K,)
    L: Array  # (K, 2): level and trend
    R: Array  # (K, MAX_LAGS): what level and seasons left of the last values
    S1: Array  # (K, m1) and
    S2: Array  # (K, m2): seasonal effects, by the time modulo the length of the season
    time: int  # the number of steps so far

    @property
    def seasons(self) -> tuple[int, int]:
        """The lengths of both seasons."""
        return self.S1.shape[1], self.S2.shape[1]

    def start(self, y: Array) -> Self:
        """Return the members before the first value of a series."""
        m1, m2 = self.seasons
        starts = [
            start_of(to_scale(y, log), TRENDS[code], m1, m2 if second else 1, slope)
            for log, code, second, slope in zip(self.logs, self.trends, self.second, self.P[:, 6], strict=True)
        ]
        L = np.array([[level, trend] for level, trend, _, _ in starts])
        S1, S2 = (np.array([np.resize(start[i], m) for start in starts]) for i, m in ((2, m1), (3, m2)))
        return replace(self, L=L, R=np.zeros_like(self.A), S1=S1, S2=S2, time=0)

    def advance(self, y: Array, horizon: int) -> tuple[Array, Self]:
        """Return the forecasts F (n, K, horizon) after each value, and the members after the last one."""
        L, R, S1, S2 = self.L.copy(), self.R.copy(), self.S1.copy(), self.S2.copy()
        F = np.empty((len(y), len(self.P), horizon))
        advance(np.ascontiguousarray(y), self.time, self.logs, self.P, self.A, L, R, S1, S2, F)
        return F, replace(self, L=L, R=R, S1=S1, S2=S2, time=self.time + len(y))

    def forecast(self, steps: int) -> Array:
        """Return the forecast (steps,) of the members together."""
        F = np.empty((len(self.P), steps))
        forecast(self.time - 1, self.logs, self.P, self.A, self.L, self.R, self.S1, self.S2, F)
        return np.asarray(weighted_median(F[None], self.weights)[0])


def to_scale(y: Array, log: bool) -> Array:
    """Return values, or their logarithms (NaN where there is none)."""
    if not log:
        return y
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(y > 0, np.log(np.where(y > 0, y, 1.0)), np.nan)


def from_scale(z: Array, log: bool) -> Array:
    """Return values from what `to_scale` made of them."""
    return np.exp(np.minimum(z, LARGEST_LOG)) if log else z


def filled(y: Array) -> Array:
    """Return a series whose gaps are interpolated."""
    known = ~np.isnan(y)
    return y if known.all() else np.interp(np.arange(len(y)), np.flatnonzero(known), y[known])


def detrended(y: Array, m: int) -> Array:
    """Return a series less its moving average over one season, which continues as a line at both ends."""
    window = np.full(m, 1.0 / m) if m % 2 else np.r_[0.5, np.ones(m - 1), 0.5] / m
    trend = np.convolve(y, window, "valid")
    lag, ends = min(m, len(trend) - 1), np.arange(1, (len(window) - 1) // 2 + 1)
    before, after = (trend[lag] - trend[0]) / max(lag, 1), (trend[-1] - trend[-1 - lag]) / max(lag, 1)
    return np.asarray(y - np.concatenate([trend[0] - before * ends[::-1], trend, trend[-1] + after * ends]))


def seasonal_effects(y: Array, m: int) -> Array:
    """Return the mean deviation (m,) of each phase of the season from a moving average over one season."""
    if m <= 1 or len(y) < 2 * m:
        return np.zeros(max(m, 1))
    rest = detrended(y, m)
    effects = np.array([rest[i::m].mean() for i in range(m)])
    return np.asarray(effects - effects.mean())


def start_of(y: Array, trend: str, m1: int, m2: int, slope: float | None = None) -> tuple[float, float, Array, Array]:
    """Return level, trend and seasonal effects before the first value; slope: of "theta", None: half that of y."""
    y, n = filled(y), len(y)
    s2 = seasonal_effects(y if trend == "fixed" else y[: 3 * m2], m2)
    early = n if m1 == 1 or trend == "fixed" else min(n, max(4 * m1, 20))
    s1 = seasonal_effects(y[:early] - np.resize(s2, early), m1)
    rest = y - np.resize(s1, n) - np.resize(s2, n)
    if trend == "fixed":
        return float(rest.mean()), 0.0, s1, s2
    if trend == "none":
        return float(rest[: max(3, m1)].mean()), 0.0, s1, s2
    if trend == "theta":
        slope = _slope(rest)[0] / 2 if slope is None else slope
        return float(rest[0] - slope), slope, s1, s2
    slope, level = _slope(rest[: max(8, 2 * m1)])
    return level - slope, slope, s1, s2


def _slope(y: Array) -> tuple[float, float]:
    """Return slope and value at the first step of the least-squares line."""
    t = np.arange(len(y)) - (len(y) - 1) / 2
    slope = float(t @ y) / float(t @ t) if len(y) > 1 else 0.0
    return slope, float(y.mean() + slope * t[0])


def fit_member(y: Array, kind: Kind, seasons: tuple[int, int], horizon: int) -> tuple[Array, Array]:
    """Return the parameters (7,) and the autoregression (MAX_LAGS,) of a member.

    They have the least error of forecasts up to `horizon` (or one) steps ahead.
    """
    z = to_scale(y, kind.log)
    m1, m2 = seasons[0], seasons[1] if kind.second else 1
    start = start_of(z, kind.trend, m1, m2)
    if kind.trend == "fixed":
        rest = filled(z) - start[0] - np.resize(start[2], len(z)) - np.resize(start[3], len(z))
        return np.array([0, 0, 0, 0, 1, NO_BOUND, 0]), autoregression(rest, changes=kind.changes)
    changes = np.abs(np.diff(z))
    changes = changes[changes > 0]  # unknown ones are not
    most = MAX_LEARNED_CHANGES * float(np.median(changes)) if len(changes) else NO_BOUND
    damped = kind.trend == "damped"
    varies = {"alpha": True, "beta": damped, "gamma1": m1 > 1, "gamma2": m2 > 1, "phi": damped}
    names = [name for name, does in varies.items() if does]
    n = len(z)
    ahead = max(1, min(horizon, n // 3)) if kind.ahead else 1
    skip = min(max(m1, m2), n // 3)
    stride = max(1, (n - skip) * ahead // MAX_ERRORS_PER_SEARCH)
    spread = float(np.nanmean(np.diff(filled(z)) ** 2)) or 1.0

    def error(x: Array) -> float:
        mse = mean_squared_error(z, _parameters(names, x, (most, start[1])), *start, ahead, skip, stride)
        return float(np.log(mse / spread + 1e-12) + LOGIT_PENALTY * (x @ x) / np.sqrt(n))

    options = {"maxfev": 30 * (len(names) + 1), "xatol": 0.05, "fatol": 1e-3}
    starts = [np.array([alpha, *(START_LOGITS[name] for name in names[1:])]) for alpha in ALPHA_LOGITS]
    minima = [minimize(error, x, method="Nelder-Mead", options=options) for x in starts]
    best = np.asarray(min(minima, key=lambda r: float(r.fun)).x)
    return _parameters(names, best, (most, start[1])), np.zeros(MAX_LAGS)


def _parameters(names: list[str], x: Array, given: tuple[float, float]) -> Array:
    """Return (alpha, beta, gamma1, gamma2, phi, *given) from the logits of those that vary."""
    p = dict(zip(names, (1 / (1 + np.exp(-np.clip(x, -30, 30)))).tolist(), strict=True))
    alpha = p["alpha"]
    phi = PHI_RANGE[0] + (PHI_RANGE[1] - PHI_RANGE[0]) * p["phi"] if "phi" in p else 1.0
    gammas = ((1 - alpha) * p.get(name, 0) for name in ("gamma1", "gamma2"))
    return np.array([alpha, alpha * p.get("beta", 0), *gammas, phi, *given])


def autoregression(x: Array, *, changes: bool) -> Array:
    """Return the least-squares coefficients (MAX_LAGS,) by which values x about a level continue.

    The order has the least corrected information criterion of Akaike; the Cholesky factor has what each lag explains.
    changes: of the changes from step to step; x then is their sum.
    """
    v = np.diff(x) if changes else x
    v = v / (np.sqrt((v**2).mean()) or 1.0)
    p = min(MAX_LAGS - 1, len(v) // STEPS_PER_LAG)
    lags, truth = np.lib.stride_tricks.sliding_window_view(v, p)[:-1, ::-1], v[p:]
    n, orders = len(truth), np.arange(p + 1)
    A, c = lags.T @ lags + LAG_RIDGE * n * np.eye(p), lags.T @ truth
    explained = np.cumsum(np.r_[0.0, solve_triangular(np.linalg.cholesky(A), c, lower=True) ** 2])
    rest = np.maximum(truth @ truth - explained, LAG_RIDGE * n)
    order = int(np.argmin(n * np.log(rest) + 2 * (orders + 1) * n / (n - orders - 2)))
    a = np.r_[1.0, -np.linalg.solve(A[:order, :order], c[:order])]
    a = np.convolve(a, [1.0, -1.0]) if changes else a
    return np.asarray(np.r_[-a[1:], np.zeros(MAX_LAGS + 1 - len(a))])


def weighted_median(F: Array, weights: Array) -> Array:
    """Return the weighted medians (n, H) of forecasts F (n, K, H): no member that goes astray moves them far."""
    order = np.argsort(F, axis=1)
    values, w = np.take_along_axis(F, order, axis=1), weights[order]
    shares = np.cumsum(w, axis=1) - w / 2  # of the weights, up to the middle of each member
    after = np.argmax(shares >= 0.5 * weights.sum(), axis=1)[:, None]
    before = np.maximum(after - 1, 0)
    low, high = (np.take_along_axis(values, at, axis=1)[:, 0] for at in (before, after))
    share_low, share_high = (np.take_along_axis(shares, at, axis=1)[:, 0] for at in (before, after))
    width = share_high - share_low
    t = np.clip((0.5 * weights.sum() - share_low) / np.where(width > 0, width, 1.0), 0, 1)
    return np.asarray(np.where(width > 0, (1 - t) * low + t * high, high))


def kinds_for(y: Array, seasons: tuple[int, int], log: bool | None, trend: bool | None) -> list[Kind]:
    """Return the kinds of members for a series; log: only of the logarithm, never, or both (None); trend: likewise."""
    is_short = len(y) < MIN_STEPS_AHEAD
    kinds = list(SHORT_SERIES_KINDS) if is_short else [*MEMBER_KINDS, *AUTOREGRESSIONS]
    kinds += TWO_SEASON_KINDS if seasons[1] > 1 else ()
    if trend is not None:
        kinds = [kind for kind in kinds if kind.trend in (("theta", "damped") if trend else ("none",))]
    elif seasons == (1, 1) and is_intermittent(y):
        kinds = [Kind("none", ahead=not is_short), Kind("none", ahead=False)]
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
    """Return the members of a series at its start, and their forecasts C (n, horizon) after each value."""
    kinds = kinds_for(y, seasons, log, trend)
    P, A = zip(*(fit_member(y, kind, seasons, horizon) for kind in kinds), strict=True)
    members = Smoothing(
        P=np.array(P),
        A=np.array(A),
        logs=np.array([kind.log for kind in kinds]),
        trends=np.array([TRENDS.index(kind.trend) for kind in kinds]),
        second=np.array([kind.second for kind in kinds]),
        weights=np.ones(len(kinds)),
        L=np.zeros((len(kinds), 2)),
        R=np.zeros((len(kinds), MAX_LAGS)),
        S1=np.zeros((len(kinds), seasons[0])),
        S2=np.zeros((len(kinds), seasons[1])),
        time=0,
    ).start(y)
    F, _ = members.advance(y, horizon)
    n = len(y)
    weights = member_weights(y, F, min(max(seasons[0], int(JUDGED_FROM_SHARE * n)), n - 2))
    more = min(MAX_AUTOREGRESSION_WEIGHT, n / STEPS_PER_AUTOREGRESSION_WEIGHT)
    weights *= np.where(members.trends == TRENDS.index("fixed"), more, 1.0)
    weights /= weights.sum()
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
