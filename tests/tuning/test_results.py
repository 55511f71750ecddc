"""Tests of what a search found."""

from __future__ import annotations

import pytest

from echolearn.tuning import _results as module
from echolearn.tuning._results import Trial, Tuning, search_history, tuning_page

SPACE = {"leak": (0.1, 1.0), "activation": ["tanh", "relu"]}
TRIALS = [
    Trial(0, {"leak": 0.3, "activation": "tanh"}, 0.8, 1.0),
    Trial(1, {"leak": 0.5, "activation": "relu"}, None, 1.0),
    Trial(2, {"leak": 0.9, "activation": "tanh"}, 0.9, 1.0),
    Trial(3, {"leak": 0.8, "activation": "tanh"}, 0.9, 1.0),
]


def test_the_best_trial_is_the_first_with_the_greatest_score():
    found = Tuning(TRIALS, SPACE)
    assert found.best is TRIALS[2]
    assert found.best_settings == TRIALS[2].settings
    assert found.best_score == 0.9


def test_a_search_without_a_finite_score_has_no_best_trial():
    with pytest.raises(ValueError, match="no trial has a finite score"):
        _ = Tuning([Trial(0, {}, None, 1.0)], {}).best


def test_the_report_is_one_page(tmp_path):
    path = tmp_path / "search.html"
    Tuning(TRIALS, SPACE).report(path)
    page = path.read_text()
    assert "Every trial, best first" in page
    assert page.count("<svg") == 1
    assert "http" not in page.replace("http://www.w3.org", "")
    assert [p.name for p in tmp_path.iterdir()] == ["search.html"]


ESCAPED_SPACE = {"leak": (0.1, 1.0), "<b>": [None, "x", (1, 2)]}
ESCAPED = [
    Trial(0, {"leak": 0.30001, "<b>": "x"}, 0.5, 1.0),
    Trial(1, {"leak": 0.2, "<b>": None}, None, 1.0, curve=(0.4, 0.3)),
    Trial(2, {"leak": 1.0, "<b>": (1, 2)}, 0.75, 1.0),
]


def test_the_summary_names_the_best_and_the_first_score() -> None:
    assert Tuning(ESCAPED, ESCAPED_SPACE).summary() == (
        "best of 3 trials: 0.7500 held out (trial 3), the initial settings 0.5000; 1 trials were stopped early."
    )
    assert "initial" not in Tuning(ESCAPED[1:], ESCAPED_SPACE).summary()


def test_the_page_lists_trials_best_first_and_stopped_ones_last() -> None:
    page = tuning_page(Tuning(ESCAPED, ESCAPED_SPACE), "small data")
    rows = page.split("Every trial, best first")[1].split("<tr>")[2:]
    assert [row.split("</td>")[0][-1] for row in rows] == ["3", "1", "2"]
    assert "<td>–</td>" in rows[2]
    assert ">0.3<" in rows[1]
    assert "small data. All trials took 0:03." in page
    assert page.count("<svg") == 1
    assert "<b>" not in page


def test_without_matplotlib_the_page_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "can_draw", lambda: False)
    page = tuning_page(Tuning(ESCAPED, {}))
    assert "<svg" not in page
    assert "echolearn[report]" in page


def test_a_search_is_drawn_against_every_setting() -> None:
    settings = {"ridge": [0.1, 0.2, 0.4], "leak": [(0.1, 1.0), 1.0, 1.0]}
    svg = search_history([0.5, None, 0.6], settings, {"ridge"})
    for text in (">trial</text>", ">ridge</text>", ">leak</text>", ">(0.1, 1.0)</text>"):
        assert text in svg
