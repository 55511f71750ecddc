"""The epochs in which all layers of a stack learn together: mini-batches, running sums, Adam, the best epoch.

Each layer keeps its sums running as in `training`, and P = dE/dU of its readout with them; for all sequences in one batch
nothing is older than the weights, and the gradient is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn import joint, softmax, updates
from echolearn.joint import Layer, Slopes
from echolearn.readout import Sums
from echolearn.sequences import Batch, Data, dealt, shuffled
from echolearn.training import FALL, TURNOVER, History, running

Array = NDArray[Any]


@dataclass(frozen=True)
class Plan:
    """How the layers learn together; `learn` and `learn_leak` are of each layer."""

    sees: str
    learn: Sequence[str]
    learn_leak: Sequence[bool]
    step_size: float
    epochs: int
    batch_size: int | None


class Together:
    """The state of learning between epochs."""

    def __init__(self, layers: Sequence[Layer], data: Data, plan: Plan, rng: np.random.Generator):
        self.layers, self.data, self.plan, self.rng = list(layers), data, plan, rng
        self.sums: list[Sums | None] = [None] * len(layers)
        self.P: list[Array | None] = [None] * len(layers)
        self.readouts: list[Array] = []
        self.optimiser = updates.Adam()
        self.weights = {
            f"{i}/{name}": value
            for i, layer in enumerate(layers)
            if plan.learn[i] != "none"
            for name, value in updates.learned_weights(layer.reservoir, plan.learn[i], plan.learn_leak[i]).items()
        }
        self.V: Array | None = None

    def epoch(self, number: int) -> float:
        """One epoch; returns the mean error a target that was met on the way."""
        lengths = self.data.lengths
        batches = shuffled(lengths, self.plan.batch_size or len(lengths), self.rng)
        loss, n = 0.0, 0
        for i, which in enumerate(batches):
            fall = 1 - FALL * (number - 1 + i / len(batches)) / self.plan.epochs
            found = self._slopes(which, float(lengths[which].sum() / lengths.sum()))
            self._update(found, fall)
            loss, n = loss + found.loss, n + found.n
        return loss / n

    def _slopes(self, which: Array, share: float) -> Slopes:
        piles = [self.data.batch(pile) for pile in dealt(which, self.data.lengths, 2)]

        def remember(number: int, sums: Sums | None, P: Array | None) -> Any:
            if sums is not None:
                self.sums[number] = aged(self.sums[number], sums, share)
                return self.sums[number]
            before = self.P[number]
            self.P[number] = P / share if before is None else (1 - TURNOVER * share) * before + TURNOVER * P
            return self.P[number]

        targets = [targets_of(pile, self.data.per_step) for pile in piles]
        return joint.slopes(
            self.layers, self.plan.sees, piles, targets, self.data.n_out,
            remember=remember if share < 1 else None, V=self.V,
        )  # fmt: skip

    def _update(self, found: Slopes, fall: float) -> None:
        self.readouts = found.readouts
        g = {}
        for i, layer in enumerate(self.layers):
            own = {name.split("/")[1]: w for name, w in self.weights.items() if name.startswith(f"{i}/")}
            g |= {f"{i}/{k}": v for k, v in updates.gradients_of(own, found.gradients[i], layer.reservoir).items()}
        if not np.isfinite([found.loss, *updates.norms(g).values()]).all():
            raise FloatingPointError("the gradient is not finite")
        self.weights, self.optimiser = self.optimiser.step(self.weights, g, self.plan.step_size * fall)
        for i, layer in enumerate(self.layers):
            own = {name.split("/")[1]: w for name, w in self.weights.items() if name.startswith(f"{i}/")}
            if own:
                self.layers[i] = replace(layer, reservoir=updates.with_learned(layer.reservoir, own))


class Refining(Together):
    def start(self, V, s, strength, sums, rate=1.0):
        self.V = V.astype(self.data.dtype)
        self.velocity = np.zeros_like(self.V)
        self.penalty = softmax.penalty(len(V), strength, self.data.dtype)
        self.inverse = softmax.preconditioner(s, strength, self.data.dtype)
        self.sums = sums; self.rate=rate

    def _update(self, found, fall):
        super()._update(found, fall)
        dE_dV = found.dE_dV / np.asarray(found.n, self.V.dtype) + self.penalty * self.V
        self.velocity = softmax.MOMENTUM * self.velocity + (1 - softmax.MOMENTUM) * self.inverse(dE_dV)
        self.V = self.V - (self.rate * fall) * self.velocity


def aged(before: Sums | None, fresh: Sums, share: float) -> Sums:
    return fresh.scale(1 / share) if before is None else running(before, fresh, share)


def targets_of(batch: Batch, per_step: bool) -> tuple[Array, Array]:
    """Those of the layers below, which have one a step in any case, and those of the top layer."""
    assert batch.T is not None
    if per_step:
        return batch.T, batch.T
    return np.concatenate([batch.T[:live] for live in batch.active]), batch.T
