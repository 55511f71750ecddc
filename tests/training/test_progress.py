"""The progress of a fit on the screen: one line per epoch."""

import sys

import pytest

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.training.progress import Progress, clock, line, say

X, VALUES = toys.echoes(sequences=8)
ROW = {"epoch": 3, "error": 0.65662, "spectral_radius": 0.9114, "gradient_W": 181.2, "gradient_W_rec": 42.0}


def test_the_line_of_an_epoch():
    assert line(ROW, 12, 8.4) == "epoch 3/12  error 0.6566  ρ 0.911  |dE/dW| 181  |dE/dW_rec| 42  0:08 left"
    assert "  error 3.21e-09  " in line({**ROW, "error": 3.21e-9}, 12, 8.4)
    assert "  valid 0.4278  " in line({**ROW, "valid_error": 0.42779}, 12, 8.4)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (75, "1:15"), (3599.7, "1:00:00"), (7325, "2:02:05")]
)
def test_the_clock_shows_minutes_or_hours(seconds, text):
    assert clock(seconds) == text


@pytest.mark.parametrize("kind", [ESNClassifier, ESNRegressor])
def test_verbose_2_prints_one_line_per_epoch_to_stderr(kind, capsys):
    y = VALUES if kind is ESNRegressor else [v[:, 0] > 0 for v in VALUES]
    kind(**{**toys.FAST, "validation_fraction": 0.25}, verbose=2).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    if kind is ESNClassifier:
        last = [lines.pop() for _ in range(6)]
        assert last[5] == "softmax readout ..."
        assert last[0].startswith("refining 5/5  cross entropy 0.")
    assert len(lines) == 3
    for number, text in enumerate(lines, 1):
        assert text.startswith(f"epoch {number}/3  error ")
        assert all(word in text for word in ("valid ", "ρ ", "|dE/dW| ", "|dE/dW_rec| ", " left"))
    assert lines[-1].endswith("0:00 left")


def test_nothing_is_printed_by_default(capsys):
    ESNRegressor(**toys.FAST).fit(X, VALUES)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_the_line_is_rewritten_in_place(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Progress(1, 2, None) as progress:
        progress.epoch({**ROW, "epoch": 1})
        progress.epoch({**ROW, "epoch": 2})
    err = capsys.readouterr().err
    assert err.count("\r\x1b[2K") == 2
    assert err.count("\n") == 1
    assert err.endswith("\n")
    with Progress(2, 2, None) as progress:
        progress.epoch({**ROW, "epoch": 1})
    assert "\r" not in capsys.readouterr().err


def test_the_callback_gets_the_row_and_its_result_is_returned():
    assert Progress(0, 3, lambda row: row["error"] < 1).epoch(ROW) is True
    assert Progress(0, 3, None).epoch(ROW) is None


def test_say_prints_only_if_verbose(capsys):
    say(0, "nothing")
    say(1, "something")
    assert capsys.readouterr() == ("", "something\n")
