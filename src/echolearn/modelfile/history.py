"""The history of a fit (one row of numbers by name per epoch) as arrays of a file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from echolearn.validation import Array

ENTRIES_LIMIT = 500_000  # as rows by name, entries take ten times the bytes that they take in a file
INTEGER_COLUMNS = ("epoch", "network")
HISTORY_TENSORS = ("history", "history.there")


def history_tensors(rows: Sequence[Mapping[str, float]]) -> tuple[dict[str, Array], list[str]]:
    """Return rows as arrays, and the names of the columns.

    "history" has the numbers (rows, columns), "history.there" whether the row has a number of that name.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    numbers = [[float(row.get(name, 0)) for name in columns] for row in rows]
    there = [[name in row for name in columns] for row in rows]
    shape = (len(rows), len(columns))
    _check_size(shape)
    return {
        "history": np.array(numbers, np.float64).reshape(shape),
        "history.there": np.array(there, np.bool_).reshape(shape),
    }, columns


def history_rows(tensors: Mapping[str, Array], columns: Sequence[str]) -> list[dict[str, float]]:
    """Return the rows that `history_tensors` was given."""
    _check_size(tensors["history"].shape)
    for name, column in zip(columns, tensors["history"].T, strict=True):
        if name in INTEGER_COLUMNS and not (np.abs(column) < 2**53).all():
            raise ValueError(f"the history has values of {name} that are not counts")
    return [
        {
            name: int(number) if name in INTEGER_COLUMNS else number
            for name, number, given in zip(columns, row, there, strict=True)
            if given
        }
        for row, there in zip(tensors["history"].tolist(), tensors["history.there"].tolist(), strict=True)
    ]


def _check_size(shape: tuple[int, ...]) -> None:
    """Raise ValueError if a history has too many entries."""
    if math.prod(shape) > ENTRIES_LIMIT:
        raise ValueError(
            f"a history of {shape} rows and columns; a file holds at most {ENTRIES_LIMIT:,} entries of it."
        )
