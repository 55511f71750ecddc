"""A history as one line, as a table, and as a figure."""

import numpy as np
import pytest

from echolearn.training.history import History

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
