"""Tables in CSV files as people have them: encoding, separator, header, decimals and dates are found and reported."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, cast

import numpy as np

from echolearn.display.facts import counted
from echolearn.modelfile.atomic import write_atomically
from echolearn.validation import Array

if TYPE_CHECKING:  # optional
    import pandas as pd

MISSING_WORDS = {"", "na", "n/a", "nan", "null", "none", ".", "-", "#n/a"}
SEPARATORS = {"\t": "tabs", ";": "semicolons", ",": "commas"}  # in the order in which they are tried
DECIMALS = {".": ",", ",": "."}  # what separates decimals, and then thousands
NUMBER_FORMS = {
    decimal: re.compile(
        rf"[+-]?(?:\d+|[1-9]\d{{0,2}}(?:\{thousands}\d{{3}})+|(?=\{decimal}\d))(?:\{decimal}\d*)?(?:[eE][+-]?\d+)?"
    )
    for decimal, thousands in DECIMALS.items()
}
THOUSANDS_BLANK = re.compile(r"(?<=\d)[ \u00a0\u202f'’](?=\d{3}(?!\d))")
CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f"))  # no text has them
MAX_SHOWN_NAMES = 12


def parse_number(text: str, decimal: str) -> float | None:
    """Return a field as a number (NaN: missing), or None if it is none with this mark before its decimals."""
    if text.lower() in MISSING_WORDS:
        return np.nan
    plain = THOUSANDS_BLANK.sub("", text)
    if NUMBER_FORMS[decimal].fullmatch(plain) is None:
        return None
    return float(plain.replace(DECIMALS[decimal], "").replace(decimal, "."))


@dataclass(frozen=True, eq=False)
class TextTable:
    """The fields of a CSV file by column, the line of each row, the marks of decimals, and notes on reading it."""

    path: Path
    names: list[str]
    columns: list[list[str]]
    lines: list[int]
    decimals: list[str]
    notes: list[str] = field(default_factory=list)

    def numbers(self, j: int) -> Array | None:
        """Return a column as numbers (NaN: missing), or None if it has other fields, only missing ones, or dates."""
        if all(map(COMPACT_DATE.fullmatch, self.columns[j])):
            return None
        values = [self.number(j, text) for text in self.columns[j]]
        known = [value for value in values if value is not None]
        return None if len(known) < len(values) or np.isnan(known).all() else np.array(known)

    def number(self, j: int, text: str) -> float | None:
        """Return a field of a column as a number (NaN: missing), or None if it is none."""
        return parse_number(text, self.decimals[j])

    def index(self, name: str) -> int:
        """Return the number of the column of this name, or raise ValueError."""
        if name not in self.names:
            raise ValueError(f"{self.path} has no column {name!r}; it has {', '.join(self.names)}.")
        return self.names.index(name)

    def problem(self, j: int) -> str:
        """Return which field of a column that should hold numbers is none, and what to do."""
        texts = self.columns[j]
        i = next((i for i, text in enumerate(texts) if self.number(j, text) is None), None)
        if i is None:
            return f"{self.path}: the column {self.names[j]!r} is empty; expected numbers."
        other = DECIMALS[self.decimals[j]]
        cure = "Write numbers as 1009.5, and leave a field empty where the value is missing."
        if parse_number(texts[i], other) is not None:
            cure = (
                f"Write all numbers of this column in one way, or add --decimal {other} if all are written like this."
            )
        where = f"{self.path}, line {self.lines[i]}, column {self.names[j]!r}"
        return f"{where}: {texts[i]!r:.40} is not a number. {cure}"


def read_table(path: Path, *, header: bool | None = None, decimal: str | None = None) -> TextTable:
    """Return the fields of a CSV file.

    header: whether its first line has names; decimal: the mark before decimals; None: find out.
    """
    text, notes = _text(path)
    separator, rows = _rows(path, text)
    width = len(rows[0][1])
    for line, row in rows:
        if len(row) != width:
            raise ValueError(
                f"{path}, line {line}: {counted(len(row), 'field')}; the header has {width}, with "
                f"{SEPARATORS[separator]} between columns. Put a field that contains "
                f'{SEPARATORS[separator]} itself in quotation marks ("...").'
            )
    kept = [j for j in range(width) if any(row[j] for _, row in rows)]  # a separator may end every line
    lines, columns = [line for line, _ in rows], [[row[j] for _, row in rows] for j in kept]
    numbered, first = [f"column_{j + 1}" for j in kept], [texts[0] for texts in columns]
    below = [texts[1:] for texts in columns]
    decimals = [decimal] * len(kept) if decimal else _decimals(path, below, separator, lines[1:])
    names = [text or name for text, name in zip(first, numbered, strict=True)]
    found = TextTable(path, names, below, lines[1:], decimals, notes)
    if header is False or (header is None and _is_row_of_values(first, found)):
        if header is None:
            notes.append(
                f"The first line of {path.name} holds values and was read as data; the columns are called "
                f"{numbered[0]} and so on. If it is a header, use --header."
            )
        found = TextTable(path, numbered, columns, lines, decimals, notes)
    for name in (one for one in found.names if found.names.count(one) > 1):
        places = " and ".join(str(j + 1) for j, other in enumerate(found.names) if other == name)
        raise ValueError(f"{path}: the columns {places} are both called {name!r}. Rename all but one of them.")
    if not found.lines:
        raise ValueError(f"{path} has {counted(len(rows), 'row')}; expected a header and one row per step.")
    notes.insert(0, _summary(found, separator))
    return found


def _text(path: Path) -> tuple[str, list[str]]:
    """Return the text of a file: in UTF-8, or as older programs of Windows write it."""
    content = path.read_bytes()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return content.decode("utf-16", errors="replace"), []
    try:
        return content.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        if set(content) & set(CONTROL_BYTES):
            raise ValueError(
                f"{path} is not a text file; expected a table as CSV. Save a spreadsheet as CSV UTF-8."
            ) from None
    return content.decode("cp1252", errors="replace"), [f"{path.name} is not in UTF-8; it was read as Windows-1252."]


def _rows(path: Path, text: str) -> tuple[str, list[tuple[int, list[str]]]]:
    """Return the separator of a file, and its rows that are not empty with the numbers of their lines."""
    named = re.match(r"sep=([\t;,])\r?\n", text)  # for Excel
    parsed = {separator: _split(text, separator) for separator in ([named[1]] if named else SEPARATORS)}
    if named:
        parsed = {named[1]: parsed[named[1]][1:]}
    if not any(parsed.values()):
        raise ValueError(f"{path} has 0 rows; expected a header and one row per step.")
    for separator, rows in parsed.items():
        widths = {len(row) for _, row in rows}
        if len(widths) == 1 and widths != {1}:
            return separator, rows
    widest = max(reversed(parsed), key=lambda separator: len(parsed[separator][0][1]))
    return widest, parsed[widest]


def _split(text: str, separator: str) -> list[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    stripped = ((reader.line_num, [entry.strip() for entry in row]) for row in reader)
    return [(line, row) for line, row in stripped if any(row)]


def _decimals(path: Path, columns: Sequence[Sequence[str]], separator: str, lines: Sequence[int]) -> list[str]:
    """Return the mark before decimals of each column: the one with which all fields are numbers, or that of the others.

    With commas between columns, points are before decimals. Otherwise 1.234 alone is refused, if nothing decides."""
    found: list[str | None] = []
    doubtful: list[tuple[str, int]] = []  # fields and their lines
    for texts in columns:
        values = {mark: [parse_number(text, mark) for text in texts] for mark in DECIMALS}
        possible = [mark for mark in DECIMALS if None not in values[mark]]
        differ = [i for i, pair in enumerate(zip(*values.values(), strict=True)) if pair[0] != pair[1] == pair[1]]
        found.append(possible[0] if len(possible) == 1 else None)
        if len(possible) == 2:
            doubtful.extend((texts[i], lines[i]) for i in differ[:1])
    known = {mark for mark in found if mark is not None}
    if doubtful and len(known) != 1 and separator != ",":
        text, line = doubtful[0]
        point, comma = (f"{parse_number(text, mark):.12g}" for mark in DECIMALS)
        raise ValueError(
            f"{path}, line {line}: {text} may be {point} or {comma}, and no field of the file decides. Add "
            f"--decimal . for {point}, or --decimal , for {comma}."
        )
    usual = next(iter(known)) if len(known) == 1 else "."
    return [mark or usual for mark in found]


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


def _summary(table: TextTable, separator: str) -> str:
    """Return what was read: `sales.csv: 48 rows, columns month, sales; separated by semicolons; decimal commas.`"""
    more = len(table.names) - MAX_SHOWN_NAMES
    names = ", ".join(table.names[:MAX_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
    facts = [f"{counted(len(table.lines), 'row')}, {'columns' if len(table.names) > 1 else 'column'} {names}"]
    if separator != ",":
        facts.append(f"separated by {SEPARATORS[separator]}")
    numeric = [(j, mark) for j, mark in enumerate(table.decimals) if table.numbers(j) is not None]
    used = {mark for j, mark in numeric if any(mark in text for text in table.columns[j])}
    thousands = {DECIMALS[mark] for j, mark in numeric if any(DECIMALS[mark] in text for text in table.columns[j])}
    facts += ["decimal commas"] if "," in used else []
    facts += [f"{'commas' if mark == ',' else 'points'} between thousands" for mark in sorted(thousands)]
    return f"{table.path.name}: {'; '.join(facts)}."


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file with a header, atomically."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_atomically(path, out.getvalue().encode("utf-8"))


COMPACT_DATE = re.compile(r"(1[5-9]|2[01])\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])")
ISO_DATE = re.compile(r"\d{4}-\d{2}(-\d{2}([ T]\d{2}(:\d{2}(:\d{2}(\.\d+)?)?)?( ?(?P<zone>Z|[+-]\d{2}(:?\d{2})?))?)?)?")
WRITTEN_DATE = re.compile(r"(\d{1,4})([./-])\d{1,2}\2(\d{1,4})(?:([ T])\d{1,2}:\d{2}(:\d{2})?)?")
MONTH_NAME = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
MONTH = re.compile(
    rf"\d{{1,2}}[/-]\d{{4}}|(\d{{1,2}}[ -])?{MONTH_NAME}[ -](\d{{1,2}},?[ -])?\d{{4}}|\d{{4}}[ -]{MONTH_NAME}",
    re.IGNORECASE,
)
MONTH_FORMS = ("%m %Y", *(f.format(name) for name in ("%b", "%B") for f in ("{} %Y", "%d {} %Y", "{} %d %Y", "%Y {}")))
QUARTER = re.compile(r"\d{4}[ -]?[Qq][1-4]")
DATE_FORMS = {"year-first": "%Y{0}%m{0}%d", "day-first": "%d{0}%m{0}%Y", "month-first": "%m{0}%d{0}%Y"}


def import_pandas(what: str) -> ModuleType:
    """Return pandas, or raise an ImportError that says how to install it."""
    try:
        import pandas
    except ImportError as problem:
        raise ImportError(f"{what} needs pandas; install it with: pip install 'echolearn[forecast]'") from problem
    module: ModuleType = pandas
    return module


def looks_like_date(text: str) -> bool:
    """Return whether a field is written like a date that `read_dates` reads: with a year of four digits."""
    if any(form.fullmatch(text) for form in (COMPACT_DATE, MONTH, QUARTER)):
        return True
    found = WRITTEN_DATE.fullmatch(text)
    return ISO_DATE.fullmatch(text) is not None or (found is not None and (len(found[1]) == 4) != (len(found[3]) == 4))


def read_dates(table: TextTable, j: int, order: str | None) -> pd.DatetimeIndex | None:
    """Return the dates of a column whose fields all look like dates; None if they are written in different ways.

    order: "day-first" or "month-first" for dates such as 01/02/2024; None: a day above 12 decides, and ValueError is
    raised where there is none. A note says how days and months were read.
    """
    pandas, texts = import_pandas("a column of dates"), table.columns[j]
    dates = _named_dates(pandas, texts)
    if dates is None:
        dates = _days(table, j, order, pandas)
    if dates is not None and dates.isna().any():
        wrong = np.flatnonzero(dates.isna())
        where = f"{table.path}, line {table.lines[wrong[0]]}"
        raise ValueError(f"{where}: {texts[wrong[0]]!r} is not a date of the calendar. Correct or remove it.")
    return dates


def _days(table: TextTable, j: int, order: str | None, pandas: ModuleType) -> pd.DatetimeIndex | None:
    """Return the dates of a column that names days, as `read_dates` does; NaT where the calendar does not have one."""
    texts = table.columns[j]
    parts = [ISO_DATE.fullmatch(text) for text in texts]
    zones = {part and part["zone"] for part in parts}
    if all(map(COMPACT_DATE.fullmatch, texts)):
        dates = pandas.to_datetime(texts, format="%Y%m%d", errors="coerce")
    elif all(parts) and (len(zones) == 1 or None not in zones):
        dates = pandas.to_datetime(texts, format="ISO8601", errors="coerce", utc=len(zones) > 1)
    else:
        parts = [WRITTEN_DATE.fullmatch(text) for text in texts]
        styles = {part and (part[2], len(part[1]) == 4, part[4], bool(part[5])) for part in parts}
        first = parts[0]
        if len(styles) > 1 or first is None:
            return None
        clock = "" if first[4] is None else f"{first[4]}%H:%M{':%S' if first[5] else ''}"
        orders = ["year-first"] if len(first[1]) == 4 else [order] if order else ["day-first", "month-first"]
        readings = {
            name: pandas.to_datetime(texts, format=DATE_FORMS[name].format(first[2]) + clock, errors="coerce")
            for name in orders
        }
        best = min(readings, key=lambda name: int(readings[name].isna().sum()))
        dates, others = readings[best], readings[orders[-1]]
        differ = np.flatnonzero(dates != others)
        if (
            len(differ) and not (dates.isna().any() or others.isna().any()) and first[2] != "."
        ):  # or the day comes first
            i = differ[0]
            raise ValueError(
                f"{table.path}, column {table.names[j]!r}: {texts[i]} may be {dates[i]:%Y-%m-%d} (day first) or "
                f"{others[i]:%Y-%m-%d} (month first), and no date of the column decides. Use --dates day-first or "
                "--dates month-first, or write dates as 2024-01-31."
            )
        if best != "year-first":
            words = [{"%d": "day", "%m": "month", "%Y": "year"}[part] for part in DATE_FORMS[best].split("{0}")]
            how = f"dates such as {texts[0]} were read as {first[2].join(words)}"
            table.notes.append(f"In the column {table.names[j]!r}, {how}.")
    return cast("pd.DatetimeIndex", dates)


def _named_dates(pandas: ModuleType, texts: Sequence[str]) -> pd.DatetimeIndex | None:
    """Return dates such as 01/1982, Jan 1982, 1959Q1 (their first days) or 5 Jan 1982; None for other dates."""
    if all(map(QUARTER.fullmatch, texts)):
        quarters = pandas.PeriodIndex([f"{text[:4]}Q{text[-1]}" for text in texts], freq="Q")
        return cast("pd.DatetimeIndex", quarters.to_timestamp())
    if not all(map(MONTH.fullmatch, texts)):
        return None
    plain = [re.sub("[ ,/-]+", " ", text) for text in texts]
    readings = [pandas.to_datetime(plain, format=form, errors="coerce") for form in MONTH_FORMS]
    return cast("pd.DatetimeIndex", min(readings, key=lambda dates: int(dates.isna().sum())))
