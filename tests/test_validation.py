"""Single arguments: what is accepted, in which form it is returned, and how a refusal reads."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from echolearn import Reservoir
from echolearn.validation import (
    BOOLEAN,
    MAX_COUNT,
    NON_NEGATIVE,
    POSITIVE,
    any_of,
    as_generator,
    check_boolean,
    check_each,
    check_float_dtype,
    check_integer,
    check_name,
    check_number,
    check_pair,
    check_path,
    check_positive,
    finite_array,
    is_list,
    is_number,
    number,
    one_of,
    or_none,
    warn_user,
    whole_number,
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
    assert check_float_dtype(value) == np.dtype("float32")


@pytest.mark.parametrize("value", ["float16", int, np.dtype("int64"), None, 3])
def test_other_dtypes_are_refused(value):
    with pytest.raises(ValueError, match=r"^dtype=.*; expected 'float32' or 'float64'"):
        check_float_dtype(value)


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


# Rules


CASES = [
    (one_of("a", "b", 1), ["a", "b", 1], ["c", 2, None, ["a"], 1.0], "one of 'a', 'b', 1"),
    (whole_number(2), [2, np.int32(3)], [1, 2.0, True, MAX_COUNT, None], "a whole number >= 2"),
    (number(lambda v: v < 3, "a small number"), [2, -1.5], [3, np.nan, "2"], "a small number"),
    (or_none(whole_number(1), "all"), [None, 1], [0, "all"], r"a whole number >= 1, or None \(all\)"),
    (any_of(one_of("a"), whole_number(1), expected="a or n"), ["a", 4], ["b", 0], "a or n"),
    (POSITIVE, [1e-300, 1e100], [0, -1, 1e101, np.inf], r"a number > 0, at most 1e\+100"),
    (NON_NEGATIVE, [0, 1e100], [-1e-300, np.nan, True], r"a number >= 0, at most 1e\+100"),
    (BOOLEAN, [True, np.bool_(False)], [1, None, "no"], "True or False"),
]


@pytest.mark.parametrize(("rule", "good", "bad", "expected"), CASES)
def test_each_kind_of_rule(rule, good, bad, expected):
    for value in good:
        check_each({"a": value}, {"a": rule})
    for value in bad:
        with pytest.raises(ValueError, match=rf"^a=.*; expected {expected}\.$"):
            check_each({"a": value}, {"a": rule})


def test_the_first_setting_that_breaks_its_rule_is_named():
    rules = {"a": BOOLEAN, "b": BOOLEAN}
    with pytest.raises(ValueError, match=r"^b=3"):
        check_each({"b": 3, "a": 4}, rules)
    check_each({"c": 3}, rules)


@pytest.mark.parametrize("matrix", [np.ones((2, 3)), sparse.csr_array((2, 3)), sparse.csr_matrix((2, 3))])
def test_a_matrix_is_shown_by_its_shape(matrix):
    with pytest.raises(ValueError, match=r"^a=an array of shape \(2, 3\); expected True"):
        check_each({"a": matrix}, {"a": BOOLEAN})


def test_lists_are_lists_tuples_and_1d_arrays():
    assert all(is_list(value) for value in ([], (1,), np.ones(2)))
    assert not any(is_list(value) for value in ("ab", np.ones((1, 1)), 3, {1}))


def test_numbers_of_low_precision_are_compared_with_limits_that_they_cannot_hold():
    assert POSITIVE.allows(np.float32(0.5))  # warnings are errors in tests
    assert not POSITIVE.allows(np.float16(0))


# Names of settings


KNOWN = ["spectral_radius", "leak", "ridge"]


def test_a_known_name_is_accepted() -> None:
    check_name("leak", KNOWN, "space")
    check_name("leak", (name for name in KNOWN), "space")


def test_a_misspelt_name_is_answered_with_the_nearest_known_one() -> None:
    with pytest.raises(ValueError, match=r"^space: there is no setting 'leek'; did you mean leak\?$"):
        check_name("leek", KNOWN, "space")


def test_a_name_unlike_all_known_ones_is_answered_with_their_list() -> None:
    with pytest.raises(ValueError, match=r"there is no setting 'zzz'; known are leak, ridge, spectral_radius\."):
        check_name("zzz", KNOWN, "space")


@pytest.mark.parametrize("name", [None, 3, ("leak",), "x" * 100_000])
def test_anything_else_is_refused_in_a_short_message(name: object) -> None:
    with pytest.raises(ValueError, match="there is no setting") as caught:
        check_name(name, KNOWN, "space")
    assert len(str(caught.value)) < 200


# Where a warning points


def test_outside_the_library_the_line_itself_is_named():
    with pytest.warns(UserWarning, match="odd") as seen:
        warn_user("odd", UserWarning)
    assert seen[0].filename == __file__


def test_a_function_of_the_library_names_its_caller():
    space = {"__name__": "echolearn.somewhere", "warn_user": warn_user}
    exec("def inner():\n    warn_user('odd', UserWarning)\ndef outer():\n    inner()", space)
    with pytest.warns(UserWarning, match="odd") as seen:
        space["outer"]()
    assert seen[0].filename == __file__


def test_a_warning_of_a_reservoir_names_this_file():
    with pytest.warns(UserWarning, match="no echo states") as seen:
        Reservoir.random(1, 5, spectral_radius=1.5, random_state=0)
    assert seen[0].filename == __file__
