"""The softmax readout of small data, by a second-order method over states that are kept.

It minimises

    E(V) = -1/n Σ w log softmax(H_c V)[label] + strength/2 ||V||²,      n = Σ w, the intercept not penalised.

With P = softmax(H_c V), its gradient and the product of its Hessian with a direction D are

    dE/dV = H_c' diag(w) (P - T) / n + strength V,
    (d²E/dV²) D = H_c' diag(w) (P * (Y - rowsum(P * Y))) / n + strength D,      Y = H_c D,

so that a step of Newton's method, solved by some conjugate gradients, never needs the Hessian itself. The Gram matrix
of the ridge readout preconditions them. Each step goes to where E has fallen enough along it; E is convex, so that the
method ends at the minimum from any start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echolearn.execution.threads import map_in_order, tree_sum
from echolearn.readout.large.sketch import Operator, Rows
from echolearn.readout.statistics import residual
from echolearn.validation import Array

MAX_NEWTON_STEPS = 12  # of Newton's method, at most; about five are usual
MAX_HESSIAN_PRODUCTS = 20  # with the Hessian in one step, at most
NEWTON_TOLERANCE = 1e-7  # a step that promises to lower E by less than this share of it is the last one,
NEGLIGIBLE_FALL = 1e-6  # and so is one that promises less than this: well-distinguished labels always lower E
FORCING_SHARE = 0.1  # conjugate gradients end when their residual has fallen to this share
ROWS_PER_BLOCK = 4096  # rows that one thread works on at once
SUFFICIENT_FALL_SHARE = 1e-4  # share of the promised fall that E must reach along a step
MIN_STEP_SHARE = 1e-4  # a step that must be shortened further than this is lost in rounding errors


class SoftmaxProblem:
    """E, its gradient and its Hessian, for rows that are kept; the sums are in float64."""

    def __init__(self, rows: Sequence[Rows], strength: float):
        self.blocks = [block for some in rows for block in _blocks(some)]
        self.n = float(sum(len(labels) if w is None else w.sum() for _, labels, w in self.blocks))
        self.strength = strength
        self.P: Sequence[Array] = ()  # the probabilities at the V of the last `value_and_gradient`

    def value(self, V: Array) -> float:
        """Return E."""
        losses = map_in_order(lambda block: _loss(block, _log_probabilities(block, V)), self.blocks)
        return float(tree_sum(losses)) / self.n + self._penalty(V)

    def value_and_gradient(self, V: Array) -> tuple[float, Array]:
        """Return E and dE/dV, and keep the probabilities at V for the products with the Hessian there."""

        def value_of_block(block: Rows) -> tuple[float, Array, Array]:
            logs = _log_probabilities(block, V)
            H_c, labels, w = block
            P = np.exp(logs)
            R = residual(P.copy(), labels)
            return _loss(block, logs), _weighted_product(H_c, R, w), P

        losses, gradients, self.P = zip(*map_in_order(value_of_block, self.blocks), strict=True)
        dE_dV = tree_sum(iter(gradients)) / self.n
        return float(tree_sum(iter(losses))) / self.n + self._penalty(V), dE_dV + self.strength * _penalised(V)

    def curvature(self, D: Array) -> Array:
        """Return the product of the Hessian with a direction D (M, n_out)."""

        def curvature_of_block(item: tuple[Rows, Array]) -> Array:
            (H_c, _, w), P = item
            Y = H_c @ D.astype(H_c.dtype)
            Y -= np.einsum("ij,ij->i", P, Y)[:, None]
            Y *= P
            return _weighted_product(H_c, Y, w)

        total = tree_sum(map_in_order(curvature_of_block, zip(self.blocks, self.P, strict=True)))
        return np.asarray(total / self.n + self.strength * _penalised(D))

    def _penalty(self, V: Array) -> float:
        return 0.5 * self.strength * float(np.vdot(V[:-1], V[:-1]))


def minimise(rows: Sequence[Rows], V: Array, strength: float, inverse: Operator) -> Array:
    """Return the V (M, n_out) that minimises E, started from V; inverse: R -> about (d²E/dV²)^-1 R."""
    problem, V = SoftmaxProblem(rows, strength), V.astype(np.float64)
    E, gradient = problem.value_and_gradient(V)
    for _ in range(MAX_NEWTON_STEPS):
        D = _newton_direction(problem, gradient, inverse)
        promised = -float(np.vdot(gradient, D))
        if not promised > max(NEWTON_TOLERANCE * E, NEGLIGIBLE_FALL):
            break
        size = _step_size(problem, V, D, E, promised)
        if size < MIN_STEP_SHARE:
            break
        V = V + size * D
        E, gradient = problem.value_and_gradient(V)
    return V


def _newton_direction(problem: SoftmaxProblem, gradient: Array, inverse: Operator) -> Array:
    """Return about -(d²E/dV²)^-1 dE/dV, by preconditioned conjugate gradients."""
    D, R = np.zeros_like(gradient), -gradient
    Z = inverse(R)
    S, power = Z, float(np.vdot(R, Z))
    first = power
    for _ in range(MAX_HESSIAN_PRODUCTS):
        A = problem.curvature(S)
        bend = float(np.vdot(S, A))
        if not bend > 0:  # only the direction that adds the same to all classes has none
            break
        D, R = D + power / bend * S, R - power / bend * A
        Z = inverse(R)
        before, power = power, float(np.vdot(R, Z))
        if not power > FORCING_SHARE**2 * first:
            break
        S = Z + power / before * S
    return D


def _step_size(problem: SoftmaxProblem, V: Array, D: Array, E: float, promised: float) -> float:
    """Return the largest of 1, 1/2, 1/4, ... with which E falls enough."""
    size = 1.0
    while size >= MIN_STEP_SHARE and not problem.value(V + size * D) <= E - SUFFICIENT_FALL_SHARE * size * promised:
        size /= 2
    return size


def _blocks(rows: Rows) -> list[Rows]:
    """Return rows in blocks of about `BLOCK`, which depend on their number alone."""
    H_c, labels, w = rows
    count = max(1, round(len(labels) / ROWS_PER_BLOCK))
    parts = [None] * count if w is None else np.array_split(w, count)
    return list(zip(np.array_split(H_c, count), np.array_split(labels, count), parts, strict=True))


def _log_probabilities(block: Rows, V: Array) -> Array:
    """Return log softmax(H_c V), in the precision of the states."""
    logits = block[0] @ V.astype(block[0].dtype)
    logits -= logits.max(axis=1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return np.asarray(logits)


def _loss(block: Rows, logs: Array) -> float:
    """Return -Σ w log P[label]."""
    _, labels, w = block
    found = logs[np.arange(len(labels)), labels]
    return -float(found.sum(dtype=np.float64) if w is None else found @ w)


def _weighted_product(H_c: Array, R: Array, w: Array | None) -> Array:
    """Return H_c' diag(w) R (M, n_out) in float64."""
    if w is not None:
        R = R * w[:, None].astype(R.dtype)
    return (H_c.T @ R).astype(np.float64)


def _penalised(V: Array) -> Array:
    """Return V with its intercept at zero."""
    out = V.copy()
    out[-1] = 0
    return out
