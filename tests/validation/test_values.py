"""Single arguments: what is accepted, in which form it is returned, and how a refusal reads."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from echolearn.validation.values import (
    as_generator,
    check_boolean,
    check_float_dtype,
    check_integer,
    check_number,
    check_pair,
    check_path,
    check_positive,
    finite_array,
    is_number,
)


@pytest.mark.parametrize("value", [0, -1.5, np.float32(2), np.int64(3), 2**1000])
def test_finite_numbers_of_any_type_are_numbers(value):
    assert is_number(value)
    assert type(check_number("a", value)) is float
    assert check_number("a", value) == float(value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 2**1100, True, "1", None, Fraction(1, 2), Decimal(1), 1j, [1.0]])
def test_what_float64_cannot_hold_is_not_a_number(value):
    assert not is_number(value)
    with pytest.raises(ValueError, match=r"^a=.*; expected a finite number"):
        check_number("a", value)
    with pytest.raises(ValueError, match=r"^a=.*; expected a number > 0"):
        check_positive("a", value)


def test_positive_numbers():
    assert check_positive("a", np.float32(0.5)) == 0.5
    with pytest.raises(ValueError, match=r"^a=0; expected a number > 0"):
        check_positive("a", 0)


def test_integers():
    assert type(check_integer("n", np.int8(3), 3)) is int
    for value in (2, 3.0, True, "3", None):
        with pytest.raises(ValueError, match=r"^n=.*; expected a whole number >= 3"):
            check_integer("n", value, 3)


def test_booleans():
    assert check_boolean("b", np.bool_(True)) is True
    for value in (1, "yes", None):
        with pytest.raises(ValueError, match=r"^b=.*; expected True or False"):
            check_boolean("b", value)


def test_pairs():
    assert check_pair("validation", [1, 2]) == (1, 2)
    for value in ((1,), (1, 2, 3), "ab", None):
        with pytest.raises(ValueError, match=r"^validation=.*; expected a pair \(X, y\)"):
            check_pair("validation", value)


def test_paths():
    assert check_path("path", "a/b") == Path("a/b")
    for value in ("", "a\0b", "\ud800", 3, None):
        with pytest.raises(ValueError, match=r"^path=.*; expected the path of a file or folder"):
            check_path("path", value)


@pytest.mark.parametrize("value", ["float32", np.float32, np.dtype("float32")])
def test_float_dtypes_by_name_type_or_dtype(value):
    assert check_float_dtype("dtype", value) == np.dtype("float32")


@pytest.mark.parametrize("value", ["float16", int, np.dtype("int64"), None, 3])
def test_other_dtypes_are_refused(value):
    with pytest.raises(ValueError, match=r"^dtype=.*; expected 'float32' or 'float64'"):
        check_float_dtype("dtype", value)


def test_a_generator_is_used_as_it_is_and_a_seed_makes_a_new_one():
    rng = np.random.default_rng(0)
    assert as_generator(rng) is rng
    assert as_generator(3).random() == np.random.default_rng(3).random()
    assert as_generator(None).random() != as_generator(None).random()
    with pytest.raises(ValueError, match=r"^random_state=-1; expected a whole number >= 0"):
        as_generator(-1)


def test_finite_arrays_are_new_and_float64():
    given = np.ones(3)
    x = finite_array("a", given)
    x[:] = 7
    np.testing.assert_array_equal(given, 1)
    assert finite_array("a", [[1, True]]).dtype == np.float64


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1, np.nan], r"^a has shape \(2,\) and holds NaN or infinity; give finite numbers"),
        ("abc", "^a is 'abc'; expected finite numbers"),
        (np.array(["x"]), "^a is an array of <U1; expected finite numbers"),
        ([[1], [1, 2]], "expected finite numbers"),
        ([1j], "expected finite numbers"),
    ],
)
def test_arrays_that_are_not_finite_numbers(value, message):
    with pytest.raises(ValueError, match=message):
        finite_array("a", value)
