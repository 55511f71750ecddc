"""Tables in CSV files as people have them: separator, header and decimal commas are found, and reported in notes."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from echolearn.experiments.table_dates import looks_like_date
from echolearn.modelfile.atomic import write_atomically
from echolearn.validation import Array

MISSING = {"", "na", "n/a", "nan", "null", "none", "."}
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas"}  # in the order in which they are tried
COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d+)(,\d+)?")  # of a column with decimal commas
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


@dataclass(frozen=True, eq=False)
class TextTable:
    """The fields of a CSV file by column, the line of each row in the file, and notes on how the file was read.

    decimal_commas: of each column, whether its numbers are written as 1009,5.
    """

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
        if text.lower() in MISSING:
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
    if THOUSANDS.fullmatch(text):
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
        if text.lower() in MISSING:
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
