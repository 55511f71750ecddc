"""Calendars of series, by pandas: rows in the order of their dates, dates without a row, and dates to come."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from echolearn.exceptions import InputWarning
from echolearn.modelfile.layout import Facts
from echolearn.validation import Array, warn_user

if TYPE_CHECKING:  # an optional dependency: without it there are no dates
    import pandas as pd

MAX_DATES_PER_ROW = 5  # times as many dates as there are rows; beyond this the rows are irregular
RUN_LENGTHS = (24, 10, 5, 3)  # rows whose frequency is inferred, where all rows together have none
MAX_RUNS_PER_LENGTH = 20  # that are looked at
MAX_CYCLE_STEPS = 12  # distances that repeat, such as 4, 4 and 5 weeks
MIN_HOUR_STEPS = 6  # fewer show how smooth a day is, not what an hour repeats
PERIOD_SECONDS = (3600.0, 86400.0, 604800.0, 365.25 * 86400)  # after which series may repeat: hour, day, week, year
STEPS_PER_MEAN = 400  # by which the mean distance of dates is measured,
MAX_YEARS_PER_MEAN = 30  # and how far ahead: there are no dates after some year
WRITTEN_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}([./-]\d{1,4})?(\D.*)?")


@dataclass(frozen=True)
class Calendar:
    """The steps of a series of pandas: the last one, and how the next ones follow. It can be written as JSON."""

    kind: str  # "dates", "periods", "months" (a number of them), "cycle", "numbers", or "rows", which are only counted
    last: str
    step: str = ""  # a frequency of pandas, a whole number, or the distances of a cycle in nanoseconds
    zone: str | None = None  # in which dates are shown,
    counted_in: str | None = None  # and in which they are at equal distances
    name: str | None = None  # of the index
    columns: Sequence[str | int | None] = (None,)  # of a data frame, or the name of a series
    frame: bool = False

    def ahead(self, count: int) -> pd.Index:
        """Return the labels of the next steps."""
        import pandas as pd

        if self.kind in ("numbers", "rows"):
            first, step = int(self.last), int(self.step or 1)
            return pd.RangeIndex(first + step, first + step * (count + 1), step, name=self.name)
        if self.kind == "periods":
            return pd.period_range(self.last, periods=count + 1, freq=self.step, name=self.name)[1:]
        last = pd.Timestamp(self.last)
        last = last if self.zone is None else last.tz_convert(self.counted_in)
        if self.kind == "cycle":
            dates = last + pd.to_timedelta(np.cumsum(np.resize([int(part) for part in self.step.split()], count)))
        else:
            dates = pd.date_range(last, periods=count + 1, freq=_frequency(self.kind, self.step))[1:]
        return pd.DatetimeIndex(dates if self.zone is None else dates.tz_convert(self.zone), name=self.name)

    def after(self, count: int) -> Self:
        """Return the calendar so many steps later."""
        if not count:
            return self
        parts = self.step.split()
        turned = [*parts[count % len(parts) :], *parts[: count % len(parts)]] if parts else []
        return replace(self, last=str(self.ahead(count)[-1]), step=" ".join(turned))

    def labelled(self, values: Array) -> pd.Series | pd.DataFrame:
        """Return values (steps,) or (steps, columns) of the next steps with their labels and names."""
        import pandas as pd

        index = self.ahead(len(values))
        if not self.frame:
            return pd.Series(values.reshape(len(values)), index=index, name=self.columns[0])
        return pd.DataFrame(values.reshape(len(values), -1), index=index, columns=self.columns)

    @property
    def seasons(self) -> list[int]:
        """How many steps an hour (of six or more), a day, a week and a year have, where these are two or more."""
        if self.kind in ("numbers", "rows"):
            return []

        def mean_seconds(steps: int) -> float:
            ahead = self.ahead(steps + 1)
            stamps = ahead.to_timestamp() if self.kind == "periods" else ahead
            return float((stamps[-1] - stamps[0]).total_seconds()) / steps

        steps = int(MAX_YEARS_PER_MEAN * PERIOD_SECONDS[-1] / mean_seconds(1))
        seconds = mean_seconds(max(1, min(STEPS_PER_MEAN, steps)))
        counts = [round(period / seconds) for period in PERIOD_SECONDS]
        return sorted({m for m in counts if m > 1} - ({counts[0]} if counts[0] < MIN_HOUR_STEPS else set()))


def rows_in_order(table: pd.DataFrame, name: str) -> tuple[pd.DataFrame, bool]:
    """Return rows in the order of their dates, and whether they have any; name: of the argument, for errors."""
    index = getattr(table, "index", None)
    if index is None or callable(index):
        return table, False
    import pandas as pd

    index = _dates(index, name)
    if not isinstance(index, (pd.DatetimeIndex, pd.PeriodIndex)):
        return table, False
    if index.hasnans:
        raise ValueError(f"{name}: a row has no date (NaT). Leave it out, or give it a date.")
    try:
        index = index if getattr(index, "tz", None) is None else index.tz_convert(str(index.tz))
    except (KeyError, ValueError):  # of dateutil, or of an old pytz
        words = f"{name}: the zone {index.tz} has no name. Give it one, for example index.tz_convert('Europe/Berlin')."
        raise ValueError(words) from None
    if index.has_duplicates:
        raise ValueError(
            f"{name}: two rows have the date {index[index.duplicated()][0]}. Keep one row per date. Local times at the "
            "end of summer time need their zone: index.tz_localize(zone, ambiguous='infer')."
        )
    return table.set_axis(index, axis=0).sort_index(), True


def on_calendar(table: pd.DataFrame, name: str) -> tuple[pd.DataFrame, Calendar | None]:
    """Return rows in the order of their dates, with gaps for dates without a row, and their calendar.

    A table without an index is returned as it is, without a calendar.
    """
    table, has_dates = rows_in_order(table, name)
    index = getattr(table, "index", None)
    if index is None or callable(index):
        return table, None
    frame, n = table.ndim == 2, len(index)
    names = [
        name if name is None or isinstance(name, (str, int)) else str(name)
        for name in (table.columns if frame else [table.name])
    ]
    about: Facts = {"name": None if index.name is None else str(index.name), "columns": names, "frame": frame}
    if not has_dates:
        return table, Calendar(**about, **_numbers(index))
    whole, steps = _whole_calendar(index)
    if not steps:
        if n > 2:
            warn_user(
                f"the dates of {name} are not at equal distances: rows are taken as steps of equal length, and "
                "forecasts have no dates. Make the dates regular, for example with resample(...).",
                InputWarning,
            )
        return table, Calendar(**about, kind="rows", last=str(n - 1))
    if len(whole) > n:
        first, count = str(whole.difference(index)[0]).removesuffix(" 00:00:00"), len(whole) - n
        text = f"1 date has no row in {name}, {first}; it is treated as a gap."
        if count > 1:
            text = f"{count} dates have no row in {name}, first {first}; they are treated as gaps."
        warn_user(text, InputWarning)
        table = table.reindex(whole)
    zone = getattr(index, "tz", None)
    return table, Calendar(**about, **steps, last=str(whole[-1]), zone=None if zone is None else str(zone))


def _dates(index: pd.Index, name: str) -> pd.Index:
    """Return an index of dates that are written as text as dates; any other index as it is."""
    import pandas as pd

    if index.inferred_type in ("date", "datetime"):
        return pd.DatetimeIndex(index)
    if index.inferred_type != "string" or not all(WRITTEN_DATE.fullmatch(label) for label in index):
        return index
    try:
        return pd.DatetimeIndex(pd.to_datetime(index, format="ISO8601"), name=index.name)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: its index holds dates as text, such as {index[0]!r}. Make them dates with pandas.to_datetime, "
            "with dayfirst=True if the day comes first."
        ) from None


def _numbers(index: pd.Index) -> Facts:
    """Return the steps of whole numbers at equal distances, such as years; rows of any other index are counted."""
    if index.dtype.kind in "iu" and len(index) > 1:
        distances = np.diff(index.to_numpy())
        if distances[0] > 0 and (distances == distances[0]).all():
            return {"kind": "numbers", "last": str(index[-1]), "step": str(distances[0])}
    return {"kind": "rows", "last": str(len(index) - 1)}


def _whole_calendar(index: pd.Index) -> tuple[pd.Index, Facts]:
    """Return all dates from the first to the last row, and kind and step; the rows and {} if they lie on none."""
    import pandas as pd

    if isinstance(index, pd.PeriodIndex):
        whole = pd.period_range(index[0], index[-1], name=index.name)
        return (whole, {"kind": "periods", "step": index.freqstr}) if index.isin(whole).all() else (index, {})
    found = []
    for zone in dict.fromkeys((index.tz, None if index.tz is None else "UTC")):
        local = index if zone is None else index.tz_convert(zone)
        for kind, step in _candidates(local):
            grid = pd.date_range(local[0], local[-1], freq=_frequency(kind, step), name=index.name)
            if len(grid) <= MAX_DATES_PER_ROW * len(index) and local.isin(grid).all():
                counted_in = None if zone is None else str(zone)
                found.append((grid.tz_convert(index.tz) if zone else grid, kind, step, counted_in))
    if found:
        whole, kind, step, counted_in = min(found, key=lambda one: len(one[0]))
        return whole, {"kind": kind, "step": step, "counted_in": counted_in}
    distances = np.diff(index.as_unit("ns").asi8)
    for count in range(2, min(MAX_CYCLE_STEPS, len(distances) // 2) + 1):
        if (distances[count:] == distances[:-count]).all():
            step, zone = " ".join(map(str, distances[-count:])), None if index.tz is None else "UTC"
            return index, {"kind": "cycle", "step": step, "counted_in": zone}
    return index, {}


def _candidates(index: pd.DatetimeIndex) -> list[tuple[str, str]]:
    """Return kinds and steps of calendars on which dates may lie."""
    n = len(index)
    if index.freq is not None and index.freq.n > 0:
        return [("dates", index.freq.freqstr)]
    found = _inferred([index]) or _inferred(
        index[start : start + length]
        for length in RUN_LENGTHS
        if length < n
        for start in np.unique(np.linspace(0, n - length, MAX_RUNS_PER_LENGTH).astype(int))
    )
    months = np.diff(index.year * 12 + index.month)
    by_months = [("months", str(months.min()))] if n > 2 and months.min() > 0 else []
    rare = ["SMS", "SME", f"LWOM-{index[0].day_name()[:3].upper()}"] if n > 2 else []  # which pandas does not infer
    return [*(("dates", step) for step in (*found, *rare)), *by_months]


def _inferred(runs: Iterable[pd.DatetimeIndex]) -> Sequence[str]:
    """Return the frequencies that pandas infers from runs of dates."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what it will return in future versions
        found = [pd.infer_freq(run) for run in runs if len(run) > 2]
    return list(dict.fromkeys(getattr(step, "freqstr", step) for step in found if step is not None))


def _frequency(kind: str, step: str) -> str | pd.DateOffset:
    import pandas as pd

    return pd.DateOffset(months=int(step)) if kind == "months" else step
