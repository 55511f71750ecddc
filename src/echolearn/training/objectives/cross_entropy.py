"""The last epochs of a classifier: every weight, its readout too, on the cross entropy.

    E = -1/n Σ log softmax(H_c V)[label] + strength/2 ||V||²

V takes the steps of `softmax.descend`, preconditioned by the Gram matrix, so that it stays close to the best one for
the states as they move. At the best one its own motion adds nothing to first order (as for U, see `gradients`), and

    dE/dH = (P - T) V_h' / n,        P = softmax(H_c V),

goes back through time as 2 R U_h' of the squared error does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.gradients.exact import Gradients, through_time
from echolearn.modelfile.checkpoint import Checkpoint, Midway, filed, shapes_of, under
from echolearn.readout import collect as passes
from echolearn.readout import softmax
from echolearn.readout.collect import Task
from echolearn.readout.conjugate_gradients import Sketch
from echolearn.readout.statistics import Sums, residual
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Batch, Data, dealt
from echolearn.training import optimizers as updates
from echolearn.training.loop import FALL, History, Plan, runs

Array = NDArray[Any]

STEP = 0.3  # of the step size of the epochs before
RATE = 1.0  # of V; `softmax.RATE` is for states that keep still


@dataclass(eq=False)
class Share:
    """What one part of a mini-batch adds: derivatives of -Σ log softmax(H_c V)[label], that sum, and its terms."""

    gradients: Gradients
    V: Array
    loss: float
    n: int

    def __iadd__(self, other: Share) -> Share:
        self.gradients += other.gradients
        self.V += other.V
        self.loss += other.loss
        self.n += other.n
        return self


def share(reservoir: Reservoir, task: Task, V: Array, batch: Batch) -> Share:
    """V in the precision of the states."""
    H_c, labels, states, select = passes.observed(reservoir, task, batch)
    P = softmax.probabilities(H_c @ V)
    rows = np.arange(len(labels))
    loss = -float(np.log(np.maximum(P[rows, labels], 1e-30)).sum(dtype=np.float64))
    R = residual(P, labels)
    dE_dH = select.put(R @ V[: select.parts * reservoir.N].T, reservoir.backward)
    gradients = through_time(reservoir, batch, states, dE_dH, lookback=task.lookback, washout=task.washout)
    return Share(gradients, H_c.T @ R, loss, len(labels))


class Refiner:
    """The state of refining. `pause` is called between mini-batches."""

    def __init__(
        self,
        reservoir: Reservoir,
        V: Array,
        data: Data,
        task: Task,
        s: Sums | Sketch,
        strength: float,
        plan: Plan,
        epochs: int,
        rng: np.random.Generator,
    ):
        self.reservoir, self.data, self.task, self.plan, self.epochs, self.rng = (
            reservoir,
            data,
            task,
            plan,
            epochs,
            rng,
        )
        self.V = V.astype(data.dtype)
        self.velocity = np.zeros_like(self.V)
        self.weights = updates.learned_weights(reservoir, plan.learn, plan.learn_leak)
        self.optimiser = updates.Adam()
        self.step_size = plan.step_size if plan.optimizer == "adam" else updates.default_step("adam", reservoir.N)
        self.penalty = softmax.penalty(len(V), strength, data.dtype)
        self.inverse = softmax.preconditioner(s, strength, data.dtype)
        self.midway: Midway | None = None
        self.pause: Callable[[], object] = lambda: None

    @property
    def _size(self) -> int:
        return self.plan.batch_size or len(self.data.lengths)

    def epoch(self, number: int) -> float:
        """One epoch, or what is left of it; returns the mean cross entropy met on the way."""
        lengths = self.data.lengths
        at = self.midway = self.midway or Midway.begun(lengths, self._size, self.rng)
        for i, which in list(enumerate(at.batches))[at.done :]:
            fall = 1 - FALL * (number - 1 + i / len(at.batches)) / self.epochs
            met = self._met(dealt(which, lengths, self.plan.piles))
            self._update(met, fall)
            at.add(met.loss, met.n)
            if at.between:
                self.pause()
        self.midway = None
        if self.plan.renormalize and self.plan.learn == "both":
            self.reservoir = updates.renormalised(self.reservoir, self.plan.spectral_radius)
            self.weights["W_rec"] = self.reservoir.W_rec.data
        return at.error / at.n

    def _met(self, piles: list[Array]) -> Share:
        """A mini-batch with the weights as they are."""
        reservoir, task, V = self.reservoir, self.task, self.V
        met: Share = self.data.total(lambda data, pile: share(reservoir, task, V, data.batch(pile)), piles)
        return met

    def _update(self, met: Share, fall: float) -> None:
        g = updates.gradients_of(self.weights, met.gradients, self.reservoir)
        if not np.isfinite([met.loss, *updates.norms(g).values()]).all():
            raise FloatingPointError("the gradient is not finite")
        self.weights, self.optimiser = self.optimiser.step(self.weights, g, STEP * self.step_size * fall)
        self.reservoir = updates.with_learned(self.reservoir, self.weights)
        dE_dV = met.V / np.asarray(met.n, self.V.dtype) + self.penalty * self.V
        self.velocity = softmax.MOMENTUM * self.velocity + (1 - softmax.MOMENTUM) * self.inverse(dE_dV)
        self.V = self.V - (RATE * fall) * self.velocity

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Arrays and plain values from which `resume` goes on to the bit."""
        number, memories = self.optimiser.state()
        tensors = {**filed("weights", self.weights), "V": self.V, "velocity": self.velocity}
        for memory, values in memories.items():
            tensors |= filed(memory, values)
        facts = {"optimiser": number, "rng": self.rng.bit_generator.state}
        return tensors, facts if self.midway is None else {**facts, "midway": self.midway.facts()}

    def resume(self, tensors: dict[str, Array], facts: dict[str, Any]) -> None:
        self.weights = under("weights", tensors)
        self.reservoir = updates.with_learned(self.reservoir, self.weights)
        self.optimiser = updates.Adam().resumed(
            float(facts["optimiser"]), {"first": under("first", tensors), "second": under("second", tensors)}
        )
        self.V, self.velocity = tensors["V"], tensors["velocity"]
        if "midway" in facts:
            self.midway = Midway.resumed(facts["midway"], self.data.lengths, self._size, self.rng)
        self.rng.bit_generator.state = facts["rng"]


