"""The command `forecast`: a column of a CSV file, and its forecast as another."""

from __future__ import annotations

import importlib.util
import io
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

from echolearn.cli.csv_files import (
    AmbiguousDates,
    ImpossibleDate,
    TextTable,
    looks_like_date,
    read_dates,
    read_table,
    write_table,
)
from echolearn.cli.options import FILE, dates_option, decimal_option, force_option, header_option
from echolearn.cli.outputs import claim, report
from echolearn.estimators import ESNForecaster
from echolearn.forecasting.calendar import DAY_SECONDS, MIN_MONTH_SECONDS, regular_calendar
from echolearn.forecasting.seasons import seasons_of_index
from echolearn.modelfile.atomic import write_atomically
from echolearn.tuning import backtest
from echolearn.tuning._backtest import Backtest
from echolearn.validation import Array


@click.command()
@click.argument("file", type=FILE)
@click.option("--column", help="The column to forecast, by its name.  [default: the only one that holds numbers]")
@click.option("--horizon", type=click.IntRange(1), help="How many steps ahead.  [default: two seasons, 8 to 48]")
@click.option("--season", type=click.IntRange(1), help="Steps of one season; 1 for none.  [default: found]")
@click.option("--coverage", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.9, show_default=True,
              help="The share of values that the intervals should hold.")  # fmt: skip
