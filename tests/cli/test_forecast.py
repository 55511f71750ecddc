"""The command `forecast`, from a CSV file to another."""

import csv
import re
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from echolearn import ESNForecaster
from echolearn.cli.forecast import plot_forecast, read_series
from echolearn.cli.main import main


@pytest.fixture
def sales(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["month,sales,shops"]
    for i in range(48):
        value = (200 + 3 * i) * (1 + 0.2 * np.sin(2 * np.pi * i / 12)) * np.exp(0.02 * rng.normal())
        lines.append(f"{2019 + i // 12}-{i % 12 + 1:02d},{value:.1f},{i // 20 + 3}")
    lines[20] = lines[20].split(",")[0] + ",,4"  # a gap
    path = tmp_path / "sales.csv"
    path.write_text("\n".join(lines))
    return path


def test_a_forecast_is_checked_and_written(sales):
    done = CliRunner().invoke(
        main, ["forecast", str(sales), "--column", "sales", "--horizon", "6"], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert "48 values, a season of 12 steps" in done.output
    assert "seasonal naive" in done.output
    rows = list(csv.DictReader((sales.parent / "sales-forecast.csv").read_text().splitlines()))
    assert [row["date"] for row in rows[:2]] == ["2023-01-01", "2023-02-01"]
    assert all(float(row["lower"]) < float(row["sales"]) < float(row["upper"]) for row in rows)
    expected = [(200 + 3 * i) * (1 + 0.2 * np.sin(2 * np.pi * i / 12)) for i in range(48, 54)]
    np.testing.assert_allclose([float(row["sales"]) for row in rows], expected, rtol=0.1)


def test_what_is_wrong_with_a_file_is_said(sales, tmp_path):
    with pytest.raises(ValueError, match=r"2 columns of numbers: sales, shops. Name one: --column"):
        read_series(sales, None)
    with pytest.raises(ValueError, match="no column of numbers 'sale'; it has sales, shops"):
        read_series(sales, "sale")
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("a,b\n1,2\n3\n")
    with pytest.raises(ValueError, match="line 3: 1 field; the header has 2"):
        read_series(ragged, "a")
    twice = tmp_path / "twice.csv"
    twice.write_text("day,a\n2024-01-02,2\n2024-01-01,1\n2024-01-02,3\n")
    with pytest.raises(ValueError, match=r"line 4: 2024-01-02 a second time\. Keep one row per date"):
        read_series(twice, None)


def test_a_picture_of_an_unknown_kind_is_refused_before_the_file_is_read(tmp_path):
    done = CliRunner().invoke(main, ["forecast", str(tmp_path / "none.csv"), "--plot", "p.gif"])
    assert done.exit_code == 2
    assert "--plot p.gif: expected a name that ends in .png, .svg or .pdf." in done.output


def test_a_picture_has_a_title_units_and_a_legend(tmp_path):
    days = pd.date_range("2024-01-01", periods=6, name="day")
    known, ahead = pd.Series(np.arange(4.0), index=days[:4]), pd.Series([4.0, 5.0], index=days[4:])
    for rows, future, across in (
        (known, ahead, "day"),
        (known.to_numpy(), ahead.to_numpy(), "steps from the last value"),
    ):
        plot_forecast(tmp_path / "a.svg", rows, (future, future - 1, future + 1), ("visits", "90% interval"))
        texts = re.findall("<!-- (.*?) -->", (tmp_path / "a.svg").read_text())
        assert {"visits: 2 steps ahead", "visits", across, "known", "forecast", "90% interval"} <= set(texts)


def forecast(file, *options):
    return CliRunner().invoke(main, ["forecast", str(file), *options])


def test_dates_without_rows_become_gaps(tmp_path):
    rng = np.random.default_rng(0)
    days = np.arange("2023-01-01", "2023-06-01", dtype="M8[D]")
    values = 10 + 5 * (np.arange(len(days)) % 7 == 0) + rng.normal(0, 0.1, len(days))
    kept = np.r_[0:40, 45:90, 91 : len(days)]
    for name, rows in (("whole", range(len(days))), ("gaps", kept)):
        lines = "".join(f"{days[i]},{values[i]:.3f}\n" for i in rows)
        (tmp_path / f"{name}.csv").write_text("day,visits\n" + lines)
    whole, gaps = (forecast(tmp_path / f"{name}.csv", "--horizon", "7") for name in ("whole", "gaps"))
    assert "6 dates have no row in gaps.csv, first 2023-02-10; they are treated as gaps." in gaps.output
    assert "no row" not in whole.output
    assert "151 values, a season of 7 steps" in gaps.output
    files = [tmp_path / f"{name}-forecast.csv" for name in ("whole", "gaps")]
    ahead = [np.loadtxt(file, delimiter=",", skiprows=1, usecols=1) for file in files]
    np.testing.assert_allclose(ahead[0], ahead[1], atol=0.5)  # the peak of the week stays on its day


def test_a_date_that_does_not_exist_is_refused_with_its_line(tmp_path):
    rows = "".join(f"{day:02}.01.2023;{day}\n" for day in range(1, 30))
    (tmp_path / "a.csv").write_text(f"Tag;Wert\n{rows}31.02.2023;3\n")
    result = forecast(tmp_path / "a.csv")
    assert result.exit_code == 2
    assert "a.csv, line 31: '31.02.2023' is not a date of the calendar" in result.output


def test_a_file_that_is_not_there(tmp_path):
    result = forecast(tmp_path / "none.csv")
    assert result.exit_code == 2
    assert "none.csv: there is no such file." in result.output


WRITTEN = {
    "ME": "%Y-%m-%d",
    "QE": "%d.%m.%Y",
    "B": "%Y-%m-%d",
    "W-FRI": "%m/%d/%Y",
    "h": "%Y-%m-%d %H:%M",
    "15min": "%Y-%m-%dT%H:%M:%S",
}


@pytest.mark.parametrize("frequency", WRITTEN)
def test_a_file_is_forecast_as_in_python_with_the_dates_of_the_calendar(tmp_path, frequency):
    dates = pd.date_range("2021-01-01", periods=210, freq=frequency)
    rng, t = np.random.default_rng(0), np.arange(210)
    values = np.round(50 + 5 * np.sin(2 * np.pi * t / 5) + rng.normal(size=210), 3)
    rows = [f"{date:{WRITTEN[frequency]}};{value}" for date, value in zip(dates, values, strict=True)][:200]
    (tmp_path / "a.csv").write_text("\n".join(["Datum;Wert", *rows[::-1]]))  # the newest first
    done = forecast(tmp_path / "a.csv", "--horizon", "10")
    assert done.exit_code == 0
    assert "The rows were put in the order of their dates." in done.output
    written = pd.read_csv(tmp_path / "a-forecast.csv", parse_dates=["date"], index_col="date")
    assert (written.index == dates[200:]).all()
    expected = ESNForecaster().fit(pd.Series(values[:200], index=dates[:200])).predict(10)
    np.testing.assert_allclose(written["Wert"], expected, rtol=1e-6)


def test_steps_after_dates_at_no_equal_distances_are_counted(tmp_path):
    days = pd.Timestamp("2021-01-01") + pd.to_timedelta(np.arange(50) ** 2, unit="D")
    values = np.random.default_rng(0).normal(20, 1, 50)
    (tmp_path / "pay.csv").write_text(file_of(days, values, "%Y-%m-%d"))
    done = forecast(tmp_path / "pay.csv", "--horizon", "2")
    assert done.exit_code == 0
    assert done.output.count("the dates of pay.csv are not at equal distances") == 1
    assert "InputWarning" not in done.output
    lines = (tmp_path / "pay-forecast.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["step", "1", "2"]


def test_warnings_are_notes_and_both_seasons_are_named(tmp_path):
    t, rng = np.arange(600), np.random.default_rng(0)
    load = 40 + np.resize(3 * rng.normal(size=24), 600) + 6 * (t // 24 % 7 < 5) + 0.3 * rng.normal(size=600)
    hours = pd.date_range("2024-01-01", periods=600, freq="h")
    (tmp_path / "load.csv").write_text(file_of(hours, load, "%Y-%m-%d %H:%M"))
    assert "600 values, seasons of 24 and 168 steps" in forecast(tmp_path / "load.csv", "--horizon", "2").output
    load[-1] += 500
    (tmp_path / "odd.csv").write_text(file_of(hours, load, "%Y-%m-%d %H:%M"))
    output = forecast(tmp_path / "odd.csv", "--horizon", "2").output
    assert (
        output.count("the last known value, ")
        == output.count(f"note: the last known value, {load[-1]:.6g}, is far")
        == 1
    )


def test_years_are_continued(tmp_path):
    rows = "".join(f"{year},{100 + 3 * (year - 1990)}\n" for year in range(1990, 2020))
    (tmp_path / "a.csv").write_text("year,people\n" + rows)
    done = forecast(tmp_path / "a.csv", "--horizon", "2")
    assert done.exit_code == 0
    lines = (tmp_path / "a-forecast.csv").read_text().splitlines()
    assert lines[0] == "year,people,lower,upper"
    assert [line.split(",")[0] for line in lines[1:]] == ["2020", "2021"]


def test_dates_without_pandas_are_refused_with_what_to_install(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("day,a\n2024-01-01,2\n2024-01-02,1\n")
    monkeypatch.setitem(sys.modules, "pandas", None)
    result = forecast(tmp_path / "a.csv")
    assert result.exit_code == 2
    assert "pip install 'echolearn[forecast]'" in result.output


def signal(count, period):
    """Return a level with a season, in steps of a hundredth."""
    t = np.arange(count)
    return np.round(1500 + 400 * np.sin(2 * np.pi * t / period) + np.random.default_rng(0).normal(0, 20, count), 2)


def german(value):
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def file_of(dates, values, form, *, header="date,value", separator=",", number=str):
    rows = [f"{date:{form}}{separator}{number(v)}" for date, v in zip(dates, values, strict=True)]
    return "\n".join([header.replace(",", separator), *rows] if header else rows) + "\n"


DAYS = pd.date_range("2024-01-01", periods=70)
MONTHS = pd.date_range("2018-01-31", periods=72, freq="ME")
HOURS = pd.date_range("2024-03-25", periods=240, freq="h", tz="Europe/Berlin")  # over the change of the clocks
WORK = pd.date_range("2024-01-01", periods=100, freq="B")
DST = signal(240, 24)
# Twelve files as people have them: their bytes, options, the dates that follow, and what is printed or refused.
TWELVE = {
    "European": (file_of(DAYS, signal(70, 7), "%d.%m.%Y", separator=";", number=german), (), DAYS, "decimal commas"),
    "American": (file_of(DAYS, signal(70, 7), "%m/%d/%Y", number=lambda v: f'"{v:,.2f}"'), (), DAYS,
                 "commas between thousands"),
    "ISO": (file_of(DAYS, signal(70, 7), "%Y-%m-%d"), (), DAYS, "70 rows, columns date, value"),
    "Excel export": ("\ufeffsep=;\r\n" + file_of(DAYS, signal(70, 7), "%d.%m.%Y", separator=";", number=german)
                     .replace("\n", "\r\n"), (), DAYS, "separated by semicolons"),
    "no header": (file_of(DAYS, signal(70, 7), "%Y-%m-%d", header=""), (), DAYS, "was read as data"),
    "gaps": (file_of(DAYS.delete([20, 21, 40]), np.delete(signal(70, 7), [20, 21, 40]), "%Y-%m-%d"), (), DAYS,
             "3 dates have no row"),
    "duplicated dates": (file_of(DAYS.insert(5, DAYS[4]), np.insert(signal(70, 7), 5, 1.0), "%Y-%m-%d"), (), None,
                         "line 7: 2024-01-05 a second time. Keep one row per date."),
    "month ends": (file_of(MONTHS, signal(72, 12), "%Y-%m-%d"), (), MONTHS, "a season of 12"),
    "business days": (file_of(WORK, signal(100, 5), "%Y-%m-%d"), (), WORK, "a season of 5"),
    "zones": (file_of(HOURS, DST, "%Y-%m-%d %H:%M:%S%z"), (), HOURS, "a season of 24"),
    "hourly over a change of clocks": (
        file_of(pd.date_range("2024-10-25", periods=120, freq="h", tz="Europe/Berlin"), DST[:120], "%Y-%m-%d %H:%M"),
        (), None, "2024-10-27 02:00 a second time. Keep one row per date. Where a clock was set back"),
    "two columns": (file_of(DAYS, signal(70, 7), "%Y-%m-%d", header="date,value,other", number=lambda v: f"{v},{v}"),
                    ("--column", "value"), DAYS, "columns date, value, other"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TWELVE)
def test_files_as_people_have_them(tmp_path, kind):
    text, options, dates, expected = TWELVE[kind]
    path = tmp_path / "a.csv"
    path.write_text(text, newline="", encoding="utf-8")
    result = forecast(path, "--horizon", "3", *options)
    assert expected in result.output
    if dates is None:
        assert result.exit_code == 2
        assert len(result.output.strip().splitlines()) == 1
        return
    assert result.exit_code == 0, result.output
    found = pd.read_csv(tmp_path / "a-forecast.csv")
    ahead = pd.date_range(dates[0], periods=len(dates) + 3, freq=dates.freq)[-3:]
    assert (
        pd.to_datetime(found["date"], utc=True).tolist() == ahead.tz_convert("UTC").tolist()
        if ahead.tz
        else (pd.to_datetime(found["date"]).tolist() == ahead.tolist())
    )
    level = found.iloc[:, 1]
    assert ((level > 900) & (level < 2100)).all()  # the values of the file, neither a thousandth nor a thousandfold
    assert (found["lower"] < level).all()
    assert (level < found["upper"]).all()


def test_two_columns_of_numbers_are_asked_back(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(TWELVE["two columns"][0])
    result = forecast(path)
    assert result.exit_code == 2
    assert "2 columns of numbers: value, other. Name one: --column." in result.output
