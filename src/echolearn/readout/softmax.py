"""The softmax readout: multinomial logistic regression on the states, started from a ridge readout.

It minimises  -1/n Σ log softmax(H_c V)[label] + strength/2 ||V||²  (the intercept is not penalised). Where targets have
weights w, the terms of the sum are multiplied by them, and n = Σ w. The states of small data are kept, and V is found
by a second-order method (`readout.newton`). Otherwise it descends by mini-batches over streamed states. Either way the
states stay where the data are, and so do the probabilities: on a cluster only V comes back.

These steps are preconditioned by the Gram matrix, which the ridge readout has collected anyway: for each class the
Hessian in V is at most H_c'H_c / 2n (Böhning, 1992), so that differences in scale between directions are evened out,
and two or three passes over the data achieve what takes dozens without preconditioning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from echolearn.execution.executor import Kept
from echolearn.execution.threads import map_and_sum
from echolearn.readout.large.sketch import Operator, Rows
from echolearn.readout.network import probabilities, sum_of_errors
from echolearn.readout.newton import minimise
from echolearn.readout.solver import RidgeFit
from echolearn.readout.statistics import residual, weighted
from echolearn.readout.view import MAX_FRAMES_PER_PASS, ReadoutView, frames_at_once, observe, stream_rows
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.validation import Array

DescentState = tuple[Array, Array, int]  # V, its velocity, and the number of steps taken

# Penalties to choose from, strongest first, in units of the mean variance of the columns of H_c divided by the number
# of frames: a penalty of c weighs as much as c frames.
SOFTMAX_STRENGTHS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
FRAMES_PER_BATCH = 2048  # per mini-batch
SOFTMAX_MOMENTUM = 0.9
LEARNING_RATE = 4.0
PASSES_PER_STRENGTH = 1  # passes over the data for each strength,
MIN_STEPS_PER_STRENGTH = 100  # or more of them, until so many steps have been taken
MAX_KEPT_NUMBERS = 2**24  # numbers of H_c up to which the states are kept,
MAX_KEPT_PRODUCTS = 2**27  # and numbers of H_c times classes: beyond, mini-batches take less time
LOGIT_SPREAD = 8.0  # factor from a ridge readout, which predicts 0 and 1, to logits, which must spread more


class PreconditionedMomentum:
    """Preconditioned gradient descent with momentum for a softmax readout V (M, n_out).

    Without momentum a step is V - rate (G/n + strength I)^-1 dE/dV; `inverse` is that preconditioner.
    """

    def __init__(self, V: Array, inverse: Operator, strength: float, dtype: DTypeLike):
        self.V = V.astype(dtype)
        self.velocity = np.zeros_like(self.V)
        self.inverse = inverse
        self.penalty = np.full((len(V), 1), strength, dtype)
        self.penalty[-1] = 0  # the intercept is not penalised

    def step(self, dE_dV: Array, rate: float) -> None:
        """Take one step; dE_dV: the mean of the gradient over frames, without that of the penalty."""
        towards = self.inverse(dE_dV + self.penalty * self.V)
        self.velocity = SOFTMAX_MOMENTUM * self.velocity + (1 - SOFTMAX_MOMENTUM) * towards
        self.V = self.V - rate * self.velocity


def fit_softmax(
    reservoir: Reservoir,
    data: Dataset,
    view: ReadoutView,
    fit: RidgeFit,
    *,
    held_out: Dataset | None,
    rng: np.random.Generator,
    strengths: Sequence[float] = SOFTMAX_STRENGTHS,
) -> tuple[Array, float]:
    """Return V (M, n_out), started from the ridge readout of `fit`, and the strength chosen for it.

    Strengths are tried from strong to weak, each from where the one before ended, until the cross entropy on the
    held-out data rises.
    """
    scale, kept = fit.square / fit.n**2, keep_rows(reservoir, data, view)
    if held_out is None:
        strength = scale  # without data to choose by: a penalty that weighs as much as one frame
        V = _start(fit, strength)
        return solve_softmax(reservoir, data, view, fit, V, strength=strength, rng=rng, kept=kept), strength
    V = _start(fit, strengths[0] * scale)
    best, best_score, best_strength = V, np.inf, strengths[0] * scale
    for strength in strengths:
        V = solve_softmax(reservoir, data, view, fit, V, strength=strength * scale, rng=rng, kept=kept)
        score = cross_entropy(reservoir, held_out, view, V)
        if not score < best_score:
            break
        best, best_score, best_strength = V, score, strength * scale
    return best, best_strength


def _start(fit: RidgeFit, strength: float) -> Array:
    """Return the ridge readout of the same penalty, scaled up to logits."""
    return LOGIT_SPREAD * fit.solve_again(strength * fit.n)


def keep_rows(reservoir: Reservoir, data: Dataset, view: ReadoutView) -> list[Kept]:
    """Keep a list of `Rows` of each part where the data are, if they are few enough; otherwise return nothing."""
    numbers = float(view.targets_per_sequence(data).sum()) * view.rows(reservoir)
    if numbers > MAX_KEPT_NUMBERS or numbers * data.n_out > MAX_KEPT_PRODUCTS:
        return []

    def rows_of_group(data: Dataset, which: Array) -> list[Rows]:
        return [rows for rows in stream_rows(reservoir, data, view, which) if len(rows[1])]

    return data.executor.keep(data, rows_of_group, group_sequences(data.lengths, frames_at_once(reservoir.N)))


def solve_softmax(
    reservoir: Reservoir,
    data: Dataset,
    view: ReadoutView,
    fit: RidgeFit,
    V: Array,
    *,
    strength: float,
    rng: np.random.Generator,
    rate: float = LEARNING_RATE,
    kept: list[Kept] | None = None,
) -> Array:
    """Return the V of one strength, started from V; kept: the result of `keep_rows`, if it is known."""
    kept = keep_rows(reservoir, data, view) if kept is None else kept
    if not kept:
        return descend(reservoir, data, view, fit, V, strength=strength, rng=rng, rate=rate)
    inverse = fit.preconditioner(strength, np.float64)

    def newton(kept: list[list[Rows]]) -> Array:
        return minimise([rows for some in kept for rows in some], V, strength, inverse)

    return data.executor.call_on_kept(newton, kept)


def descend(
    reservoir: Reservoir,
    data: Dataset,
    view: ReadoutView,
    fit: RidgeFit,
    V: Array,
    *,
    strength: float,
    rng: np.random.Generator,
    rate: float = LEARNING_RATE,
) -> Array:
    """Return V after preconditioned gradient descent with momentum, at a rate that falls linearly to 0.

    The states of some groups of sequences are computed ahead, while the steps on those before are taken in order; on a
    cluster the workers do both.
    """
    dtype, inverse, counts = data.dtype, fit.preconditioner(strength, data.dtype), view.targets_per_sequence(data)
    count = fit.n if data.weights is None else float(counts.sum())
    # The mean weight of a mini-batch is that of all targets in expectation: dividing by it gives no class an advantage.
    weight = 1.0 if data.weights is None else view.target_count(data) / count
    steps = max(MIN_STEPS_PER_STRENGTH, int(PASSES_PER_STRENGTH * np.ceil(count / FRAMES_PER_BATCH)))

    def advance(state: DescentState, minibatches: Iterable[Rows]) -> DescentState:
        V, velocity, step = state
        descent = PreconditionedMomentum(V, inverse, strength, dtype)
        descent.velocity = velocity
        for H_c, labels, w in minibatches:
            dE_dV = _gradient(descent.V, H_c, labels, w) / (weight * len(labels))
            descent.step(dE_dV, rate * (1 - step / steps))
            step += 1
        return descent.V, descent.velocity, step

    start = V.astype(dtype), np.zeros(V.shape, dtype), 0
    prepare = partial(observe_minibatches, reservoir, view)
    state = data.executor.fold(data, prepare, draw_minibatches(data.lengths, counts, rng, steps), advance, start)
    return state[0].astype(np.float64)


def _gradient(V: Array, H_c: Array, labels: Array, w: Array | None = None) -> Array:
    """Return H_c'diag(w)(softmax(H_c V) - T) (M, n_out), computed on two cores; w (K,): weights, None: 1."""

    def gradient_of_rows(rows: slice) -> Array:
        R = residual(probabilities(H_c[rows] @ V), labels[rows])
        return np.asarray(H_c[rows].T @ weighted(R, None if w is None else w[rows]))

    middle = len(labels) // 2
    return np.asarray(map_and_sum(gradient_of_rows, [slice(0, middle), slice(middle, None)]))


