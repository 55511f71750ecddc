"""The command `forecast`, from a CSV file to another."""

import csv
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from echolearn import ESNForecaster
from echolearn.cli.forecast import read_series
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
    with pytest.raises(ValueError, match="line 3: 1 fields; the header has 2"):
        read_series(ragged, "a")
    twice = tmp_path / "twice.csv"
    twice.write_text("day,a\n2024-01-02,2\n2024-01-01,1\n2024-01-02,3\n")
    with pytest.raises(ValueError, match=r"line 4: 2024-01-02 a second time. Keep one row per date"):
        read_series(twice, None)


def test_a_picture_of_an_unknown_kind_is_refused_before_the_file_is_read(tmp_path):
    done = CliRunner().invoke(main, ["forecast", str(tmp_path / "none.csv"), "--plot", "p.gif"])
    assert done.exit_code == 2
    assert "--plot p.gif: expected a name that ends in .png, .svg or .pdf." in done.output


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
    assert "6 dates have no row in gaps.csv, first 2023-02-10 00:00:00; they are treated as gaps." in gaps.output
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
