"""Tests of the frame of a page and its blocks."""

from __future__ import annotations

import subprocess
import sys

from echolearn.display.report import Figure, document, figure_blocks, table_block


def test_text_is_escaped() -> None:
    assert "<title>a &lt; b</title>" in document("a < b", "")
    assert "&lt;b&gt;" in table_block(["<b>"], [["x"]])
    block = figure_blocks([Figure("<i>", "a & b", "<svg/>")])
    assert "&lt;i&gt;" in block
    assert "a &amp; b" in block
    assert "<svg/>" in block


def test_the_first_columns_are_aligned_to_the_left() -> None:
    assert table_block(["a", "b", "c"], [], left=2).count("class=l") == 2


def test_without_figures_the_page_says_how_to_get_them() -> None:
    assert "echolearn[report]" in figure_blocks([])


def test_no_report_needs_the_compiled_code_or_an_estimator() -> None:
    code = (
        "import sys\n"
        "from echolearn.display import report, svg\n"
        "from echolearn.paper import phone_report, table1_report\n"
        "loaded = [m for m in sys.modules if m in ('numba', 'sklearn', 'matplotlib', 'echolearn.estimators')]\n"
        "sys.exit(', '.join(loaded) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
