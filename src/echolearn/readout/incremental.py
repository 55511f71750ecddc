"""Learning large networks: a U that follows the weights from mini-batch to mini-batch, without running sums.

The exact way (`training.Learner`) adds each mini-batch to G and solves for U again: M² a frame and M³ a batch. Here a
mini-batch moves U by a few conjugate gradients on its own states, in the metric of a sketch of G.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.execution.threads import each, threads
from echolearn.modelfile.checkpoint import filed, under
from echolearn.readout import collect as passes
from echolearn.readout import conjugate_gradients as iterative
from echolearn.readout.conjugate_gradients import Operator, dots, penalised, ratio
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Data

Array = NDArray[Any]

START = 100_000  # frames that the first U is found on
RENEWAL = 16  # mini-batches that a sketch serves while the weights change
ITERATIONS = 4  # of conjugate gradients a mini-batch


class Follower:
    """Keeps a sketch of G while the weights change; U is kept by the learner."""

    def __init__(self, data: Data, task: passes.Task, mu: float, turnover: float, rng: np.random.Generator):
        self.data, self.task, self.mu, self.turnover, self.rng = data, task, float(mu), turnover, rng
        self.n = float(iterative.rows(data, task).sum())

    def start(self, reservoir: Reservoir) -> Array:
        """A first U, from some of the data as if it were all."""
        part = iterative.some(self.data, self.task, START, self.rng)
        mu = self.mu * float(iterative.rows(part, self.task).sum()) / self.n
        return iterative.solve(reservoir, part, self.task, mu, self.rng).astype(self.data.dtype)

    def fitted(self, reservoir: Reservoir, task: passes.Task, U: Array | None) -> Array:
        """The U of all the data, by conjugate gradients from a given one."""
        return iterative.solve(reservoir, self.data, task, self.mu, self.rng, U)

    def begin(self, reservoir: Reservoir) -> None:
        """An epoch starts with a sketch of its own, so that nothing but U has to be kept between epochs."""
        self._renew(iterative.sample(reservoir, self.data, self.task, self.rng)[0])

    def _renew(self, H_c: Array) -> None:
        self.sketch = iterative.sketch(H_c, self.n)
        self.inverse = self.sketch.inverse(self.mu)
        self.recent: list[Array] = []

    def step(self, U: Array, piles: Sequence[tuple[Array, Array]], share: float) -> Array:
        """U after a mini-batch. Some of its rows are put by for the next sketch."""
        # share as a plain number: a NumPy one would turn all that follows into float64
        U = follow(U, piles, self.inverse, self.mu, float(share), self.turnover)
        for H_c, _ in piles:
            count = int(np.ceil(iterative.SAMPLE / RENEWAL / len(piles)))
            self.recent.append(H_c[self.rng.permutation(len(H_c))[:count]])
        if len(self.recent) >= RENEWAL * len(piles):
            self._renew(np.vstack(self.recent))
        return U

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """What a checkpoint inside an epoch keeps: the sketch, and the rows put by for the next."""
        arrays = {"V": self.sketch.V, "values": self.sketch.values, "mean": self.sketch.mean}
        if self.recent:
            arrays["recent"] = np.vstack(self.recent)
        facts = {name: getattr(self.sketch, name) for name in ("tail", "n", "square")}
        return filed("sketch", arrays), {**facts, "recent": [len(H_c) for H_c in self.recent]}

    def resume(self, tensors: dict[str, Array], facts: dict[str, Any]) -> None:
        arrays = under("sketch", tensors)
        V, values, mean = (arrays[name] for name in ("V", "values", "mean"))
        rows, counts = arrays.get("recent"), facts["recent"]
        if V.shape[1] != len(values) or sum(counts) != (0 if rows is None else len(rows)):
            raise ValueError(f"a sketch of {V.shape[1]} directions, {len(values)} values and rows {counts}")
        self.sketch = iterative.Sketch(V, values, float(facts["tail"]), mean, float(facts["n"]), float(facts["square"]))
        self.inverse = self.sketch.inverse(self.mu)
        self.recent = [] if rows is None else np.split(rows, np.cumsum(counts)[:-1])


def follow(
    U: Array,
    piles: Sequence[tuple[Array, Array]],
    inverse: Operator,
    mu: float,
    share: float,
    turnover: float,
    iterations: int = ITERATIONS,
) -> Array:
    """U after one more mini-batch of rows (H_c, T), without sums.

    Where U solves (G + mu I) U = Q, running sums (1 - τw) G + τ H_b'H_b (τ: turnover, w: the batch's share) would lead
    to U + C with

        (G + mu I + τ H_b'H_b) C = τ (H_b'(T_b - H_b U) - w mu U)              (τw beside 1 left out).

    A few conjugate gradients come close to C. Of G they need (G + mu I) D for D = inverse(R) only, which is R: the
    sketch behind `inverse` is all that must be known of it. Columns are independent: each core takes some.
    """

    def part(columns: Array) -> Array:
        T = [_columns_of(t, columns) for _, t in piles]
        return _follow(U[:, columns], [H_c for H_c, _ in piles], T, inverse, mu, share, turnover, iterations)

    return np.hstack(list(each(part, np.array_split(np.arange(U.shape[1]), min(threads(), U.shape[1])))))


def _follow(
    U: Array,
    H: Sequence[Array],
    T: Sequence[Array],
    inverse: Operator,
    mu: float,
    share: float,
    turnover: float,
    iterations: int,
) -> Array:
    R = -share * penalised(U, mu)
    for H_c, t in zip(H, T, strict=True):
        R += H_c.T @ (t - H_c @ U)
    R *= turnover
    U = U.copy()
    D = Z = inverse(R)
    B = R  # (G + mu I) D
    power = dots(R, Z)
    for count in range(1, iterations + 1):
        Y = [H_c @ D for H_c in H]
        alpha = ratio(power, dots(D, B) + turnover * sum(dots(y, y) for y in Y))
        U += alpha * D
        if count == iterations:
            break
        A = B.copy()
        for H_c, y in zip(H, Y, strict=True):
            A += H_c.T @ (turnover * y)
        R = R - alpha * A
        Z = inverse(R)
        before, power = power, dots(R, Z)
        beta = ratio(power, before)
        D, B = Z + beta * D, R + beta * B
    return U


def _columns_of(T: Array, columns: Array) -> Array:
    """These columns of T; class numbers stand for rows with a single 1."""
    return T[:, columns] if T.ndim == 2 else T[:, None] == columns
