"""Regular calendars: the usual distance of dates, and all dates at that distance, also those without a row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from echolearn.validation import Array

DAY_SECONDS = 86400
MIN_MONTH_SECONDS = 27 * DAY_SECONDS  # from steps of this length on, dates are counted in months
MAX_DATES_PER_ROW = 5  # times as many dates as there are rows; beyond this the rows are irregular
TIME_UNITS = ((DAY_SECONDS, "D"), (3600, "h"), (60, "min"), (1, "s"))


class Calendar(NamedTuple):
    """All dates from the first to the last one, in seconds, and the distance as pandas writes it."""

    dates: Array
    frequency: str


def regular_calendar(stamps: Array) -> Calendar | None:
    """Return the calendar on which all dates lie, in ascending order; None if they lie on none.

    Months are counted as months, from their first or last day or another one. Days without any Saturday and Sunday are
    business days.
    """
    stamps = stamps.astype("M8[s]")
    if len(stamps) < 3:
        return None
    step = int(np.median(np.diff(stamps.astype(np.int64))))
    if step <= 0 or (stamps[-1] - stamps[0]).astype(np.int64) > MAX_DATES_PER_ROW * step * len(stamps):
        return None
    calendar = (
        _months(stamps) if step >= MIN_MONTH_SECONDS else _business_days(stamps, step) or _equal_steps(stamps, step)
    )
    return calendar if calendar is not None and np.isin(stamps, calendar.dates).all() else None


def _months(stamps: Array) -> Calendar | None:
    months = stamps.astype("M8[M]")
    every = max(1, int(np.median(np.diff(months.astype(np.int64)))))
    grid = np.arange(months[0], months[-1] + 1, every)
    into = stamps - months.astype("M8[s]")
    if (into == into[0]).all():
        return Calendar(grid.astype("M8[s]") + into[0], _times(every, "MS"))
    before_end = (months + 1).astype("M8[s]") - stamps
    if (before_end == before_end[0]).all():
        return Calendar((grid + 1).astype("M8[s]") - before_end[0], _times(every, "ME"))
    return None


def _business_days(stamps: Array, step: int) -> Calendar | None:
    days = stamps.astype("M8[D]")
    if step != DAY_SECONDS or len(stamps) < 10 or not np.is_busday(days).all():
        return None
    grid = np.arange(days[0], days[-1] + 1)
    return Calendar(grid[np.is_busday(grid)].astype("M8[s]") + (stamps[0] - days[0].astype("M8[s]")), "B")


def _equal_steps(stamps: Array, step: int) -> Calendar:
    seconds, name = next((size, name) for size, name in TIME_UNITS if step % size == 0)
    grid = np.arange(stamps[0], stamps[-1] + np.timedelta64(1, "s"), np.timedelta64(step, "s"))
    return Calendar(grid, _times(step // seconds, name))


def _times(count: int, name: str) -> str:
    return name if count == 1 else f"{count}{name}"
