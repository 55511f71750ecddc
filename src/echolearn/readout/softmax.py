"""The softmax readout: multinomial logistic regression on the states, warm-started from a ridge U.

Minimises  -1/n Σ log softmax(H_c V)[label] + strength/2 ||V||²  (without V's intercept) by mini-batches over streamed
states.

The steps are preconditioned by the Gram matrix that the ridge readout has collected anyway: the Hessian in V is
at most H_c'H_c / 2n for each class (Böhning), so directions that differ by their scale in H_c are evened out, and
two or three passes over the data come as far as dozens of plain ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from echolearn.execution.threads import total
from echolearn.readout import collect as passes
from echolearn.readout.conjugate_gradients import Operator, Sketch
from echolearn.readout.statistics import Sums, residual, solve, squares
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Data, groups

Array = NDArray[Any]

# Penalties to choose from, strongest first, in units of the mean variance of H_c's columns over the number of frames: a
# penalty of c weighs as much as c frames do.
STRENGTHS = (30.0, 10.0, 3.0, 1.0, 0.3, 0.1)
FRAMES = 2048  # a mini-batch
MOMENTUM = 0.9
RATE = 4.0
PASSES = 1  # over the data, for each strength
LEAST_STEPS = 100  # for each strength: little data is passed over more often
WARM = 8.0  # U predicts targets of 0 and 1; logits of frames need to spread more


def refit(
    reservoir: Reservoir,
    data: Data,
    task: passes.Task,
    s: Sums | Sketch,
    *,
    held_out: Data | None,
    rng: np.random.Generator,
    strengths: Sequence[float] = STRENGTHS,
    U: Array | None = None,
) -> tuple[Array, float]:
    """V (M, n_out) and the strength chosen. s: the sums of `data`, or (large networks) a sketch of them with the ridge
    readout U.

    Strengths are tried from strong to weak, each from where the one before ended, until the held-out cross
    entropy rises.
    """
    scale = (s.square if isinstance(s, Sketch) else float(squares(s).mean())) / s.n**2
    if held_out is None:
        strength = scale  # nothing to choose by: as if one frame more had been seen
        return descend(reservoir, data, task, s, warm_start(s, strength, U), strength, rng), strength
    V = warm_start(s, strengths[0] * scale, U)
    best, best_score, best_strength = V, np.inf, strengths[0] * scale
    for strength in strengths:
        V = descend(reservoir, data, task, s, V, strength * scale, rng)
        score = cross_entropy(reservoir, held_out, task, V)
        if not score < best_score:
            break
        best, best_score, best_strength = V, score, strength * scale
    return best, best_strength


def warm_start(s: Sums | Sketch, strength: float, U: Array | None) -> Array:
    """The ridge solution of the same penalty, spread to logits; from a sketch none can be solved, and U stands in."""
    if isinstance(s, Sketch):
        assert U is not None
        return WARM * U
    return WARM * solve(s, strength * s.n, intercept=True)


def penalty(M: int, strength: float, dtype: Any) -> Array:
    """strength for each row of V (M, 1); the intercept goes free."""
    column = np.full((M, 1), strength, dtype)
    column[-1] = 0
    return column


def preconditioner(s: Sums | Sketch, strength: float, dtype: Any) -> Operator:
    """R -> (G/n + strength I)^-1 R, the intercept free."""
    if isinstance(s, Sketch):
        inverse, n = s.inverse(strength * s.n), s.n
        return lambda R: n * inverse(R)
    A = s.G / s.n
    more = strength + 1e-7 * float(squares(s).mean()) / s.n
    A.flat[:: len(A) + 1] += penalty(len(A), more, np.float64)[:, 0] + 1e-13 * float(np.trace(A))  # definite for sure
    P = linalg.cho_solve(linalg.cho_factor(A, lower=True), np.eye(len(A))).astype(dtype)
    return lambda R: np.asarray(P @ R)


def descend(
    reservoir: Reservoir,
    data: Data,
    task: passes.Task,
    s: Sums | Sketch,
    V: Array,
    strength: float,
    rng: np.random.Generator,
    *,
    rate: float = RATE,
) -> Array:
    """Preconditioned gradient descent with momentum, its rate falling linearly to nothing."""
    pull, inverse = penalty(len(V), strength, data.dtype), preconditioner(s, strength, data.dtype)
    V = V.astype(data.dtype)
    velocity = np.zeros_like(V)
    steps = max(LEAST_STEPS, int(PASSES * np.ceil(s.n / FRAMES)))
    for step, (H_c, labels) in enumerate(mini_batches(reservoir, data, task, rng, steps)):
        G = _gradient(V, H_c, labels)
        velocity = MOMENTUM * velocity + (1 - MOMENTUM) * inverse(G / len(labels) + pull * V)
        V = V - (rate * (1 - step / steps)) * velocity
    return V.astype(np.float64)


def _gradient(V: Array, H_c: Array, labels: Array) -> Array:
    """H_c'(softmax(H_c V) - T), on two cores."""

    def part(rows: slice) -> Array:
        return np.asarray(H_c[rows].T @ residual(probabilities(H_c[rows] @ V), labels[rows]))

    middle = len(labels) // 2
    return np.asarray(total(part, [slice(0, middle), slice(middle, None)]))


def mini_batches(
    reservoir: Reservoir, data: Data, task: passes.Task, rng: np.random.Generator, steps: int
) -> Iterator[tuple[Array, Array]]:
    """H_c and class numbers of about `FRAMES` frames, from sequences in random order, `steps` times."""

    def part(data: Data, which: Array) -> tuple[Array, Array]:
        H_c, T, _, _ = passes.observed(reservoir, task, data.batch(which))
        return H_c, T

    kept: list[tuple[Array, Array]] = []
    if task.pooling:  # a row a sequence is little to keep: the states are run once, not for every step
        H_parts, label_parts = zip(*data.each(part, groups(data.lengths, passes.FRAMES)), strict=True)
        kept = [(np.concatenate(H_parts), np.concatenate(label_parts))]
    while True:
        for H_c, labels in kept or data.each(part, groups(data.lengths, 4 * FRAMES, rng.permutation(len(data.X)))):
            order = rng.permutation(len(labels))
            pieces: Sequence[Array] = np.array_split(order, max(1, round(len(order) / FRAMES)))
            for rows in pieces:
                if steps == 0:
                    return
                steps -= 1
                yield H_c[rows], labels[rows]


def probabilities(logits: Array) -> Array:
    """softmax along the rows."""
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    return np.asarray(P)


def cross_entropy(reservoir: Reservoir, data: Data, task: passes.Task, V: Array) -> float:
    """-1/n Σ log softmax(H_c V)[label]."""

    def part(data: Data, which: Array) -> tuple[float, int]:
        H_c, T, _, _ = passes.observed(reservoir, task, data.batch(which))
        P = probabilities((H_c @ V.astype(H_c.dtype)).astype(np.float64))
        return -float(np.log(np.maximum(P[np.arange(len(T)), T], 1e-300)).sum()), len(T)

    parts = list(data.each(part, groups(data.lengths, passes.FRAMES)))
    return float(sum(e for e, _ in parts) / sum(n for _, n in parts))
