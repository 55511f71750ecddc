"""Containers: dictionaries, tensors, objects that NumPy can read, arrays of objects."""

import subprocess
import sys

import numpy as np
import pytest

from benchmarks.layouts import IDS, RAGGED, ArrayLike, Tensor, XarrayDataset
from echolearn.sequences.unpacking import as_array, unpack
from echolearn.sequences.validation import open_sequences


class Broken(Tensor):
    def numpy(self):
        raise TypeError("Got unsupported ScalarType BFloat16")


def test_tensors_are_detached_and_read():
    x = np.eye(3)
    assert as_array(Tensor(x)) is x
    assert as_array(x) is x
    np.testing.assert_array_equal(as_array(ArrayLike(x)), x)
    with pytest.raises(TypeError, match=r"NumPy cannot read a tensor.*BFloat16.*float"):
        as_array(Broken(x))


def test_an_unpacked_value_is_not_unpacked_again():
    once = unpack({"a": np.ones((3, 1))})
    assert unpack(once) is once


@pytest.mark.parametrize(
    ("X", "kind", "words"),
    [
        ({}, ValueError, "empty dictionary"),
        (XarrayDataset(), TypeError, "Dataset of xarray"),
        ({"a": 1}, ValueError, "not an array of shape"),
    ],
)
def test_containers_of_nothing_are_refused(X, kind, words):
    with pytest.raises(kind, match=words):
        open_sequences(X)


def test_answers_to_a_dictionary_are_one():
    given = open_sequences(dict(zip(IDS, RAGGED, strict=True)))
    assert list(given.in_given_form(given.X)) == IDS
    assert given.split({i: x[:, 0] for i, x in zip(IDS, RAGGED, strict=True)})[3].shape == RAGGED[3][:, 0].shape


def test_arrays_are_read_without_pandas():
    code = (
        "import sys, numpy as np; sys.modules['pandas'] = None; from echolearn import ESNClassifier as C; "
        "C(5, learn='none').fit([np.ones((4, 2)), np.zeros((4, 2))] * 3, [0, 1] * 3)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_answers_to_a_dictionary_of_tables_are_tables_with_their_index():
    pandas = pytest.importorskip("pandas")
    tables = {
        name: pandas.DataFrame(np.ones((4, 2)), index=list("wxyz"), columns=["p", "q"]) for name in ("first", "second")
    }
    given = open_sequences(tables)
    answers = given.in_given_form([np.arange(4.0), np.arange(4.0)])
    assert list(answers) == ["first", "second"]
    assert all(list(answer.index) == list("wxyz") for answer in answers.values())
    plain = open_sequences({"a": np.ones((4, 2)), "b": np.ones((3, 2))})
    assert type(plain.in_given_form([np.arange(4.0), np.arange(3.0)])["a"]) is np.ndarray
