"""The one epoch loop: mini-batches, validation, the best epoch, patience, divergence, checkpoints, Ctrl-C, history."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np

from echolearn.exceptions import TrainingWarning
from echolearn.modelfile.checkpoint import Checkpoint, Shape
from echolearn.modelfile.layout import Facts, Tensors
from echolearn.sequences.batch import draw_minibatches
from echolearn.training.history import History
from echolearn.validation import Array, warn_user

Snapshot = TypeVar("Snapshot")  # the weights of an objective at one time
Pause = Callable[[], object]  # called where the state of training is complete and may be kept


class Objective(Protocol[Snapshot]):
    """What is minimised, and the weights while it is minimised.

    error_name: the name of its error in the history; step_size: shown in the history and in warnings; validates:
    whether there are held-out data; batch_size: sequences per mini-batch (None: one step per epoch, on all of them);
    lengths: the number of steps of each training sequence.
    """

    error_name: str
    step_size: float

    @property
    def validates(self) -> bool: ...

    @property
    def batch_size(self) -> int | None: ...

    @property
    def lengths(self) -> Array: ...

    def begin_epoch(self, pause: Pause) -> None:
        """Prepare for the steps of an epoch; `pause` may be called where the state can be kept."""

    def step(self, which: Array, done: float) -> tuple[float, float]:
        """Take a step on some sequences; return error and number of targets; done: epochs so far, with fraction."""

    def end_epoch(self) -> None:
        """Complete an epoch after its steps."""

    def validation_error(self) -> float:
        """Return the error of the newest weights on the held-out data."""

    def measurements(self) -> dict[str, float]:
        """Return measurements of the last step, such as norms of gradients."""

    def row(self, number: int, measurements: dict[str, float], seconds: float) -> dict[str, float]:
        """Return the row of history of epoch `number` beside its errors; seconds: since the start."""

    def snapshot(self) -> Snapshot:
        """Return the newest weights; later steps must not change them."""

    def restart(self, snapshot: Snapshot) -> None:
        """Start again from a snapshot, with a smaller step size and an optimizer without memory."""

    def is_stable(self, snapshot: Snapshot) -> bool:
        """Return whether these weights give finite results."""

    def pack(self, name: str, snapshot: Snapshot) -> Tensors:
        """Return the arrays of a snapshot for a checkpoint, under names that begin with `name`."""

    def unpack(self, name: str, tensors: Tensors) -> Snapshot:
        """Return the snapshot that `pack` was given."""

    def shapes(self) -> dict[str, Shape]:
        """Return the shapes of all arrays that a checkpoint may hold, by name."""

    def state_dict(self, *, inside_epoch: bool) -> tuple[Tensors, Facts]:
        """Return arrays and plain values from which `load_state_dict` resumes to the bit."""

    def load_state_dict(self, tensors: Tensors, facts: Facts) -> None:
        """Resume from what `state_dict` returned."""


@dataclass
class MiniBatches:
    """The mini-batches of one epoch, how many are done, and the error so far, summed over n targets.

    batches: the indices of the sequences of each; before: the state of the generator from which they were drawn.
    """

    batches: list[Array]
    before: Mapping[str, object] | None = None
    done: int = 0
    error: float = 0.0
    n: float = 0.0

    @classmethod
    def draw(cls, lengths: Array, size: int | None, rng: np.random.Generator) -> MiniBatches:
        """Draw the mini-batches of an epoch; with size None, all sequences are one batch and nothing is drawn."""
        if size is None:
            return cls([np.arange(len(lengths))])
        before = rng.bit_generator.state
        return cls(draw_minibatches(lengths, size, rng), before)

    @classmethod
    def resume(cls, state: Facts, lengths: Array, size: int | None, rng: np.random.Generator) -> MiniBatches:
        """Return the mini-batches of a `state_dict`; rng is left in the state after they were drawn."""
        rng.bit_generator.state = state["before"]
        minibatches = cls.draw(lengths, size, rng)
        minibatches.done = int(state["done"])
        minibatches.error, minibatches.n = float(state["error"]), float(state["n"])
        if not minibatches.between:
            raise ValueError(f"{minibatches.done} of {len(minibatches.batches)} mini-batches are done")
        return minibatches

    def state_dict(self) -> Facts:
        """Return the plain values from which `resume` continues."""
        return {"before": self.before, "done": self.done, "error": self.error, "n": self.n}

    def left(self) -> Iterator[tuple[float, Array]]:
        """Yield the mini-batches that are not done, each with the share of the epoch that lies before it."""
        for i, which in list(enumerate(self.batches))[self.done :]:
            yield i / len(self.batches), which

    def add(self, error: float, n: float) -> None:
        """Count one more mini-batch as done, with its total error over n targets."""
        self.done, self.error, self.n = self.done + 1, self.error + error, self.n + n

    @property
    def between(self) -> bool:
        """Whether some mini-batches are done and some are left: only then is there a state inside the epoch to keep."""
        return 0 < self.done < len(self.batches)


@dataclass(frozen=True)
class Schedule:
    """How long to train.

    patience: epochs without a better validation error after which training stops (None: never); retries: how often in
    all an epoch that diverges is tried again with a smaller step size.
    """

    epochs: int
    patience: int | None = None
    retries: int = 0


@dataclass(frozen=True)
class TrainingResult(Generic[Snapshot]):
    """The best weights, one row of history per epoch, and whether Ctrl-C ended the training early."""

    best: Snapshot
    history: History
    interrupted: bool


@dataclass
class Record(Generic[Snapshot]):
    """The state of a training run.

    best: the weights with the smallest validation error, or the newest ones without validation. safe: weights with
    which a whole epoch has run; newer ones may explode at the first frame. began: the weights at the beginning of the
    current epoch. backoffs: how often an epoch has diverged.
    """

    best: Snapshot
    safe: Snapshot
    began: Snapshot
    best_error: float = np.inf
    best_epoch: int = 0
    backoffs: int = 0
    started: float = field(default_factory=time.perf_counter)
    history: History = field(default_factory=History)
    minibatches: MiniBatches | None = None
    pending: dict[str, float] | None = None  # error and measurements of an epoch that is not validated yet

    @property
    def seconds(self) -> float:
        """The time spent on training, including that before an interruption."""
        return time.perf_counter() - self.started

    @property
    def epoch(self) -> int:
        """The number of finished epochs."""
        return len(self.history)

    def note(self, row: dict[str, float], error: float | None, snapshot: Snapshot) -> None:
        """Add an epoch; error: on held-out data; None: without validation, the newest weights are the best."""
        self.history.append(row)
        if error is None or error < self.best_error:
            self.best, self.best_epoch = snapshot, self.epoch
            self.best_error = np.inf if error is None else error


def run_epochs(
    objective: Objective[Snapshot],
    schedule: Schedule,
    *,
    rng: np.random.Generator,
    on_epoch: Callable[[dict[str, float]], object] | None = None,
    checkpoint: Checkpoint | None = None,
) -> TrainingResult[Snapshot]:
    """Run the epochs of a schedule; return the weights with the smallest validation error, or the newest ones.

    The weights at the start count too: learning must improve on them. on_epoch(row) is called after each epoch;
    training stops if it returns True. With a checkpoint, training resumes from the state kept there, to the bit.

    An epoch diverges if it raises FloatingPointError or LinAlgError. It is then tried again from safe weights with
    smaller steps, as often as the schedule allows; after that, training stops with a TrainingWarning. Ctrl-C ends
    training with the best weights so far.
    """
    start = objective.snapshot()
    record = Record(start, start, start)
    resumed = checkpoint is not None and _resume(objective, record, checkpoint, rng)

    def pause() -> None:
        if checkpoint is not None and checkpoint.due():
            _keep(objective, record, checkpoint, rng)

    stop: object = None
    try:
        if objective.validates and not resumed:
            record.best_error = _first_error(objective)
        while record.epoch < schedule.epochs and stop is not True:
            if schedule.patience is not None and record.epoch - record.best_epoch >= schedule.patience:
                break
            found = _try_epoch(objective, record, schedule, rng, pause)
            if found is None:
                break
            row, error = found
            record.note(row, error, objective.snapshot())
            if checkpoint is not None:
                _keep(objective, record, checkpoint, rng)
            stop = on_epoch(dict(row)) if on_epoch is not None else None
    except KeyboardInterrupt:
        return TrainingResult(record.best, record.history, True)
    if not objective.validates and not objective.is_stable(record.best):
        _warn(
            "the weights after the last epoch explode; those of the epoch before are kept. Try a smaller step_size in "
            "`learning`."
        )
        record.best = record.safe
    return TrainingResult(record.best, record.history, False)


def _first_error(objective: Objective[Snapshot]) -> float:
    """Return the validation error at the start; infinity if it is not finite or cannot be computed."""
    try:
        error = objective.validation_error()
    except (FloatingPointError, np.linalg.LinAlgError):
        return np.inf
    return error if np.isfinite(error) else np.inf


def _try_epoch(
    objective: Objective[Snapshot], record: Record[Snapshot], schedule: Schedule, rng: np.random.Generator, pause: Pause
) -> tuple[dict[str, float], float | None] | None:
    """Return the row of history and the validation error of one epoch, or None if it diverged once too often."""
    while True:
        number, error = record.epoch + 1, None
        try:
            if record.pending is None:
                record.pending = _run_epoch(objective, record, number, rng, pause)
                if objective.validates:
                    pause()
            measured = dict(record.pending)
            row: dict[str, float] = {"epoch": number, objective.error_name: measured.pop("error")}
            if objective.validates:
                error = row[f"valid_{objective.error_name}"] = objective.validation_error()
            row |= objective.row(number, measured, record.seconds)
            record.safe, record.pending = record.began, None
            return row, error
        except (FloatingPointError, np.linalg.LinAlgError) as problem:
            record.backoffs += 1
            if record.backoffs > schedule.retries:
                retried = ", even with smaller steps" if schedule.retries else ""
                _warn(
                    f"training stopped in epoch {number}: {problem}{retried}. The best weights so far "
                    "are kept. Try a smaller step_size in `learning`, or scale X to about 1."
                )
                return None
            objective.restart(record.safe)
            record.minibatches = record.pending = None
            _warn(f"epoch {number} diverged ({problem}); tried again with step_size={objective.step_size:.3g}.")


def _run_epoch(
    objective: Objective[Snapshot], record: Record[Snapshot], number: int, rng: np.random.Generator, pause: Pause
) -> dict[str, float]:
    """Run an epoch, or the rest of one that was resumed; return its mean error per target and its measurements."""
    if record.minibatches is None:
        record.began = objective.snapshot()
        objective.begin_epoch(pause)
        record.minibatches = MiniBatches.draw(objective.lengths, objective.batch_size, rng)
    minibatches = record.minibatches
    for share, which in minibatches.left():
        minibatches.add(*objective.step(which, number - 1 + share))
        if minibatches.between:
            pause()
    record.minibatches = None
    objective.end_epoch()
    return {"error": minibatches.error / minibatches.n, **objective.measurements()}


def _keep(
    objective: Objective[Snapshot], record: Record[Snapshot], checkpoint: Checkpoint, rng: np.random.Generator
) -> None:
    """Save everything that `_resume` needs."""
    tensors, facts = objective.state_dict(inside_epoch=record.minibatches is not None)
    for name in ("best", "safe", "began"):
        tensors |= objective.pack(name, getattr(record, name))
    facts |= {name: getattr(record, name) for name in ("best_error", "best_epoch", "backoffs", "seconds")}
    facts |= {"rng": rng.bit_generator.state, "history": list(record.history)}
    if record.pending is not None:
        facts["pending"] = record.pending
    if record.minibatches is not None:
        facts["midway"] = record.minibatches.state_dict()
    checkpoint.save(tensors, facts)


def _resume(
    objective: Objective[Snapshot], record: Record[Snapshot], checkpoint: Checkpoint, rng: np.random.Generator
) -> bool:
    """Restore objective, record and generator from the newest state kept; return False if there is none."""
    kept = checkpoint.load(objective.shapes())
    if kept is None:
        return False
    tensors, facts = kept
    with checkpoint.restoring():
        for name in ("best", "safe", "began"):
            # some stages of version 0.1 kept only the best weights
            if any(tensor.startswith(name) for tensor in tensors):
                setattr(record, name, objective.unpack(name, tensors))
        record.best_error = float(facts["best_error"] if "best_error" in facts else facts["best_score"])
        record.best_epoch, record.backoffs = int(facts.get("best_epoch", 0)), int(facts.get("backoffs", 0))
        record.started -= float(facts.get("seconds", 0.0))
        record.history.extend(facts["history"])
        objective.load_state_dict(tensors, facts)
        if "pending" in facts:
            record.pending = {name: float(facts["pending"][name]) for name in ("error", *facts["pending"])}
        if "midway" in facts:
            lengths, size = objective.lengths, objective.batch_size
            record.minibatches = MiniBatches.resume(facts["midway"], lengths, size, rng)
        rng.bit_generator.state = facts["rng"]
    return True


def _warn(text: str) -> None:
    warn_user(text, TrainingWarning)
