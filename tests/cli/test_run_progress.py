"""Tests of the progress of experiments on the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from echolearn.cli import progress
from echolearn.cli.run_progress import PHONES_WORDING, TABLE1_WORDING, RunLines
from echolearn.paper.cells import Cell, Outcome
from echolearn.paper.table1 import Plan

OUTCOME = Outcome(0.612, 0.6, 1.0)


@pytest.mark.parametrize("terminal", [False, True])
def test_a_table_is_told_cell_by_cell(terminal: bool) -> None:
    out = io.StringIO()
    with RunLines(Console(file=out, force_terminal=terminal, width=120), TABLE1_WORDING) as display:
        done, running = Plan(units=(100,), columns=("esn", "W_m1")).cells()
        display.plan({done: 1.0, running: 40.0}, 0.0)
        display.start(done, 0)
        display.finish(done, OUTCOME, False)
        display.start(running, 20)
        display.epoch(running, 5, {"epoch": 5, "valid_error": 0.55})
        display.finish(running, OUTCOME, False)
    for word in (
        "[1/2] 100 units, fixed ESN\n",
        "test 61.2 %  valid 60.0 %  1.0 s",
        "[2/2] 100 units, W learned, m=1: 20",
    ):
        assert word in out.getvalue().replace("\r", "")
    assert "(table: complete)" in out.getvalue()


def test_a_table_is_plain_lines_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    lines = RunLines(Console(file=out), TABLE1_WORDING)
    cell = Cell(5, "esn", 1)
    lines.plan({cell: 1.0}, 0.0)
    lines.finish(cell, OUTCOME, True)
    assert "5 units, fixed ESN, seed 1: reused from an earlier run" in out.getvalue()


def test_lines_are_printed_between_epochs_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    out = io.StringIO()
    lines = RunLines(Console(file=out, width=200), TABLE1_WORDING)
    cell = Cell(5, "W_m1", 0)
    lines.plan({cell: 1.0}, 0.0)
    lines.start(cell, 4)
    for epoch in (1, 2):
        lines.epoch(cell, epoch, {"epoch": epoch, "valid_error": 0.5})
    assert "(table: about" in out.getvalue()


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_of_two_systems(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    out = io.StringIO()
    fixed, learned = Cell(8, "fixed", 0), Cell(8, "learned", 0)
    with RunLines(Console(file=out, force_terminal=terminal, width=200), PHONES_WORDING) as display:
        display.plan({fixed: 1.0, learned: 8.0}, 2.0)
        display.finish(fixed, Outcome(0.3, 0.29, 12.0, 4.0), True)
        display.start(learned, 4)
        display.epoch(learned, 2, {"epoch": 2, "valid_error": 0.5})
        left = display.left.left
        display.decode(learned, "weights of the decoder", 25, 50)
        assert left == {(learned, "decode"): 2.0}  # the fit is done
        display.finish(learned, Outcome(0.2, 0.19, 12.0, 4.0), False)
    text = out.getvalue()
    assert "fixed: reused from an earlier run, phone error: test 30.0 %, valid 29.0 %" in text
    assert "[2/2] learned: 4 epochs at most" in text
    if not terminal:
        assert "epoch 2/4  valid 50.0 %" in text
        assert "weights of the decoder: 25 of 50" in text
    assert "(fit 0:12, decoding 0:04)" in text
