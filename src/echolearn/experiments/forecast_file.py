"""A series in a CSV file, and its forecast as another: the work behind `echolearn forecast`."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from echolearn.estimators.forecaster import ESNForecaster
from echolearn.forecasting.seasons import DAY, seasons_of_index
from echolearn.modelfile.atomic import write_atomically
from echolearn.tuning.backtesting import Backtest, backtest
from echolearn.validation.array_types import Array

MISSING = {"", "na", "n/a", "nan", "null", "none", "."}
MONTHLY = 27 * DAY  # from steps of this length on, dates are counted in months


@dataclass(frozen=True, eq=False)
class SeriesFile:
    """One column of a CSV file: its name, its values (NaN: missing), and the dates of its rows, if there are any."""

    name: str
    values: Array
    dates: Array | None


@dataclass(frozen=True, eq=False)
class FileForecast:
    """A forecast with its bounds, the season found, and how it fared on the last values of the file."""

    series: SeriesFile
    forecast: Array
    lower: Array
    upper: Array
    coverage: float
    season: int
    method: str
    check: Backtest | None


def read_series(path: Path, column: str | None) -> SeriesFile:
    """Return a column of a CSV file with a header; the first column that holds dates are the dates."""
    rows = [row for row in csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))) if row]
    if len(rows) < 2:
        raise ValueError(f"{path} has {len(rows)} rows; expected a header and one row per step.")
    header, body = [name.strip() for name in rows[0]], rows[1:]
    if any(len(row) != len(header) for row in body):
        line = next(i for i, row in enumerate(body) if len(row) != len(header)) + 2
        raise ValueError(f"{path}, line {line}: {len(body[line - 2])} fields; the header has {len(header)}.")
    columns = [[row[j].strip() for row in body] for j in range(len(header))]
    dates = {j: found for j, texts in enumerate(columns) if (found := _dates(texts)) is not None}
    others = {header[j]: texts for j, texts in enumerate(columns) if j not in dates}
    numbers = {name: found for name, texts in others.items() if (found := _numbers(texts)) is not None}
    if column is None and len(numbers) != 1:
        listed = ", ".join(numbers) or "-"
        raise ValueError(f"{path} has {len(numbers)} columns of numbers: {listed}. Name one: --column.")
    name = next(iter(numbers)) if column is None else column
    if name not in numbers:
        raise ValueError(f"{path} has no column of numbers {name!r}; it has {', '.join(numbers) or 'none'}.")
    stamps = dates[min(dates)] if dates else None
    if stamps is not None and (np.diff(stamps.astype(np.int64)) <= 0).any():
        raise ValueError(f"{path}: the dates are not in ascending order. Sort the rows.")
    return SeriesFile(name, numbers[name], stamps)


def _numbers(texts: list[str]) -> Array | None:
    try:
        values = [np.nan if text.lower() in MISSING else float(text.replace(" ", "")) for text in texts]
    except ValueError:
        return None
    return np.array(values) if not np.isnan(values).all() else None


def _dates(texts: list[str]) -> Array | None:
    """Return dates written as 2024-05, 2024-05-31, 2024-05-31 13:00 or the like; None for anything else."""
    if not all(len(text) >= 7 and text[4:5] == "-" for text in texts):
        return None
    try:
        return np.array([np.datetime64(text.replace(" ", "T").removesuffix("Z")) for text in texts]).astype("M8[s]")
    except ValueError:
        return None


def dates_ahead(dates: Array, steps: int) -> list[str]:
    """Return the dates that follow, at the same distance, months counted as months."""
    distance = float(np.median(np.diff(dates.astype(np.int64))))
    if distance >= MONTHLY:
        months = dates.astype("M8[M]")
        every = int(np.median(np.diff(months.astype(np.int64))))
        day = (dates[-1] - months[-1].astype("M8[s]")).astype("m8[s]")
        ahead = [(months[-1] + every * h).astype("M8[s]") + day for h in range(1, steps + 1)]
    else:
        ahead = [dates[-1] + np.timedelta64(int(distance) * h, "s") for h in range(1, steps + 1)]
    whole_days = distance >= DAY and not (dates.astype(np.int64) % int(DAY)).any()
    return [str(stamp.astype("M8[D]") if whole_days else stamp) for stamp in ahead]


def forecast_file(series: SeriesFile, horizon: int | None, coverage: float, season: int | None) -> FileForecast:
    """Return the forecast of a series, and a backtest of it where the series is long enough."""
    announced = None if series.dates is None else seasons_of_index(series.dates)
    first = season or (announced[0] if announced else None)
    esn = ESNForecaster(season=first or "auto")
    esn.fit(series.values)
    steps = horizon or esn.horizon_ or 12
    lower, upper = esn.forecast_interval(steps, coverage)
    n = len(series.values)
    check = backtest(esn, series.values, steps, 3, season=first) if n >= max(4 * steps, 24) else None
    found = 1 if esn.season_ is None else esn.season_[0]
    forecast = np.asarray(esn.predict(steps))
    return FileForecast(series, forecast, np.asarray(lower), np.asarray(upper), coverage, found, esn.method_, check)


def write_forecast(found: FileForecast, path: Path) -> None:
    """Write date (or step), forecast and bounds as CSV."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    dates = found.series.dates
    writer.writerow(["step" if dates is None else "date", found.series.name, "lower", "upper"])
    labels = list(range(1, len(found.forecast) + 1)) if dates is None else dates_ahead(dates, len(found.forecast))
    for row in zip(labels, found.forecast, found.lower, found.upper, strict=True):
        writer.writerow([row[0], *(f"{value:.8g}" for value in row[1:])])
    write_atomically(path, out.getvalue().encode())


def plot_forecast(found: FileForecast, path: Path) -> None:
    """Write a picture of the end of the series and its forecast."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("a plot needs matplotlib: pip install 'echolearn[report]'.") from None
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    known = found.series.values[-max(5 * len(found.forecast), 4 * found.season) :]
    axes.plot(np.arange(1 - len(known), 1), known, color="0.3", label=found.series.name)
    ahead = np.arange(1, len(found.forecast) + 1)
    axes.plot(ahead, found.forecast, color="C0", lw=2, label="forecast")
    label = f"{found.coverage:.0%} interval"
    axes.fill_between(ahead, found.lower, found.upper, color="C0", alpha=0.2, label=label)
    axes.set_xlabel("steps from the last known value")
    axes.legend(loc="upper left")
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.lstrip(".") or "png")
    write_atomically(path, content.getvalue())
