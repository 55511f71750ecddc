"""Estimators in a notebook: one line each, the diagram with the facts of the fit, the figure of what was learned."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn import config_context
from sklearn.exceptions import NotFittedError

import echolearn
import toys
from echolearn import DeepESNRegressor, ESNClassifier, ESNForecaster, ESNRegressor, Reservoir
from echolearn.export import plan_of
from echolearn.sequences.dataset import Dataset
from echolearn.tuning._results import Trial, Tuning
from toys import grouped

X, VALUES = toys.echoes(sequences=8)


@pytest.fixture(scope="module")
def esn():
    return ESNRegressor(**grouped({**toys.FAST, "validation_fraction": 0.25})).fit(X, VALUES)


def test_one_line_says_what_a_thing_is_and_how_large(esn):
    units, inputs = esn.reservoir_.N, esn.reservoir_.n_in
    for thing, words in (
        (esn.reservoir_, [f"Reservoir: {units} units", f"{inputs} input", f"{esn.reservoir_.W_rec.nnz} recurrent"]),
        (esn.network_, [f"{units} units", "output", "ridge readout"]),
        (esn.network_.readout, [f"{len(esn.network_.readout.U)} x", "ridge regression, ridge "]),
        (esn.network_.readout.statistics, [f"{units + inputs + 1} columns"]),
        (esn.stream(), [f"Stream: {units} units", "after 0 steps"]),
        (Dataset(X, VALUES, None, True, np.dtype("f4")), ["Dataset: 8 sequences", "per step", "float32"]),
        (Dataset(X, (), None, True, np.dtype("f4")), ["Dataset: 8 sequences"]),
        (esn.inputs_, ["InputCodec: mean (", "missing 'error'"]),
        (Tuning([Trial(0, {"leak": 0.3}, 0.8, 1.0)], {}), ["Tuning: best of 1 trial"]),
        (Reservoir(np.ones((1, 2)), np.zeros((2, 2)), leak=[0.1, 1.0]), ["1 input", "leak 0.1 to 1"]),
        (esn.history_, ["History: 3 epochs"]),
    ):
        shown = repr(thing)
        assert "\n" not in shown
        assert len(shown) < 150
        for word in words:
            assert word in shown, shown


def test_one_line_of_empty_things():
    assert repr(Tuning([], {})) == "<Tuning: no finished trials>"
    assert "0 sequences" in repr(Dataset([], (), None, True, np.dtype("f4")))


def test_the_diagram_has_the_facts_of_the_fit(esn):
    html = esn._repr_mimebundle_()["text/html"]
    assert html.rsplit("<table", 1)[1] == esn._repr_html_().rsplit("<table", 1)[1]
    best = min(row["valid_error"] for row in esn.history_)
    for fact in (f"{esn.reservoir_.N} hidden units", "W, W_rec and the readout", "3 epochs", f"{best:.4g}"):
        assert fact in html
    assert "the readout only" in ESNRegressor(5, learn="none").fit(X, VALUES)._repr_html_()
    assert "hidden units" not in ESNRegressor()._repr_html_()
    with config_context(display="text"):
        assert set(esn._repr_mimebundle_()) == {"text/plain"}


def test_the_diagram_of_a_deep_network():
    assert "2 layers, 8 units, 2 inputs" in DeepESNRegressor(8, 2, epochs=1).fit(X, VALUES)._repr_html_()
    assert "2 layers" not in DeepESNRegressor(8, 2)._repr_html_()


def test_hostile_class_names_do_not_get_into_the_diagram():
    labels = [np.where(v[:, 0] > 0, "<script>", "&") for v in VALUES]
    assert "<script>alert" not in ESNClassifier(5, learn="none").fit(X, labels)._repr_html_()


def test_the_figure_compares_weights_before_and_after(esn):
    pytest.importorskip("matplotlib")
    before = esn.initial_reservoir_
    again = ESNRegressor(**grouped({**toys.FAST, "validation_fraction": 0.25, "learn": "none"})).fit(X, VALUES)
    np.testing.assert_array_equal(before.W, again.reservoir_.W)  # the weights that were drawn
    assert not np.array_equal(before.W, esn.reservoir_.W)
    figure = esn.plot(X)
    assert [axes.get_title() for axes in figure.axes[1:2]] == ["what was learned"]
    moved = figure.axes[1].collections[0].get_offsets()
    np.testing.assert_allclose(moved[:, 0], np.ravel(before.W))
    np.testing.assert_allclose(moved[:, 1], np.ravel(esn.reservoir_.W))
    radii = [np.abs(np.linalg.eigvals(r.W_rec.toarray())).max() for r in (before, esn.reservoir_)]
    assert figure.axes[2].get_title().endswith(f"{radii[0]:.3f} before (grey), {radii[1]:.3f} after")
    picture = figure.axes[4].images[0].get_array()
    np.testing.assert_allclose(np.sort(picture[:, 5]), np.sort(esn.states(X)[0][5]), rtol=1e-6)
    assert len(esn.plot().axes) == 4


def test_the_figure_where_nothing_is_known_of_the_start(esn, tmp_path):
    pytest.importorskip("matplotlib")
    esn.save(tmp_path / "model.safetensors")
    loaded = echolearn.load(tmp_path / "model.safetensors")
    assert loaded.plot().axes[1].get_title() == "weights"
    fixed = ESNForecaster(10, learn="none").fit(np.sin(np.arange(200) / 5))
    assert fixed.model_.initial_reservoir is None
    assert "no epochs" in fixed.plot().axes[0].get_title()
    with pytest.raises(NotFittedError):
        ESNRegressor().plot()


def test_many_units_are_shown_without_eigenvalues():
    pytest.importorskip("matplotlib")
    esn = ESNRegressor(1600, learn="none", ridge=1.0).fit(X, VALUES)
    assert "not computed" in esn.plot().axes[2].texts[0].get_text()


def test_without_matplotlib_the_extra_is_named():
    program = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['matplotlib.figure'] = None\n"
        "from echolearn.training.history import History\n"
        "try:\n    History().plot()\nexcept ImportError as problem:\n    print(problem)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'echolearn[report]'" in done.stdout


def test_a_plan_is_one_line(esn):
    units, inputs = esn.reservoir_.N, esn.n_features_in_
    assert repr(plan_of(esn)).startswith(f"<Plan: ESNRegressor, {units} units, {inputs} ")
    assert repr(plan_of(esn).layer).startswith(f"<Layer: {units} units")
