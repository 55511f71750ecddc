"""The command `forecast`: a column of a CSV file, and its forecast as another."""

from __future__ import annotations

import importlib.util
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click
import numpy as np

from echolearn.cli.csv_files import TextTable, import_pandas, looks_like_date, read_dates, read_table, write_table
from echolearn.cli.options import FILE, dates_option, decimal_option, force_option, header_option
from echolearn.cli.outputs import claim, report
from echolearn.display.facts import counted
from echolearn.estimators import ESNForecaster
from echolearn.forecasting.calendar import on_calendar
from echolearn.modelfile.atomic import write_atomically
from echolearn.tuning import backtest
from echolearn.validation import Answers, Array

if TYPE_CHECKING:  # an optional dependency
    import pandas as pd


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
    values, calendar = on_calendar(series.values, file.name)
    if calendar is not None and calendar.kind == "rows":  # dates at no equal distances
        values = np.asarray(values)
    esn = ESNForecaster(season=season or "auto").fit(values)
    seasons = [m for m in esn.season_ or () if m > 1]
    steps = horizon or esn.horizon_ or 12
    words = f"{'seasons' if len(seasons) > 1 else 'a season'} of {' and '.join(map(str, seasons))} steps"
    click.echo(f"{series.name}: {len(values)} values, {words if seasons else 'no season'}; method {esn.method_}")
    if len(values) >= max(4 * steps, 24):
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of parts of the series
            check = backtest(esn, values, steps, 3, season=season)
        click.echo("a check on the last known values (errors, and shares inside intervals):")
        click.echo(repr(check))
        scores = check.scores
        if not scores["model"]["MASE"] < min(scores["naive"]["MASE"], scores["seasonal naive"]["MASE"]):
            click.echo("Repeating the last value or season did no worse there: trust this forecast no more than that.")
    else:
        click.echo("The series is too short to check the forecast on its last values.")
    answer = (esn.predict(steps), *esn.forecast_interval(steps, coverage))
    write_forecast(place, series.name, answer)
    report(place, f" ({steps} steps, {coverage:.0%} intervals)")
    if plot is not None:
        known = values[-max(5 * steps, 4 * max(seasons, default=1)) :]
        plot_forecast(plot, known, answer, (series.name, f"{coverage:.0%} interval"))
        report(plot)


PICTURE_ENDINGS = (".png", ".svg", ".pdf")
Bounded: TypeAlias = tuple[Answers, Answers, Answers]  # a forecast, and the bounds of its intervals
FIRST_YEAR, LAST_YEAR = 1500, 2200  # between which whole numbers at equal distances are taken for years


@dataclass(frozen=True, eq=False)
class SeriesFile:
    """One column of a CSV file, labelled by dates or years if the file has any; NaN: missing."""

    name: str
    values: Array | pd.Series
    notes: list[str]  # on how it was read


def read_series(
    path: Path, column: str | None, *, header: bool | None = None, decimal: str | None = None, order: str | None = None
) -> SeriesFile:
    """Return a column of a CSV file; the first column that holds dates, or years, labels its rows.

    header, decimal, order: as `read_table` and `read_dates` take them.
    """
    table = read_table(path, header=header, decimal=decimal)
    dated = [j for j, texts in enumerate(table.columns) if all(map(looks_like_date, texts))]
    numbers = {name: found for j, name in enumerate(table.names) if (found := table.numbers(j)) is not None}
    years = [] if dated else [name for name, found in numbers.items() if name != column and _are_years(found)][:1]
    name = _column(table, [other for other in numbers if other not in years] or list(numbers), column)
    unused = [j for j, other in enumerate(table.names) if other not in numbers and j not in dated]
    table.notes.extend(_not_used(table, j) for j in unused if any(c.isdigit() for c in table.columns[j][0]))
    labels = _dates(table, dated[0], order) if dated else None
    if years and years != [name]:
        labels = import_pandas("a file with years").Index(numbers[years[0]].astype(np.int64), name=years[0])
    values = numbers[name]
    if labels is not None:
        values = import_pandas("a file with dates").Series(values, index=labels, name=name)
    return SeriesFile(name, values, table.notes)


def _are_years(values: Array) -> bool:
    """Return whether a column holds years, one after the other or at another equal distance."""
    distances = np.diff(values)
    whole = len(values) > 2 and not np.isnan(values).any() and bool((values == np.round(values)).all())
    return whole and values[0] >= FIRST_YEAR and values[-1] <= LAST_YEAR and distances[0] > 0 and np.ptp(distances) == 0


