"""Series and exogenous inputs as a user gives them."""

import numpy as np
import pytest

from echolearn.forecasting.series import inputs_of, open_exogenous, open_series

LONG, SHORT = np.arange(10.0), np.arange(4.0)
PLANE = np.arange(20.0).reshape(10, 2)


@pytest.mark.parametrize(
    ("series", "kind", "one_value", "shapes"),
    [
        (LONG, "one", True, [(10, 1)]),
        (LONG.tolist(), "one", True, [(10, 1)]),
        (PLANE, "one", False, [(10, 2)]),
        ([LONG, SHORT], "list", True, [(10, 1), (4, 1)]),
        ([PLANE, PLANE[:3]], "list", False, [(10, 2), (3, 2)]),
        (np.stack([PLANE, PLANE]), "list", False, [(10, 2), (10, 2)]),
    ],
)
def test_forms_of_series(series, kind, one_value, shapes):
    given = open_series(series, "series", None)
    assert (given.kind, given.one_value) == (kind, one_value)
    assert [x.shape for x in given.X] == shapes
    assert {x.dtype for x in given.X} == {np.dtype(float)}


def test_errors_name_the_argument():
    for name in ("series", "warm_up"):
        with pytest.raises(ValueError, match=rf"^{name}: .*NaN"):
            open_series([1.0, np.nan], name, None)
    with pytest.raises(ValueError, match="warm_up: X has 2 features, but this forecaster is expecting 1"):
        open_series(PLANE, "warm_up", 1)


def test_the_input_of_a_step_is_its_value_and_what_is_known_of_the_next():
    z, e = PLANE[:3], 100 + LONG[:3, None]
    np.testing.assert_array_equal(inputs_of(z, e), [[0, 1, 101], [2, 3, 102]])


def rows(lengths, many):
    series = [np.ones(n) for n in lengths]
    return open_series(series if many else series[0], "series", None)


def test_no_exogenous_inputs_are_rows_without_columns():
    assert [e.shape for e in open_exogenous(None, rows([3, 5], True), None)] == [(3, 0), (5, 0)]
    assert [e.shape for e in open_exogenous(None, rows([3], False), 0, 4)] == [(7, 0)]


@pytest.mark.parametrize(
    ("exogenous", "lengths", "width", "many", "words"),
    [
        (None, [10], 2, False, "fitted with 2 exogenous inputs: give exogenous="),
        (PLANE, [10], 0, False, "fitted without. Leave it out, or fit with it"),
        (PLANE, [10, 10], None, True, "exogenous is one array; expected a list of 2"),
        ([PLANE], [10, 10], None, True, "exogenous is a list of 1; expected a list of 2"),
        ([PLANE], [10], None, False, "exogenous is a list of 1; expected one array"),
        ([PLANE, PLANE], [10, 9], None, True, "exogenous of series 1 has 10 rows; expected 9, one per step"),
        (PLANE, [10], 3, False, "exogenous: X has 2 features"),
    ],
)
def test_exogenous_rows_must_go_with_the_series(exogenous, lengths, width, many, words):
    with pytest.raises(ValueError, match=words):
        open_exogenous(exogenous, rows(lengths, many), width)
