"""The answers of a network compared with trivial ones: a constant, the last value, what it answered before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from echolearn.fitting.codecs import TargetCodec
from echolearn.fitting.data import OpenedTargets
from echolearn.fitting.model import Prediction
from echolearn.readout.network import Loss, sum_of_errors
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.opening import Sequences
from echolearn.validation import Array

MAX_LAG_STEPS = 20  # by which a prediction may lag, or a target be ahead of an input
LEAD_CORRELATION = 0.99  # correlation from which on a target is a later value of an input
MAX_COMPARED_PAIRS = 400  # of a target and an input that are compared
NEGLIGIBLE_ERROR_SHARE = 1e-3  # error, in units of that of the trivial answer, below which a result needs no comment
MIN_LAG_ROWS = 50  # by which a lag is judged
LAGGED_ERROR_SHARE = 0.3  # error, in units of the trivial one, of predictions that resemble earlier targets
LAG_GAIN_SHARE = 0.5  # a prediction lags if this share of its error goes away when it is moved to earlier steps
COLD_START_STEP_SHARE = 0.1  # of the steps, the first ones, that may be a cold start
COLD_START_ERROR_SHARE = 0.5  # of the squared error that is too much for them
COLD_START_COVERAGE = 0.95  # the washout that is suggested covers this share of the error of these steps
MIN_COLD_START_STEPS = 5  # steps, fewer than which are no cold start


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
    if n_out * n_in > MAX_COMPARED_PAIRS:
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
    """Return (i, slope, offset) if target j is slope times a later value of input i, plus offset."""
    target = [t[:, j] for t in outcome.targets]
    for steps in range(1, MAX_LAG_STEPS + 1):
        w, _ = _shifted(outcome.weights, outcome.inputs, steps)
        T, X = _shifted(target, outcome.inputs, steps)
        T, X = T[w > 0].astype(np.float64), X[w > 0].astype(np.float64)
        if len(T) < 2:
            return None
        x, t = X - X.mean(axis=0), T - T.mean()
        with np.errstate(divide="ignore", invalid="ignore"):
            alike = np.nan_to_num(np.abs(x.T @ t) / np.sqrt((x * x).sum(axis=0) * (t @ t)))
        i = int(np.argmax(alike))
        if alike[i] > LEAD_CORRELATION:
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
    enough = max(MIN_LAG_ROWS, int((np.concatenate(outcome.weights) > 0).sum()) // 2)
    for steps in range(MAX_LAG_STEPS + 1):
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
    moved = 0 < steps < MAX_LAG_STEPS and error < min(LAG_GAIN_SHARE * without, LAGGED_ERROR_SHARE * trivial)
    return moved and without > NEGLIGIBLE_ERROR_SHARE * trivial


def errors_by_step(outcome: Outcome) -> Iterator[Array]:
    """Yield the weighted squared error (steps,) of each sequence, 0 where there is no target."""
    for T, Y, w in zip(outcome.targets, outcome.outputs, outcome.weights, strict=True):
        squares = ((Y.astype(np.float64) - np.where(w[:, None] > 0, T, 0)) ** 2).sum(axis=1)
        yield np.where(w > 0, w * squares, 0.0)


def cold_start(outcome: Outcome) -> tuple[int, float, float] | None:
    """Return how many first steps have most of the squared error, their share of it, and that of the steps.

    None if they have not, or if the error is small anyway. The outcome must be of values per step of sequences that
    start in the initial state, without the washout.
    """
    errors = list(errors_by_step(outcome))
    longest = int(np.median([len(e) for e in errors]) * COLD_START_STEP_SHARE)
    total = float(sum(e.sum() for e in errors))
    if longest < MIN_COLD_START_STEPS or not total > 0:
        return None
    first = np.sum([np.pad(e[:longest], (0, longest - min(longest, len(e)))) for e in errors], axis=0)
    steps = int(np.argmax(np.cumsum(first) > COLD_START_COVERAGE * np.sum(first))) + 1
    share = float(np.sum(first[:steps])) / total
    _, T, w = outcome.rows()
    variance = float(w @ ((T - usual_target(T, w, T.shape[1])) ** 2).sum(axis=1))
    if share < COLD_START_ERROR_SHARE or total < NEGLIGIBLE_ERROR_SHARE * variance:
        return None
    return steps, share, steps * len(errors) / sum(len(e) for e in errors)


@dataclass(frozen=True, eq=False)
class Labelled:
    """The outcome on given sequences.

    data: the inputs of the network; raw: the sequences as they came; cold: whether they start in the initial state;
    missing: how many targets are.
    """

    outcome: Outcome
    data: Dataset
    raw: Sequence[Array]
    cold: bool
    missing: int


def labelled(
    given: Sequences,
    targets: OpenedTargets,
    prediction: Prediction,
    outputs: Sequence[Array],
    *,
    codec: TargetCodec,
    skip: Array,
) -> Labelled:
    """Return the outcome; the first `skip` steps of each sequence do not count."""
    per_step = targets.per_step
    encoded = targets.encoded(codec)
    T = [np.asarray(t) if per_step else np.asarray(t)[None] for t in encoded]
    present = targets.present
    weights = [np.ones(len(t)) if present is None else np.ravel(present[i]).astype(float) for i, t in enumerate(T)]
    if per_step:
        for w, n in zip(weights, skip, strict=True):
            w[:n] = 0
        inputs = [np.asarray(x) for x in prediction.data.X]
    else:
        inputs = [np.empty((1, 0))] * len(T)
    missing = 0 if present is None else int(sum((~p).sum() for p in present))
    outcome = Outcome(inputs, T, list(outputs), weights, per_step)
    return Labelled(outcome, prediction.data, given.X, prediction.start is None, missing)
