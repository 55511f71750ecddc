"""Examples as executed notebooks: what becomes a cell, and that nothing is written to stderr."""

import ast
from pathlib import Path

import notebooks
import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("plot_*.py"))
SOURCE = '''"""
A title
=======

What it shows.
"""

import matplotlib.pyplot as plt

x = 1

# %%
# A heading
# ---------
#
# Some `text`.


def f():
    # why
    return 3


# %%
figure = plt.figure()

figure.add_subplot().plot([x, f()])

plt.show()

# %%
# The end.
'''


def test_blocks_are_cells_of_text_and_of_code():
    assert notebooks.cells_of(SOURCE) == [
        ("text", "# A title\n\nWhat it shows."),
        ("code", "import matplotlib.pyplot as plt\n\nx = 1"),
        ("text", "## A heading\n\nSome `text`."),
        ("code", "def f():\n    # why\n    return 3"),
        ("code", "figure = plt.figure()\n\nfigure.add_subplot().plot([x, f()])\n\nplt.show()"),
        ("text", "The end."),
    ]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_no_statement_of_an_example_is_lost(example):
    source = example.read_text()
    code = [content for kind, content in notebooks.cells_of(source) if kind == "code"]
    assert ast.dump(ast.parse("\n".join(code))) == ast.dump(ast.Module(ast.parse(source).body[1:], []))
    assert code[-1].endswith("plt.show()") or "plt.show()" in code[-2]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Three notebooks: an example, one with a fit that shows its progress, and one that writes to stderr."""
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("notebooks")
    (folder / "plot_quiet.py").write_text(
        '"""Quiet"""\nimport matplotlib.pyplot as plt\nimport numpy as np\n\nfrom echolearn import ESNRegressor\n# %%\n'
        "X = np.random.default_rng(0).normal(size=(6, 50, 1))\n# %%\n"
        "esn = ESNRegressor(10, epochs=4, verbose=1).fit(X, np.roll(X, 1, axis=1))\n# %%\nesn\n# %%\n"
        "esn.history_.plot()\n# %%\nesn.plot(X)\n# %%\nplt.figure()\n"
    )
    (folder / "plot_noisy.py").write_text(
        '"""Noisy"""\nimport sys\n\nimport matplotlib.pyplot as plt\n\nprint("noise", file=sys.stderr)\n'
    )
    return folder


def run(folder, example):
    notebook = notebooks.as_notebook(example)
    return notebook, notebooks.execute(notebook, folder)


def test_a_fit_shows_a_bar_a_diagram_and_figures_and_writes_nothing_to_stderr(ran):
    notebook, problems = run(ran, ran / "plot_quiet.py")
    assert problems == []
    outputs = [[output.get("data", {}) for output in cell.get("outputs", [])] for cell in notebook.cells]
    fit = outputs[3][-1]
    assert "<polyline" in fit["text/html"]
    assert "epoch 4/4" in fit["text/plain"]
    assert "10 hidden units, 1 input, 1 output" in outputs[4][0]["text/html"]
    assert "image/png" in outputs[5][0]
    assert "image/png" in outputs[6][0]


def test_noise_and_a_missing_figure_fail(ran, capsys):
    assert notebooks.main([str(ran / "plot_noisy.py"), "--out", str(ran / "out")]) == 1
    said = capsys.readouterr().out
    assert "plot_noisy.ipynb: noise" in said
    assert "no figure is shown" in said
    assert (ran / "out" / "plot_noisy.ipynb").exists()


def test_an_example_is_a_quiet_notebook(ran):
    (example,) = [path for path in EXAMPLES if path.stem == "plot_choosing_ridge"]
    notebook, problems = run(ran, example)
    assert problems == []
    assert "chose" in "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
