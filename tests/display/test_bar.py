"""One bar in a notebook, on a terminal and in a log."""

import re
import sys
import types
import xml.etree.ElementTree as ElementTree

import pytest

from echolearn.display import bar
from echolearn.display.bar import Bar
from echolearn.display.curve import curve
from echolearn.display.screen import in_notebook, tell


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
    tell("a < b")
    assert capsys.readouterr() == ("", "")
    assert cell[0][1]["text/plain"] == "a < b"
    assert "a &lt; b" in cell[0][1]["text/html"]
    monkeypatch.delitem(sys.modules, "IPython")
    tell("a < b")
    assert capsys.readouterr() == ("", "a < b\n")


def test_in_a_notebook_one_bar_is_updated_and_ends_as_text_and_curve(capsys, cell, monkeypatch):
    monkeypatch.setattr(bar, "REFRESH", 0.0)
    with Bar(4) as progress:
        for k in range(1, 4):
            progress.step(k, f"step {k} <b>", {"train": 1 / k, "valid": 2 / k})
    assert capsys.readouterr() == ("", "")
    handles, contents = zip(*cell, strict=True)
    assert len(set(handles)) == 1
    assert '<progress value="2" max="4"' in contents[1]["text/html"]
    assert "step 2 &lt;b&gt;" in contents[1]["text/html"]
    assert "<progress" not in contents[-1]["text/html"]
    assert contents[-1]["text/html"].count("<polyline") == 2
    assert contents[-1]["text/plain"] == "step 3 <b>"


def test_a_notebook_is_not_flooded(cell):
    with Bar(1000) as progress:
        for k in range(1, 1001):
            progress.step(k, f"step {k}")
    assert len(cell) < 100
    assert cell[-1][1]["text/plain"] == "step 1000"


def test_on_a_terminal_one_line_is_rewritten(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    with Bar(4) as progress:
        progress.step(1, "one")
        progress.step(3, "three " * 20)
    first, second = capsys.readouterr().err.split("\r\x1b[2K")[1:]
    assert first == "━━━━━" + 15 * " " + " one"
    assert second.startswith("━━━━━━━━━━━━━━━      three")
    assert len(second) == 40
    assert second.endswith("\n")


def test_in_a_log_there_is_a_line_now_and_then_and_the_last_one(capsys, monkeypatch):
    now = iter([0.0, 1.0, 4.9, 5.1, 9.0, 9.5])
    monkeypatch.setattr(bar.time, "perf_counter", lambda: next(now))
    with Bar(100) as progress:
        for k in range(1, 7):
            progress.step(k, f"step {k}")
    assert capsys.readouterr().err.splitlines() == ["step 1", "step 4", "step 6"]


def test_every_line_or_none(capsys):
    for shown, every in ((True, True), (False, True)):
        with Bar(3, shown=shown, every_line=every) as progress:
            for k in range(1, 4):
                progress.step(k, f"step {k}")
    assert capsys.readouterr().err == "step 1\nstep 2\nstep 3\n"


def test_lines_can_be_written_elsewhere(capsys, cell):
    found = []
    with Bar(2, every_line=True, write=found.append) as progress:
        progress.step(1, "one")
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
