"""The answers of a network to data that its readout has not seen, compared with trivial answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from echolearn.readout.network import Loss, sum_of_errors
from echolearn.validation import Array

MOST_STEPS = 20  # by which a prediction may lag, or a target be ahead of an input
RESEMBLES = 0.99  # correlation from which on a target is a later value of an input
MOST_PAIRS = 400  # of a target and an input that are compared
NEARLY_PERFECT = 1e-3  # error, in units of that of the trivial answer, below which a result needs no comment
LEAST_ROWS = 50  # by which a lag is judged
ALIKE = 0.3  # error, in units of the trivial one, of predictions that resemble earlier targets
LAGGING = 0.5  # a prediction lags if this share of its error goes away when it is moved to earlier steps


@dataclass(frozen=True, eq=False)
class Outcome:
    """Inputs, encoded targets, outputs and weights of sequences, one array per sequence and one row per target.

    With one target per step a sequence has a row for every step; steps without a target have weight 0. With one target
    per sequence each array has one row, and there are no inputs.
    """

    inputs: Sequence[Array]
    targets: Sequence[Array]
    outputs: Sequence[Array]
    weights: Sequence[Array]
    per_step: bool

    def rows(self) -> tuple[Array, Array, Array]:
        """Return the outputs, the targets and the weights of all targets that count."""
        w = np.concatenate(self.weights)
        there = w > 0
        return np.concatenate(self.outputs)[there], np.concatenate(self.targets)[there], w[there]

    @property
    def count(self) -> float:
        """The number of targets that count; where weights differ, of as many equal ones as tell as much."""
        return effective_count(np.concatenate(self.weights))

    def error(self, loss: Loss) -> float:
        """Return the mean error per target."""
        Y, T, w = self.rows()
        total, n = sum_of_errors(loss, Y, T, w)
        return total / n

    def trivial_error(self, loss: Loss) -> float:
        """Return the mean error per target of the best answer that is always the same."""
        Y, T, w = self.rows()
        constant = np.broadcast_to(usual_target(T, w, Y.shape[1]), Y.shape)
        total, n = sum_of_errors(loss, constant, T, w)
        return total / n


def effective_count(w: Array) -> float:
    """Return how many targets of equal weight tell as much as targets of these weights."""
    return float(w.sum() ** 2 / max(float((w * w).sum()), 1e-300))


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the sequences of several outcomes as one."""
    return Outcome(
        [x for one in outcomes for x in one.inputs],
        [T for one in outcomes for T in one.targets],
        [Y for one in outcomes for Y in one.outputs],
        [w for one in outcomes for w in one.weights],
        outcomes[0].per_step,
    )


def usual_target(T: Array, w: Array, n_out: int) -> Array:
    """Return the mean (n_out,) of targets: of class numbers, the share of each class."""
    if T.ndim == 1:
        return np.asarray(np.bincount(T, w, n_out) / w.sum())
    return np.asarray(w @ T.astype(np.float64) / w.sum())


def _shifted(first: Sequence[Array], second: Sequence[Array], steps: int) -> tuple[Array, Array]:
    """Return the rows of `first` without the last steps of each sequence, beside those of `second` so much later."""
    pairs = [(a[: len(a) - steps], b[steps:]) for a, b in zip(first, second, strict=True) if len(a) > steps]
    if not pairs:
        return first[0][:0], second[0][:0]
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def last_value_error(outcome: Outcome) -> float | None:
    """Return the mean squared error of answering with the present value of the input whose later values are the target.

    None if the targets (one row of values per step) are not all later values of inputs.
    """
    n_out, n_in = outcome.targets[0].shape[1], outcome.inputs[0].shape[1]
    if n_out * n_in > MOST_PAIRS:
        return None
    ahead = [_input_ahead(outcome, j) for j in range(n_out)]
    errors = []
    for j, found in enumerate(ahead):
        if found is None:
            return None
        i, slope, offset = found
        T, w = (np.concatenate([t[:, j] for t in outcome.targets]), np.concatenate(outcome.weights))
        x = np.concatenate([x[:, i] for x in outcome.inputs])
        there = w > 0
        errors.append(float(np.average((slope * x[there] + offset - T[there]) ** 2, weights=w[there])))
    return float(np.mean(errors))


