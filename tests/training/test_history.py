"""The history of a fit: its rows, and the table that it prints as."""

import numpy as np
import pytest

import toys
from echolearn import ESNRegressor
from echolearn.training.history import History

X, VALUES = toys.echoes(sequences=8)


def test_a_history_prints_as_a_table_with_right_aligned_columns():
    rows = [{"epoch": 1, "error": 0.25}, {"epoch": 10, "error": 1 / 3}, {"epoch": 11}]
    assert str(History(rows)).splitlines() == [
        "epoch    error",
        "    1     0.25",
        "   10  0.33333",
        "   11      nan",
    ]
    assert str(History()) == "no epochs"


def test_a_fit_has_one_row_per_epoch_which_print_as_a_table():
    esn = ESNRegressor(**{**toys.FAST, "validation_fraction": 0.25}).fit(X, VALUES)
    wanted = {"epoch", "error", "valid_error", "spectral_radius", "gradient_W", "gradient_W_rec", "seconds"}
    for number, row in enumerate(esn.history_, 1):
        assert wanted <= set(row)
        assert row["epoch"] == number
        assert all(np.isfinite(v) for v in row.values())
    assert list(np.diff([row["seconds"] for row in esn.history_]) > 0) == [True, True]
    table = str(esn.history_).splitlines()
    assert len(table) == 4
    assert table[0].split()[:3] == ["epoch", "error", "valid_error"]
    assert len({len(text) for text in table}) == 1
    pd = pytest.importorskip("pandas")
    assert pd.DataFrame(esn.history_).shape[0] == 3
    last = esn.history_[-1]["spectral_radius"]
    if esn.history_[-1]["valid_error"] == min(r["valid_error"] for r in esn.history_):
        assert np.abs(np.linalg.eigvals(esn.recurrent_weights_.toarray())).max() == pytest.approx(last)


def test_a_fit_without_epochs_has_an_empty_history():
    esn = ESNRegressor(**toys.FAST, learn="none").fit(X, VALUES)
    assert str(esn.history_) == "no epochs"
    assert len(esn.history_) == 0
    assert isinstance(esn.history_, History)
