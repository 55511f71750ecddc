"""Plain values as JSON, and values from JSON of unknown origin."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

VALUES_LIMIT = 250_000  # values in one text: in memory, small values take thirty times their bytes
LEVELS_LIMIT = 20  # levels of values inside values


def to_json(value: object) -> object:
    """Return a value that `json.dumps` can write.

    Tuples, and numbers that are not finite, become objects with one name; arrays become lists.
    """
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
