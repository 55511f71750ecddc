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


def written(path, rows, header="day,sales"):
    path.write_text("\n".join([header, *rows] if header else rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("texts", "first", "words"),
    [
        (("30/01/2024", "31/01/2024", "01/02/2024"), "2024-01-30", "day/month/year"),
        (("01/30/2024", "01/31/2024", "02/01/2024"), "2024-01-30", "month/day/year"),
        (("30.1.2024 9:30:00", "31.1.2024 9:30:00"), "2024-01-30T09:30", "day.month.year"),
        (("01.02.2024", "01.03.2024"), "2024-02-01", "day.month.year"),
        (("2024/01/30", "2024/01/31"), "2024-01-30", None),
        (("01/01/2023", "01/01/2024"), "2023-01-01", "day/month/year"),
    ],
)
def test_days_and_months_are_read_in_the_order_that_the_column_has(tmp_path, texts, first, words):
    found = read_series(written(tmp_path / "a.csv", [f"{text},{i}" for i, text in enumerate(texts)]), None)
    assert found.dates[0] == np.datetime64(first)
    assert (np.diff(found.dates) > 0).all()
    assert found.notes == (
        [] if words is None else [f"In the column 'day', dates such as {texts[0]} were read as {words}."]
    )


def test_dates_of_two_readings_are_refused_unless_the_order_is_given(tmp_path):
    path = written(tmp_path / "a.csv", ["01/01/2024,1", "02/01/2024,2", "03/01/2024,3"])
    with pytest.raises(ValueError, match=r"2024-01-02 \(day first\) or 2024-02-01 \(month first\).*--dates day-first"):
        read_series(path, None)
    assert read_series(path, None, order="month-first").dates[1] == np.datetime64("2024-02-01")
    assert read_series(path, None, order="day-first").dates[1] == np.datetime64("2024-01-02")


def test_columns_that_are_not_used_are_named_with_the_reason(tmp_path):
    texts = read_series(written(tmp_path / "a.csv", ["Jan 5,1", "Jan 6,2"]), None)
    assert texts.dates is None
    assert texts.notes[0].startswith("The column 'day' was not used: line 2 has 'Jan 5', which is neither a number nor")
    late = read_series(written(tmp_path / "b.csv", ["2024-01-05,1", "2024-01-06,2", "total 2,3"]), None)
    assert "line 4 has 'total 2'" in late.notes[0]
    with pytest.raises(ValueError, match=r"line 2: '30\.02\.2024' is not a date"):
        read_series(written(tmp_path / "c.csv", ["30.02.2024,1", "31.02.2024,2"]), None)
    plain = read_series(written(tmp_path / "d.csv", ["north,1", "south,2"]), None)
    assert plain.notes == []


def test_a_first_line_of_values_is_data(tmp_path):
    found = read_series(written(tmp_path / "a.csv", ["2024-01-01,5.5", "2024-01-02,6.5"], header=""), None)
    assert (found.name, found.values.tolist(), len(found.dates)) == ("column_2", [5.5, 6.5], 2)
    assert "The first line of a.csv holds values and was read as data" in found.notes[0]
    years = written(tmp_path / "b.csv", ["1", "2"], header="2020")
    assert read_series(years, None).values.tolist() == [2020, 1, 2]
    assert read_series(years, None, header=True).values.tolist() == [1, 2]
    unnamed = written(tmp_path / "c.csv", ["0,5", "1,6"], header=",sales")  # an index that pandas wrote
    assert read_series(unnamed, "sales").values.tolist() == [5, 6]


@pytest.mark.parametrize(("separator", "word"), [(";", "semicolons"), ("\t", "tabs")])
def test_separators_and_decimal_commas_are_found(tmp_path, separator, word):
    rows = [f"2024-01-0{i}{separator}1.00{i},5" for i in range(1, 4)]
    found = read_series(written(tmp_path / "a.csv", rows, header=f"day{separator}sales"), None)
    assert found.values.tolist() == [1001.5, 1002.5, 1003.5]
    assert found.notes == [
        f"The columns of a.csv are separated by {word}.",
        "Commas in numbers were read as decimal commas.",
    ]
    points = [row.replace("1.00", "").replace(",", ".") for row in rows]
    assert read_series(written(tmp_path / "b.csv", points, f"day{separator}sales"), None).values.tolist() == [
        1.5,
        2.5,
        3.5,
    ]


def test_a_field_that_is_not_a_number_is_named_with_a_cure(tmp_path):
    path = written(tmp_path / "a.csv", ['2024-01-01,"1,009.0"', '2024-01-02,"1,010.0"'])
    with pytest.raises(ValueError, match=r"line 2, column 'sales': '1,009.0' is not a number.*write 1009.0"):
        read_series(path, None)
    path = written(tmp_path / "b.csv", ["2024-01-01,1009.5", '2024-01-02,"1009,5"'])
    with pytest.raises(ValueError, match=r"line 3, column 'sales': '1009,5' is not a number.*1009\.5; or.*semicolons"):
        read_series(path, "sales")
    binary = tmp_path / "c.csv"
    binary.write_bytes(b"\x93NUMPY\xff\xfe")
    with pytest.raises(ValueError, match="not a text file in UTF-8"):
        read_series(binary, None)


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