@header_option
@decimal_option
@dates_option
@click.option("--out", type=FILE, help="The CSV file to write.  [default: FILE-forecast.csv]")
@force_option
@click.option("--plot", type=FILE, help="Also write a picture: .png, .svg or .pdf.")
def forecast(
    *,
    file: Path,
    column: str | None,
    horizon: int | None,
    season: int | None,
    coverage: float,
    header: bool | None,
    decimal: str | None,
    date_order: str | None,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Forecast a column of FILE.csv, which has one row per step.

    Columns are separated by commas, semicolons or tabs. With semicolons or tabs, numbers may have decimal commas. A
    column of dates, if there is one, gives the distance of the steps: 2024-05, 2024-05-31, 31.05.2024, 05/31/2024. What
    was found is printed.
    """
    place = out or file.with_name(f"{file.stem}-forecast.csv")
    claim(place, *([] if plot is None else [plot]))
    if plot is not None:
        check_plot(plot)
    series = read_series(file, column, header=header, decimal=decimal, order=date_order)
    for note in series.notes:
        click.echo(note)
    result = forecast_series(series, horizon, coverage, season)
    known = result.series.values
    season_text = f"a season of {result.season} steps" if result.season > 1 else "no season"
    click.echo(f"{result.series.name}: {len(known)} values, {season_text}; method {result.method.replace('_', ' ')}")
    if result.check is not None:
        click.echo("forecasts of the last known values, as a check:")
        click.echo(repr(result.check))
        scores = result.check.scores
        if not scores["model"]["MASE"] < min(scores["naive"]["MASE"], scores["seasonal naive"]["MASE"]):
            click.echo("Repeating the last value or season did no worse there: trust this forecast no more than that.")
    else:
        click.echo("The series is too short to check the forecast on its last values.")
    write_forecast(result, place)
    report(place, f" ({len(result.forecast)} steps, {coverage:.0%} intervals)")
    if plot is not None:
        plot_forecast(result, plot)
        report(plot)


PICTURE_ENDINGS = (".png", ".svg", ".pdf")


@dataclass(frozen=True, eq=False)
class SeriesFile:
    """One column of a CSV file: its name, values (NaN: missing), dates if it has any, and notes on reading it."""

    name: str
    values: Array
    dates: Array | None
    notes: list[str]


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


def read_series(
    path: Path,
    column: str | None,
    *,
    header: bool | None = None,
    decimal: str | None = None,
    order: str | None = None,
) -> SeriesFile:
    """Return a column of a CSV file; the first column that holds dates are the dates.

    header: whether the first line has names, None: find out. order: of days and months, as `read_dates` takes it.
    """
    table = read_table(path, header=header, decimal=decimal)
    dated = [j for j, texts in enumerate(table.columns) if all(map(looks_like_date, texts))]
    numbers = {table.names[j]: found for j in range(len(table.names)) if (found := table.numbers(j)) is not None}
    name = _column(table, list(numbers), column)
    stamps = _stamps(table, dated[0], order) if dated else None
    unused = [j for j, other in enumerate(table.names) if other not in numbers and j not in dated]
    table.notes.extend(_not_used(table, j) for j in unused if any(c.isdigit() for c in table.columns[j][0]))
    values = numbers[name]
    if stamps is not None:
        stamps, values, note = with_gaps(stamps, values)
        table.notes.extend([note] if note else [])
    return SeriesFile(name, values, stamps, table.notes)


def with_gaps(stamps: Array, values: Array) -> tuple[Array, Array, str]:
    """Return dates and values with a gap (NaN) for each date of a calendar without a row, and a note on them."""
    calendar = regular_calendar(stamps)
    if calendar is None:
        note = (
            "The dates are not at equal distances; rows are taken as steps of equal length." if len(stamps) > 2 else ""
        )
        return stamps, values, note
    missing = calendar.dates[~np.isin(calendar.dates, stamps)]
    if not len(missing):
        return stamps, values, ""
    filled = np.full(len(calendar.dates), np.nan)
    filled[np.isin(calendar.dates, stamps)] = values
    rows = "1 date has" if len(missing) == 1 else f"{len(missing)} dates have"
    return calendar.dates, filled, f"{rows} no row, first {missing[0].astype('M8[D]')}; they are treated as gaps."


def _column(table: TextTable, numeric: list[str], column: str | None) -> str:
    """Return the name of the column to forecast; numeric: the names of columns of numbers."""
    if column is None:
        if len(numeric) > 1:
            raise ValueError(
                f"{table.path} has {len(numeric)} columns of numbers: {', '.join(numeric)}. Name one: --column."
            )
        if not numeric:
            others = [j for j, texts in enumerate(table.columns) if not all(map(looks_like_date, texts))]
            dates_only = f"{table.path} has dates only; expected a column of numbers beside them."
            raise ValueError(table.problem(others[-1]) if others else dates_only)
        return numeric[0]
    if column not in table.names:
        raise ValueError(f"{table.path} has no column of numbers {column!r}; it has {', '.join(numeric) or 'none'}.")
    if column not in numeric:
        raise ValueError(table.problem(table.names.index(column)))
    return column


def _stamps(table: TextTable, j: int, order: str | None) -> Array | None:
    """Return the dates of a column in ascending order, or None, with a note, if they cannot be read."""
    name = table.names[j]
    try:
        dates, note = read_dates(table.columns[j], order)
        stamps: Array = dates.tz_localize(None).to_numpy().astype("M8[s]")
    except AmbiguousDates as problem:
        raise AmbiguousDates(f"{table.path}, column {name!r}: {problem}") from None
    except ImpossibleDate as problem:
        raise ValueError(f"{table.path}, line {table.lines[problem.row]}: {problem} Correct or remove it.") from None
    except ValueError as problem:
        table.notes.append(f"The column {name!r} was not used as dates: {problem} Steps are numbered instead.")
        return None
    if note:
        table.notes.append(f"In the column {name!r}, {note}.")
    behind = np.flatnonzero(np.diff(stamps.astype(np.int64)) <= 0) + 1
    if len(behind):
        texts, i = table.columns[j], int(behind[0])
        raise ValueError(
            f"{table.path}: the dates are not in ascending order: line {table.lines[i]} has {texts[i]} after "
            f"{texts[i - 1]}. Sort the rows, and keep one row per date."
        )
    return stamps


def _not_used(table: TextTable, j: int) -> str:
    """Return the note on a column that holds neither numbers nor dates."""
    texts = table.columns[j]
    if looks_like_date(texts[0]):
        i = next(i for i, text in enumerate(texts) if not looks_like_date(text))
    else:
        i = next((i for i, text in enumerate(texts) if table.number(j, text) is None), 0)
    return (
        f"The column {table.names[j]!r} was not used: line {table.lines[i]} has {texts[i]!r:.40}, which is neither a "
        "number nor a date such as 2024-01-31."
    )


def dates_ahead(dates: Array, steps: int) -> list[str]:
    """Return the dates that follow, at the same distance, months counted as months."""
    distance = float(np.median(np.diff(dates.astype(np.int64))))
    if distance >= MIN_MONTH_SECONDS:
        months = dates.astype("M8[M]")
        every = int(np.median(np.diff(months.astype(np.int64))))
        day = (dates[-1] - months[-1].astype("M8[s]")).astype("m8[s]")
        ahead = [(months[-1] + every * h).astype("M8[s]") + day for h in range(1, steps + 1)]
    else:
        ahead = [dates[-1] + np.timedelta64(int(distance) * h, "s") for h in range(1, steps + 1)]
    whole_days = distance >= DAY_SECONDS and not (dates.astype(np.int64) % int(DAY_SECONDS)).any()
    return [str(stamp.astype("M8[D]") if whole_days else stamp) for stamp in ahead]


def forecast_series(series: SeriesFile, horizon: int | None, coverage: float, season: int | None) -> FileForecast:
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


def write_forecast(result: FileForecast, path: Path) -> None:
    """Write date (or step), forecast and bounds as CSV."""
    dates, steps = result.series.dates, len(result.forecast)
    labels = list(range(1, steps + 1)) if dates is None else dates_ahead(dates, steps)
    numbers = np.stack([result.forecast, result.lower, result.upper], axis=1).tolist()
    rows = [[label, *(f"{value:.8g}" for value in row)] for label, row in zip(labels, numbers, strict=True)]
    write_table(path, ["step" if dates is None else "date", result.series.name, "lower", "upper"], rows)


def check_plot(path: Path) -> None:
    """Refuse a picture that cannot be drawn, before the work that it would show."""
    if path.suffix.lower() not in PICTURE_ENDINGS:
        raise ValueError(
            f"--plot {path}: expected a name that ends in {', '.join(PICTURE_ENDINGS[:-1])} or {PICTURE_ENDINGS[-1]}."
        )
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("--plot needs matplotlib: pip install 'echolearn[report]'.")


def plot_forecast(result: FileForecast, path: Path) -> None:
    """Write a picture of the end of the series and its forecast."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    shown, dates = max(5 * len(result.forecast), 4 * result.season), result.series.dates
    known = result.series.values[-shown:]
    past, ahead = np.arange(1 - len(known), 1), np.arange(1, len(result.forecast) + 1)
    if dates is not None:
        past, ahead = dates[-shown:], np.array(dates_ahead(dates, len(ahead)), "M8[s]")
    axes.plot(past, known, color="0.3", label=result.series.name)
    axes.plot(ahead, result.forecast, color="C0", lw=2, label="forecast")
    label = f"{result.coverage:.0%} interval"
    axes.fill_between(ahead, result.lower, result.upper, color="C0", alpha=0.2, label=label)
    if dates is None:
        axes.set_xlabel("steps from the last known value")
    axes.legend(loc="upper left")
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.lower().lstrip("."))
    write_atomically(path, content.getvalue())
