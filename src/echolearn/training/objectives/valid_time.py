"""Errors of one step and of several closed-loop steps as functions of the weights, and the valid time that decides.

The readout is solved by orthogonal factors (`readout.orthogonal`), which also gives gradients near the precision of
float64. Which weights and which ridge are kept is decided by forecasts: closed loops from several steps of the held-out
end of each series, and how long they stay with it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echolearn.gradients.closed_loop import Series, factored, one_step, several_steps
from echolearn.metrics._forecast_errors import VALID_ERROR, step_errors
from echolearn.reservoir import Reservoir
from echolearn.states.closed_loop import loop_outputs
from echolearn.states.run import run
from echolearn.training.optimizers import LearnedWeights, ValueAndGradient, Weights, finite_norms, with_learned
from echolearn.validation import Array

LOOP_STARTS = 20  # closed loops by which weights and ridges are chosen
MIN_ERROR = 1e-16  # errors below count as this one: float64 has no smaller ones

Score = tuple[float, float]  # the mean valid time in steps, then minus the mean logarithm of the error: compare as is


def loop_objective(learned: LearnedWeights, series: list[Series], mu: float, k: int) -> ValueAndGradient:
    """Return the function from learned weights to the error of k closed-loop steps and its gradient.

    k = 1: E of the paper, every step of every series. k > 1: loops of k steps, started every k steps.
    """
    start = learned.reservoir

    def value_and_gradient(weights: Weights) -> tuple[float, Weights]:
        reservoir = with_learned(start, weights)
        value, gradients = one_step(reservoir, series, mu) if k == 1 else several_steps(reservoir, series, mu, k)
        learned.reservoir = reservoir  # by_weight needs its leaks
        found = learned.by_weight(gradients)
        finite_norms(found, value)
        return value, found

    return value_and_gradient


@dataclass(frozen=True, eq=False)
class HeldOutLoops:
    """Whole series, and the steps of each from which closed loops are started that run to its end."""

    series: list[Series]
    starts: list[Array]

    @classmethod
    def of(cls, series: list[Series], begin: list[int]) -> HeldOutLoops:
        """Spread `STARTS` loops over the first halves of the held-out ends, which begin at these steps."""
        lengths = np.array([s.steps for s in series]) - begin
        share = np.maximum(1, np.round(LOOP_STARTS * lengths / lengths.sum())).astype(int)
        starts = [
            np.unique(b + np.linspace(0, n // 2, count, endpoint=False).astype(int))
            for b, n, count in zip(begin, lengths, share, strict=True)
        ]
        return cls(series, [np.maximum(at, 1) for at in starts])

    def states(self, reservoir: Reservoir) -> list[Array]:
        """Return the states of a reservoir before the steps at which loops start."""
        return [s.rows(run(reservoir, s.batch).H, at - 1) for s, at in zip(self.series, self.starts, strict=True)]

    def score(self, reservoir: Reservoir, U: Array, states: list[Array] | None = None) -> Score:
        """Return the mean valid time of the loops, and minus the mean of the logarithm of their errors."""
        steps, logs = [], []
        for s, at, h in zip(self.series, self.starts, states or self.states(reservoir), strict=True):
            valid, log = _follow(reservoir, U, s, at, h)
            steps.append(valid)
            logs.append(log)
        return float(np.concatenate(steps).mean()), -float(np.concatenate(logs).mean())


def _follow(reservoir: Reservoir, U: Array, s: Series, at: Array, h: Array) -> tuple[Array, Array]:
    """Return the valid steps (B,) of loops to the end of a series, and the mean logarithm of their errors (B,).

    Once a loop has left the series its error counts as 1; when all have, nothing more is computed.
    """
    left, T, ring = s.steps - at, s.values, s.ring
    rows = np.minimum(at + np.arange(left.max())[:, None], s.steps - 1)
    width = ring.columns.shape[1]
    E = s.X.reshape(s.steps, s.blocks, -1)[:, 0, width:][rows]
    valid, logs, alive = np.zeros(len(at), int), np.zeros(len(at)), np.ones(len(at), bool)
    outputs = loop_outputs(reservoir, U, s.direct, h, ring.own(s.rows(s.X, at)[:, :width]), E=E)
    for t, y in enumerate(outputs):
        errors = step_errors(T[rows[t]], y, np.ones(T.shape[1]))
        alive &= (errors < VALID_ERROR) & (t < left)
        valid += alive
        logs += np.where(alive, np.log10(np.clip(errors, MIN_ERROR, 1.0)), 0.0)
        if not alive.any():
            break
    return valid, logs / left


def best_ridge(
    reservoir: Reservoir, series: list[Series], ridges: Array, loops: HeldOutLoops | None
) -> tuple[Score, float]:
    """Return the best score over ridges, in units of the mean square of the states, and its ridge.

    Without held-out loops the score is minus the generalised cross-validation error.
    """
    factors = factored(series, [run(reservoir, s.batch).H for s in series])
    states = None if loops is None else loops.states(reservoir)
    found = []
    for ridge in ridges:
        mu = float(ridge) * factors.square
        if loops is None:
            found.append(((-factors.cross_validation(mu), 0.0), float(ridge)))
        else:
            found.append((loops.score(reservoir, factors.readout(mu), states), float(ridge)))
    return max(found, key=lambda one: one[0])
