"""The exact and the iterative solver: which one is chosen, and that both find the same readout."""

import ast
from pathlib import Path

import numpy as np
import pytest

import echolearn
import toys
from echolearn import ESNClassifier, ESNRegressor
from echolearn.execution.threads import thread_count
from echolearn.readout import solver
from echolearn.readout.large.conjugate_gradients import conjugate_gradients
from echolearn.readout.large.trackers import IterativeFullBatch, IterativeMiniBatches
from echolearn.readout.ridge import choose_ridge, solve
from echolearn.readout.solver import ExactSolver, IterativeSolver, chosen_ridge, solver_for
from echolearn.readout.statistics import collect
from echolearn.readout.trackers import ExactFullBatch, ExactMiniBatches
from echolearn.readout.view import Task
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import Split
from toys import grouped

X, VALUES = toys.echoes(sequences=12, steps=(30, 60))
DATA = Dataset(X, VALUES, None, True, np.dtype("float64"))
TRAIN, HELD_OUT = DATA.subset(range(9)), DATA.subset(range(9, 12))
RESERVOIR = Reservoir.random(2, 20, connections=4, bias_scaling=0.1, leak=(0.2, 0.9), random_state=0)
VIEW = Task().view()


def rng():
    return np.random.default_rng(0)


def path(diagonal):
    return diagonal * 10.0 ** np.arange(-6.0, 2)


@pytest.fixture
def converged(monkeypatch):
    """Let conjugate gradients run to the end."""
    to_the_end = {**conjugate_gradients.__kwdefaults__, "iterations": 100, "tolerance": 1e-13}
    monkeypatch.setattr(conjugate_gradients, "__kwdefaults__", to_the_end)


def fit_both(ridge, split):
    """Return the exact and the iterative fit."""
    return [s.fit(RESERVOIR, VIEW, ridge, split, rng(), say=lambda _: None) for s in (ExactSolver(), IterativeSolver())]


@pytest.mark.parametrize(("N", "iterative"), [(1, False), (7999, False), (8000, True), (100_000, True)])
def test_large_networks_are_solved_iteratively(N, iterative):
    assert solver_for(N).iterative is iterative
    assert solver_for(N).solves_again is not iterative


def test_only_solver_for_compares_with_large():
    def compares(node):
        return isinstance(node, ast.Compare) and any(
            isinstance(part, ast.Name) and part.id == "MIN_ITERATIVE_UNITS" for part in ast.walk(node)
        )

    source = Path(echolearn.__file__).parent
    trees = {file.relative_to(source).as_posix(): ast.parse(file.read_text()) for file in source.rglob("*.py")}
    comparisons = [name for name, tree in trees.items() for node in ast.walk(tree) if compares(node)]
    assert comparisons == ["readout/solver.py"]


@pytest.mark.parametrize("ridge", [0.1, path])
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.usefixtures("converged")
def test_both_solvers_find_the_same_readout(ridge, refit):
    exact, iterative = fit_both(ridge, Split(TRAIN, HELD_OUT, refit))
    assert iterative.ridge == pytest.approx(exact.ridge)
    assert iterative.n == exact.n == (DATA if refit else TRAIN).frames
    np.testing.assert_allclose(iterative.U, exact.U, atol=1e-5 * np.abs(exact.U).max())


@pytest.mark.usefixtures("converged")
def test_both_fits_know_the_same_of_the_gram_matrix():
    """A sample of all frames, with all directions: the sketch is G."""
    exact, iterative = fit_both(0.1, Split(DATA))
    assert iterative.square == pytest.approx(exact.square)
    assert iterative.degrees_of_freedom() == pytest.approx(exact.degrees_of_freedom(), rel=1e-6)
    G, n = exact.statistics.G, exact.n
    R = rng().normal(size=exact.U.shape)
    for strength in (1e-2, 1.0):
        penalty = np.diag(np.append(np.full(len(G) - 1, strength), 0.0))
        expected = np.linalg.solve(G / n + penalty, R)
        for fit in (exact, iterative):
            np.testing.assert_allclose(fit.preconditioner(strength, np.float64)(R), expected, rtol=1e-4, atol=1e-6)


