"""The squared error with the readout in closed form: E(W, W_rec) = min_U ||H_c U - T||² + mu ||U||².

In each step: states -> statistics -> U -> gradients -> new weights. Case 2 takes the gradient at the U of the current
weights, Case 1 at an older one; a readout tracker (`readout.trackers`, `readout.large.trackers`) provides it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from echolearn.execution.threads import tree_sum
from echolearn.gradients.batch import BatchGradient, batch_gradient
from echolearn.modelfile.checkpoint import Shape
from echolearn.modelfile.layout import Facts, Tensors
from echolearn.readout.solver import FullBatchTracker, MiniBatchTracker, solver_for
from echolearn.readout.statistics import Statistics
from echolearn.readout.trackers import whole_groups
from echolearn.readout.view import MAX_FRAMES_PER_PASS, Observation, Task, observe, stream_observations
from echolearn.reservoir import Reservoir
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.sequences.batch import group_sequences, split_minibatch
from echolearn.sequences.dataset import Dataset
from echolearn.states.run import run
from echolearn.training.loop import Pause
from echolearn.training.optimizers import Adam, Fista, LearnedWeights, clip_gradients, finite_norms, weights_under
from echolearn.validation import Array

STEP_FALL_SHARE = 0.95  # share by which the step size falls from the first mini-batch to the last
STEP_BACKOFF = 0.3  # factor of the step size after an epoch has diverged

# Folders of a checkpoint whose arrays have the shapes of the weights.
CHECKPOINT_FOLDERS = ("weights", *Fista.memories, *Adam.memories, "reservoir", "began", "best", "safe")


@dataclass(frozen=True)
class LearningPlan:
    """How the weights are learned, under the names of the parameters of the estimators.

    ridge: the penalty of the readout in all epochs; threads: the number of parts, one per thread, into which a
    mini-batch is split.
    """

    learn: str
    learn_leak: bool
    gradient: str
    case: int
    optimizer: str
    momentum: str
    step_size: float
    epochs: int
    batch_size: int | None
    clip: float | None
    renormalize: bool
    spectral_radius: float
    ridge: float
    threads: int = 2


class RidgeObjective:
    """The `Objective` of weights that are learned on the squared error, with the readout in closed form.

    validate(reservoir, U): the error on held-out data; statistics: those of the reservoir at the start, if known.
    """

    error_name = "error"

    def __init__(
        self,
        reservoir: Reservoir,
        data: Dataset,
        task: Task,
        plan: LearningPlan,
        rng: np.random.Generator,
        *,
        validate: Callable[[Reservoir, Array], float] | None = None,
        statistics: Statistics | None = None,
    ):
        self.data, self.task, self.plan, self.validate = data, task, plan, validate
        self.step_size = plan.step_size
        solver = solver_for(reservoir.N)
        self.full_batch = self.minibatches = None
        if plan.batch_size is None:
            self.full_batch = solver.full_batch(data, task, plan.ridge, rng, plan.case)
        else:
            self.minibatches = solver.minibatches(data, task, plan.ridge, rng, plan.case, statistics=statistics)
        self._start(reservoir)

    def _start(self, reservoir: Reservoir) -> None:
        """Begin with the weights of a reservoir and an optimizer without memory."""
        optimizer = Adam() if self.plan.optimizer == "adam" else Fista(self.plan.momentum)
        self.learned = LearnedWeights(reservoir, self.plan.learn, self.plan.learn_leak, optimizer)
        self.norms: dict[str, float] = {}

    @property
    def tracker(self) -> FullBatchTracker | MiniBatchTracker:
        """The readout tracker in use."""
        tracker = self.full_batch or self.minibatches
        assert tracker is not None
        return tracker

    @property
    def validates(self) -> bool:
        return self.validate is not None

    @property
    def batch_size(self) -> int | None:
        return self.plan.batch_size

    @property
    def lengths(self) -> Array:
        return self.data.lengths

    def begin_epoch(self, pause: Pause) -> None:
        if self.full_batch is not None:
            self.full_batch.begin_epoch(self.learned.reservoir, pause)
        elif self.minibatches is not None:
            self.minibatches.begin_epoch(self.learned.reservoir)

    def step(self, which: Array, done: float) -> tuple[float, float]:
        if self.minibatches is None:
            found, n = self._full_gradient()
        else:
            found, n = self._minibatch_gradient(self.minibatches, which)
        falls = self.plan.optimizer == "adam"
        step_size = self.step_size * (1 - STEP_FALL_SHARE * (done / self.plan.epochs) if falls else 1)
        gradients = self.learned.by_weight(found.gradients)
        self.norms = finite_norms(gradients)
        self.learned.step(clip_gradients(gradients, self.norms, self.plan.clip), step_size)
        return found.squared, n

    def _full_gradient(self) -> tuple[BatchGradient, float]:
        """Return the gradient over all the data at the tracker's U, and the number of targets."""
        tracker = self.full_batch
        assert tracker is not None
        reservoir, task, gradient = self.learned.reservoir, self.task, self.plan.gradient
        U, with_statistics = tracker.gradient_readout(), tracker.with_statistics

        def of_seen(seen: Observation) -> BatchGradient:
            now = replace(task, washout=seen.view.washout)
            return batch_gradient(reservoir, now, gradient, U, seen, with_statistics=with_statistics)

        # No error passes from one block of a look-back to another, so that time may be cut between them.
        whole = task.lookback is None or task.needs_whole_sequences(reservoir)

        def gradient_of_group(data: Dataset, which: Array) -> BatchGradient:
            batch = data.batch(which)
            if whole:
                return of_seen(observe(reservoir, task, batch))
            return tree_sum(map(of_seen, stream_observations(reservoir, task, batch, keep_F=True)))

        if tracker.kept is not None:
            found = self.data.executor.sum_kept(of_seen, tracker.kept)
        else:
            frames = whole_groups(self.data, reservoir.N if whole else 1)
            found = self.data.sum(gradient_of_group, group_sequences(self.data.lengths, frames))
        return found, tracker.finish(found.statistics)

    def _minibatch_gradient(self, tracker: MiniBatchTracker, which: Array) -> tuple[BatchGradient, float]:
        """Return the gradient over a mini-batch: first its states, then U from them, then the gradient at that U."""
        reservoir, task, gradient, lengths = self.learned.reservoir, self.task, self.plan.gradient, self.data.lengths
        kept = tracker.observe(reservoir, split_minibatch(which, lengths, self.plan.threads, reservoir.N))
        U, n = tracker.update(kept, lengths[which].sum() / lengths.sum())

        def gradient_of_kept(seen: tuple[Observation, object]) -> BatchGradient:
            return batch_gradient(reservoir, task, gradient, U, seen[0])

        return self.data.executor.sum_kept(gradient_of_kept, kept), n

    def end_epoch(self) -> None:
        if self.plan.renormalize:
            self.learned.renormalize(self.plan.spectral_radius)

    def validation_error(self) -> float:
        assert self.validate is not None
        return self.validate(self.learned.reservoir, self.tracker.readout(self.learned.reservoir))

    def measurements(self) -> dict[str, float]:
        return {f"gradient_{name}": norm for name, norm in self.norms.items()}

    def row(self, number: int, measurements: dict[str, float], seconds: float) -> dict[str, float]:
        radius = {}
        # About ten of them are enough for a curve, and each takes time.
        if number % max(1, self.plan.epochs // 10) == 0:
            radius["spectral_radius"] = spectral_radius_of(self.learned.reservoir.W_rec, tol=1e-4)
        return {**radius, **measurements, "step_size": self.step_size, "seconds": seconds}

    def snapshot(self) -> Reservoir:
        return self.learned.reservoir

    def restart(self, snapshot: Reservoir) -> None:
        self.step_size *= STEP_BACKOFF
        self._start(snapshot)
        self.tracker.reset()

    def is_stable(self, snapshot: Reservoir) -> bool:
        return gives_finite_states(snapshot, self.data)

    def pack(self, name: str, snapshot: Reservoir) -> Tensors:
        return {f"{name}/{weight}": value for weight, value in snapshot.weights().items()}

    def unpack(self, name: str, tensors: Tensors) -> Reservoir:
        return self.learned.reservoir.with_weights(**weights_under(f"{name}/", tensors))

    def shapes(self) -> dict[str, Shape]:
        M, n_out = self.task.rows(self.learned.reservoir), self.data.n_out
        like_U = dict.fromkeys(("Q", "U", "held", "solved"), (M, n_out))
        sketch: dict[str, Shape] = {"sketch/V": (M - 1, None), "sketch/values": (None,), "sketch/mean": (M - 1,)}
        return {**weight_shapes(self.learned.reservoir), "G": (M, M), **like_U, **sketch, "sketch/recent": (None, M)}

    def state_dict(self, *, inside_epoch: bool) -> tuple[Tensors, Facts]:
        tensors, number = self.learned.state_dict()
        more, facts = self.tracker.state_dict(inside_epoch=inside_epoch)
        return {**tensors, **more}, {**facts, "optimiser": number, "step_size": self.step_size}

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        self.learned.load_state_dict(tensors, float(facts["optimiser"]))
        self.step_size = float(facts["step_size"])
        self.tracker.reset()
        self.tracker.load_state_dict(tensors, facts)


def weight_shapes(reservoir: Reservoir) -> dict[str, Shape]:
    """Return the shapes of all arrays of a checkpoint that have the shapes of the weights, by name."""
    weights = reservoir.weights().items()
    return {f"{folder}/{name}": value.shape for folder in CHECKPOINT_FOLDERS for name, value in weights}


def gives_finite_states(reservoir: Reservoir, data: Dataset) -> bool:
    """Return whether all states of the data are finite."""

    def is_finite_in_group(data: Dataset, which: Array) -> bool:
        return bool(np.isfinite(run(reservoir, data.batch(which)).H).all())

    return all(data.map(is_finite_in_group, group_sequences(data.lengths, MAX_FRAMES_PER_PASS)))
