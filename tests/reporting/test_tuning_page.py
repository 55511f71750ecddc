"""Tests of the report of a search."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from echolearn.reporting import tuning_page as module
from echolearn.reporting.tuning_page import search_summary, tuning_page


@dataclass(frozen=True)
class Trial:
    number: int
    settings: dict[str, object]
    score: float | None
    seconds: float = 1.0
    curve: tuple[float, ...] = field(default=())


TRIALS = [
    Trial(0, {"leak": 0.30001, "<b>": "x"}, 0.5),
    Trial(1, {"leak": 0.2, "<b>": None}, None, curve=(0.4, 0.3)),
    Trial(2, {"leak": 1.0, "<b>": (1, 2)}, 0.75),
]


def test_the_summary_names_the_best_and_the_first_score() -> None:
    assert search_summary(TRIALS, TRIALS[2]) == (
        "best of 3 trials: 0.7500 held out (trial 3), the initial settings 0.5000; 1 trials were stopped early."
    )
    assert "initial" not in search_summary([TRIALS[1], TRIALS[2]], TRIALS[2])


def test_the_page_lists_trials_best_first_and_stopped_ones_last() -> None:
    page = tuning_page(TRIALS, TRIALS[2], ["leak"], "small data")
    rows = page.split("Every trial, best first")[1].split("<tr>")[2:]
    assert [row.split("</td>")[0][-1] for row in rows] == ["3", "1", "2"]
    assert "<td>–</td>" in rows[2]
    assert ">0.3<" in rows[1]
    assert "small data. All trials took 0:03." in page
    assert page.count("<svg") == 1
    assert "<b>" not in page


def test_without_matplotlib_the_page_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_draw", lambda: False)
    page = tuning_page(TRIALS, TRIALS[2], [])
    assert "<svg" not in page
    assert "echolearn[report]" in page
