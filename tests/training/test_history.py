"""The history of a fit: its rows, and the table that it prints as."""

import numpy as np
import pytest

import toys
from echolearn import ESNRegressor
from echolearn.training.history import History
from toys import grouped

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
    esn = ESNRegressor(**grouped({**toys.FAST, "validation_fraction": 0.25})).fit(X, VALUES)
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
    esn = ESNRegressor(learn="none", **grouped(toys.FAST)).fit(X, VALUES)
    assert str(esn.history_) == "no epochs"
    assert len(esn.history_) == 0
    assert isinstance(esn.history_, History)


# A history as one line, as a table, and as a figure


ROWS = [{"epoch": k, "error": 1 / k, "valid_error": abs(k - 3) + 0.5, "seconds": 0.5 * k} for k in range(1, 6)]


def test_one_line_says_how_it_went():
    assert repr(History(ROWS)) == ("<History: 5 epochs, error 1 to 0.2, best valid error 0.5 in epoch 3, 2.5 s>")
    assert repr(History()) == "<History: no epochs>"
    assert repr(History([{"epoch": 1, "error": 0.5}])) == "<History: 1 epoch, error 0.5 to 0.5>"
    assert History([{"epoch": 1, "cross_entropy": 0.5}]).best is None


def test_a_notebook_shows_a_table_that_stays_short():
    html = History(ROWS)._repr_html_()
    assert html.count("<tr>") == 6
    assert "<th>valid_error</th>" in html
    long = History({"epoch": k, "error": 1.0} for k in range(1, 201))._repr_html_()
    assert long.count("<tr>") == 62
    assert "…" in long
    assert "no epochs" in History()._repr_html_()


def test_the_figure_marks_the_best_epoch():
    pytest.importorskip("matplotlib")
    figure = History(ROWS).plot()
    (axes,) = figure.axes
    training, validation, best = axes.get_lines()
    np.testing.assert_allclose(training.get_ydata(), [1 / k for k in range(1, 6)])
    np.testing.assert_allclose(validation.get_ydata(), [2.5, 1.5, 0.5, 1.5, 2.5])
    assert (best.get_xdata(), best.get_ydata()) == ([3], [0.5])
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert History(ROWS).plot(axes) is figure
    assert "no epochs" in History().plot().axes[0].get_title()


def test_networks_of_an_ensemble_have_curves_of_their_own():
    pytest.importorskip("matplotlib")
    rows = [{"network": n, **row} for n in (1, 2) for row in ROWS]
    (axes,) = History(rows).plot().axes
    assert len(axes.get_lines()) == 5
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["training", "validation", "best: epoch 3"]
