"""Dates in the columns of tables: 2024-05-31 and its parts, and days and months in the orders that people write."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from echolearn.validation import Array

ISO = re.compile(r"\d{4}-\d{2}(-\d{2}([ T]\d{2}(:\d{2}(:\d{2}(\.\d+)?)?)?Z?)?)?")
WRITTEN = re.compile(r"(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})(?:[ T](\d{1,2})(:\d{2}(?::\d{2})?))?")


class AmbiguousDates(ValueError):
    """Nothing in a column decides whether its dates begin with the day or with the month."""


class ImpossibleDate(ValueError):
    """A field is written like a date, and the calendar has none such. row: its number."""

    def __init__(self, text: str, row: int) -> None:
        super().__init__(f"{text!r} is not a date of the calendar.")
        self.row = row


def looks_like_date(text: str) -> bool:
    """Return whether a field is written like a date that `read_dates` reads."""
    return ISO.fullmatch(text) is not None or _parts(text) is not None


def _parts(text: str) -> tuple[list[int], str, str] | None:
    """Return three numbers of a date, one of which is a year of four digits, what separates them, and the time."""
    found = WRITTEN.fullmatch(text)
    if found is None or (len(found[1]) == 4) == (len(found[4]) == 4):
        return None
    return [int(found[k]) for k in (1, 3, 4)], found[2], f"{found[5] or '':0>2}{found[6] or ':00'}"


def read_dates(texts: Sequence[str], order: str | None = None) -> tuple[Array, str]:
    """Return the dates of a column, all of which look like dates, and a note on how days and months were read.

    order: "day-first" or "month-first" for dates such as 01/02/2024; None: a day above 12 decides, and AmbiguousDates
    is raised where there is none. Raises ValueError for fields that are no dates.
    """
    if all(ISO.fullmatch(text) for text in texts):
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
