"""One bar in a notebook, on a terminal and in a log."""

import re
import sys
import types
import xml.etree.ElementTree as ElementTree

import pytest

import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.display import progress
from echolearn.display.progress import Bar, Progress, clock, curve, epoch_line, in_notebook, show_if_verbose, show_line
from toys import grouped


@pytest.fixture
def cell(monkeypatch):
    """A kernel whose outputs are kept: (display id, content), one for each time that something is shown."""
    shown = []

    class Handle:
        def __init__(self, content):
            shown.append((self, content))

        def update(self, content, raw):
            assert raw
            shown.append((self, content))

    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    ipython.display = types.SimpleNamespace(display=lambda content, raw, display_id: Handle(content))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    return shown


def test_a_shell_without_a_kernel_is_no_notebook(monkeypatch):
    assert not in_notebook()
    ipython = types.ModuleType("IPython")
    for shell in (None, types.SimpleNamespace()):
        ipython.get_ipython = lambda shell=shell: shell
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert not in_notebook()


def test_a_line_goes_to_stderr_or_into_the_cell(capsys, cell, monkeypatch):
    show_line("a < b")
    assert capsys.readouterr() == ("", "")
    assert cell[0][1]["text/plain"] == "a < b"
    assert "a &lt; b" in cell[0][1]["text/html"]
    monkeypatch.delitem(sys.modules, "IPython")
    show_line("a < b")
    assert capsys.readouterr() == ("", "a < b\n")


def test_in_a_notebook_one_bar_is_updated_and_ends_as_text_and_curve(capsys, cell, monkeypatch):
    monkeypatch.setattr(progress, "REFRESH_SECONDS", 0.0)
    with Bar(4) as bar:
        for k in range(1, 4):
            bar.step(k, f"step {k} <b>", {"train": 1 / k, "valid": 2 / k})
    assert capsys.readouterr() == ("", "")
    handles, contents = zip(*cell, strict=True)
    assert len(set(handles)) == 1
    assert '<progress value="2" max="4"' in contents[1]["text/html"]
    assert "step 2 &lt;b&gt;" in contents[1]["text/html"]
    assert "<progress" not in contents[-1]["text/html"]
    assert contents[-1]["text/html"].count("<polyline") == 2
    assert contents[-1]["text/plain"] == "step 3 <b>"


def test_a_notebook_is_not_flooded(cell):
    with Bar(1000) as bar:
        for k in range(1, 1001):
            bar.step(k, f"step {k}")
    assert len(cell) < 100
    assert cell[-1][1]["text/plain"] == "step 1000"


def test_on_a_terminal_one_line_is_rewritten(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    with Bar(4) as bar:
        bar.step(1, "one")
        bar.step(3, "three " * 20)
    first, second = capsys.readouterr().err.split("\r\x1b[2K")[1:]
    assert first == "━━━━━" + 15 * " " + " one"
    assert second.startswith("━━━━━━━━━━━━━━━      three")
    assert len(second) == 40
    assert second.endswith("\n")


def test_in_a_log_there_is_a_line_now_and_then_and_the_last_one(capsys, monkeypatch):
    now = iter([0.0, 1.0, 4.9, 5.1, 9.0, 9.5])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(now))
    with Bar(100) as bar:
        for k in range(1, 7):
            bar.step(k, f"step {k}")
    assert capsys.readouterr().err.splitlines() == ["step 1", "step 4", "step 6"]


def test_every_line_or_none(capsys):
    for shown, every in ((True, True), (False, True)):
        with Bar(3, shown=shown, every_line=every) as bar:
            for k in range(1, 4):
                bar.step(k, f"step {k}")
    assert capsys.readouterr().err == "step 1\nstep 2\nstep 3\n"


def test_lines_can_be_written_elsewhere(capsys, cell):
    found = []
    with Bar(2, every_line=True, write=found.append) as bar:
        bar.step(1, "one")
    assert found == ["one"]
    assert cell == []


def test_a_curve_is_a_picture_with_a_name():
    drawn = curve({"train <": [3.0, 2.0, float("nan")], "valid": [4.0, 1.0, 2.0]}, 10)
    root = ElementTree.fromstring(drawn)
    assert root.attrib["aria-label"] == "train < 2, valid 2"
    lines = [element.attrib["points"].split() for element in root.iter("polyline")]
    assert [len(line) for line in lines] == [2, 3]
    heights = [float(point.split(",")[1]) for point in lines[1]]
    assert heights[0] < heights[2] < heights[1]
    assert re.search(">4<.*>1<|>1<.*>4<", drawn)
    assert curve({"valid": [1.0]}, 10) == curve({}, 10) == curve({"valid": [float("nan")] * 3}, 3) == ""
    assert "<polyline" in curve({"valid": [1.0, 1.0]}, 1)


# The progress of a fit on the screen


X, VALUES = toys.echoes(sequences=8)
ROW = {"epoch": 3, "error": 0.65662, "spectral_radius": 0.9114, "gradient_W": 181.2, "gradient_W_rec": 42.0}


def test_the_line_of_an_epoch():
    assert epoch_line(ROW, 12, 8.4) == "epoch 3/12  error 0.6566  ρ 0.911  |dE/dW| 181  |dE/dW_rec| 42  0:08 left"
    assert "  error 3.21e-09  " in epoch_line({**ROW, "error": 3.21e-9}, 12, 8.4)
    assert "  valid 0.4278  " in epoch_line({**ROW, "valid_error": 0.42779}, 12, 8.4)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0:00"), (59.6, "1:00"), (75, "1:15"), (3599.7, "1:00:00"), (7325, "2:02:05")]
)
def test_the_clock_shows_minutes_or_hours(seconds, text):
    assert clock(seconds) == text


@pytest.mark.parametrize("kind", [ESNClassifier, ESNRegressor])
def test_verbose_2_prints_one_line_per_epoch_to_stderr(kind, capsys):
    y = VALUES if kind is ESNRegressor else [v[:, 0] > 0 for v in VALUES]
    kind(verbose=2, **grouped({**toys.FAST, "validation_fraction": 0.25})).fit(X, y)
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
    ESNRegressor(**grouped(toys.FAST)).fit(X, VALUES)
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
    show_if_verbose(0, "nothing")
    show_if_verbose(1, "something")
    assert capsys.readouterr() == ("", "something\n")
