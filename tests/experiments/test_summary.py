"""Tests of the table of finished cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from echolearn.experiments.summary import PAPER_TIMIT, averaged, relative_gain


def test_gains_by_hand() -> None:
    errors = {"esn": 0.8, "W_Wrec_m3": 0.6, "esn_ours": 0.5, "ours": 0.4, "W_m1": 0.0}
    columns: Any = {name: {"test_error": error} for name, error in errors.items()}
    assert relative_gain(columns, "esn", "W_Wrec_m3") == 0.25
    assert relative_gain(columns, "esn_ours", "ours") == 0.2
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
