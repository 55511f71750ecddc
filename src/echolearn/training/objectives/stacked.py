"""The epochs in which all layers of a stack learn together: mini-batches, running sums or softmax readouts, Adam.

Squared error: each layer keeps its sums running as in `training`, and P = dE/dU of its readout with them. For all
sequences in one batch nothing is older than the weights, and the gradient is exact. Cross entropy: every layer's V
takes the steps of `refining`, preconditioned by the Gram matrix of its layer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.execution.threads import each
from echolearn.gradients import stacked as joint
from echolearn.gradients.stacked import Layer, Slopes
from echolearn.modelfile.checkpoint import Checkpoint, Midway, Shape, filed, under
from echolearn.modelfile.checkpoint import State as Kept
from echolearn.readout import collect as passes
from echolearn.readout import softmax
from echolearn.readout.statistics import Sums
from echolearn.sequences.batch import Data, dealt, groups
from echolearn.training import optimizers as updates
from echolearn.training.loop import FALL, TURNOVER, History, TrainingWarning
from echolearn.training.objectives.cross_entropy import RATE

Array = NDArray[Any]

LOWER_RATE = 0.3  # of V below the top, where the units above have learned what it says


@dataclass(frozen=True)
class Plan:
    """How the layers learn together; `learn` and `learn_leak` are of each layer."""

    sees: str
    learn: Sequence[str]
    learn_leak: Sequence[bool]
    step_size: float
    epochs: int
    batch_size: int | None


@dataclass(frozen=True, eq=False)
class State:
    """What an epoch leaves behind: the layers and their readouts."""

    layers: list[Layer]
    readouts: list[Array]


class Descent:
    """The steps of a layer's softmax readout V: V - r (G/n + strength I)^-1 dE/dV, with momentum."""

    def __init__(self, V: Array, s: Sums, strength: float, rate: float, dtype: Any):
        self.V, self.rate = V.astype(dtype), rate
        self.velocity = np.zeros_like(self.V)
        self.penalty = softmax.penalty(len(V), strength, dtype)
        self.inverse = softmax.preconditioner(s, strength, dtype)

    def step(self, dE_dV: Array, fall: float) -> None:
        """dE_dV: the mean over frames."""
        towards = self.inverse(dE_dV.astype(self.V.dtype) + self.penalty * self.V)
        self.velocity = softmax.MOMENTUM * self.velocity + (1 - softmax.MOMENTUM) * towards
        self.V = self.V - np.asarray(self.rate * fall, self.V.dtype) * self.velocity


