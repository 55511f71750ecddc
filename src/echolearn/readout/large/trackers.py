"""A readout that is kept up to date while the weights of a large network change, without running statistics.

The exact one (`readout/trackers.py`) adds each mini-batch to G and solves for U again: M² operations per frame and M³
per batch. Here a mini-batch moves U by a few conjugate gradients on its own states, preconditioned by a sketch of G.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import DTypeLike

from echolearn.execution.threads import map_in_order, thread_count
from echolearn.modelfile.layout import Facts, Tensors
from echolearn.readout.large import sketch as sketches
from echolearn.readout.large.conjugate_gradients import column_dots, penalised, ratio, solve_iteratively
from echolearn.readout.large.sketch import Operator, Rows, Sketch, make_sketch, sample_rows, sample_sequences
from echolearn.readout.statistics import Statistics, weighted
from echolearn.readout.trackers import TURNOVERS_PER_EPOCH, Kept
from echolearn.readout.view import Observation, ReadoutView, Task, observe
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array

FIRST_SOLUTION_FRAMES = 100_000  # frames from which the first U is solved
BATCHES_PER_SKETCH = 16  # mini-batches after which the sketch is renewed, as the weights have changed
FIRST_ITERATIONS = 8  # conjugate gradients on all the data for the U of the first epoch
ITERATIONS_PER_EPOCH = 4  # the same from the U of the epoch before
ITERATIONS_PER_BATCH = 4  # conjugate gradients per mini-batch


def solve_from_sample(
    reservoir: Reservoir,
    data: Dataset,
    view: ReadoutView,
    mu: float,
    rng: np.random.Generator,
    *,
    U: Array | None = None,
) -> Array:
    """Return U of all the data, with a sketch from a sample of the same data; U: that of other weights, if known.

    From a U of other weights that the sample has corrected, half of the iterations lead as far as from 0.
    """
    rows = sample_rows(reservoir, data, view, rng)
    sketch = make_sketch(rows[0], view.target_count(data), w=rows[2])
    near = None if U is None else sketch.correct(U, rows)
    iterations = FIRST_ITERATIONS if U is None else ITERATIONS_PER_EPOCH
    return solve_iteratively(reservoir, data, view, mu, sketch, U=near, iterations=iterations)


class IterativeFullBatch:
    """An `ExactFullBatch` whose U is solved by conjugate gradients, started from the last U.

    Case 2 takes the gradient at the U of the current weights, Case 1 at that of the epoch before.
    """

    with_statistics = False
    kept: None = None

    def __init__(self, data: Dataset, task: Task, mu: float, rng: np.random.Generator, case: int):
        self.data, self.task, self.mu, self.rng, self.case = data, task, float(mu), rng, case
        self.reset()

    def reset(self) -> None:
        self.U: Array | None = None  # the last solution
        self.next_U: Array | None = None  # the U at which the next gradient is taken

    def begin_epoch(self, reservoir: Reservoir, pause: Callable[[], object]) -> None:
        if self.next_U is None:
            before = self.U
            self.U = solve_from_sample(reservoir, self.data, self.task, self.mu, self.rng, U=before)
            self.next_U = before if self.case == 1 and before is not None else self.U
            pause()

    def gradient_readout(self) -> Array:
        assert self.next_U is not None
        return self.next_U

    def finish(self, statistics: Statistics | None) -> float:
        self.next_U = None
        return self.task.target_count(self.data)

    def readout(self, reservoir: Reservoir) -> Array:
        U = solve_from_sample(reservoir, self.data, self.task.view(), self.mu, self.rng, U=self.U)
        if self.task.targets == "all" and self.case == 2:
            self.U = self.next_U = U  # the next epoch begins with the same U: it needs no passes for it
        return U

    def state_dict(self, *, inside_epoch: bool) -> tuple[Tensors, Facts]:
        pairs = (("U", self.U), ("solved", self.next_U))
        return {name: U for name, U in pairs if U is not None}, {"solved_n": self.task.target_count(self.data)}

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        self.U, self.next_U = tensors.get("U"), tensors.get("solved")


class IterativeMiniBatches:
    """An `ExactMiniBatches` whose U is moved by every mini-batch; a sketch serves `BATCHES_PER_SKETCH` of them.

    Case 2 takes the gradient at the U after the mini-batch, Case 1 at the U at the beginning of the epoch.
    """

    def __init__(self, data: Dataset, task: Task, mu: float, rng: np.random.Generator, case: int):
        self.data, self.task, self.mu, self.rng, self.case = data, task, float(mu), rng, case
        self.n = task.target_count(data)
        self.reset()

    def reset(self) -> None:
        self.U: Array | None = None
        self.held: Array | None = None  # U at the beginning of the epoch, for Case 1
        self.sketch: Sketch | None = None
        self.recent: list[Array] = []  # rows of H_c for the next sketch

    def begin_epoch(self, reservoir: Reservoir) -> None:
        """Begin the epoch with a new sketch, so that U alone must be kept between epochs."""
        self.held = self._started(reservoir)
        H_c, _, w = sample_rows(reservoir, self.data, self.task, self.rng)
        self._renew(H_c, w)

    def _started(self, reservoir: Reservoir) -> Array:
        """Return U; the first one is solved from a part of the data, with a ridge in proportion to that part."""
        if self.U is None:
            part = sample_sequences(self.data, self.task, FIRST_SOLUTION_FRAMES, self.rng)
            mu = self.mu * self.task.target_count(part) / self.n
            self.U = solve_from_sample(reservoir, part, self.task, mu, self.rng).astype(self.data.dtype)
        return self.U

    def _renew(self, H_c: Array, w: Array | None = None) -> None:
        """Make a new sketch from rows of H_c, whose targets have weights w (None: 1)."""
        self.sketch = make_sketch(H_c, self.n, w=w)
        self.inverse = self.sketch.inverse(self.mu)
        self.recent = []

    def observe(self, reservoir: Reservoir, parts: list[Array]) -> Kept:
        task = self.task

        def see(data: Dataset, which: Array) -> tuple[Observation, None]:
            return observe(reservoir, task, data.batch(which)), None

        return self.data.executor.keep(self.data, see, parts)

    def update(self, kept: Kept, share: float) -> tuple[Array, float]:
        rows = list(self.data.executor.map_kept(lambda seen: (seen[0].H_c, seen[0].T, seen[0].w), kept))
        assert self.U is not None
        # A share that is a NumPy float64 would turn all that follows into float64.
        self.U = update_readout(self.U, rows, self.inverse, self.mu, float(share))
        for H_c, _, w in rows:
            count = int(np.ceil(sketches.SAMPLE_FRAMES / BATCHES_PER_SKETCH / len(rows)))
            self.recent.append(H_c[self._drawn(len(H_c), count, w)])
        if len(self.recent) >= BATCHES_PER_SKETCH * len(rows):
            self._renew(np.vstack(self.recent))
        U = self.U if self.case == 2 or self.held is None else self.held
        return U, float(sum(len(T) if w is None else w.sum() for _, T, w in rows))

    def _drawn(self, rows: int, count: int, w: Array | None) -> Array:
        """Return some of the rows of a mini-batch, drawn with probabilities in proportion to their weights."""
        if w is None or rows == 0:
            return self.rng.permutation(rows)[:count]
        return self.rng.choice(rows, min(rows, count), p=w / w.sum())

    def readout(self, reservoir: Reservoir) -> Array:
        return self._started(reservoir)

    def state_dict(self, *, inside_epoch: bool) -> tuple[Tensors, Facts]:
        """Return U; inside an epoch also the sketch, and the rows collected for the next one."""
        tensors = {name: U for name, U in (("U", self.U), ("held", self.held)) if U is not None}
        if not inside_epoch or self.sketch is None:
            return tensors, {}
        s = self.sketch
        tensors |= {"sketch/V": s.V, "sketch/values": s.values, "sketch/mean": s.mean}
        if self.recent:
            tensors["sketch/recent"] = np.vstack(self.recent)
        facts = {"tail": s.tail, "n": s.n, "square": s.square, "recent": [len(H_c) for H_c in self.recent]}
        return tensors, {"following": facts}

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        self.U, self.held = tensors.get("U"), tensors.get("held")
        if "following" not in facts:
            return
        about = facts["following"]
        V, values, mean = (tensors[f"sketch/{name}"] for name in ("V", "values", "mean"))
        rows, counts = tensors.get("sketch/recent"), about["recent"]
        if V.shape[1] != len(values) or sum(counts) != (0 if rows is None else len(rows)):
            raise ValueError(f"a sketch of {V.shape[1]} directions, {len(values)} values and rows {counts}")
        self.sketch = Sketch(V, values, float(about["tail"]), mean, float(about["n"]), float(about["square"]))
        self.inverse = self.sketch.inverse(self.mu)
        self.recent = [] if rows is None else np.split(rows, np.cumsum(counts)[:-1])


def update_readout(
    U: Array,
    rows: Sequence[Rows],
    inverse: Operator,
    mu: float,
    share: float,
    *,
    turnover: float = TURNOVERS_PER_EPOCH,
    iterations: int = ITERATIONS_PER_BATCH,
) -> Array:
    """Return U after one more mini-batch, given in parts as rows (H_c, T, w), without statistics.

    If U solves (G + mu I) U = Q, then running statistics (1 - τw) G + τ H_b'H_b (τ: turnover, w: share of the
    mini-batch) would lead to U + C with

        (G + mu I + τ H_b'H_b) C = τ (H_b'(T_b - H_b U) - w mu U)              (τw is neglected beside 1).

    A few conjugate gradients approximate C. They need (G + mu I) D only for D = inverse(R), and that is R itself, so
    the sketch behind `inverse` is all that must be known of G. Columns are independent, and divided among the cores.
    Where targets have weights w, the rows of H_b and T_b are scaled by their square roots.
    """
    roots = [None if w is None else np.sqrt(w) for _, _, w in rows]
    H = [weighted(H_c, root) for (H_c, _, _), root in zip(rows, roots, strict=True)]

    def update_columns(columns: Array) -> Array:
        T = [_columns_of(t, columns, root, U.dtype) for (_, t, _), root in zip(rows, roots, strict=True)]
        R = -share * penalised(U[:, columns], mu)
        for H_c, t in zip(H, T, strict=True):
            R += H_c.T @ (t - H_c @ U[:, columns])
        R *= turnover
        return _corrected(U[:, columns].copy(), R, H, inverse, turnover, iterations=iterations)

    parts = np.array_split(np.arange(U.shape[1]), min(thread_count(), U.shape[1]))
    return np.hstack(list(map_in_order(update_columns, parts)))


def _corrected(U: Array, R: Array, H: Sequence[Array], inverse: Operator, turnover: float, *, iterations: int) -> Array:
    """Return U + C after some conjugate gradients; R: the right-hand side; H: the rows of the mini-batch, in parts."""
    D = Z = inverse(R)
    B = R  # (G + mu I) D
    power = column_dots(R, Z)
    for count in range(1, iterations + 1):
        Y = [H_c @ D for H_c in H]
        alpha = ratio(power, column_dots(D, B) + turnover * sum(column_dots(y, y) for y in Y))
        U += alpha * D
        if count == iterations:
            break
        A = B.copy()
        for H_c, y in zip(H, Y, strict=True):
            A += H_c.T @ (turnover * y)
        R = R - alpha * A
        Z = inverse(R)
        before, power = power, column_dots(R, Z)
        beta = ratio(power, before)
        D, B = Z + beta * D, R + beta * B
    return U


def _columns_of(T: Array, columns: Array, scale: Array | None, dtype: DTypeLike) -> Array:
    """Return some columns of T (K, n_out), scaled; class numbers (K,) stand for rows with a single 1."""
    taken = T[:, columns] if T.ndim == 2 else T[:, None] == columns
    return taken if scale is None else weighted(taken.astype(dtype), scale)