def refine(
    refiner: Refiner,
    score: Callable[[Reservoir, Array], float] | None,
    on_epoch: Callable[[dict[str, float]], object],
    checkpoint: Checkpoint | None,
) -> tuple[Reservoir, Array, History, bool]:
    """The weights and V with the smallest held-out score, those at the start included; one row an epoch; and whether
    Ctrl-C ended it early.

    Without a score the newest ones count. With a checkpoint, refining goes on from the state kept there.
    """
    start = refiner.reservoir, refiner.V
    best, best_score, history = start, np.inf, History()
    shapes = shapes_of(refiner.reservoir, *refiner.V.shape)
    kept = None if checkpoint is None else checkpoint.load(shapes)
    if checkpoint is not None and kept is not None:
        tensors, facts = kept
        with checkpoint.restoring():
            best = refiner.reservoir.with_weights(**under("best", tensors)), tensors["best_V"]
            best_score = float(facts["best_score"])
            history.extend(facts["history"])
            refiner.resume(tensors, facts)
    elif score is not None:
        best_score = score(*best)

    def keep() -> None:
        assert checkpoint is not None
        tensors, facts = refiner.state()
        tensors |= {**filed("best", best[0].weights()), "best_V": best[1]}
        checkpoint.save(tensors, facts | {"best_score": best_score, "history": list(history)})

    if checkpoint is not None:
        refiner.pause = lambda: keep() if checkpoint.due() else None
    interrupted = False
    try:
        for number in range(len(history) + 1, refiner.epochs + 1):
            row: dict[str, float] = {"epoch": number, "cross_entropy": refiner.epoch(number)}
            held_out = -np.inf if score is None else score(refiner.reservoir, refiner.V)
            if score is None or held_out < best_score:
                best, best_score = (refiner.reservoir, refiner.V), held_out
            history.append(row if score is None else row | {"valid_cross_entropy": held_out})
            if checkpoint is not None:
                keep()
            on_epoch(history[-1])
    except FloatingPointError:
        pass  # the best so far stands
    except KeyboardInterrupt:
        interrupted = True
    if score is None and not runs(best[0], refiner.data, refiner.task):
        best = start
    return best[0], best[1].astype(np.float64), history, interrupted