class Together:
    """The state of learning. sums: of each layer's states as it begins; strengths: of the penalties on V, for the
    cross entropy. `pause` is called between mini-batches."""

    def __init__(
        self,
        state: State,
        data: Data,
        plan: Plan,
        rng: np.random.Generator,
        sums: Sequence[Sums],
        strengths: Sequence[float] | None,
    ):
        self.layers, self.readouts = list(state.layers), list(state.readouts)
        self.data, self.plan, self.rng = data, plan, rng
        self.descents: list[Descent] = []
        if strengths is not None:
            rates = [LOWER_RATE] * (len(sums) - 1) + [RATE]
            steps = zip(self.readouts, sums, strengths, rates, strict=True)
            self.descents = [Descent(*step, data.dtype) for step in steps]
        # running sums and P, by layer, each with the share of all frames that it has seen
        self.kept: dict[str, tuple[Any, float]] = {f"{i}.sums": (s, 1.0) for i, s in enumerate(sums)}
        self.optimiser = updates.Adam()
        self.midway: Midway | None = None
        self.pause: Callable[[], object] = lambda: None
        self.weights = {
            f"{i}.{name}": value
            for i, layer in enumerate(self.layers)
            if plan.learn[i] != "none"
            for name, value in updates.learned_weights(layer.reservoir, plan.learn[i], plan.learn_leak[i]).items()
        }

    @property
    def state(self) -> State:
        return State(list(self.layers), list(self.readouts))

    @property
    def _size(self) -> int:
        return self.plan.batch_size or len(self.data.lengths)

    def epoch(self, number: int) -> float:
        """One epoch, or what is left of it; returns the mean error a target that was met on the way."""
        lengths = self.data.lengths
        at = self.midway = self.midway or Midway.begun(lengths, self._size, self.rng)
        for i, which in list(enumerate(at.batches))[at.done :]:
            fall = 1 - FALL * (number - 1 + i / len(at.batches)) / self.plan.epochs
            found = self._slopes(which, float(lengths[which].sum() / lengths.sum()))
            self._update(found, fall)
            at.add(found.loss, found.n)
            if at.between:
                self.pause()
        self.midway = None
        return at.error / at.n

    def _slopes(self, which: Array, share: float) -> Slopes:
        def remember(number: int, found: Any) -> Any:
            name = f"{number}.{'sums' if isinstance(found, Sums) else 'P'}"
            before, seen = self.kept.get(name, (None, 0.0))
            self.kept[name] = aged(before, found, share, seen), min(1.0, seen + share)
            return self.kept[name][0]

        piles = [self.data.batch(pile) for pile in dealt(which, self.data.lengths, 2)]
        return joint.slopes(
            self.layers,
            self.plan.sees,
            piles,
            self.data.n_out,
            per_step=self.data.per_step,
            remember=remember,
            readouts=[d.V for d in self.descents] if self.descents else None,
        )

    def _update(self, found: Slopes, fall: float) -> None:
        g: updates.Weights = {}
        for i, layer in enumerate(self.layers):
            own = updates.gradients_of(_of(i, self.weights), found.gradients[i], layer.reservoir)
            g |= {f"{i}.{name}": value for name, value in own.items()}
        if not np.isfinite([found.loss, *updates.norms(g).values()]).all():
            raise FloatingPointError("the gradient is not finite")
        self._take(*self.optimiser.step(self.weights, g, self.plan.step_size * fall))
        for descent, dE_dV in zip(self.descents, found.dE_dV, strict=False):
            descent.step(dE_dV / found.n, fall)
        self.readouts = [d.V.astype(np.float64) for d in self.descents] or found.readouts

    def _take(self, weights: updates.Weights, optimiser: updates.Adam) -> None:
        self.weights, self.optimiser = weights, optimiser
        for i, layer in enumerate(self.layers):
            self.layers[i] = replace(layer, reservoir=updates.with_learned(layer.reservoir, _of(i, weights)))

    def memory(self) -> Kept:
        """Arrays and plain values from which `recall` goes on to the bit."""
        number, memories = self.optimiser.state()
        tensors = filed("weights", self.weights)
        for name, values in memories.items():
            tensors |= filed(name, values)
        facts: dict[str, Any] = {"optimiser": number, "rng": self.rng.bit_generator.state, "seen": {}}
        for name, (value, seen) in self.kept.items():
            facts["seen"][name] = seen
            if isinstance(value, Sums):
                tensors |= {f"{name}/G": value.G, f"{name}/Q": value.Q}
                facts[name] = [value.tt, value.n]
            else:
                tensors[name] = value
        tensors |= {f"{i}.U": U for i, U in enumerate(self.readouts)}
        for i, descent in enumerate(self.descents):
            tensors |= {f"{i}.V": descent.V, f"{i}.velocity": descent.velocity}
        return tensors, facts if self.midway is None else {**facts, "midway": self.midway.facts()}

    def recall(self, tensors: dict[str, Array], facts: dict[str, Any]) -> None:
        memories = {name: under(name, tensors) for name in ("first", "second")}
        self._take(under("weights", tensors), updates.Adam().resumed(float(facts["optimiser"]), memories))
        for name, seen in facts["seen"].items():
            sums = f"{name}/G" in tensors
            value = Sums(tensors[f"{name}/G"], tensors[f"{name}/Q"], *facts[name]) if sums else tensors[name]
            self.kept[name] = value, float(seen)
        self.readouts = [tensors[f"{i}.U"] for i in range(len(self.layers))]
        for i, descent in enumerate(self.descents):
            descent.V, descent.velocity = tensors[f"{i}.V"], tensors[f"{i}.velocity"]
        if "midway" in facts:
            self.midway = Midway.resumed(facts["midway"], self.data.lengths, self._size, self.rng)
        self.rng.bit_generator.state = facts["rng"]

    def shapes(self) -> dict[str, Shape]:
        """The arrays that a checkpoint may hold, and their shapes."""
        folders = ("weights", "first", "second")
        out: dict[str, Shape] = {f"{f}/{name}": w.shape for f in folders for name, w in self.weights.items()}
        for i, (layer, U) in enumerate(zip(self.layers, self.readouts, strict=True)):
            out |= dict.fromkeys((f"{i}.{name}" for name in ("sums/Q", "P", "U", "V", "velocity")), U.shape)
            out |= {f"{i}.sums/G": (len(U), len(U)), f"best.{i}/U": U.shape}
            out |= {f"best.{i}/{name}": w.shape for name, w in layer.reservoir.weights().items()}
        return out


