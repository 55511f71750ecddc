"""The two solvers of a ridge readout: exact, from G and Q, and for large networks by conjugate gradients.

`solver_for` chooses between them; nothing else in the library asks how large a network is. A ridge is given as a
number, or as a function from the mean diagonal of the Gram matrix to the ridges to choose from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import DTypeLike
from scipy import linalg

from echolearn.execution.threads import thread_count
from echolearn.modelfile.checkpoint import Checkpoint
from echolearn.readout.large.conjugate_gradients import solve_iteratively
from echolearn.readout.large.sketch import Operator, Rows, Sketch, choose_ridge_by_sample, make_sketch, sample_rows
from echolearn.readout.large.trackers import IterativeFullBatch, IterativeMiniBatches
from echolearn.readout.ridge import choose_ridge, degrees_of_freedom, gram_eigenvalues, solve
from echolearn.readout.statistics import Statistics, collect, column_squares
from echolearn.readout.trackers import ExactFullBatch, ExactMiniBatches
from echolearn.readout.view import ReadoutView, Task
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import Split
from echolearn.validation import Array

Ridge = float | Callable[[float], Sequence[float] | Array]

Choice = tuple[float, Statistics | None]  # a ridge, and the statistics by which it was chosen, if there are any

MIN_ITERATIVE_UNITS = 8000  # hidden units from which on the readout is solved by conjugate gradients


@dataclass(frozen=True, eq=False)
class ExactFit:
    """A ridge readout U that was solved from statistics, with its ridge: U = (G + ridge I)^-1 Q."""

    U: Array
    ridge: float
    statistics: Statistics

    @property
    def n(self) -> float:
        """The number of targets."""
        return self.statistics.n

    @property
    def square(self) -> float:
        """The sum of squares about the mean, averaged over the columns of H_c."""
        return float(column_squares(self.statistics).mean())

    def solve_again(self, mu: float) -> Array:
        """Return the readout of another ridge, or U itself if the equations cannot be solved again."""
        return solve(self.statistics, mu, intercept=True)

    def preconditioner(self, strength: float, dtype: DTypeLike) -> Operator:
        """Return the function R -> (G/n + strength I)^-1 R, with the intercept not penalised."""
        A = self.statistics.G / self.n
        more = strength + 1e-7 * self.square / self.n
        penalty = np.full(len(A), more)
        penalty[-1] = 0 if self.statistics.has_intercept else 1
        A.flat[:: len(A) + 1] += penalty + 1e-13 * float(np.trace(A))  # positive definite in spite of rounding
        P = linalg.cho_solve(linalg.cho_factor(A, lower=True), np.eye(len(A))).astype(dtype)
        return lambda R: np.asarray(P @ R)

    def degrees_of_freedom(self) -> float:
        """Return the degrees of freedom of U, the intercept included."""
        return degrees_of_freedom(gram_eigenvalues(self.statistics), self.ridge)


@dataclass(frozen=True, eq=False)
class IterativeFit:
    """The same as `ExactFit`, solved by conjugate gradients, with a sketch of G."""

    U: Array
    ridge: float
    sketch: Sketch
    statistics: None = None

    @property
    def n(self) -> float:
        return self.sketch.n

    @property
    def square(self) -> float:
        return self.sketch.square

    def solve_again(self, mu: float) -> Array:
        return self.U  # another ridge would need passes over the data

    def preconditioner(self, strength: float, dtype: DTypeLike) -> Operator:
        inverse, n = self.sketch.inverse(strength * self.n), self.n
        return lambda R: n * inverse(R)

    def degrees_of_freedom(self) -> float:
        return degrees_of_freedom(self.sketch.values, self.ridge)


RidgeFit = ExactFit | IterativeFit
FullBatchTracker = ExactFullBatch | IterativeFullBatch
MiniBatchTracker = ExactMiniBatches | IterativeMiniBatches


class ExactSolver:
    """The solver for networks whose Gram matrix is affordable: Cholesky's factor of G + mu I.

    iterative: whether U is found by passes over the data instead of from G. solves_again: whether a fit can be solved
    for another ridge; if not, its U itself starts the softmax readout.
    """

    iterative = False
    solves_again = True

    def choose(self, reservoir: Reservoir, data: Dataset, task: Task, ridge: Ridge, rng: Generator) -> Choice:
        """Return the ridge for all epochs, and the statistics by which it was chosen, if there are any."""
        if not callable(ridge):
            return ridge, None
        s = collect(reservoir, data, task)
        return chosen_ridge(s, ridge), s

    def fit(
        self,
        reservoir: Reservoir,
        view: ReadoutView,
        ridge: Ridge,
        split: Split,
        rng: Generator,
        *,
        say: Callable[[str], object],
        checkpoint: Checkpoint | None = None,
    ) -> ExactFit:
        """Return the readout of the training data, its ridge chosen on the held-out data; say: reports passes."""
        if callable(ridge):
            s = collect(reservoir, split.train, view)
            held = None if split.held_out is None else collect(reservoir, split.held_out, view)
            mu = chosen_ridge(s, ridge, held)
            if split.refit and held is not None:
                s += held
        else:
            mu = ridge
            s = collect(reservoir, split.everything, view, mu)
        return ExactFit(solve(s, mu, intercept=True), mu, s)

    def full_batch(self, data: Dataset, task: Task, mu: float, rng: Generator, case: int) -> ExactFullBatch:
        """Return the tracker of U for epochs with one gradient each."""
        return ExactFullBatch(data, task, mu, case)

    def minibatches(
        self, data: Dataset, task: Task, mu: float, rng: Generator, case: int, *, statistics: Statistics | None = None
    ) -> ExactMiniBatches:
        """Return the tracker of U for epochs of mini-batches; statistics: those of the start, if they are known."""
        return ExactMiniBatches(data, task, mu, case, statistics)

    def conditions(self) -> dict[str, int]:
        """Return what the bits of U depend on beside data and settings, by name."""
        return {}


class IterativeSolver:
    """The solver for large networks: conjugate gradients over streamed states, without G."""

    iterative = True
    solves_again = False

    def choose(self, reservoir: Reservoir, data: Dataset, task: Task, ridge: Ridge, rng: Generator) -> Choice:
        if not callable(ridge):
            return ridge, None
        return _ridge_of_sample(sample_rows(reservoir, data, task, rng.spawn(1)[0]), ridge, data, task), None

    def fit(
        self,
        reservoir: Reservoir,
        view: ReadoutView,
        ridge: Ridge,
        split: Split,
        rng: Generator,
        *,
        say: Callable[[str], object],
        checkpoint: Checkpoint | None = None,
    ) -> IterativeFit:
        rows = sample_rows(reservoir, split.train, view, rng)
        held = split.held_out
        held_rows = sample_rows(reservoir, held, view, rng) if callable(ridge) and held is not None else None
        mu = _ridge_of_sample(rows, ridge, split.train, view, held_rows)
        data = split.everything
        sketch = make_sketch(rows[0], view.target_count(data), w=rows[2])
        kept = None if checkpoint is None else checkpoint.for_stage("readout")
        return IterativeFit(solve_iteratively(reservoir, data, view, mu, sketch, say=say, checkpoint=kept), mu, sketch)

    def full_batch(self, data: Dataset, task: Task, mu: float, rng: Generator, case: int) -> IterativeFullBatch:
        return IterativeFullBatch(data, task, mu, rng, case)

    def minibatches(
        self, data: Dataset, task: Task, mu: float, rng: Generator, case: int, *, statistics: Statistics | None = None
    ) -> IterativeMiniBatches:
        return IterativeMiniBatches(data, task, mu, rng, case)

    def conditions(self) -> dict[str, int]:
        # Each thread multiplies with some columns of U, and the bits of a product depend on how many.
        return {"threads": thread_count()}


RidgeSolver = ExactSolver | IterativeSolver


def solver_for(N: int) -> RidgeSolver:
    """Return the solver for a network of N hidden units."""
    return IterativeSolver() if N >= MIN_ITERATIVE_UNITS else ExactSolver()


def chosen_ridge(s: Statistics, ridge: Ridge, held_out: Statistics | None = None) -> float:
    """Return the given ridge, or the one that is best on held-out statistics or by generalised cross-validation."""
    if not callable(ridge):
        return ridge
    return choose_ridge(s, ridge(s.mean_diagonal), intercept=True, held_out=held_out)[0]


def _ridge_of_sample(rows: Rows, ridge: Ridge, data: Dataset, view: ReadoutView, held_out: Rows | None = None) -> float:
    """Return the same as `chosen_ridge`, from samples of rows (H_c, T, w)."""
    if not callable(ridge):
        return ridge
    H_c, _, w = rows
    squares = np.square(H_c).mean(axis=1, dtype=np.float64)
    square = float(np.square(H_c).mean(dtype=np.float64)) if w is None else float(np.average(squares, weights=w))
    diagonal = view.target_count(data) * square
    return choose_ridge_by_sample(rows, ridge(diagonal), data.n_out, held_out)
