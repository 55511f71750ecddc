"""Tests of the table of finished cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from echolearn.experiments.summary import PAPER_TIMIT, averaged, relative_gain

# Table 1 of the paper, copied from its page: hidden units; state error in per cent of the fixed network, of W learned
# with m = 1, of W and W_rec learned with m = 1 and with m = 3; relative gain of the last over the first in per cent.
TABLE_1 = """
    100     75.5  66.7  64.0  63.2  16.3
    500     70.1  59.8  57.5  56.8  19.0
    2,000   63.8  54.2  52.7  52.1  18.3
    10,000  57.1  49.5  48.0  46.8  18.0
    30,000  53.3  45.9  44.5  43.0  19.3
"""
PAPER_COLUMNS = ("esn", "W_m1", "W_Wrec_m1", "W_Wrec_m3")


def test_the_figures_of_the_paper_are_those_of_its_table() -> None:
    printed = [[float(field.replace(",", "")) for field in line.split()] for line in TABLE_1.strip().splitlines()]
    assert [row["units"] for row in PAPER_TIMIT] == [line[0] for line in printed]
    for row, (_, *errors, gain) in zip(PAPER_TIMIT, printed, strict=True):
        assert tuple(row["test_error"]) == PAPER_COLUMNS
        assert [100 * error for error in row["test_error"].values()] == pytest.approx(errors, rel=1e-12)
        assert 100 * row["relative_gain"] == pytest.approx(gain, rel=1e-12)


def test_the_table_that_we_compare_with_adds_up() -> None:
    """The gain of every row follows from its errors, to the last digit but for one unit of rounding."""
    for row in TABLE_1.strip().splitlines():
        _, fixed, _, _, learned, gain = (float(field.replace(",", "")) for field in row.split())
        assert 100 * (fixed - learned) / fixed == pytest.approx(gain, abs=0.1)


def test_gains_by_hand() -> None:
    errors = {"esn": 0.8, "W_Wrec_m3": 0.6, "esn_ours": 0.5, "ours": 0.4, "W_m1": 0.0}
    columns: Any = {name: {"test_error": error} for name, error in errors.items()}
    assert relative_gain(columns, "esn", "W_Wrec_m3") == 0.25
    assert relative_gain(columns, "esn_ours", "ours") == 0.2
    thirds: Any = {"esn": {"test_error": 0.3}, "ours": {"test_error": 0.2}}
    assert relative_gain(thirds, "esn", "ours") == 0.3333
    assert relative_gain(columns, "esn", "W_Wrec_full") is None
    assert relative_gain(columns, "W_m1", "ours") is None  # no error is left to lower


def test_the_gains_of_the_paper_follow_from_its_errors() -> None:
    for row in PAPER_TIMIT:
        errors = row["test_error"]
        assert row["relative_gain"] == pytest.approx(1 - errors["W_Wrec_m3"] / errors["esn"], abs=2e-3)
        assert list(errors.values()) == sorted(errors.values(), reverse=True)


def test_averages_by_hand() -> None:
    def result(error: float, memory: float | None) -> Any:
        rest = {"seconds": 1.0, "frames_per_second": 2.0, "spectral_radius": 3.9, "epochs": 4}
        return {"test_error": error, "valid_error": error, "peak_memory_mb": memory, **rest}

    entry = averaged([(0, result(0.2, 100.0)), (1, result(0.4, None))])
    assert entry["test_error"] == pytest.approx(0.3)
    assert entry["test_error_deviation"] == pytest.approx(np.sqrt(0.02), abs=1e-6)
    assert entry["peak_memory_mb"] == 100.0
    assert entry["seeds"] == [0, 1]
    one = averaged([(5, result(0.2, None))])
    assert "test_error_deviation" not in one
    assert one["peak_memory_mb"] is None