def _of(number: int, weights: dict[str, Array]) -> dict[str, Array]:
    """The weights of one layer, by name."""
    return {name.split(".")[1]: w for name, w in weights.items() if name.startswith(f"{number}.")}


def aged(before: Any, found: Any, share: float, seen: float) -> Any:
    """Sums, or P, of the size of a full pass, from a batch's `share` of all frames: those of older weights fade as in
    `training.running`, and at first, when little has been seen, all that has been counts alike."""
    new = min(1.0, max(TURNOVER * share, share / (seen + share)))
    if isinstance(found, Sums):
        found = found.scale(new / share)
        if before is not None:
            found += before.scale(1 - new)
        return found
    return found * (new / share) + (0.0 if before is None else before * (1 - new))


def error(state: State, data: Data, sees: str, entropy: bool, loss: Callable[[Array, Array], float]) -> float:
    """The mean of `loss(Y, T)` a target, Y the outputs of the top layer."""

    def part(which: Array) -> tuple[float, int]:
        batch = data.batch(which)
        X, targets = batch.X, joint.targets_of(batch, data.per_step)
        for layer, U in zip(state.layers[:-1], state.readouts[:-1], strict=True):
            v = joint.view(layer, batch, X, targets[0])
            X = joint.answers(layer, v, U, batch.X, sees, entropy)
        v = joint.view(state.layers[-1], batch, X, targets[1])
        return loss(v.H_s @ state.readouts[-1].astype(X.dtype), v.T), len(v.T)

    parts = list(each(part, groups(data.lengths, passes.FRAMES)))
    return sum(e for e, _ in parts) / sum(n for _, n in parts)


def learn(
    learner: Together,
    score: Callable[[State], float] | None,
    on_epoch: Callable[[dict[str, float]], object],
    checkpoint: Checkpoint | None,
) -> tuple[State, History, bool]:
    """The state with the smallest held-out score, the one at the start included; one row an epoch; whether Ctrl-C ended
    it. Without a score the newest one counts. With a checkpoint, learning goes on from the state kept there.
    """
    best, best_score, history = learner.state, np.inf, History()
    kept = None if checkpoint is None else checkpoint.load(learner.shapes())
    if checkpoint is not None and kept is not None:
        tensors, facts = kept
        with checkpoint.restoring():
            best, best_score = _best(learner.state, tensors), float(facts["best_score"])
            history.extend(facts["history"])
            learner.recall(tensors, facts)
    elif score is not None:
        best_score = score(best)

    def keep() -> None:
        assert checkpoint is not None
        tensors, facts = learner.memory()
        for i, (layer, U) in enumerate(zip(best.layers, best.readouts, strict=True)):
            tensors |= filed(f"best.{i}", {**layer.reservoir.weights(), "U": U})
        checkpoint.save(tensors, facts | {"best_score": best_score, "history": list(history)})

    if checkpoint is not None:
        learner.pause = lambda: keep() if checkpoint.due() else None
    number = len(history)
    try:
        for number in range(len(history) + 1, learner.plan.epochs + 1):
            row: dict[str, float] = {"epoch": number, "error": learner.epoch(number)}
            if score is None:
                best = learner.state
            else:
                row["valid_error"] = score(learner.state)
                if row["valid_error"] < best_score:
                    best, best_score = learner.state, row["valid_error"]
            history.append(row)
            if checkpoint is not None:
                keep()
            if on_epoch(dict(row)) is True:
                break
    except (FloatingPointError, np.linalg.LinAlgError) as problem:
        text = f"learning together stopped in epoch {number}: {problem}. The best weights so far are kept."
        warnings.warn(f"{text} Try a smaller step_size.", TrainingWarning, stacklevel=4)
    except KeyboardInterrupt:
        return best, history, True
    return best, history, False


def _best(start: State, tensors: dict[str, Array]) -> State:
    """Layers like those at the start, with the weights kept."""
    kept = [under(f"best.{i}", tensors) for i in range(len(start.layers))]
    readouts = [weights.pop("U") for weights in kept]
    layers = zip(start.layers, kept, strict=True)
    return State([replace(one, reservoir=one.reservoir.with_weights(**weights)) for one, weights in layers], readouts)