def _column(table: TextTable, numeric: list[str], column: str | None) -> str:
    """Return the name of the column to forecast; numeric: the names of columns of numbers."""
    if column is None and len(numeric) > 1:
        raise ValueError(
            f"{table.path} has {len(numeric)} columns of numbers: {', '.join(numeric)}. Name one: --column."
        )
    if column is None and not numeric:
        others = [j for j, texts in enumerate(table.columns) if not all(map(looks_like_date, texts))]
        dates_only = f"{table.path} has dates only; expected a column of numbers beside them."
        raise ValueError(table.problem(others[-1]) if others else dates_only)
    name = column or numeric[0]
    if name not in table.names:
        raise ValueError(f"{table.path} has no column of numbers {name!r}; it has {', '.join(numeric) or 'none'}.")
    if name not in numeric:
        raise ValueError(table.problem(table.names.index(name)))
    return name


def _dates(table: TextTable, j: int, order: str | None) -> pd.DatetimeIndex | None:
    """Return the dates of a column, or None, with a note, if they are written in different ways."""
    found = read_dates(table, j, order)
    if found is None:
        why = "its dates are written in different ways. Steps are numbered instead."
        table.notes.append(f"The column {table.names[j]!r} was not used as dates: {why}")
        return None
    dates = found.rename("date")
    for i in np.flatnonzero(dates.duplicated())[:1]:
        text = table.columns[j][i]
        clock = " Where a clock was set back, write the zone, too: 2024-10-27 02:00+01:00." if ":" in text else ""
        raise ValueError(f"{table.path}, line {table.lines[i]}: {text} a second time. Keep one row per date.{clock}")
    if not dates.is_monotonic_increasing:
        table.notes.append("The rows were put in the order of their dates.")
    return dates


def _not_used(table: TextTable, j: int) -> str:
    """Return the note on a column that holds neither numbers nor dates."""
    texts = table.columns[j]
    dates = looks_like_date(texts[0])
    i = next(
        i for i, text in enumerate(texts) if not (looks_like_date(text) if dates else table.number(j, text) is not None)
    )
    return (
        f"The column {table.names[j]!r} was not used: line {table.lines[i]} has {texts[i]!r:.40}, which is neither a "
        "number nor a date such as 2024-01-31."
    )


def write_forecast(path: Path, name: str, answer: Bounded) -> None:
    """Write date, year or step, forecast and bounds as CSV; name: of the column."""
    index = getattr(answer[0], "index", None)
    labels = range(1, len(answer[0]) + 1) if index is None else index
    if index is not None and hasattr(index, "normalize"):
        whole_days = bool((index == index.normalize()).all())
        labels = [date.date() if whole_days else date.isoformat() for date in index]
    numbers = np.stack([np.asarray(values) for values in answer], axis=1).tolist()
    rows = [[label, *(f"{value:.8g}" for value in row)] for label, row in zip(labels, numbers, strict=True)]
    write_table(path, ["step" if index is None else index.name, name, "lower", "upper"], rows)


def check_plot(path: Path) -> None:
    """Refuse a picture that cannot be drawn, before the work that it would show."""
    if path.suffix.lower() not in PICTURE_ENDINGS:
        raise ValueError(
            f"--plot {path}: expected a name that ends in {', '.join(PICTURE_ENDINGS[:-1])} or {PICTURE_ENDINGS[-1]}."
        )
    if importlib.util.find_spec("matplotlib") is None:
        raise ValueError("--plot needs matplotlib: pip install 'echolearn[report]'.")


def plot_forecast(path: Path, known: Array | pd.Series, answer: Bounded, names: tuple[str, str]) -> None:
    """Write a picture of known values and their forecast; names: of the series and of the interval."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    forecast, lower, upper = (np.asarray(values) for values in answer)
    past, ahead = (getattr(rows, "index", None) for rows in (known, answer[0]))
    across = getattr(past, "name", None) or "date"
    if past is None or ahead is None:
        past, ahead, across = np.arange(1 - len(known), 1), np.arange(1, len(forecast) + 1), "steps from the last value"
    axes.set(title=f"{names[0]}: {counted(len(forecast), 'step')} ahead", xlabel=across, ylabel=names[0])
    axes.plot(past, np.asarray(known), color="0.3", label="known")
    axes.plot(ahead, forecast, color="C0", lw=2, label="forecast")
    axes.fill_between(ahead, lower, upper, color="C0", alpha=0.2, label=names[1])
    figure.legend(loc="outside right upper")  # beside the data
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix.lower().lstrip("."))
    write_atomically(path, content.getvalue())
