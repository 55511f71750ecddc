"""Tests of progress on the terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from echolearn.cli import progress


def terminal(width: int = 120) -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=width)


def test_time_left_by_hand() -> None:
    now = [0.0]
    left = progress.TimeLeft({"a": 10.0, "b": 30.0, "c": 60.0}, lambda: now[0])
    assert left.of_all() is None
    left.finish("c", reused=True)
    left.start("a")
    now[0] = 60.0
    left.epoch(1, 5)  # too long for a compilation
    assert left.of_job() == pytest.approx(240.0)
    assert left.of_all() == pytest.approx(1140.0)
    now[0] = 100.0
    left.finish("a", reused=False)
    left.start("b")
    assert left.of_all() == pytest.approx(300.0)
    now[0] = 140.0
    left.epoch(6, 10)  # resumed after its fifth epoch
    assert left.of_job() == pytest.approx(160.0)
    assert left.of_all() == pytest.approx(160.0)  # no other job is left
    left.epoch(10, 10)  # the readout of the last epoch is not finished: no time is stated for it
    assert (left.of_job(), left.of_all()) == (None, None)


def test_a_first_epoch_with_compilation_says_nothing_about_the_time_left() -> None:
    now = [0.0]
    left = progress.TimeLeft({"fit": 1.0, "next": 1.0}, lambda: now[0])
    left.start("fit")
    now[0] = 12.0
    left.epoch(1, 100)
    assert (left.of_job(), left.of_all()) == (None, None)
    now[0] = 13.0
    left.epoch(2, 100)
    now[0] = 14.0
    left.epoch(3, 100)
    now[0] = 15.0
    left.epoch(4, 100)
    assert left.of_job() == pytest.approx(96.0)
    assert left.of_all() == pytest.approx(196.0)


def test_stages_are_plain_lines_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    with progress.stage_progress(Console(file=out)) as stage:
        for done in range(1, 101):
            stage("computing features", done, 100)
    assert out.getvalue().splitlines()[-1] == "computing features: 100 of 100"
    assert len(out.getvalue().splitlines()) < 10


def test_one_fit_has_a_bar_on_a_terminal() -> None:
    console = terminal(100)
    with progress.FitDisplay(console) as display:
        display.start(4)
        display.epoch({"epoch": 1, "valid_error": 0.5})
        display.note("a note")
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "a note" in text
    assert "fitting" in text


def test_one_fit_is_plain_lines_where_there_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    out = io.StringIO()
    with progress.FitDisplay(Console(file=out)) as display:
        display.start(2)
        display.epoch({"epoch": 1, "valid_error": 0.25})
    assert "epoch 1/2  valid 25.0 %" in out.getvalue()


def test_the_last_epoch_of_a_fit_is_always_printed() -> None:
    out = io.StringIO()
    with progress.FitDisplay(Console(file=out)) as display:
        display.start(2)
        display.epoch({"epoch": 1, "valid_error": 0.25})
        display.epoch({"epoch": 2, "valid_error": 0.125})
    assert out.getvalue().startswith("epoch 2/2  valid 12.5 %")
