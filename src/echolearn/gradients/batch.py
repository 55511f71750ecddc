"""The share of one batch in the gradient, at a given readout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echolearn.gradients import as_printed, exact
from echolearn.gradients.exact import Gradients, error_wrt_states
from echolearn.readout.network import apply_readout
from echolearn.readout.statistics import Statistics, residual, statistics_of, weighted
from echolearn.readout.view import Observation, Task
from echolearn.reservoir import Reservoir
from echolearn.validation import Array


@dataclass(eq=False)
class BatchGradient:
    """The gradients of a batch, its Σ w ||r||² and, where they are needed, its statistics. Batches can be added."""

    gradients: Gradients
    squared: float
    statistics: Statistics | None = None

    def __iadd__(self, other: BatchGradient) -> BatchGradient:
        self.gradients += other.gradients
        self.squared += other.squared
        if self.statistics is not None and other.statistics is not None:
            self.statistics += other.statistics
        return self


def batch_gradient(
    reservoir: Reservoir, task: Task, gradient: str, U: Array, seen: Observation, *, with_statistics: bool = False
) -> BatchGradient:
    """Return the share of one batch in the gradient of E at U."""
    U = U.astype(seen.H.dtype)
    R = residual(apply_readout(seen.H, seen.X, U), seen.T)
    weighted_R = weighted(R, seen.w)
    gradients = through_states(reservoir, task, gradient, seen, error_wrt_states(weighted_R, U[: seen.H.shape[1]]))
    statistics = statistics_of(seen.H_c, seen.T, U.shape[1], w=seen.w) if with_statistics else None
    return BatchGradient(gradients, float(np.vdot(R, weighted_R)), statistics)


def through_states(reservoir: Reservoir, task: Task, gradient: str, seen: Observation, dE_dH: Array) -> Gradients:
    """Return the gradients for a dE/dH at the frames that carry targets, exact or by the formulas as printed."""
    dE_dH = seen.selection.put(dE_dH)
    through_time = exact.through_time if gradient == "exact" else as_printed.through_time
    return through_time(reservoir, seen.batch, seen.states, dE_dH, lookback=task.lookback, washout=task.washout)
