"""Tables in CSV files as people have them: separator, header and decimal commas are found, and reported in notes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from echolearn.modelfile.atomic import write_atomically
from echolearn.validation import Array

MISSING_WORDS = {"", "na", "n/a", "nan", "null", "none", "."}
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas"}  # in the order in which they are tried
COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?")  # of a column with decimal commas
THOUSANDS_NUMBER = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


@dataclass(frozen=True, eq=False)
class TextTable:
    """The fields of a CSV file by column, the line of each row, notes on reading it, and whether commas are decimal."""

    path: Path
    names: list[str]
    columns: list[list[str]]
    lines: list[int]
    decimal_commas: list[bool]
    notes: list[str] = field(default_factory=list)

    def numbers(self, j: int) -> Array | None:
        """Return a column as numbers (NaN: missing), or None if it has other fields, or none but missing ones."""
        values = [self.number(j, text) for text in self.columns[j]]
        known = [value for value in values if value is not None]
        return None if len(known) < len(values) or np.isnan(known).all() else np.array(known)

    def number(self, j: int, text: str) -> float | None:
        """Return a field of a column as a number (NaN: missing), or None if it is none."""
        if text.lower() in MISSING_WORDS:
            return np.nan
        plain = text.replace(" ", "")
        if self.decimal_commas[j]:
            if not COMMA_NUMBER.fullmatch(plain):
                return None
            plain = plain.replace(".", "").replace(",", ".")
        try:
            return float(plain)
        except ValueError:
            return None

    def problem(self, j: int) -> str:
        """Return which field of a column that should hold numbers is none, and what to do."""
        texts = self.columns[j]
        i = next((i for i, text in enumerate(texts) if self.number(j, text) is None), None)
        if i is None:
            return f"{self.path}: the column {self.names[j]!r} is empty; expected numbers."
        where = f"{self.path}, line {self.lines[i]}, column {self.names[j]!r}"
        return f"{where}: {texts[i]!r:.40} is not a number. {_cure(texts[i])}"


def _has_decimal_comma(text: str) -> bool:
    return "," in text and COMMA_NUMBER.fullmatch(text) is not None


def _cure(text: str) -> str:
    """Return how to write a field that is not a number."""
    if THOUSANDS_NUMBER.fullmatch(text):
        return f"Remove the commas between thousands in this column: write {text.replace(',', '')}."
    if _has_decimal_comma(text):
        return (
            f"Write the numbers of this column with a decimal point, {text.replace('.', '').replace(',', '.')}; or "
            "separate the columns of the file by semicolons: decimal commas are read there."
        )
    return "Write numbers as 1009.5, and leave a field empty where the value is missing."


def read_table(path: Path, *, header: bool | None = None) -> TextTable:
    """Return the fields of a CSV file; header: whether its first line has the names of the columns. None: find out."""
    separator, rows = _rows(path)
    width = len(rows[0][1])
    for line, row in rows:
        if len(row) != width:
            raise ValueError(
                f"{path}, line {line}: {len(row)} fields; the header has {width}, with {SEPARATORS[separator]} between "
                f'columns. Put a field that contains {SEPARATORS[separator]} itself in quotation marks ("...").'
            )
    notes = [] if separator == "," else [f"The columns of {path.name} are separated by {SEPARATORS[separator]}."]
    names, lines = [f"column_{j + 1}" for j in range(width)], [line for line, _ in rows]
    columns = [[row[j] for _, row in rows] for j in range(width)]
    commas = [separator != "," and any(map(_has_decimal_comma, texts)) for texts in columns]
    table = TextTable(path, names, columns, lines, commas, notes)
    below = TextTable(path, rows[0][1], [texts[1:] for texts in columns], lines[1:], commas, notes)
    if header is None and _is_row_of_values(rows[0][1], below):
        header = False
        notes.append(
            f"The first line of {path.name} holds values and was read as data; the columns are called {names[0]} and "
            "so on. If it is a header, use --header."
        )
    found = table if header is False else below
    if not found.lines:
        raise ValueError(f"{path} has {len(rows)} rows; expected a header and one row per step.")
    if any(commas):
        notes.append("Commas in numbers were read as decimal commas.")
    return found


def _rows(path: Path) -> tuple[str, list[tuple[int, list[str]]]]:
    """Return the separator of a file, and its rows that are not empty with the numbers of their lines."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(
            f"{path} is not a text file in UTF-8; expected a table as CSV. Save it as CSV UTF-8."
        ) from None
    parsed = {separator: _split(text, separator) for separator in SEPARATORS}
    if not parsed[","]:
        raise ValueError(f"{path} has 0 rows; expected a header and one row per step.")
    for separator, rows in parsed.items():
        widths = {len(row) for _, row in rows}
        if len(widths) == 1 and widths != {1}:
            return separator, rows
    first = max(reversed(SEPARATORS), key=lambda separator: len(parsed[separator][0][1]))
    return first, parsed[first]


