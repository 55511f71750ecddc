"""Passes over the data: what the readout sees of a batch, sums over all batches, a batch's share of the gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.execution.threads import HERE
from echolearn.gradients.exact import Gradients, error_wrt_states, select_gradient
from echolearn.readout import statistics as readout
from echolearn.readout.statistics import Sums
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Batch, Data, Pooling, Selection, groups, pack, parts_of, unpack
from echolearn.states.run import States, free_run, run

Array = NDArray[Any]

FRAMES = 8192  # frames worked on at once in a pass over the data,
NUMBERS = 2**25  # fewer in large networks: at most so many numbers in the states of one batch


def at_once(N: int) -> int:
    """Frames to work on at once; one thread holds their states."""
    return max(1, min(FRAMES, NUMBERS // N))


@dataclass(frozen=True)
class Task:
    """Which frames carry targets and what the readout sees."""

    washout: int = 0
    direct: bool = True
    pooling: Pooling | None = None
    lookback: int | None = None
    targets: str = "all"

    def select(self, batch: Batch) -> Selection:
        return Selection(
            batch, washout=self.washout, targets=self.targets, lookback=self.lookback, pooling=self.pooling
        )

    def readout_view(self) -> Task:
        """The final readout is fitted on every frame after the washout."""
        return Task(self.washout, self.direct, self.pooling)

    def rows(self, reservoir: Reservoir) -> int:
        """M: those of U."""
        return parts_of(self.pooling) * (reservoir.N + self.direct * reservoir.n_in) + 1


def observed(reservoir: Reservoir, task: Task, batch: Batch) -> tuple[Array, Array, States, Selection]:
    """H_c and T at the frames that carry targets, with what the way back needs."""
    states = run(reservoir, batch)
    select = task.select(batch)
    return *_selected(reservoir, task, batch, states.H, select), states, select


def _selected(reservoir: Reservoir, task: Task, batch: Batch, H: Array, select: Selection) -> tuple[Array, Array]:
    assert batch.T is not None
    H = select.take(H, reservoir.backward)
    H_c = readout.stack(H, select.take(batch.X), direct=task.direct, intercept=True)
    return H_c, batch.T if task.pooling else select.take(batch.T)


def in_one_piece(reservoir: Reservoir, task: Task) -> bool:
    """Whether frames ask for others, outputs are fed back, or units begin at the end."""
    asking = task.pooling is not None or task.targets == "last"
    return asking or reservoir.W_fb is not None or reservoir.backward is not None


def stretches(reservoir: Reservoir, task: Task, lengths: Array) -> list[slice]:
    """The steps of a group of sequences: all at once, or for a single long sequence piece by piece, where no frame
    asks for what is in another piece. Each piece starts in the state in which the one before ended."""
    frames = at_once(reservoir.N)
    if in_one_piece(reservoir, task) or len(lengths) > 1:
        return [slice(None)]
    return [slice(start, start + frames) for start in range(0, lengths[0], frames)]


def streamed(reservoir: Reservoir, task: Task, batch: Batch) -> Iterator[tuple[Array, Array, Array]]:
    """H, X and T at the frames that carry targets, a stretch of time after another: of a large network's states
    there are never more than `at_once`. All together where time must not be cut."""
    if in_one_piece(reservoir, task):
        H, select = run(reservoir, batch, keep_F=False).H, task.select(batch)
        assert batch.T is not None
        yield (
            select.take(H, reservoir.backward),
            select.take(batch.X),
            batch.T if task.pooling else select.take(batch.T),
        )
        return
    steps = max(1, at_once(reservoir.N) // len(batch.lengths))
    begins = [0] * (task.washout > 0) + list(range(task.washout, len(batch.active), steps))
    h0 = None
    for begin, end in zip(begins, [*begins[1:], len(batch.active)], strict=True):
        part = batch.stretch(begin, end)
        H = run(reservoir, part, h0, keep_F=False).H
        if begin >= task.washout:
            assert part.T is not None
            yield H, part.X, part.T
        if end < len(batch.active):
            h0 = H[part.offsets[-1] :][: batch.active[end]].copy()


def _seen(reservoir: Reservoir, data: Data, task: Task, which: Array) -> Iterator[tuple[Array, Array]]:
    """H_c and T of a group of sequences, stretch by stretch."""
    h0 = None
    for steps in stretches(reservoir, task, np.array([len(data.X[i]) for i in which])):
        batch = data.batch(which, steps)
        now = replace(task, washout=max(0, task.washout - (steps.start or 0)))
        H = run(reservoir, batch, h0, keep_F=False).H
        yield _selected(reservoir, now, batch, H, now.select(batch))
        h0 = H[-1:].copy()  # a view would keep all of H


def collect(reservoir: Reservoir, data: Data, task: Task, mu: float = 0.0) -> Sums:
    """G and Q over all the data, one pass, one batch of states at a time. mu: the ridge, where it is known: a large one
    allows for products in the states' own precision."""
    M = task.rows(reservoir)
    lengths, frames = data.lengths, at_once(reservoir.N)
    n = int(lengths.sum())

    def part(data: Data, which: Array) -> Sums:
        parts = (
            readout.sums(H_c, T, data.n_out, readout.sample_precision(H_c, n, mu))
            for H_c, T in _seen(reservoir, data, task, which)
        )
        s = next(parts)
        for more in parts:
            s += more
        return s

    if M <= readout.WIDE:
        result: Sums = data.total(part, groups(lengths, frames))
        return result
    if data.where is not HERE:
        return _collect_afar(reservoir, data, task, M, mu)
    result = Sums.zeros(M, data.n_out)
    order = np.argsort(-lengths, kind="stable")
    long = sum(len(stretches(reservoir, task, lengths[[i]])) > 1 for i in order)
    for i in order[:long]:
        for H_c, T in _seen(reservoir, data, task, np.array([i])):
            readout.add(result, H_c, T, readout.sample_precision(H_c, n, mu))
    for H_c, T in data.each(
        lambda data, which: next(_seen(reservoir, data, task, which)), groups(lengths, frames, order[long:])
    ):
        readout.add(result, H_c, T, readout.sample_precision(H_c, n, mu))
    readout.mirror(result.G)
    return result


