"""The description of arrays, and checksums that see every change."""

import numpy as np
import pytest

from echolearn.modelfile.layout import DTYPES, Checksum, Entry, as_bytes, entries_of, little_endian

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([True, False])}


def checksum(arrays=ARRAYS, facts='{"n": 1}'):
    found = Checksum(facts)
    for name, entry in sorted(entries_of(arrays).items()):
        found.add(name, entry, arrays[name])
    return found.hexdigest()


@pytest.mark.parametrize(("name", "dtype"), DTYPES.items())
def test_every_dtype_of_a_file_has_one_name(name, dtype):
    value = np.zeros(2, dtype)
    assert entries_of({"a": value}) == {"a": Entry(name, (2,))}
    assert little_endian(value.astype(value.dtype.newbyteorder(">"))) == dtype


def test_bytes_are_a_view():
    value = np.arange(4, dtype=np.int32)
    as_bytes(value)[0] = 7
    assert value[0] == 7
    assert as_bytes(np.empty((0, 3))).size == 0


def test_a_checksum_changes_with_facts_names_shapes_types_and_values():
    a, b = ARRAYS["a"], ARRAYS["b"]
    others = [
        {"a": a},
        {"c": a, "b": b},
        {"a": a.reshape(3, 2), "b": b},
        {"a": a.view(np.int64), "b": b},
        {"a": a + np.eye(2, 3), "b": b},
    ]
    found = [checksum(), checksum(facts='{"n": 2}'), *(checksum(other) for other in others)]
    assert len(set(found)) == 7
    assert checksum() == found[0]
