"""The command `forecast`, from a CSV file to another."""

import csv

import numpy as np
import pytest
from click.testing import CliRunner

from echolearn.cli.main import main
from echolearn.experiments.forecast_file import dates_ahead, read_series


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
    with pytest.raises(ValueError, match="not in ascending order"):
        read_series(turned, None)


def test_dates_that_follow():
    quarters = np.array(["2023-01-31", "2023-04-30", "2023-07-31"], "M8[s]")
    assert dates_ahead(np.array(["2023-01-01", "2023-04-01", "2023-07-01"], "M8[s]"), 2) == ["2023-10-01", "2024-01-01"]
    assert len(dates_ahead(quarters, 2)) == 2
    hours = np.arange("2024-01-01T00", "2024-01-01T05", dtype="M8[h]").astype("M8[s]")
    assert dates_ahead(hours, 1) == ["2024-01-01T05:00:00"]
