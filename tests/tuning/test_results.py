"""Tests of what a search found."""

import pytest

from echolearn.tuning import Trial, Tuning

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
