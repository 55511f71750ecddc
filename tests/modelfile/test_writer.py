"""Files that cannot be written are refused with their limits; `test_reader` checks what is written."""

import os

import numpy as np
import pytest
import safetensors.numpy

from echolearn.modelfile import writer
from echolearn.modelfile.writer import storable, to_bytes, write_tensors


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


# What is written without the package safetensors is what that package reads.


def test_the_package_reads_the_same_arrays_and_writes_the_same_order():
    arrays = {
        "wide": np.arange(6.0).reshape(2, 3),
        "narrow": np.array([True, False, True]),
        "half": np.ones(3, np.float16),
        "a/ü": np.arange(4, dtype=np.int32),
        "empty": np.zeros((0, 5)),
        "number": np.array(7),
    }
    content = to_bytes(arrays, {"kind": 'text with é and "quotes"'})
    found = safetensors.numpy.load(content)
    assert {name: value.tolist() for name, value in found.items()} == {n: v.tolist() for n, v in arrays.items()}
    assert {name: value.dtype for name, value in found.items()} == {n: v.dtype for n, v in arrays.items()}
    theirs = safetensors.numpy.save(arrays, metadata={"kind": 'text with é and "quotes"'})
    assert len(content) == len(theirs)
    header = 8 + int.from_bytes(theirs[:8], "little")
    assert content[:8] == theirs[:8]
    assert content[header:] == theirs[header:]