def test_only_an_exact_fit_is_solved_for_another_ridge():
    exact, iterative = fit_both(0.1, Split(DATA))
    s = collect(RESERVOIR, DATA, VIEW)
    np.testing.assert_allclose(exact.solve_again(3.0), solve(s, 3.0, intercept=True), rtol=1e-9)
    assert iterative.solve_again(3.0) is iterative.U
    assert exact.statistics.n == s.n
    assert iterative.statistics is None


def test_a_ridge_that_is_given_is_not_chosen():
    s = collect(RESERVOIR, DATA, VIEW)
    assert chosen_ridge(s, 0.3) == 0.3
    for method in (ExactSolver(), IterativeSolver()):
        assert method.choose(RESERVOIR, DATA, Task(), 0.3, rng()) == (0.3, None)


def test_a_ridge_is_chosen_on_held_out_data_or_by_cross_validation():
    s, held = collect(RESERVOIR, TRAIN, VIEW), collect(RESERVOIR, HELD_OUT, VIEW)
    ridges = path(s.mean_diagonal)
    assert chosen_ridge(s, path, held) == choose_ridge(s, ridges, intercept=True, held_out=held)[0]
    by_validation = choose_ridge(s, ridges, intercept=True)[0]
    assert chosen_ridge(s, path) == by_validation
    mu, found = ExactSolver().choose(RESERVOIR, TRAIN, Task(), path, rng())
    assert mu == by_validation
    np.testing.assert_array_equal(found.G, s.G)
    mu, found = IterativeSolver().choose(RESERVOIR, TRAIN, Task(), path, rng())
    assert mu == pytest.approx(by_validation)
    assert found is None


def test_each_solver_has_its_trackers():
    task = Task()
    assert isinstance(ExactSolver().full_batch(DATA, task, 0.1, rng(), 2), ExactFullBatch)
    assert isinstance(ExactSolver().minibatches(DATA, task, 0.1, rng(), 2), ExactMiniBatches)
    assert isinstance(IterativeSolver().full_batch(DATA, task, 0.1, rng(), 2), IterativeFullBatch)
    assert isinstance(IterativeSolver().minibatches(DATA, task, 0.1, rng(), 2), IterativeMiniBatches)


def test_only_the_iterative_solver_depends_on_the_number_of_threads():
    assert ExactSolver().conditions() == {}
    assert IterativeSolver().conditions() == {"threads": thread_count()}


FIXED = {**toys.FAST, "hidden_units": 30, "learn": "none", "validation_fraction": 0.2}


@pytest.mark.filterwarnings("ignore:ridge=0.01 was chosen at the lower edge")
@pytest.mark.parametrize("ridge", ["auto", 0.1, (0.01, 1.0)])
def test_a_large_regressor_is_close_to_the_exact_one(ridge, monkeypatch):
    exact = ESNRegressor(ridge=ridge, **grouped(FIXED)).fit(X, VALUES)
    monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 0)
    large = ESNRegressor(ridge=ridge, **grouped(FIXED)).fit(X, VALUES)
    assert not np.array_equal(large.network_.readout.U, exact.network_.readout.U)
    assert abs(large.score(X, VALUES) - exact.score(X, VALUES)) < 0.02


def test_a_large_classifier_is_close_to_the_exact_one(monkeypatch):
    y = toys.labels(sequences=12, steps=(30, 60))[1]
    exact = ESNClassifier(**grouped(FIXED)).fit(X, y)
    monkeypatch.setattr(solver, "MIN_ITERATIVE_UNITS", 0)
    large = ESNClassifier(**grouped(FIXED)).fit(X, y)
    assert abs(large.score(X, y) - exact.score(X, y)) < 0.02