def draw_minibatches(
    lengths: Array, counts: Array, rng: np.random.Generator, steps: int
) -> Iterator[tuple[Array, list[Array]]]:
    """Yield groups of sequences, in random order, with the rows of H_c of each of their mini-batches, `steps` in all.

    counts: the number of rows of each sequence.
    """
    while True:
        for which in group_sequences(lengths, 4 * FRAMES_PER_BATCH, rng.permutation(len(lengths))):
            count = int(counts[which].sum())
            if count == 0:
                continue  # none of these sequences has a target
            rows = _split(rng.permutation(count))
            if steps == 0:
                return
            yield which, rows[:steps]
            steps -= min(steps, len(rows))


def _split(order: Array) -> list[Array]:
    """Return an order of rows in mini-batches of about `FRAMES`."""
    return np.array_split(order.astype(np.int32), max(1, round(len(order) / FRAMES_PER_BATCH)))


def observe_minibatches(
    reservoir: Reservoir, view: ReadoutView, data: Dataset, which: Array, rows: list[Array]
) -> list[Rows]:
    """Return the mini-batches of a group of sequences: H_c, class numbers and weights of these rows."""
    seen = observe(reservoir, view, data.batch(which))
    return [(seen.H_c[some], seen.T[some], None if seen.w is None else seen.w[some]) for some in rows]


