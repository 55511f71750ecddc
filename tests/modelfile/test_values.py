"""Plain values written as JSON and read again, and JSON that is refused."""

import json

import numpy as np
import pytest

from echolearn.modelfile import values
from echolearn.modelfile.values import count_values, from_json, history_rows, history_tensors, parse_json, to_json


@pytest.mark.parametrize(
    "value", [None, True, 3, 0.1, "text", [1, [2]], (1, (2,)), {"a": {"b": (None,)}}, float("inf"), -float("inf")]
)
def test_values_are_the_same_after_writing_and_reading(value):
    text = json.dumps(to_json(value), allow_nan=False)
    assert from_json(parse_json(text)) == value
    assert count_values(text) >= 1


def test_arrays_become_lists_and_nan_stays():
    assert to_json({"a": np.arange(2), "b": np.float32(0.5), "c": np.bool_(True)}) == {"a": [0, 1], "b": 0.5, "c": True}
    assert np.isnan(from_json(to_json(np.nan)))


@pytest.mark.parametrize("text", ["NaN", "[1e999]", '{"a": Infinity}'])
def test_numbers_that_are_not_finite_are_refused(text):
    with pytest.raises(ValueError, match="the number"):
        parse_json(text)


def test_repeated_names_and_too_many_or_too_deep_values_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="a name that appears twice"):
        parse_json('{"a": 1, "a": 2}')
    with pytest.raises(ValueError, match="deeper than 20 levels"):
        from_json(json.loads(21 * "[" + 21 * "]"))
    monkeypatch.setattr(values, "VALUES_LIMIT", 3)
    with pytest.raises(ValueError, match="more than 3 values"):
        parse_json("[1, 2, 3]")


# Histories as arrays.


@pytest.mark.parametrize("rows", [[], [{}], [{"epoch": 1, "error": 0.5}, {"epoch": 2, "valid_error": np.inf}]])
def test_rows_are_the_same_after_writing_and_reading(rows):
    tensors, columns = history_tensors(rows)
    assert {name: value.dtype.kind for name, value in tensors.items()} == {"history": "f", "history.there": "b"}
    back = history_rows(tensors, columns)
    assert back == rows
    assert all(type(row["epoch"]) is int for row in back if "epoch" in row)


def test_arrays_that_are_no_history_are_refused(monkeypatch):
    tensors, columns = history_tensors([{"epoch": 1e300}])
    with pytest.raises(ValueError, match="values of epoch that are not counts"):
        history_rows(tensors, columns)
    with pytest.raises(ValueError, match="zip"):
        history_rows(tensors, ["error", "valid_error"])
    monkeypatch.setattr(values, "ENTRIES_LIMIT", 3)
    with pytest.raises(ValueError, match="at most 3 entries"):
        history_tensors([{"epoch": 1, "error": 0.5}] * 2)
