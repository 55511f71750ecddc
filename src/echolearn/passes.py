"""Passes over the data: what the readout sees of a batch, sums over all batches, a batch's share of the gradient."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn import readout
from echolearn.engine import total
from echolearn.gradients import Gradients, error_wrt_states, select_gradient
from echolearn.readout import Sums
from echolearn.reservoir import Reservoir
from echolearn.sequences import Batch, Data, Pooling, Selection, groups
from echolearn.states import States, run

Array = NDArray[Any]

FRAMES = 4096  # frames worked on at once in a pass over the data (never less than one sequence)


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


def observed(reservoir: Reservoir, task: Task, batch: Batch) -> tuple[Array, Array, States, Selection]:
    """H_c and T at the frames that carry targets, with what the way back needs."""
    assert batch.T is not None
    states = run(reservoir, batch)
    select = task.select(batch)
    H_c = readout.stack(select.take(states.H), select.take(batch.X), direct=task.direct, intercept=True)
    T = batch.T if task.pooling else select.take(batch.T)
    return H_c, T, states, select


def collect(reservoir: Reservoir, data: Data, task: Task) -> Sums:
    """G and Q over all the data, one pass, one batch of states at a time."""

    def part(which: Array) -> Sums:
        H_c, T, _, _ = observed(reservoir, task, data.batch(which))
        return readout.sums(H_c, T, data.n_out)

    result: Sums = total(part, groups(data.lengths, FRAMES))
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
    dE_dH = select.put(error_wrt_states(R, U[: select.parts * reservoir.N]))
    back = select_gradient(gradient)
    gradients = back(reservoir, batch, states, dE_dH, lookback=task.lookback, washout=task.washout)
    squared = float(np.vdot(R, R))
    return Slope(gradients, squared, readout.sums(H_c, T, U.shape[1]) if with_sums else None)
