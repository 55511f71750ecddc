"""Every third example runs to its end and draws something; `make docs` runs all of them."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("plot_*.py"))
RUN = """
import runpy, sys
import matplotlib
matplotlib.use("agg")
from matplotlib import pyplot as plt
plt.show = lambda: None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
assert any(figure.get_axes() for figure in map(plt.figure, plt.get_fignums())), "nothing was drawn"
"""


def test_there_are_twenty_examples_with_titles():
    assert len(EXAMPLES) >= 20
    for example in EXAMPLES:
        title, line = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))).splitlines()[:2]
        assert line == "=" * len(title), example


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_reads_like_an_article(example):
    source = example.read_text(encoding="utf-8")
    assert "?" in ast.get_docstring(ast.parse(source)), "the text at the top asks no question"
    assert len(re.findall(r"^# %%$", source, re.MULTILINE)) >= 2, "code is not divided by prose"
    assert "# Limits\n# ------\n" in source.split("plt.show()")[-1]


def test_every_example_is_in_the_gallery_once():
    overview = (EXAMPLES[0].parent / "index.rst").read_text(encoding="utf-8")
    for pattern in (r"^   \.\./examples/(plot_\w+)\.py$", r"^   (plot_\w+)$"):  # thumbnails, and the list at the side
        assert sorted(re.findall(pattern, overview, re.MULTILINE)) == [example.stem for example in EXAMPLES]


@pytest.mark.parametrize("example", EXAMPLES[::3], ids=lambda path: path.stem)
def test_example(example, tmp_path):
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", RUN, str(example)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MPLBACKEND": "agg"}, timeout=600
    )
    assert done.returncode == 0, done.stderr


def test_every_figure_of_an_example_is_saved(tmp_path, capsys):
    pictures = pytest.importorskip("pictures")
    (tmp_path / "plot_two.py").write_text(
        "import matplotlib.pyplot as plt\nplt.figure()\nplt.show()\nplt.figure()\nplt.show()\n"
    )
    (tmp_path / "plot_none.py").write_text("x = 1\n")
    files = [str(tmp_path / name) for name in ("plot_two.py", "plot_none.py")]
    assert pictures.main([*files, "--out", str(tmp_path / "out")]) == 1
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["two.png", "two_2.png"]
    assert "plot_none.py: nothing was drawn" in capsys.readouterr().out