def _split(text: str, separator: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    return [(reader.line_num, [entry.strip() for entry in row]) for row in reader if row]


def _is_row_of_values(first: list[str], below: TextTable) -> bool:
    """Return whether the first row has numbers and dates wherever the rows below have them, rather than names."""
    evidence = []
    for j, text in enumerate(first):
        if text.lower() in MISSING_WORDS:
            continue
        if below.numbers(j) is not None:
            evidence.append(below.number(j, text) is not None)
        elif below.lines and all(map(looks_like_date, below.columns[j])):
            evidence.append(looks_like_date(text))
    return bool(evidence) and all(evidence)


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file with a header, atomically."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_atomically(path, out.getvalue().encode("utf-8"))


ISO_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([ T]\d{2}(:\d{2}(:\d{2}(\.\d+)?)?)?Z?)?)?")
WRITTEN_DATE = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?:[ T](\d{1,2})(:\d{2}(?::\d{2})?))?")


class AmbiguousDates(ValueError):
    """Nothing in a column decides whether its dates begin with the day or with the month."""


class ImpossibleDate(ValueError):
    """A field is written like a date, and the calendar has none such. row: its number."""

    def __init__(self, text: str, row: int) -> None:
        super().__init__(f"{text!r} is not a date of the calendar.")
        self.row = row


def looks_like_date(text: str) -> bool:
    """Return whether a field is written like a date that `read_dates` reads."""
    return ISO_DATE.fullmatch(text) is not None or _parts(text) is not None


def _parts(text: str) -> tuple[list[int], str, str] | None:
    """Return three numbers of a date, one of which is a year of four digits, what separates them, and the time."""
    found = WRITTEN_DATE.fullmatch(text)
    if found is None or (len(found[1]) == 4) == (len(found[4]) == 4):
        return None
    return [int(found[k]) for k in (1, 3, 4)], found[2], f"{found[5] or '':0>2}{found[6] or ':00'}"


def read_dates(texts: Sequence[str], order: str | None = None) -> tuple[Array, str]:
    """Return the dates of a column, all of which look like dates, and a note on how days and months were read.

    order: "day-first" or "month-first" for dates such as 01/02/2024; None: a day above 12 decides, and AmbiguousDates
    is raised where there is none. Raises ValueError for fields that are no dates.
    """
    if all(ISO_DATE.fullmatch(text) for text in texts):
        return _stamps(texts, texts), ""
    found = [_parts(text) for text in texts]
    parts = [part for part in found if part is not None]
    separators = {separator for _, separator, _ in parts}
    year_first = {numbers[0] > 31 for numbers, _, _ in parts}
    if len(parts) < len(texts) or len(separators) > 1 or len(year_first) > 1:
        raise ValueError("its dates are written in different ways.")
    note = ""
    if year_first == {True}:
        places = (0, 1, 2)
    else:
        order = order or _order(texts, parts)
        places = (2, 1, 0) if order == "day-first" else (2, 0, 1)
        words = ("day", "month", "year") if order == "day-first" else ("month", "day", "year")
        note = f"dates such as {texts[0]} were read as {parts[0][1].join(words)}"
    dates = [f"{numbers[places[0]]:04}-{numbers[places[1]]:02}-{numbers[places[2]]:02}" for numbers, _, _ in parts]
    iso = [f"{date}T{time}" for date, (_, _, time) in zip(dates, parts, strict=True)]
    return _stamps(iso, texts), note


def _order(texts: Sequence[str], parts: Sequence[tuple[list[int], str, str]]) -> str:
    """Return which of day and month comes first; with points between them, the day does."""
    first, second = (max(numbers[k] for numbers, _, _ in parts) for k in (0, 1))
    if first > 12 or second > 12:
        return "day-first" if first > 12 else "month-first"
    if parts[0][1] == ".":
        return "day-first"
    differing = [i for i, (numbers, _, _) in enumerate(parts) if numbers[0] != numbers[1]]
    if not differing:  # such as 01/01/2023 and 01/01/2024, which are the same in both orders
        return "day-first"
    a, b, year = parts[differing[0]][0]
    raise AmbiguousDates(
        f"{texts[differing[0]]} may be {year}-{b:02}-{a:02} (day first) or {year}-{a:02}-{b:02} (month first), and no "
        "date of the column decides. Use --dates day-first or --dates month-first, or write dates as 2024-01-31."
    )


def _stamps(iso: Sequence[str], texts: Sequence[str]) -> Array:
    """Return dates in seconds; texts: as they are written in the file."""
    stamps = []
    for row, (stamp, text) in enumerate(zip(iso, texts, strict=True)):
        try:
            stamps.append(np.datetime64(stamp.replace(" ", "T").removesuffix("Z")))
        except ValueError:
            raise ImpossibleDate(text, row) from None
    return np.array(stamps).astype("M8[s]")
