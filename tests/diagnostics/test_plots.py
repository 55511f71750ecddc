"""Plots: every diagnostic has one; without matplotlib only the plots are missing."""

import sys

import numpy as np
import pytest

from echolearn import Reservoir
from echolearn.diagnostics import echo, linearised, lyapunov, memory_capacity, ranks
from echolearn.reservoir._topologies import delay_line

X = np.random.default_rng(0).normal(size=(600, 1))


def line(k):
    """A delay line: inputs enter at the first unit and move on by one unit per step."""
    return Reservoir(W=np.eye(1, k), W_rec=delay_line(k), activation="identity")


RESULTS = {
    "linearised": lambda r: linearised(r, X),
    "lyapunov": lambda r: lyapunov(r, X),
    "echo": lambda r: echo(r, X),
    "memory": lambda r: memory_capacity(r, delays=10, steps=100),
    "ranks": lambda r: ranks(r),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_every_diagnostic_has_a_plot(kind, tmp_path):
    figures = pytest.importorskip("matplotlib.figure")
    for r in (Reservoir.random(1, 12, random_state=0), line(4)):
        with np.errstate(all="raise", under="ignore"):
            figure = RESULTS[kind](r).plot()
        assert isinstance(figure, figures.Figure)
        (axes,) = figure.axes
        assert axes.get_title()
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        figure.savefig(tmp_path / "p.png")
        assert RESULTS[kind](r).plot(figure.add_subplot()) is figure


@pytest.mark.parametrize("kind", RESULTS)
def test_without_matplotlib_only_plots_are_missing(kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    found = RESULTS[kind](line(4))
    with pytest.raises(ImportError, match=r"plots need matplotlib: pip install 'echolearn\[report\]'"):
        found.plot()
