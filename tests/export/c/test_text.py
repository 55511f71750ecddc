"""Names, strings and numbers in C."""

import numpy as np
import pytest

from echolearn.exceptions import ExportError
from echolearn.export.c.text import c_number, c_string, check_name


def test_strings_that_c_cannot_hold_are_refused():
    assert c_string("a?b") == '"a\\077b"'
    for text in ("a\0b", "x" * 1001):
        with pytest.raises(ExportError, match="cannot be a string in C"):
            c_string(text)


@pytest.mark.parametrize("name", ["", "1st", "a b", "a;b", "é", "_a", "a__b", "a_", "x" * 41, "a\n", None, 3])
def test_names_that_c_cannot_hold_are_refused(name):
    with pytest.raises(ExportError, match="name="):
        check_name(name)


def test_numbers_are_written_exactly():
    for value in np.float32([0.1, 1, -3e-39, 16777216, 1e30]):
        assert np.float32(c_number(float(value), "float").removesuffix("f")) == value
    assert c_number(1.0, "float") == "1.0f"
    assert float(c_number(0.1, "double")) == 0.1