def _joined(parts: Sequence[Array | None], like: Sequence[Array]) -> Array | None:
    """Return the weights of all parts, of which None stands for ones; None if all do."""
    if all(w is None for w in parts):
        return None
    return np.concatenate([np.ones(len(T)) if w is None else w for w, T in zip(parts, like, strict=True)])


def log_likelihood(P: Array, labels: Array) -> Array:
    """Return log P[label] (K,) for each row; a probability that has underflowed counts as 1e-300 (float32: 1e-30)."""
    least = 1e-300 if P.dtype == np.float64 else 1e-30
    return np.asarray(np.log(np.maximum(P[np.arange(len(labels)), labels], least)))


def entropy(P: Array, labels: Array, w: Array | None = None) -> float:
    """Return -Σ w log P[label] over the rows; w (K,): weights, None: 1."""
    found = log_likelihood(P, labels)
    return -float(found.sum(dtype=np.float64) if w is None else found @ w)


def cross_entropy(reservoir: Reservoir, data: Dataset, view: ReadoutView, V: Array) -> float:
    """Return the cross entropy per target, -1/n Σ w log softmax(H_c V)[label], n = Σ w."""

    def entropy_of_group(data: Dataset, which: Array) -> tuple[float, float]:
        seen = observe(reservoir, view, data.batch(which))
        P = probabilities((seen.H_c @ V.astype(seen.H_c.dtype)).astype(np.float64))
        return sum_of_errors(entropy, P, seen.T, seen.w)

    parts = list(data.map(entropy_of_group, group_sequences(data.lengths, MAX_FRAMES_PER_PASS)))
    return float(sum(e for e, _ in parts) / sum(n for _, n in parts))
