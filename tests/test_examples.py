"""Every example runs to its end and draws something."""

import os
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


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example(example, tmp_path):
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", RUN, str(example)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MPLBACKEND": "agg"}, timeout=600
    )
    assert done.returncode == 0, done.stderr
