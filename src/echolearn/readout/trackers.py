"""A readout that is kept up to date while the weights change, exactly: solved from G and Q.

In the paper's Case 2 the gradient is taken at a U that is solved for the same weights, in Case 1 at an older U.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from echolearn.modelfile.layout import Facts, Tensors
from echolearn.readout.ridge import solve
from echolearn.readout.statistics import Statistics, collect, product_precision, sample_precision, statistics_of
from echolearn.readout.view import Observation, ReadoutView, Task, frames_at_once, observe
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import frames_for_two, group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array

MAX_KEPT_STATES = 2**23  # numbers in all states, up to which they are kept from the pass for U to the gradient
TURNOVERS_PER_EPOCH = 1.8  # how often one epoch replaces the running statistics (see `fade_in`)
# frames per column of H_c that are enough for running statistics: of more, only every k-th is taken,
PLENTIFUL_FRAMES_PER_COLUMN = 50
MAX_FRAME_STRIDE = 2  # k at most; and U is solved for every k-th mini-batch. Neighbouring frames, and U, are much alike

Kept = list[object]  # what an executor has kept of each part of a mini-batch, for its `map_kept` and `sum_kept`


def observe_sequences(reservoir: Reservoir, task: Task, data: Dataset, which: Array) -> Observation:
    """Return what the readout sees of some sequences."""
    return observe(reservoir, task, data.batch(which))


def whole_groups(data: Dataset, N: int) -> int:
    """Return how many frames a group of sequences may have in a pass for the gradient of N units."""
    return frames_for_two(data.lengths, frames_at_once(N))


class ExactFullBatch:
    """The readout U in epochs with one gradient over all the data, solved from statistics of all the data.

    Case 2 makes one pass for U and one for the gradient at it. In Case 1, U is that of the epoch before, and one pass
    gives both the gradient and the statistics for the next U: `with_statistics`. kept: what the readout sees of the
    data at the present weights, if the pass for U has kept it for the gradient.
    """

    def __init__(self, data: Dataset, task: Task, mu: float, case: int):
        self.data, self.task, self.mu = data, task, mu
        self.with_statistics = case == 1
        self.reset()

    def reset(self) -> None:
        self.U: Array | None = None  # the U at which the next gradient is taken
        self.n = 0.0  # the number of targets that it was solved from
        self.kept: Kept | None = None

    def _collect(self, reservoir: Reservoir, view: ReadoutView) -> Statistics:
        """Return the statistics of all the data; what the readout sees of little data is kept for the gradient."""
        data, mu = self.data, self.mu
        all_frames = self.task.targets == "all" and not self.with_statistics
        if not all_frames or data.frames * reservoir.N > MAX_KEPT_STATES:
            return collect(reservoir, data, view, mu)
        frames, n_out = data.frames, data.n_out

        def statistics(seen: Observation) -> Statistics:
            precision = sample_precision(seen.H_c, frames, mu, seen.w)
            return statistics_of(seen.H_c, seen.T, n_out, precision, w=seen.w)

        self.kept = data.executor.keep(
            data,
            partial(observe_sequences, reservoir, self.task),
            group_sequences(data.lengths, whole_groups(data, reservoir.N)),
        )
        return data.executor.sum_kept(statistics, self.kept)

    def begin_epoch(self, reservoir: Reservoir, pause: Callable[[], object]) -> None:
        """Solve for the U at which the gradient is taken, unless it is known; `pause` is called after a solution."""
        if self.U is None:
            s = self._collect(reservoir, self.task)
            self.U, self.n = solve(s, self.mu, intercept=True), s.n
            pause()

    def gradient_readout(self) -> Array:
        """Return the U at which the gradient is taken."""
        assert self.U is not None
        return self.U

    def finish(self, statistics: Statistics | None) -> float:
        """End the epoch, with the statistics of its pass if they were collected; return the number of targets."""
        self.kept = None
        if statistics is None:
            self.U = None
            return self.n
        self.U, self.n = solve(statistics, self.mu, intercept=True), statistics.n
        return self.n

    def readout(self, reservoir: Reservoir) -> Array:
        """Return the U of the newest weights."""
        s = self._collect(reservoir, self.task.view())
        U = solve(s, self.mu, intercept=True)
        if self.task.targets == "all" and not self.with_statistics:
            self.U, self.n = U, s.n  # the next epoch begins with the same U: it needs no pass for it
        return U

    def state_dict(self, *, inside_epoch: bool) -> tuple[Tensors, Facts]:
        """Return arrays and plain values from which `load_state_dict` resumes to the bit."""
        name = "U" if self.with_statistics else "solved"
        return {} if self.U is None else {name: self.U}, {"solved_n": self.n}

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        self.U, self.n = tensors.get("U" if self.with_statistics else "solved"), float(facts["solved_n"])


class ExactMiniBatches:
    """The readout U in epochs of mini-batches, solved from running statistics, in which states of older weights fade.

    Case 2 solves for U after every mini-batch; Case 1 holds one U for the whole epoch. Where frames are plenty, the
    running statistics take every k-th frame, which counts k times, and Case 2 solves after every k-th mini-batch: U is
    then older by a few mini-batches, where the states in the running statistics are older by half an epoch.
    """

    def __init__(self, data: Dataset, task: Task, mu: float, case: int, statistics: Statistics | None = None):
        self.data, self.task, self.mu, self.case = data, task, mu, case
        self.statistics = statistics
        self.reset_readout()

    def reset(self) -> None:
        self.statistics = None
        self.reset_readout()

    def reset_readout(self) -> None:
        """Forget the last solution."""
        self.U: Array | None = None  # the U of the epoch in Case 1, and the last solution in Case 2
        self.age = 0  # the mini-batches since that solution, in Case 2

    def begin_epoch(self, reservoir: Reservoir) -> None:
        if self.statistics is None:
            self.statistics = collect(reservoir, self.data, self.task, self.mu)
        if self.case == 1:
            self.U = solve(self.statistics, self.mu, intercept=True)

    def every(self) -> int:
        """Return k: the statistics take every k-th frame, and U is solved for every k-th mini-batch."""
        assert self.statistics is not None
        if self.task.targets != "all":
            return 1  # the frames with targets are no neighbours
        return int(
            np.clip(self.statistics.n // (PLENTIFUL_FRAMES_PER_COLUMN * len(self.statistics.G)), 1, MAX_FRAME_STRIDE)
        )

    def observe(self, reservoir: Reservoir, parts: list[Array]) -> Kept:
        """Return what the readout sees of each part of a mini-batch, kept where the data are."""
        assert self.statistics is not None
        task, product = self.task, product_precision(self.statistics, self.mu, self.data.dtype)
        every = self.every()
        # Which frames they are depends on the mini-batch alone: all have their turn, and a fit can be resumed.
        first = int(np.concatenate(parts).sum()) % every

        def see(data: Dataset, which: Array) -> tuple[Observation, Statistics]:
            seen = observe(reservoir, task, data.batch(which))
            if every == 1:
                return seen, statistics_of(seen.H_c, seen.T, data.n_out, product, w=seen.w)
            rows = np.flatnonzero(seen.steps() % every == first)
            w = None if seen.w is None else seen.w[rows]
            some = statistics_of(seen.H_c[rows], seen.T[rows], data.n_out, product, w=w)
            return seen, some.stand_for(len(seen.T) if seen.w is None else float(seen.w.sum()))

        return self.data.executor.keep(self.data, see, parts)

    def update(self, kept: Kept, share: float) -> tuple[Array, float]:
        """Return the U at which the gradient is taken, and the number of targets; share: of the batch in all frames."""
        assert self.statistics is not None
        fresh: Statistics = self.data.executor.sum_kept(lambda seen: seen[1], kept)
        n = fresh.n
        self.statistics = fade_in(self.statistics, fresh, share)
        if self.case == 2:
            if self.U is None or self.age + 1 >= self.every():
                self.U, self.age = solve(self.statistics, self.mu, intercept=True), 0
            else:
                self.age += 1
        assert self.U is not None
        return self.U, n

    def readout(self, reservoir: Reservoir) -> Array:
        s = self.statistics or collect(reservoir, self.data, self.task.view(), self.mu)
        return solve(s, self.mu, intercept=True)

    def state_dict(self, *, inside_epoch: bool) -> tuple[Tensors, Facts]:
        tensors: Tensors = {} if self.U is None else {"U": self.U}
        if self.statistics is None:
            return tensors, {}
        s = self.statistics
        return {**tensors, "G": s.G, "Q": s.Q}, {"tt": s.tt, "n": s.n, "age": self.age}

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        if "G" in tensors:
            self.statistics = Statistics(tensors["G"], tensors["Q"], float(facts["tt"]), float(facts["n"]))
        self.U, self.age = tensors.get("U"), int(facts.get("age", 0))  # older checkpoints have no age


def fade_in(statistics: Statistics, batch: Statistics, share: float) -> Statistics:
    """Return running statistics after one more mini-batch: (1 - 1.8 w) G + 1.8 G_batch, computed in place.

    w is the share of the batch in all frames, so that G keeps the size of a full pass while older weights fade.
    """
    statistics.scale(max(0.0, 1 - TURNOVERS_PER_EPOCH * share))
    statistics += batch.scale(TURNOVERS_PER_EPOCH)
    return statistics
