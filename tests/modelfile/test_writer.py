"""Files that cannot be written are refused with their limits; `test_reader` checks what is written."""

import os

import numpy as np
import pytest

from echolearn.modelfile import writer
from echolearn.modelfile.writer import storable, write_tensors


@pytest.mark.parametrize("bad", [np.array(["text"]), np.array([1j]), np.array([None]), np.zeros(1, np.longdouble)])
def test_an_array_that_no_file_can_hold_is_refused(bad, tmp_path):
    with pytest.raises(TypeError, match=r"a is an array of .*which no file can hold; use float64, int64 or bool"):
        write_tensors(tmp_path / "m", {"a": bad}, {}, "kind")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("limit", "value"), [("HEADER_LIMIT", 100), ("VALUES_LIMIT", 10)])
def test_too_many_names_and_settings_are_refused_before_anything_is_written(limit, value, tmp_path, monkeypatch):
    monkeypatch.setattr(writer, limit, value)
    with pytest.raises(
        ValueError, match=r"names and settings take .*bytes and .*values; a file holds at most .*shorter"
    ):
        write_tensors(tmp_path / "m", {"a": np.ones(1)}, {"names": ["name"] * 20}, "kind")
    assert os.listdir(tmp_path) == []


def test_stored_arrays_are_in_c_order_and_native_byte_order():
    value = np.asfortranarray(np.arange(6.0).reshape(2, 3)).astype(">f8")
    stored = storable("a", value)
    assert stored.flags.c_contiguous
    assert stored.dtype.isnative
    np.testing.assert_array_equal(stored, value)
    assert storable("a", np.float64(3.0)).shape == ()
