"""Rules: what each kind allows, and the one message that names a setting that breaks its rule."""

import numpy as np
import pytest
from scipy import sparse

from echolearn.validation.parameters import (
    BOOLEAN,
    MAX_COUNT,
    NON_NEGATIVE,
    POSITIVE,
    any_of,
    check_each,
    is_list,
    number,
    one_of,
    or_none,
    whole_number,
)

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
