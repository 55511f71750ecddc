"""Which seasons a series has: announced by its time index, or found in its values."""

from __future__ import annotations

import numpy as np

from echolearn.exceptions import InputWarning
from echolearn.forecasting.calendar import DAY_SECONDS, regular_calendar
from echolearn.forecasting.smoothing import filled
from echolearn.validation import Array, warn_user

MIN_STANDARD_ERRORS = 1.645  # standard errors that the autocorrelation at a season's lag must exceed
MIN_PEAK_CORRELATION = 0.3  # the autocorrelation that shows a season,
MIN_PEAK_RISE = 0.3  # and how far it rises from the valley before it
MAX_SEASON_STEPS = 400  # the longest season that is looked for in values alone
# the shortest and longest step: what people call the season, and the season of seasons
SEASONS_BY_STEP_DAYS = {(360, 366): (1, 1), (89, 92): (4, 1), (28, 31): (12, 1), (7, 7): (52, 1), (1, 1): (7, 1)}
SEASONS_BY_STEP_SECONDS = {3600: (24, 168), 1800: (48, 336), 900: (96, 672)}


def seasons_of_index(index: object) -> tuple[int, int] | None:
    """Return the usual seasons of a pandas DatetimeIndex or PeriodIndex; None if the index says nothing."""
    stamps = _stamps(index)
    if stamps is None:
        return None
    step = float(np.median(np.diff(stamps.astype("datetime64[s]").astype(np.int64))))
    known = {(low * DAY_SECONDS, high * DAY_SECONDS): m for (low, high), m in SEASONS_BY_STEP_DAYS.items()}
    known |= {(seconds, seconds): m for seconds, m in SEASONS_BY_STEP_SECONDS.items()}
    for (shortest, longest), seasons in known.items():
        if shortest - 1 <= step <= longest + 1:
            return seasons
    if 0 < step < 3600 and DAY_SECONDS % step == 0:
        return int(DAY_SECONDS // step), 1
    return None


def _stamps(index: object) -> Array | None:
    """Return the dates of a pandas index, None if it has fewer than three or is of another kind."""
    to_timestamp = getattr(index, "to_timestamp", None)
    stamps = np.asarray(index if to_timestamp is None else to_timestamp())
    return stamps if stamps.dtype.kind == "M" and len(stamps) >= 3 else None


def check_time_index(index: object) -> None:
    """Raise ValueError if dates do not increase; warn if some are missing between others."""
    stamps = _stamps(index)
    if stamps is None:
        return
    steps = np.diff(stamps.astype("datetime64[s]").astype(np.float64))
    if (steps <= 0).any():
        at = stamps[1:][steps <= 0][0].astype("datetime64[s]")
        raise ValueError(
            f"the dates of the series do not increase: {at} is not after the one before it. Sort it, for example with "
            "series.sort_index()."
        )
    calendar = regular_calendar(stamps)
    holidays = calendar is not None and calendar.frequency == "B"
    longest = 4 * DAY_SECONDS if holidays else 1.5 * np.median(steps)  # a long weekend of business days is usual
    missing = steps > longest
    if missing.any():
        at = stamps[:-1][missing][0].astype("datetime64[s]")
        cure = "with series.asfreq(...)" if calendar is None else f"with series.asfreq({calendar.frequency!r})"
        warn_user(
            f"dates are missing at {int(missing.sum())} places of the series, first after {at}: steps without a row "
            f"close up, and seasons shift. Make them gaps, {cure}.",
            InputWarning,
        )


def is_seasonal(y: Array, m: int) -> bool:
    """Return whether the autocorrelation of y, or of its differences, at lag m is beyond chance."""
    if m <= 1 or len(y) < 2 * m + 2:
        return False
    return _correlates(np.diff(y), m) or _correlates(y, m)


def autocorrelation(y: Array, lags: int) -> Array:
    """Return the autocorrelations at lags 1 ... lags."""
    x = y - y.mean()
    power = np.abs(np.fft.rfft(x, 2 * len(x))) ** 2
    c = np.fft.irfft(power)[: lags + 1]
    return c[1:] / (c[0] or 1.0)


def _correlates(x: Array, m: int) -> bool:
    r = autocorrelation(x, m)
    return bool(r[-1] > MIN_STANDARD_ERRORS * np.sqrt((1 + 2 * (r[:-1] ** 2).sum()) / len(x)))


def find_seasons(y: Array, announced: tuple[int, int] | None) -> tuple[int, int]:
    """Return the seasons of a series, 1 for none: of those announced the ones that are there, or one that is found."""
    y = filled(y)
    if announced is None:
        return _found_season(y), 1
    first = announced[0] if is_seasonal(y, announced[0]) else 1
    second = announced[1] if announced[1] > 1 and len(y) >= 3 * announced[1] else 1
    if second > 1 and first > 1:  # beyond the first season, do weeks repeat?
        rest = y[first:] - y[:-first]
        second = second if _correlates(rest, second) else 1
    return first, second


def _found_season(y: Array) -> int:
    """Return the lag of the first of the highest peaks of the autocorrelation about a line, if it is beyond chance."""
    n, most = len(y), min(MAX_SEASON_STEPS, len(y) // 3)
    if most < 4:
        return 1
    t = np.arange(n) - (n - 1) / 2
    rest = y - y.mean()
    r = autocorrelation(rest - t * (t @ rest) / (t @ t), most)
    lags = np.arange(2, most)  # r[lag - 1]
    peaks = lags[(r[lags - 1] > r[lags - 2]) & (r[lags - 1] >= r[lags])]
    deep = np.minimum.accumulate(r)[peaks - 1]
    peaks = peaks[(r[peaks - 1] > MIN_PEAK_CORRELATION) & (r[peaks - 1] - deep > MIN_PEAK_RISE)]
    if not len(peaks):
        return 1
    best = int(peaks[r[peaks - 1] >= 0.9 * r[peaks - 1].max()][0])
    return best if is_seasonal(y, best) else 1
