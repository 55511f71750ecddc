"""The error of a deep network whose weights, those of its readout too, are learned together.

    E = -1/n Σ w log softmax(q V + v)[label],    or    E = 1/n Σ w ||q V + v - t||²,    n = Σ w

over the frames with a target; with one target per sequence, q is the mean of its features over time. With smoothing s,
a label counts 1 - s, and every class s / n_out: log softmax(y)[label] is replaced by its mean under these shares, which
adds s (y[label] - mean(y)) to the error of a label.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from echolearn.gradients.deep import gradients
from echolearn.modelfile.checkpoint import Shape
from echolearn.modelfile.layout import Facts, Tensors
from echolearn.readout.network import probabilities, sum_of_errors
from echolearn.readout.softmax import entropy
from echolearn.readout.statistics import residual
from echolearn.reservoir._deep_reservoir import DeepReservoir
from echolearn.sequences.batch import split_evenly
from echolearn.sequences.dataset import Dataset
from echolearn.states.deep import Buffers, Dropout, means_of_sequences, run
from echolearn.training.loop import Pause
from echolearn.training.optimizers import Muon, Weights, finite_norms, weights_under
from echolearn.validation import Array

PARTS = 2  # into which a mini-batch is split, whatever the number of threads
WARM_UP_SHARE = 0.05  # of all updates, in which the step size rises
FIRST_STEP_SHARE = 0.05  # of the step size, with which it begins to rise

# the frames of a sequence in an epoch: from the number of the sequence and of the epoch
Frames = Callable[[int, int], Array]


@dataclass(frozen=True, kw_only=True)
class DeepPlan:
    """How a deep network is learned."""

    epochs: int
    batch_size: int
    step_size: float
    dropout: float
    seed: int
    smoothing: float = 0.0


@dataclass(eq=False)
class DeepGradient:
    """The sum of the errors over n targets, and its derivatives. Additive over parts of a mini-batch."""

    gradients: Weights
    loss: float
    n: float

    def __iadd__(self, other: DeepGradient) -> DeepGradient:
        for name, value in other.gradients.items():
            self.gradients[name] += value
        self.loss += other.loss
        self.n += other.n
        return self


@dataclass(frozen=True, eq=False)
class FlatBatch:
    """Sequences one after another: frames X (K, n_in), bounds (B + 1,), targets T and their weights w (None: 1)."""

    X: Array
    bounds: Array
    T: Array
    w: Array | None
    per_step: bool

    @classmethod
    def of(cls, data: Dataset, which: Sequence[int] | Array, frames: Frames | None = None, epoch: int = 0) -> FlatBatch:
        """Return some sequences of a dataset; frames: what takes the place of theirs."""
        X = [np.asarray(data.X[i] if frames is None else frames(int(i), epoch), data.dtype) for i in which]
        bounds = np.concatenate([[0], np.cumsum([len(x) for x in X])])
        return cls(np.ascontiguousarray(np.concatenate(X)), bounds, *data.joined_targets(which), data.per_step)

    def pooled(self, q: Array) -> Array:
        """Return what the readout sees: features of frames, or their means over each sequence."""
        return q if self.per_step else means_of_sequences(q, self.bounds)

    def spread(self, d: Array) -> Array:
        """Return the transpose of `pooled`."""
        if self.per_step:
            return d
        counts = np.diff(self.bounds)
        return np.repeat(d / counts[:, None].astype(d.dtype), counts, axis=0)


def deep_gradient(
    weights: Weights,
    reservoir: DeepReservoir,
    batch: FlatBatch,
    dropout: Dropout,
    buffers: Buffers,
    *,
    softmax: bool,
    smoothing: float = 0.0,
) -> DeepGradient:
    """Return the error of a batch, summed over its targets, and its derivatives."""
    pairs = reservoir.units // 2 - reservoir.backward_pairs
    layers = {"forward_pairs": pairs, "dropout": dropout, "buffers": buffers}
    seen = run(weights, batch.X, batch.bounds, layers=reservoir.layers, **layers)  # type: ignore[arg-type]
    q = batch.pooled(seen.q)
    Y = q @ weights["V"] + weights["v"]
    T, w = batch.T, batch.w
    if softmax:
        known = T if w is None else np.maximum(T, 0)
        labels = np.arange(len(known)), known
        of_smoothing = smoothing * (Y[labels] - Y.mean(axis=1))
        Y = probabilities(Y)
        loss, n = sum_of_errors(entropy, Y, known, w)
        loss += float(of_smoothing.sum(dtype=np.float64) if w is None else of_smoothing @ w)
        R = residual(Y, known)
        R[labels] += smoothing
        R -= smoothing / R.shape[1]
    else:
        R = Y - T if w is None else np.where(w[:, None] > 0, Y - T, 0).astype(Y.dtype)
        loss, n = sum_of_errors(_squares, R, T, w)
        R *= 2
    if w is not None:
        R *= w[:, None].astype(R.dtype)
    of_readout = {"V": q.T @ R, "v": R.sum(axis=0)}
    below = gradients(
        weights, seen, batch.spread(R @ weights["V"].T), forward_pairs=pairs, dropout=dropout, buffers=buffers
    )
    return DeepGradient({**below, **of_readout}, loss, n)


def _squares(R: Array, T: Array, w: Array | None = None) -> float:
    rows = np.square(R, dtype=np.float64).sum(axis=1)
    return float(rows.sum() if w is None else rows @ w)


class DeepObjective:
    """The `Objective` of a deep network. validate(weights): the error on held-out data, or None.

    The error of labels in training is the cross entropy; on held-out data it is the share of wrong ones.
    """

    error_name = "error"

    def __init__(
        self,
        reservoir: DeepReservoir,
        weights: Weights,
        data: Dataset,
        plan: DeepPlan,
        *,
        frames: Frames | None = None,
        validate: Callable[[Weights], float] | None = None,
    ):
        self.reservoir, self.weights, self.data, self.plan, self.validate = reservoir, weights, data, plan, validate
        self.softmax, self.frames, self.step_size = data.classes is not None, frames, plan.step_size
        self.optimizer = Muon(reservoir.matrices)
        self.buffers = [Buffers() for _ in range(PARTS)]
        self.updates = 0

    @property
    def validates(self) -> bool:
        return self.validate is not None

    @property
    def batch_size(self) -> int:
        return self.plan.batch_size

    @property
    def lengths(self) -> Array:
        return np.ones(len(self.data.X))  # as if all were equally long: mini-batches need not have similar lengths

    def begin_epoch(self, pause: Pause) -> None:
        """Do nothing: there is nothing to prepare."""

    def step(self, which: Array, done: float) -> tuple[float, float]:
        weights, plan, buffers = self.weights, self.plan, self.buffers
        parts = split_evenly(which, self.data.lengths, PARTS)
        seeds = np.random.SeedSequence([plan.seed, self.updates]).generate_state(PARTS)

        def gradient_of_part(data: Dataset, which: Array, part: int) -> DeepGradient:
            batch, dropout = FlatBatch.of(data, which, self.frames, int(done)), Dropout(plan.dropout, int(seeds[part]))
            return deep_gradient(
                weights, self.reservoir, batch, dropout, buffers[part], softmax=self.softmax, smoothing=plan.smoothing
            )

        found = self.data.sum(gradient_of_part, [(some, part) for part, some in enumerate(parts)])
        mean = {name: value / (found.n or 1.0) for name, value in found.gradients.items()}
        finite_norms(mean, found.loss)
        step_size = self.step_size * rate(done / plan.epochs)
        self.weights, self.optimizer = self.optimizer.step(weights, mean, step_size)
        self.updates += 1
        return found.loss, found.n

    def end_epoch(self) -> None:
        """Do nothing: the weights are complete after every step."""

    def validation_error(self) -> float:
        assert self.validate is not None
        return self.validate(self.weights)

    def measurements(self) -> dict[str, float]:
        return {}

    def row(self, number: int, measurements: dict[str, float], seconds: float) -> dict[str, float]:
        return {**measurements, "step_size": self.step_size, "seconds": seconds}

    def snapshot(self) -> Weights:
        return self.weights

    def restart(self, snapshot: Weights) -> None:
        self.weights, self.optimizer = snapshot, Muon(self.reservoir.matrices)
        self.step_size *= 0.3

    def is_stable(self, snapshot: Weights) -> bool:
        return all(bool(np.isfinite(value).all()) for value in snapshot.values())

    def pack(self, name: str, snapshot: Weights) -> Tensors:
        return {f"{name}/{weight}": value for weight, value in snapshot.items()}

    def unpack(self, name: str, tensors: Tensors) -> Weights:
        return weights_under(f"{name}/", tensors)

    def shapes(self) -> dict[str, Shape]:
        folders = ("weights", "best", "safe", "began", *Muon.memories)
        return {f"{folder}/{name}": value.shape for folder in folders for name, value in self.weights.items()}

    def state_dict(self, *, inside_epoch: bool) -> tuple[Tensors, Facts]:
        number, memories = self.optimizer.state()
        folders = {"weights": self.weights, **memories}
        tensors = {f"{folder}/{name}": value for folder, values in folders.items() for name, value in values.items()}
        return tensors, {"optimiser": number, "updates": self.updates, "step_size": self.step_size}

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        self.weights = weights_under("weights/", tensors)
        kept = {memory: weights_under(f"{memory}/", tensors) for memory in Muon.memories}
        self.optimizer = self.optimizer.resume(
            float(facts["optimiser"]), {name: some for name, some in kept.items() if some}
        )
        self.updates, self.step_size = int(facts["updates"]), float(facts["step_size"])


def rate(done: float) -> float:
    """Return the share of the step size after this share of the training: it rises, and falls along a cosine."""
    if done < WARM_UP_SHARE:
        return FIRST_STEP_SHARE + (1 - FIRST_STEP_SHARE) * done / WARM_UP_SHARE
    return float(1 + np.cos(np.pi * (done - WARM_UP_SHARE) / (1 - WARM_UP_SHARE))) / 2
