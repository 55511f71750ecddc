"""Histories as arrays: rows with different names, whole numbers, and the limit."""

import numpy as np
import pytest

from echolearn.modelfile import history
from echolearn.modelfile.history import history_rows, history_tensors


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
    monkeypatch.setattr(history, "ENTRIES_LIMIT", 3)
    with pytest.raises(ValueError, match="at most 3 entries"):
        history_tensors([{"epoch": 1, "error": 0.5}] * 2)
