"""Files of arrays and facts are read as they were written, and their bytes stay the same between versions."""

import hashlib
import json

import numpy as np
import pytest

from echolearn.exceptions import ModelFileError
from echolearn.modelfile.reader import read_tensors
from echolearn.modelfile.writer import write_tensors

METADATA = {
    "sha256": "309c4261252d7794e3e239ad489646010e138254f531eeaebd40d326e642c065",
    "echolearn-model": '{"format": "echolearn-model", "format_version": 2, '
    '"n": {"tuple": [1, [{"float": "inf"}, null]]}, "z": {"k": 0.1}}',
}
ENTRIES = {
    "b": {"dtype": "F64", "shape": [2, 3], "data_offsets": [0, 48]},
    "f": {"dtype": "F32", "shape": [2, 2], "data_offsets": [48, 64]},
    "i": {"dtype": "I32", "shape": [2], "data_offsets": [64, 72]},
    "a/c": {"dtype": "BOOL", "shape": [2], "data_offsets": [72, 74]},
}
DATA = "e281d3912d0c381353956c2ff48502124bd1e795fb33bd7f7dc7d8d4952d5fad"


@pytest.mark.parametrize("layout", ["C", "Fortran", "strided", "big-endian"])
def test_arrays_of_every_layout_are_read_back_bit_equal(layout, tmp_path):
    lay_out = {
        "C": np.ascontiguousarray,
        "Fortran": np.asfortranarray,
        "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
        "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    }[layout]
    rng = np.random.default_rng(0)
    given = {f"{k}": lay_out(rng.standard_normal((3, 4)).astype(k)) for k in ("f8", "f4", "f2")}
    given |= {f"{k}": lay_out(rng.integers(0, 100, (3, 4)).astype(k)) for k in ("i8", "i4", "u1", "?")}
    given |= {"special": lay_out(np.array([[np.nan, -0.0, 5e-324, np.inf]])), "none": lay_out(np.empty((0, 3)))}
    write_tensors(tmp_path / "file", given, {"a": (1, [2.5])}, "kind")
    back, facts = read_tensors(tmp_path / "file", "kind")
    assert facts["a"] == (1, [2.5])
    for name, value in given.items():
        assert back[name].dtype == value.dtype.newbyteorder("=")
        assert back[name].shape == value.shape
        assert back[name].tobytes() == value.astype(value.dtype.newbyteorder("=")).tobytes(order="C")


def test_the_bytes_of_a_file_stay_the_same(tmp_path):
    """Facts, checksum and data as the first release wrote them; only the order inside the header is the library's."""
    tensors = {
        "b": np.arange(6.0).reshape(2, 3),
        "a/c": np.array([True, False]),
        "i": np.arange(4, dtype=np.int32)[::2],
        "f": np.asfortranarray(np.arange(4, dtype=np.float32).reshape(2, 2)),
    }
    facts = {"n": (1, [float("inf"), None]), "z": {"k": np.float64(0.1)}}
    write_tensors(tmp_path / "m", tensors, facts, "echolearn-model")
    content = (tmp_path / "m").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    assert header.pop("__metadata__") == METADATA
    assert header == ENTRIES
    assert hashlib.sha256(content[8 + length :]).hexdigest() == DATA


@pytest.mark.parametrize("cut", [0, 5, 40, -1])
def test_a_file_that_is_cut_short_is_refused(cut, tmp_path):
    path = tmp_path / "m"
    write_tensors(path, {"a": np.ones(3)}, {}, "kind")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ModelFileError, match="damaged, cut short, or not an kind file"):
        read_tensors(path, "kind")


def test_a_changed_number_is_found_by_the_checksum(tmp_path):
    path = tmp_path / "m"
    write_tensors(path, {"a": np.ones(3)}, {}, "kind")
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(ModelFileError, match=r"checksum does not match\. Take it from a backup"):
        read_tensors(path, "kind")


def test_a_file_of_another_kind_and_a_missing_file_are_refused(tmp_path):
    write_tensors(tmp_path / "m", {"a": np.ones(3)}, {}, "kind")
    with pytest.raises(ModelFileError, match="is a safetensors file, but not an other file"):
        read_tensors(tmp_path / "m", "other")
    with pytest.raises(FileNotFoundError, match="there is no model file"):
        read_tensors(tmp_path / "none", "kind")


def test_the_check_sees_the_header_before_any_array_is_read(tmp_path, monkeypatch):
    write_tensors(tmp_path / "m", {"a": np.ones((2, 3))}, {"n": 1}, "kind")
    monkeypatch.setattr(np, "empty", None)  # no array is allocated

    def check(entries, facts):
        assert (entries["a"].dtype, entries["a"].shape, facts["n"]) == ("F64", (2, 3), 1)
        raise ValueError("no such array")

    with pytest.raises(ModelFileError, match="no such array"):
        read_tensors(tmp_path / "m", "kind", check)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"a,b\n1,2\n" * 40, r"a text file \(such as CSV\)"),
        (b"\x93NUMPY\x01\x00v\x00", r"an array of NumPy"),
        (b"PK\x03\x04" + bytes(50), "a ZIP archive"),
        (b"\x80\x04\x95" + bytes(50), "a pickle"),
    ],
)
def test_files_of_other_kinds_are_named(tmp_path, content, what):
    path = tmp_path / "other"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=f"other is {what}.* and not a model file; expected a file that the save"):
        read_tensors(path, "echolearn-model")