def _collect_afar(reservoir: Reservoir, data: Data, task: Task, M: int, mu: float) -> Sums:
    """`collect` of wide H_c on a cluster: a G for each group of sequences, where they are."""
    n = int(data.lengths.sum())

    def part(data: Data, which: Array) -> Sums:
        s = Sums.zeros(M, data.n_out)
        for H_c, T in _seen(reservoir, data, task, which):
            readout.add(s, H_c, T, readout.sample_precision(H_c, n, mu))
        return s

    result: Sums = data.total(part, groups(data.lengths, at_once(reservoir.N)))
    readout.mirror(result.G)
    return result


@dataclass(eq=False)
class Slope:
    """What one pass gives: the gradients, ||R||², and (Case 1) the sums met on the way. Additive."""

    gradients: Gradients
    squared: float
    sums: Sums | None = None

    def __iadd__(self, other: Slope) -> Slope:
        self.gradients += other.gradients
        self.squared += other.squared
        if self.sums is not None and other.sums is not None:
            self.sums += other.sums
        return self


def slope(
    reservoir: Reservoir,
    task: Task,
    gradient: str,
    U: Array,
    batch: Batch,
    seen: Any,
    with_sums: bool = False,
) -> Slope:
    """The gradient of one batch's share of E at a given U; `seen` is what `observed` returned."""
    H_c, T, states, select = seen
    U = U.astype(H_c.dtype)
    R = readout.residual(H_c @ U, T)
    dE_dH = select.put(error_wrt_states(R, U[: select.parts * reservoir.N]), reservoir.backward)
    back = select_gradient(gradient)
    gradients = back(reservoir, batch, states, dE_dH, lookback=task.lookback, washout=task.washout)
    squared = float(np.vdot(R, R))
    return Slope(gradients, squared, readout.sums(H_c, T, U.shape[1]) if with_sums else None)


def outputs(reservoir: Reservoir, data: Data, task: Task, U: Array, fed_back: Callable[[Array], Array]) -> list[Array]:
    """H_c U, one array a sequence: (steps, n_out), or (1, n_out) where sequences are pooled. Targets are not asked for.

    fed_back: as for `states.free_run`.
    """
    U = U.astype(data.dtype)

    def part(data: Data, which: Array) -> list[Array]:
        h0, Y = None, []
        for steps in stretches(reservoir, task, data.lengths[which]):
            batch = pack([data.X[i][steps] for i in which], data.dtype)
            if reservoir.W_fb is not None:
                return unpack(batch, free_run(reservoir, batch, U, task.direct, fed_back))
            H, X = run(reservoir, batch, h0, keep_F=False).H, batch.X
            if task.pooling:
                select = task.select(batch)
                H, X = select.take(H, reservoir.backward), select.take(X)
            Y.append(readout.outputs(H, X if task.direct else X[:, :0], U))
            if task.pooling:
                return list(Y[0][np.argsort(batch.order)][:, None])
            h0 = H[-1:].copy()
        return unpack(batch, Y[0]) if len(which) > 1 else [np.concatenate(Y)]

    result: list[Array] = [U[:0]] * len(data.X)
    items = list(groups(data.lengths, at_once(reservoir.N)))
    for which, Y in zip(items, data.each(part, items), strict=True):
        for i, y in zip(which, Y, strict=True):
            result[i] = y
    return result
