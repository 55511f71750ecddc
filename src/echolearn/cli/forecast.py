"""The command `forecast`. Whatever is slow to import is imported when it runs."""

from __future__ import annotations

from pathlib import Path

import click

from echolearn.cli.options import FILE, header_option


@click.command()
@click.argument("file", type=FILE)
@click.option("--column", help="The column to forecast, by its name.  [default: the only one that holds numbers]")
@click.option("--horizon", type=click.IntRange(1), help="How many steps ahead.  [default: two seasons, 8 to 48]")
@click.option("--season", type=click.IntRange(1), help="Steps of one season; 1 for none.  [default: found]")
@click.option("--coverage", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.9, show_default=True,
              help="The share of values that the intervals should hold.")  # fmt: skip
@header_option
@click.option("--dates", "order", type=click.Choice(["day-first", "month-first"]),
              help="How to read dates such as 01/02/2024.  [default: found, where a day is above 12]")  # fmt: skip
@click.option("--out", type=FILE, help="The CSV file to write.  [default: FILE-forecast.csv]")
@click.option("--plot", type=FILE, help="Also write a picture: .png, .svg or .pdf.")
def forecast(
    *,
    file: Path,
    column: str | None,
    horizon: int | None,
    season: int | None,
    coverage: float,
    header: bool | None,
    order: str | None,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Forecast a column of FILE.csv, which has one row per step.

    Columns are separated by commas, semicolons or tabs. With semicolons or tabs, numbers may have decimal commas. A
    column of dates, if there is one, gives the distance of the steps: 2024-05, 2024-05-31, 31.05.2024, 05/31/2024. What
    was found is printed.
    """
    from echolearn.experiments import forecast_file

    if plot is not None:
        forecast_file.check_plot(plot)
    series = forecast_file.read_series(file, column, header=header, order=order)
    for note in series.notes:
        click.echo(note)
    found = forecast_file.forecast_file(series, horizon, coverage, season)
    known = found.series.values
    season_text = f"a season of {found.season} steps" if found.season > 1 else "no season"
    click.echo(f"{found.series.name}: {len(known)} values, {season_text}; method {found.method.replace('_', ' ')}")
    if found.check is not None:
        click.echo("forecasts of the last known values, as a check:")
        click.echo(repr(found.check))
        scores = found.check.scores
        if not scores["model"]["MASE"] < min(scores["naive"]["MASE"], scores["seasonal naive"]["MASE"]):
            click.echo("Repeating the last value or season did no worse there: trust this forecast no more than that.")
    else:
        click.echo("The series is too short to check the forecast on its last values.")
    place = out or file.with_name(f"{file.stem}-forecast.csv")
    forecast_file.write_forecast(found, place)
    click.echo(f"written: {place} ({len(found.forecast)} steps, {coverage:.0%} intervals)")
    if plot is not None:
        forecast_file.plot_forecast(found, plot)
        click.echo(f"written: {plot}")
