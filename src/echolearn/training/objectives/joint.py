"""The error at the top of a stack: all its layers learn jointly.

Squared error: each layer keeps running statistics as in `readout.trackers`, and running values of P = dE/dU of its
readout. With all sequences in one batch, these are those of the current weights, and the gradient is exact. Cross
entropy: the softmax readout V of every layer takes steps that are preconditioned by the Gram matrix of its layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from echolearn.execution.threads import map_in_order
from echolearn.gradients.stacked import FullPass, StackedGradients, stacked_gradients
from echolearn.gradients.stacked_network import StackedNetwork, stacked_outputs
from echolearn.modelfile.checkpoint import Shape
from echolearn.modelfile.layout import Facts, Tensors
from echolearn.readout.network import Loss, sum_of_errors
from echolearn.readout.softmax import PreconditionedMomentum
from echolearn.readout.solver import ExactFit
from echolearn.readout.statistics import Statistics
from echolearn.readout.trackers import TURNOVERS_PER_EPOCH
from echolearn.readout.view import MAX_FRAMES_PER_PASS
from echolearn.sequences.batch import group_sequences, split_evenly
from echolearn.sequences.dataset import Dataset
from echolearn.training.loop import Pause
from echolearn.training.objectives.cross_entropy import REFINING_RATE
from echolearn.training.objectives.ridge import STEP_FALL_SHARE
from echolearn.training.optimizers import Adam, LearnedWeights, finite_norms, weights_under
from echolearn.validation import Array

LOWER_RATE = 0.3  # the rate of V below the top: the layers above have adapted to its outputs


@dataclass(frozen=True)
class JointPlan:
    """How the layers learn jointly; `learn` and `learn_leak` have one entry per layer."""

    learn: Sequence[str]
    learn_leak: Sequence[bool]
    step_size: float
    epochs: int
    batch_size: int | None


class RunningPass(FullPass):
    """Running statistics and P of each layer, of the size of a full pass, in which those of older weights fade.

    As in `readout.trackers.fade_in`, except that the first mini-batches, until all frames have been seen, count alike.
    """

    def __init__(self, statistics: Sequence[Statistics]):
        self.kept: dict[str, Statistics | Array] = {f"{i}.sums": s for i, s in enumerate(statistics)}
        self.seen: dict[str, float] = dict.fromkeys(self.kept, 1.0)  # the share of all frames that each value has seen
        self.share = 1.0  # the share of the mini-batch in all frames

    def statistics(self, layer: int, found: Statistics) -> Statistics:
        name = f"{layer}.sums"
        new, before = self._weight(name), self.kept.get(name)
        found = found.scale(new / self.share)
        if isinstance(before, Statistics):
            found += before.scale(1 - new)
        self.kept[name] = found
        return found

    def readout_gradient(self, layer: int, P: Array) -> Array:
        name = f"{layer}.P"
        new, before = self._weight(name), self.kept.get(name)
        P = P * (new / self.share) + (before * (1 - new) if isinstance(before, np.ndarray) else 0.0)
        self.kept[name] = P
        return P

    def _weight(self, name: str) -> float:
        """Return the weight of the mini-batch, and count its share as seen."""
        seen = self.seen.get(name, 0.0)
        self.seen[name] = min(1.0, seen + self.share)
        return min(1.0, max(TURNOVERS_PER_EPOCH * self.share, self.share / (seen + self.share)))

    def state_dict(self) -> tuple[Tensors, Facts]:
        """Return arrays and plain values from which `load_state_dict` resumes to the bit."""
        tensors: Tensors = {}
        facts: Facts = {"seen": dict(self.seen)}
        for name, value in self.kept.items():
            if isinstance(value, Statistics):
                tensors |= {f"{name}/G": value.G, f"{name}/Q": value.Q}
                facts[name] = [value.tt, value.n]
            else:
                tensors[name] = value
        return tensors, facts

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        """Resume from what `state_dict` returned."""
        for name, seen in facts["seen"].items():
            statistics = f"{name}/G" in tensors
            self.kept[name] = (
                Statistics(tensors[f"{name}/G"], tensors[f"{name}/Q"], *facts[name]) if statistics else tensors[name]
            )
            self.seen[name] = float(seen)


class StackedObjective:
    """The `Objective` of a stack whose layers learn jointly.

    held_out: data for validation, or None; statistics: those of each layer at the start; strengths: the penalty on the
    V of each layer, for the cross entropy; loss(Y, T): the error for validation.
    """

    error_name = "error"

    def __init__(
        self,
        network: StackedNetwork,
        data: Dataset,
        held_out: Dataset | None,
        plan: JointPlan,
        *,
        statistics: Sequence[Statistics],
        strengths: Sequence[float] | None,
        loss: Loss,
    ):
        self.network, self.data, self.held_out, self.plan, self.loss = network, data, held_out, plan, loss
        self.step_size = plan.step_size
        self.readouts: list[PreconditionedMomentum] = []
        if strengths is not None:
            for layer, s, strength in zip(network.layers, statistics, strengths, strict=True):
                inverse = ExactFit(layer.U, layer.ridge, s).preconditioner(strength, data.dtype)
                self.readouts.append(PreconditionedMomentum(layer.U, inverse, strength, data.dtype))
        self.rates = [LOWER_RATE] * (len(statistics) - 1) + [REFINING_RATE]
        self.running = RunningPass(statistics)
        self.learned = [
            LearnedWeights(layer.reservoir, learn, learn_leak, Adam(), prefix=f"{i}.")
            for i, (layer, learn, learn_leak) in enumerate(
                zip(network.layers, plan.learn, plan.learn_leak, strict=True)
            )
        ]

    @property
    def validates(self) -> bool:
        return self.held_out is not None

    @property
    def batch_size(self) -> int:
        return self.plan.batch_size or len(self.data.lengths)

    @property
    def lengths(self) -> Array:
        return self.data.lengths

    def begin_epoch(self, pause: Pause) -> None:
        """Do nothing: there is nothing to prepare."""

    def step(self, which: Array, done: float) -> tuple[float, float]:
        lengths, data = self.data.lengths, self.data
        self.running.share = float(lengths[which].sum() / lengths.sum())
        batches = [data.batch(part) for part in split_evenly(which, lengths, 2)]
        found = stacked_gradients(self.network, batches, data.n_out, full_pass=self.running)
        self._update(found, 1 - STEP_FALL_SHARE * done / self.plan.epochs)
        return found.loss, found.n

    def _update(self, found: StackedGradients, fall: float) -> None:
        """Take a step of all weights; fall: the factor of step size and rates."""
        gradients = [learned.by_weight(g) for learned, g in zip(self.learned, found.gradients, strict=True)]
        for g in gradients:
            finite_norms(g, found.loss)
        for learned, g in zip(self.learned, gradients, strict=True):
            learned.step(g, self.step_size * fall)
        for readout, dE_dV, rate in zip(self.readouts, found.dE_dV, self.rates, strict=False):
            readout.step((dE_dV / (found.n or 1.0)).astype(readout.V.dtype), rate * fall)
        self._renew([readout.V.astype(np.float64) for readout in self.readouts] or found.readouts)

    def _renew(self, readouts: Sequence[Array]) -> None:
        """Make the stack of the newest weights and readouts."""
        layers = [
            replace(layer, reservoir=learned.reservoir, U=U)
            for layer, learned, U in zip(self.network.layers, self.learned, readouts, strict=True)
        ]
        self.network = replace(self.network, layers=layers)

    def end_epoch(self) -> None:
        """Do nothing: an epoch is complete after its steps."""

    def validation_error(self) -> float:
        assert self.held_out is not None
        return self._error(self.network, self.held_out)

    def _error(self, network: StackedNetwork, data: Dataset) -> float:
        """Return the mean of loss(Y, T) per target, for the outputs Y of the top layer."""

        def errors_of(which: Array) -> tuple[float, float]:
            return sum_of_errors(self.loss, *stacked_outputs(network, data.batch(which)))

        parts = list(map_in_order(errors_of, group_sequences(data.lengths, MAX_FRAMES_PER_PASS)))
        return sum(e for e, _ in parts) / sum(n for _, n in parts)

    def measurements(self) -> dict[str, float]:
        return {}

    def row(self, number: int, measurements: dict[str, float], seconds: float) -> dict[str, float]:
        return measurements

    def snapshot(self) -> StackedNetwork:
        return self.network

    def restart(self, snapshot: StackedNetwork) -> None:
        raise NotImplementedError("a joint epoch that diverges is not tried again")

    def is_stable(self, snapshot: StackedNetwork) -> bool:
        return bool(np.isfinite(self._error(snapshot, self.data)))

    def pack(self, name: str, snapshot: StackedNetwork) -> Tensors:
        return {
            f"{name}.{i}/{weight}": value
            for i, layer in enumerate(snapshot.layers)
            for weight, value in {**layer.reservoir.weights(), "U": layer.U}.items()
        }

    def unpack(self, name: str, tensors: Tensors) -> StackedNetwork:
        layers = []
        for i, layer in enumerate(self.network.layers):
            kept = weights_under(f"{name}.{i}/", tensors)
            U = kept.pop("U")
            layers.append(replace(layer, reservoir=layer.reservoir.with_weights(**kept), U=U))
        return replace(self.network, layers=layers)

    def shapes(self) -> dict[str, Shape]:
        out: dict[str, Shape] = {}
        for i, layer in enumerate(self.network.layers):
            U, weights = layer.U, layer.reservoir.weights().items()
            for folder in ("weights", "first", "second", "reservoir"):
                out |= {f"{folder}/{i}.{name}": value.shape for name, value in weights}
            for kept in ("best", "safe", "began"):
                out |= {f"{kept}.{i}/{name}": value.shape for name, value in weights}
                out[f"{kept}.{i}/U"] = U.shape
            out |= dict.fromkeys((f"{i}.{name}" for name in ("sums/Q", "P", "U", "V", "velocity")), U.shape)
            out[f"{i}.sums/G"] = (len(U), len(U))
        return out

    def state_dict(self, *, inside_epoch: bool) -> tuple[Tensors, Facts]:
        tensors, facts = self.running.state_dict()
        for learned in self.learned:
            more, number = learned.state_dict()
            tensors |= more
            facts["optimiser"] = max(number, facts.get("optimiser", 0))
        tensors |= {f"{i}.U": layer.U for i, layer in enumerate(self.network.layers)}
        for i, readout in enumerate(self.readouts):
            tensors |= {f"{i}.V": readout.V, f"{i}.velocity": readout.velocity}
        return tensors, facts

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        for learned in self.learned:
            learned.load_state_dict(tensors, float(facts["optimiser"]))
        self.running.load_state_dict(tensors, facts)
        for i, readout in enumerate(self.readouts):
            readout.V, readout.velocity = tensors[f"{i}.V"], tensors[f"{i}.velocity"]
        self._renew([tensors[f"{i}.U"] for i in range(len(self.learned))])
