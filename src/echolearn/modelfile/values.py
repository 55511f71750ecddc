"""Plain values as JSON, and values from JSON of unknown origin."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from echolearn.validation import Array, is_number

VALUES_LIMIT = 250_000  # values in one text: in memory, small values take thirty times their bytes
LEVELS_LIMIT = 20  # levels of values inside values


def to_json(value: object) -> object:
    """Return a value for `json.dumps`: tuples and infinite numbers are objects with one name, arrays are lists."""
    if isinstance(value, np.floating):
        value = float(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return to_json(value.tolist())
    if isinstance(value, tuple):
        return {"tuple": [to_json(v) for v in value]}
    if isinstance(value, list):
        return [to_json(v) for v in value]
    if isinstance(value, dict):
        return {name: to_json(v) for name, v in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    return value


def from_json(value: object, levels: int = LEVELS_LIMIT) -> Any:
    """Return the value that `to_json` was given, with arrays as lists."""
    if levels == 0:
        raise ValueError(f"values nested deeper than {LEVELS_LIMIT} levels")
    if isinstance(value, list):
        return [from_json(v, levels - 1) for v in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"tuple"} and isinstance(value["tuple"], list):
        return tuple(from_json(v, levels - 1) for v in value["tuple"])
    if set(value) == {"float"} and value["float"] in ("nan", "inf", "-inf"):
        return float(value["float"])
    return {name: from_json(v, levels - 1) for name, v in value.items()}


def parse_json(text: str) -> object:
    """Return the value of a JSON text; raise ValueError for repeated names, too many values, or infinite numbers."""
    if count_values(text) > VALUES_LIMIT:
        raise ValueError(f"more than {VALUES_LIMIT} values")
    found: object = json.loads(text, object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite)
    return found


def count_values(text: str) -> int:
    """Return an upper bound of the number of values in a JSON text."""
    return 1 + text.count(",") + text.count("[") + text.count("{")


def _finite(word: str) -> float:
    """Return the number that a word of JSON stands for; raise ValueError if it is not finite."""
    if not math.isfinite(float(word)):
        raise ValueError(f"the number {word:.20}")
    return float(word)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return the pairs of an object as a dict; raise ValueError if a name is repeated."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name that appears twice")
    return found


def as_count(value: object) -> int:
    """Return a whole number > 0, or raise ValueError."""
    if type(value) is not int or value < 1:
        raise ValueError(f"{value!r:.40} is not a count")
    return value


def as_whole(value: object) -> int:
    """Return a whole number >= 0, or raise ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r:.40} is not a whole number >= 0")
    return value


def as_finite(value: object) -> float:
    """Return a finite number >= 0, or raise ValueError."""
    if not is_number(value) or value < 0:
        raise ValueError(f"{value!r:.40} is not a finite number >= 0")
    return float(value)


def as_truth(value: object) -> bool:
    """Return True or False, or raise ValueError."""
    if type(value) is not bool:
        raise ValueError(f"{value!r:.40} is neither true nor false")
    return value


def as_words(value: object) -> list[str]:
    """Return a list of texts, or raise ValueError."""
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise ValueError(f"{value!r:.40} is not a list of words")
    return value


ENTRIES_LIMIT = 500_000  # as rows by name, entries take ten times the bytes that they take in a file
INTEGER_COLUMNS = ("epoch", "network")
HISTORY_TENSORS = ("history", "history.there")


def history_tensors(rows: Sequence[Mapping[str, float]]) -> tuple[dict[str, Array], list[str]]:
    """Return rows as arrays, and the names of the columns: "history" has the numbers (rows, columns), "history.there"
    whether the row has a number of that name."""
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
