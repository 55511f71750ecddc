"""Tables in CSV files as people have them, read by `forecast`."""

import numpy as np
import pytest

from echolearn.cli.csv_files import read_table
from echolearn.cli.forecast import read_series


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
    assert found.values.index[0] == np.datetime64(first)
    assert found.values.index.is_monotonic_increasing
    assert found.notes[1:] == (
        [] if words is None else [f"In the column 'day', dates such as {texts[0]} were read as {words}."]
    )


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (("11/1982", "12/1982", "1/1983"), ("1982-11-01", "1982-12-01", "1983-01-01")),
        (("Nov 1982", "dec 1982", "Jan 1983"), ("1982-11-01", "1982-12-01", "1983-01-01")),
        (("April-1982", "May-1982", "June-1982"), ("1982-04-01", "1982-05-01", "1982-06-01")),
        (("1959Q3", "1959Q4", "1960Q1"), ("1959-07-01", "1959-10-01", "1960-01-01")),
        (("1959-q3", "1959-q4", "1960-q1"), ("1959-07-01", "1959-10-01", "1960-01-01")),
        (("Jan-1-1995", "Feb-1-1995", "Mar-1-1995"), ("1995-01-01", "1995-02-01", "1995-03-01")),
        (("30 Jan 1995", "31 Jan 1995", "1 Feb 1995"), ("1995-01-30", "1995-01-31", "1995-02-01")),
        (("1991 Jul", "1991 Aug", "1991 Sep"), ("1991-07-01", "1991-08-01", "1991-09-01")),
        (("1977-Jan", "1977-Feb", "1977-Mar"), ("1977-01-01", "1977-02-01", "1977-03-01")),
        (("19580329", "19580405", "19580412"), ("1958-03-29", "1958-04-05", "1958-04-12")),
    ],
)
def test_dates_in_words_or_without_marks_are_read_and_months_and_quarters_are_their_first_days(tmp_path, texts, days):
    path = written(tmp_path / "a.csv", [f"{text},{i}" for i, text in enumerate(texts)])
    assert list(read_series(path, None).values.index.strftime("%Y-%m-%d")) == list(days)


def test_months_that_do_not_exist_are_refused(tmp_path):
    path = written(tmp_path / "a.csv", ["12/1982,1", "13/1982,2"])
    with pytest.raises(ValueError, match=r"line 3: '13/1982' is not a date"):
        read_series(path, None)


def test_dates_of_two_readings_are_refused_unless_the_order_is_given(tmp_path):
    path = written(tmp_path / "a.csv", ["01/01/2024,1", "02/01/2024,2", "03/01/2024,3"])
    with pytest.raises(ValueError, match=r"2024-01-02 \(day first\) or 2024-02-01 \(month first\).*--dates day-first"):
        read_series(path, None)
    assert read_series(path, None, order="month-first").values.index[1] == np.datetime64("2024-02-01")
    assert read_series(path, None, order="day-first").values.index[1] == np.datetime64("2024-01-02")


def test_columns_that_are_not_used_are_named_with_the_reason(tmp_path):
    texts = read_series(written(tmp_path / "a.csv", ["Jan 5,1", "Jan 6,2"]), None)
    assert not hasattr(texts.values, "index")
    assert texts.notes[1].startswith("The column 'day' was not used: line 2 has 'Jan 5', which is neither a number nor")
    late = read_series(written(tmp_path / "b.csv", ["2024-01-05,1", "2024-01-06,2", "total 2,3"]), None)
    assert "line 4 has 'total 2'" in late.notes[1]
    with pytest.raises(ValueError, match=r"line 2: '30\.02\.2024' is not a date"):
        read_series(written(tmp_path / "c.csv", ["30.02.2024,1", "31.02.2024,2"]), None)
    plain = read_series(written(tmp_path / "d.csv", ["north,1", "south,2"]), None)
    assert len(plain.notes) == 1


def test_a_first_line_of_values_is_data(tmp_path):
    found = read_series(written(tmp_path / "a.csv", ["2024-01-01,5.5", "2024-01-02,6.5"], header=""), None)
    assert (found.name, found.values.tolist(), len(found.values.index)) == ("column_2", [5.5, 6.5], 2)
    assert "The first line of a.csv holds values and was read as data" in found.notes[1]
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
        f"a.csv: 3 rows, columns day, sales; separated by {word}; decimal commas; points between thousands."
    ]
    points = [row.replace("1.00", "").replace(",", ".") for row in rows]
    assert read_series(written(tmp_path / "b.csv", points, f"day{separator}sales"), None).values.tolist() == [
        1.5,
        2.5,
        3.5,
    ]