def _input_ahead(outcome: Outcome, j: int) -> tuple[int, float, float] | None:
    """Return (i, slope, offset) if target j is slope times an input i of up to MOST_STEPS steps later, plus offset."""
    target = [t[:, j] for t in outcome.targets]
    for steps in range(1, MOST_STEPS + 1):
        w, _ = _shifted(outcome.weights, outcome.inputs, steps)
        T, X = _shifted(target, outcome.inputs, steps)
        T, X = T[w > 0].astype(np.float64), X[w > 0].astype(np.float64)
        if len(T) < 2:
            return None
        x, t = X - X.mean(axis=0), T - T.mean()
        with np.errstate(divide="ignore", invalid="ignore"):
            alike = np.nan_to_num(np.abs(x.T @ t) / np.sqrt((x * x).sum(axis=0) * (t @ t)))
        i = int(np.argmax(alike))
        if alike[i] > RESEMBLES:
            slope = float(x[:, i] @ t / (x[:, i] @ x[:, i]))
            # A slow series resembles itself at any lag: only the one that is right has no error left.
            if _is_best_lead(target, outcome, i, steps):
                return i, slope, float(T.mean() - slope * X[:, i].mean())
    return None


def _is_best_lead(target: Sequence[Array], outcome: Outcome, i: int, steps: int) -> bool:
    """Return whether input i is more like the target after these steps than now, where it is known already."""
    w, T = np.concatenate(outcome.weights), np.concatenate(target)
    x = np.concatenate([x[:, i] for x in outcome.inputs])
    now = _correlation(x[w > 0], T[w > 0])
    ahead = _correlation(*_counted(target, [x[:, i] for x in outcome.inputs], outcome.weights, steps))
    return abs(ahead) > abs(now)


def _counted(first: Sequence[Array], second: Sequence[Array], w: Sequence[Array], steps: int) -> tuple[Array, Array]:
    """Return `_shifted` rows whose first row counts."""
    a, b = _shifted(first, second, steps)
    there = _shifted(w, second, steps)[0] > 0
    return a[there], b[there]


def _correlation(a: Array, b: Array) -> float:
    """Return the correlation of two columns; 0 if one is constant."""
    a, b = a - a.mean(dtype=np.float64), b - b.mean(dtype=np.float64)
    return float(a @ b / max(float(np.sqrt((a @ a) * (b @ b))), 1e-300))


def lag(outcome: Outcome) -> tuple[int, float, float]:
    """Return by how many steps outputs come after the values they resemble most, and the errors then and without lag.

    The targets are rows of values, one per step. Errors are mean squared ones over the same steps.
    """
    errors: list[float] = []
    enough = max(LEAST_ROWS, int((np.concatenate(outcome.weights) > 0).sum()) // 2)
    for steps in range(MOST_STEPS + 1):
        T, Y = _shifted(outcome.targets, outcome.outputs, steps)
        before, after = _shifted(outcome.weights, outcome.weights, steps)
        there = (before > 0) & (after > 0)
        if errors and there.sum() < enough:
            break
        errors.append(float(((Y[there].astype(np.float64) - T[there]) ** 2).mean()))
    best = int(np.argmin(errors))
    return best, errors[best], errors[0]


def lags(found: tuple[int, float, float], trivial: float) -> bool:
    """Return whether a `lag` is a clear one, of predictions that are not nearly perfect anyway."""
    steps, error, without = found
    moved = 0 < steps < MOST_STEPS and error < min(LAGGING * without, ALIKE * trivial)
    return moved and without > NEARLY_PERFECT * trivial


def errors_by_step(outcome: Outcome) -> Iterator[Array]:
    """Yield the weighted squared error (steps,) of each sequence, 0 where there is no target."""
    for T, Y, w in zip(outcome.targets, outcome.outputs, outcome.weights, strict=True):
        squares = ((Y.astype(np.float64) - np.where(w[:, None] > 0, T, 0)) ** 2).sum(axis=1)
        yield np.where(w > 0, w * squares, 0.0)
