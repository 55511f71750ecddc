"""Tests of figures as SVG."""

from __future__ import annotations

import subprocess
import sys

from echolearn.display import svg


def drawn(name: str) -> str:
    with svg.styled_figure(name, (2, 2)) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=svg.SERIES[0], label="line")
        axes.legend()
        return svg.to_svg(figure, name)


def test_colours_are_those_of_the_page() -> None:
    text = drawn("one")
    assert "var(--c1)" in text
    assert "var(--ink)" in text
    assert not [colour for colour in svg.VARIABLES if colour in text]


def test_the_same_figure_gives_the_same_bytes() -> None:
    assert drawn("one") == drawn("one")


def test_ids_carry_the_name_of_the_figure() -> None:
    assert 'id="one-' in drawn("one")
    assert 'id="two-' in drawn("two")
    assert 'id="one-' not in drawn("two")


def test_neither_date_nor_size_is_fixed() -> None:
    text = drawn("one")
    assert "metadata" not in text
    assert ' width="' not in text.split(">")[0]


def test_the_users_backend_is_left_alone() -> None:
    code = (
        "import matplotlib\n"
        "matplotlib.use('pdf')\n"
        "from echolearn.display.svg import styled_figure, to_svg\n"
        "with styled_figure('x', (3, 2)) as figure:\n"
        "    to_svg(figure, 'x')\n"
        "print(matplotlib.get_backend())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "pdf", done.stderr


def test_a_missing_matplotlib_is_noticed() -> None:
    code = "import sys; sys.modules['matplotlib'] = None\nfrom echolearn.display.svg import can_draw\nprint(can_draw())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "False", done.stderr
    assert svg.can_draw()