def test_a_field_that_is_not_a_number_is_named_with_a_cure(tmp_path):
    path = written(tmp_path / "b.csv", ["2024-01-01,1009.5", '2024-01-02,"1009,5"'])
    with pytest.raises(ValueError, match=r"line 3, column 'sales': '1009,5' is not a number.*--decimal ,"):
        read_series(path, "sales")
    binary = tmp_path / "c.csv"
    np.save(binary.with_suffix(".npy"), np.arange(3))
    binary.with_suffix(".npy").rename(binary)
    with pytest.raises(ValueError, match="not a text file; expected a table as CSV"):
        read_series(binary, None)


PLAIN = [1234.5, 987.25, 20000.0, 0.5, 1000000.75, -3456.0]
STYLES = {  # as one writes 1234.5 somewhere
    "American": lambda v: f"{v:,.2f}",
    "German": lambda v: f"{v:,.2f}".translate(str.maketrans(",.", ".,")),
    "French": lambda v: f"{v:,.2f}".replace(",", "\u202f").replace(".", ","),
    "Swiss": lambda v: f"{v:,.2f}".replace(",", "’"),
    "plain": lambda v: f"{v:.2f}",
    "scientific": lambda v: f"{v:.9e}",
}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("style", STYLES)
def test_numbers_are_read_as_they_are_written_in_many_countries(tmp_path, style, separator):
    fields = [f'"{STYLES[style](value)}"' for value in PLAIN]
    path = tmp_path / "a.csv"
    path.write_text("\n".join([f"i{separator}v", *(f"{i}{separator}{text}" for i, text in enumerate(fields))]))
    table = read_table(path)
    np.testing.assert_allclose(table.numbers(1), PLAIN)
    assert ("decimal commas" in table.notes[0]) == (style in ("German", "French"))
    assert ("points between thousands" in table.notes[0]) == (style == "German")
    assert ("commas between thousands" in table.notes[0]) == (style == "American")


def test_thousands_and_decimals_that_look_alike_are_asked_back(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("tag;wert\n1;1.234\n2;2.500\n")
    with pytest.raises(ValueError, match=r"line 2: 1\.234 may be 1\.234 or 1234, .*--decimal \. .*--decimal ,"):
        read_table(path)
    assert read_table(path, decimal=",").numbers(1).tolist() == [1234, 2500]
    assert read_table(path, decimal=".").numbers(1).tolist() == [1.234, 2.5]
    path.write_text("tag;wert;preis\n1;1.234;0,5\n2;2.500;1,25\n")  # another column decides
    assert read_table(path).numbers(1).tolist() == [1234, 2500]
    path.write_text("tag;wert;preis\n1;1.234;0.5\n2;2.500;1.25\n")
    assert read_table(path).numbers(1).tolist() == [1.234, 2.5]
    path.write_text("a,b\n1.234,2.345\n3.456,4.567\n")  # with commas between columns, points are decimal
    assert read_table(path).numbers(0).tolist() == [1.234, 3.456]
    path.write_text('a,b\n"1,234",2\n"3,456",4\n')
    assert read_table(path).numbers(0).tolist() == [1234, 3456]
    assert "commas between thousands" in read_table(path).notes[0]


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("day,sales,sales\n2024-01-01,1,2\n2024-01-02,3,4\n")
    with pytest.raises(ValueError, match=r"the columns 2 and 3 are both called .sales.\. Rename"):
        read_table(path)
    assert read_table(path, header=False).names == ["column_1", "column_2", "column_3"]


@pytest.mark.parametrize(
    ("encoding", "note"), [("utf-8", False), ("utf-8-sig", False), ("utf-16", False), ("cp1252", True)]
)
def test_files_as_spreadsheets_write_them(tmp_path, encoding, note):
    path = tmp_path / "a.csv"
    path.write_bytes("sep=;\r\nGröße;Menge;\r\n1,5;2;\r\n;3;\r\n;;\r\n".encode(encoding))
    table = read_table(path)
    assert table.names == ["Größe", "Menge"]
    np.testing.assert_array_equal(table.numbers(0), [1.5, np.nan])
    assert table.lines == [3, 4]
    assert any("Windows-1252" in line for line in table.notes) == note
