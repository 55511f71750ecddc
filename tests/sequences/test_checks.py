"""Means and scales of columns, for numbers of any size."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.layouts import IDS, RAGGED, dated, panel
from echolearn.sequences.checks import MAX_STANDARDISED, mean_and_scale
from echolearn.sequences.opening import open_sequences


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(-280, 280))
def test_means_and_scales_are_those_of_the_same_numbers_near_one(seed, exponent):
    table = np.random.default_rng(seed).normal(size=(20, 3)) + np.array([0, 5, -2])
    power = 2.0**exponent
    mean, scale = mean_and_scale(table * power, "table")
    np.testing.assert_allclose(mean / power, table.mean(axis=0), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(scale / power, table.std(axis=0), rtol=1e-12)


@pytest.mark.parametrize("constant", [0.0, 3.0, 1e200, 1e-200, 0.1])
def test_the_scale_of_a_constant_column_is_one(constant):
    mean, scale = mean_and_scale(np.full((7, 1), constant), "table")
    np.testing.assert_allclose(mean, constant, rtol=1e-15)
    assert scale == 1


def test_numbers_whose_sums_would_overflow_are_refused():
    mean, scale = mean_and_scale(np.array([[MAX_STANDARDISED], [-MAX_STANDARDISED]]), "table")
    assert mean == 0
    assert scale == pytest.approx(MAX_STANDARDISED)
    with pytest.raises(ValueError, match=r"series holds 1e\+300, .* no room for sums; scale it first"):
        mean_and_scale(np.array([[1e300], [0.0]]), "series")


def test_scaling_is_the_mean_and_the_standard_deviation():
    table = np.random.default_rng(0).normal([1, -5, 0], [1, 1e3, 1e-3], (50, 3))
    table = np.hstack([table, np.full((50, 1), 3.0), np.zeros((50, 1))])
    mean, scale = mean_and_scale(table, "table")
    np.testing.assert_allclose(mean, table.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(scale, [*table[:, :3].std(axis=0), 1, 1], rtol=1e-14)


# ---------------- Where a missing value stands


def with_gap(x, value=np.nan):
    x = np.array(x)
    x[3, 1] = value
    return x


GAPS = [RAGGED[0], RAGGED[1], with_gap(RAGGED[2]), *RAGGED[3:]]
DATES = pd.date_range("2024-01-01", periods=len(RAGGED[0]))


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (GAPS, r"Input sequence 2 contains NaN\. The first is in row 3, column 1\. .*missing='carry'"),
        (with_gap(RAGGED[0]), r"Input X contains NaN\. The first is in row 3, column 1\."),
        (with_gap(RAGGED[0], np.inf), r"contains infinity.* The first is in row 3, column 1\."),
        (dict(zip(IDS, GAPS, strict=True)), rf"first is in row 3 of the sequence '{IDS[2]}', column 1\."),
        (panel(GAPS), rf"first is in row 3 \(\w+ 3\) of the sequence '{IDS[2]}', column 'b'\."),
        (dated(with_gap(RAGGED[0]), DATES), r"first is in row 3 \(index 2024-01-04 00:00:00\), column 'b'\."),
        (pd.DataFrame(with_gap(RAGGED[0]), columns=list("abc")), r"first is in row 3, column 'b'\."),
        ([panel(GAPS).loc[name] for name in IDS], r"first is in row 3 \(\w+ 3\), column 'b'\."),
    ],
)
def test_the_first_gap_is_named(X, words):
    with pytest.raises(ValueError, match=f"(?s){words}"):
        open_sequences(X)
