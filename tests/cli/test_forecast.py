"""The command `forecast`, from a CSV file to another."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from echolearn.cli.forecast import dates_ahead, read_series
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
    turned = tmp_path / "turned.csv"
    turned.write_text("day,a\n2024-01-02,2\n2024-01-01,1\n")
    with pytest.raises(ValueError, match="not in ascending order: line 3 has 2024-01-01 after 2024-01-02"):
        read_series(turned, None)


def test_a_picture_of_an_unknown_kind_is_refused_before_the_file_is_read(tmp_path):
    done = CliRunner().invoke(main, ["forecast", str(tmp_path / "none.csv"), "--plot", "p.gif"])
    assert done.exit_code == 2
    assert "--plot p.gif: expected a name that ends in .png, .svg or .pdf." in done.output


def test_dates_that_follow():
    quarters = np.array(["2023-01-31", "2023-04-30", "2023-07-31"], "M8[s]")
    assert dates_ahead(np.array(["2023-01-01", "2023-04-01", "2023-07-01"], "M8[s]"), 2) == ["2023-10-01", "2024-01-01"]
    assert len(dates_ahead(quarters, 2)) == 2
    hours = np.arange("2024-01-01T00", "2024-01-01T05", dtype="M8[h]").astype("M8[s]")
    assert dates_ahead(hours, 1) == ["2024-01-01T05:00:00"]


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
    assert "6 dates have no row, first 2023-02-10; they are treated as gaps." in gaps.output
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
