"""Which seasons a series has: those that its calendar suggests, and others, if its values show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from echolearn.forecasting.smoothing import detrended, filled, seasonal_effects
from echolearn.validation import Array

MIN_STANDARD_ERRORS = 1.96  # that the autocorrelation at a season's lag must exceed, of values or of changes
MIN_PEAK_CORRELATION = 0.3  # the autocorrelation that shows a season which nothing suggests,
MIN_PEAK_STANDARD_ERRORS = 3.5  # in short series: many lags are looked at,
CHANGE_STANDARD_ERRORS = 1.5**0.5  # which are larger by this in changes of noise: neighbours correlate by -0.5
MIN_PEAK_RISE = 0.3  # and how far it rises from the valley before it
MIN_SHORTER_SHARE = 0.5  # of the autocorrelation of a season, which a shorter one within it has at all its multiples
MAX_SEASON_STEPS = 400  # the longest season that is looked for in values alone
MAX_FEW_SEASONS = 8  # up to which a season may have too few repetitions for the correlation at one lag
MIN_ROTATIONS = 100  # ways to turn seasons against each other, without which repetition and chance look alike
ROTATIONS = 400  # that are tried,
MAX_CHANCE = 0.02  # and the share of them that may be as much alike as the seasons are
ROUNDING_SHARE = 1e-9  # of the largest value, below which what is left of a series is rounding


def find_seasons(y: Array, usual: Sequence[int] = ()) -> tuple[int, int]:
    """Return up to two seasons of a series, 1 for none; usual: seasons that its calendar suggests, in their order.

    The second is looked for in what the first leaves, among its multiples if no calendar suggests one; it must repeat
    better than all shorter multiples, which a season that changes slowly does not. A shorter season within the one
    found comes first if it is most of it.
    """
    y = filled(y)
    y = y / (np.abs(y).max(initial=0.0) or 1.0)  # squares of very large or small values would be lost
    first = next((m for m in usual if is_seasonal(y, m)), 1)
    if first == 1:
        first = _highest_peak(y, lambda lags, r: lags > 1)
        shorter = _highest_peak(y, lambda lags, r: _within(r, first)[lags] > MIN_SHORTER_SHARE * r[first - 1])
        if first == 1 or shorter > 1:
            return shorter, first
    rest = y - np.resize(seasonal_effects(y, first), len(y))
    longer = [m for m in usual if m > first and len(y) >= 3 * m]
    return first, next((m for m in longer if is_seasonal(rest, m)), 0) or _highest_peak(
        rest, lambda lags, r: (lags > first) & (r[lags - 1] > _best_shorter(r, first)[lags])
    )


def _within(r: Array, m: int) -> Array:
    """Return, by lag, the mean autocorrelation at its multiples below m; minus infinity where it does not divide m."""
    divides = [lag for lag in range(2, m) if m % lag == 0]
    means = np.full(len(r) + 1, -np.inf)
    means[divides] = [r[lag - 1 : m - 1 : lag].mean() for lag in divides]
    return means


def _best_shorter(r: Array, m: int) -> Array:
    """Return, by lag, the highest autocorrelation at shorter multiples of m; infinite where a lag is no multiple."""
    best = np.full(len(r) + 1, np.inf)
    best[2 * m :: m] = np.maximum.accumulate(r[m - 1 :: m])[:-1]
    return best


def is_seasonal(y: Array, m: int) -> bool:
    """Return whether what is left of y, or of its differences, about a moving average correlates at lag m or repeats.

    Lines, random walks and their sums pass as seasonal no more often than chance allows.
    """
    if m <= 1 or len(y) < 2 * m + 2:
        return False
    rest = detrended(y, m)
    return _correlates(rest, m, y) or _correlates(detrended(np.diff(y), m), m, y) or _repeats(rest, m, y)


def autocorrelation(y: Array, lags: int) -> Array:
    """Return the autocorrelations at lags 1 ... lags."""
    x = y - y.mean()
    power = np.abs(np.fft.rfft(x, 2 * len(x))) ** 2
    c = np.fft.irfft(power)[: lags + 1]
    return c[1:] / (c[0] or 1.0)


def _correlates(rest: Array, m: int, y: Array) -> bool:
    if np.abs(rest).max() <= ROUNDING_SHARE * np.abs(y).max():
        return False
    r = autocorrelation(rest, m)
    return bool(r[-1] > MIN_STANDARD_ERRORS * np.sqrt((1 + 2 * (r[:-1] ** 2).sum()) / len(rest)))


def _repeats(rest: Array, m: int, y: Array) -> bool:
    """Return whether the seasons of a short series are more alike than the same seasons, each turned by some steps.

    A strong season of few repetitions has correlations at all lags, by which `_correlates` finds it late.
    """
    seasons, rounding = len(rest) // m, ROUNDING_SHARE * np.abs(y).max()
    if seasons > MAX_FEW_SEASONS or m ** (seasons - 1) < MIN_ROTATIONS or np.abs(rest).max() <= rounding:
        return False
    rows = rest[len(rest) - seasons * m :].reshape(seasons, m)
    turns = np.random.default_rng(0).integers(m, size=(ROTATIONS, seasons - 1))
    turns = turns[turns.any(axis=1)]
    total = rows[0] + sum(row[(np.arange(m) + turn[:, None]) % m] for row, turn in zip(rows[1:], turns.T, strict=True))
    alike = (total**2).sum(axis=1) >= (rows.sum(axis=0) ** 2).sum()
    return bool(alike.sum() < MAX_CHANCE * ROTATIONS)


def _highest_peak(y: Array, among: Callable[[Array, Array], Array]) -> int:
    """Return the lag of the first of the highest peaks of the autocorrelation, if it is beyond chance, else 1.

    Of what is left about a line or, if that has none, of the differences; among: which lags are looked at, by lags and
    autocorrelations.
    """
    n, most = len(y), min(MAX_SEASON_STEPS, len(y) // 3)
    if most < 4:
        return 1
    t = np.arange(n) - (n - 1) / 2
    for rest, factor in ((y - t * (t @ (y - y.mean())) / (t @ t), 1.0), (np.diff(y), CHANGE_STANDARD_ERRORS)):
        r = autocorrelation(rest, most)
        lags = np.arange(2, most)  # r[lag - 1]
        peaks = lags[(r[lags - 1] > r[lags - 2]) & (r[lags - 1] >= r[lags]) & among(lags, r)]
        height, valley = r[peaks - 1], np.minimum.accumulate(r)[peaks - 1]
        least = max(MIN_PEAK_CORRELATION, factor * MIN_PEAK_STANDARD_ERRORS / np.sqrt(n))
        peaks = peaks[(height > least) & (height - valley > MIN_PEAK_RISE)]
        best = int(peaks[r[peaks - 1] >= 0.9 * r[peaks - 1].max()][0]) if len(peaks) else 1
        if is_seasonal(y, best):
            return best
    return 1
