"""The epochs: full-batch or mini-batch learning, history, early stopping, backing off.

for each epoch: sums -> U -> gradients -> update -> (renormalise) -> score -> next
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.gradients.exact import Gradients
from echolearn.modelfile.checkpoint import Checkpoint, Midway
from echolearn.readout import collect as passes
from echolearn.readout import conjugate_gradients as iterative
from echolearn.readout import statistics as readout
from echolearn.readout.collect import Slope, Task
from echolearn.readout.incremental import Follower
from echolearn.readout.statistics import Sums
from echolearn.reservoir.reservoir import Reservoir
from echolearn.reservoir.spectrum import spectral_radius_of
from echolearn.sequences.batch import Batch, Data, dealt, groups
from echolearn.states.run import run
from echolearn.training import optimizers as updates
from echolearn.training.objectives import ridge as keeping

Array = NDArray[Any]

FALL = 0.95  # of the step size, from the first mini-batch to the last
TURNOVER = 1.8  # how often an epoch replaces the running sums (see `running`)
BACKOFFS = 3  # how often a diverged epoch is tried again with a smaller step


class TrainingWarning(UserWarning):
    """Training ended otherwise than planned; the best weights so far are kept."""


@dataclass(frozen=True)
class Plan:
    """How the weights are learned; words as in the estimators."""

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
    patience: int | None
    ridge: float
    piles: int = 2  # that a mini-batch is dealt into, one a thread; each runs its sequences side by side


class History(list[dict[str, float]]):
    """One row an epoch; prints as a table."""

    def __str__(self) -> str:
        if not self:
            return "no epochs"
        names = list(self[0])
        cells = [[f"{row.get(n, np.nan):.5g}" for n in names] for row in self]
        widths = [max(len(n), *(len(c[i]) for c in cells)) for i, n in enumerate(names)]
        lines = [names, *cells]
        return "\n".join("  ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) for line in lines)


def fresh_readout(reservoir: Reservoir, data: Data, task: Task, plan: Plan) -> tuple[Array, float]:
    """U of these weights, and the number of targets: one pass."""
    s = passes.collect(reservoir, data, task, plan.ridge)
    return readout.solve(s, plan.ridge, intercept=True), s.n


def full_batch(
    reservoir: Reservoir, data: Data, task: Task, plan: Plan, U: Array | None, n: float = 0.0
) -> tuple[Slope, Array, float]:
    """One epoch's gradient over all the data, the U for the next epoch, and the number of targets.

    Case 2: a first pass gives a fresh U (unless it is there already, with its n targets), a second the gradient at
    it. Case 1: U is the epoch before's, and one pass gives the gradient and the sums for the next U.
    """
    held = plan.case == 1
    if U is None:
        U, n = fresh_readout(reservoir, data, task, plan)
    U_now = U

    def part(data: Data, which: Array) -> Slope:
        batch = data.batch(which)
        return passes.slope(reservoir, task, plan.gradient, U_now, batch, passes.observed(reservoir, task, batch), held)

    result: Slope = data.total(part, groups(data.lengths, passes.FRAMES))
    if held:
        assert result.sums is not None
        U, n = readout.solve(result.sums, plan.ridge, intercept=True), result.sums.n
    return result, U, n


def running(sums: Sums, batch: Sums, share: float) -> Sums:
    """Sums that forget states of older weights: (1 - 1.8 w) G + 1.8 G_batch, w the batch's share of all
    frames, so that G keeps the size of a full pass."""
    sums.scale(max(0.0, 1 - TURNOVER * share))
    sums += batch.scale(TURNOVER)
    return sums


class Learner:
    """The state of learning. `pause` is called inside epochs, wherever that state is whole."""

    def __init__(self, reservoir: Reservoir, data: Data, task: Task, plan: Plan, rng: np.random.Generator):
        self.data, self.task, self.plan, self.rng = data, task, plan, rng
        self.step_size = plan.step_size
        self.pause: Callable[[], object] = lambda: None
        self.restart(reservoir)

    def restart(self, reservoir: Reservoir) -> None:
        """From these weights, with an optimiser that remembers nothing."""
        self.reservoir = self.began = reservoir  # now, and when the epoch began
        self.weights = updates.learned_weights(reservoir, self.plan.learn, self.plan.learn_leak)
        self.optimiser: Any = updates.Adam() if self.plan.optimizer == "adam" else updates.Fista(self.plan.momentum)
        self.U: Array | None = None
        self.held: Array | None = None
        self.sums: Sums | None = None
        self.solved: tuple[Array | None, float] = (None, 0.0)  # U of the next full-batch gradient, and its targets
        self.midway: Midway | None = None
        self.pending: dict[str, float] | None = None  # facts of an epoch that is done but not yet scored
        large = reservoir.N >= iterative.FROM
        self.follower = Follower(self.data, self.task, self.plan.ridge, TURNOVER, self.rng) if large else None

    def epoch(self, number: int) -> dict[str, float]:
        """One epoch, or what is left of it; returns the training error (per target) and gradient norms."""
        if self.midway is None:
            self.began = self.reservoir
        if self.plan.batch_size is None:
            facts = self._full_epoch()
        else:
            facts = self._mini_epoch(number, self.plan.batch_size)
        if self.plan.renormalize and self.plan.learn == "both":
            self.reservoir = updates.renormalised(self.reservoir, self.plan.spectral_radius)
            self.weights["W_rec"] = self.reservoir.W_rec.data
        return facts

    def _update(self, gradients: Gradients, step_size: float) -> dict[str, float]:
        g = updates.gradients_of(self.weights, gradients, self.reservoir)
        norms = updates.norms(g)
        if not np.isfinite(list(norms.values())).all():
            raise FloatingPointError("the gradient is not finite")
        self.weights, self.optimiser = self.optimiser.step(self.weights, updates.clipped(g, self.plan.clip), step_size)
        self.reservoir = updates.with_learned(self.reservoir, self.weights)
        return norms

    def _full_epoch(self) -> dict[str, float]:
        if self.follower is not None:
            return self._large_full_epoch(self.follower)
        U, n = (self.U, 0.0) if self.plan.case == 1 else self.solved
        if U is None:
            U, n = fresh_readout(self.reservoir, self.data, self.task, self.plan)
            self.U, self.solved = U, (U, n)
            self.pause()
        self.solved = None, 0.0
        result, self.U, n = full_batch(self.reservoir, self.data, self.task, self.plan, U, n)
        norms = self._update(result.gradients, self.step_size)
        return {"error": result.squared / n, **_named(norms)}

    def _mini_epoch(self, number: int, size: int) -> dict[str, float]:
        lengths = self.data.lengths
        if self.midway is None:
            self._begin_mini_epoch()
            self.midway = Midway.begun(lengths, size, self.rng)
        at, norms = self.midway, {}
        for i, which in list(enumerate(at.batches))[at.done :]:
            done = (number - 1 + i / len(at.batches)) / self.plan.epochs
            result, count = self._mini_gradient(
                dealt(which, lengths, self.plan.piles), lengths[which].sum() / lengths.sum()
            )
            norms = self._update(result.gradients, self.step_size * (1 - FALL * done))
            at.add(result.squared, count)
            if at.between:
                self.pause()
        self.midway = None
        return {"error": at.error / at.n, **_named(norms)}

    def _begin_mini_epoch(self) -> None:
        if self.follower is not None:
            self._begin_following(self.follower)
        elif self.sums is None:
            self.sums = passes.collect(self.reservoir, self.data, self.task, self.plan.ridge)
        if self.plan.case == 1 and self.sums is not None:
            self.U = readout.solve(self.sums, self.plan.ridge, intercept=True)

    def _mini_gradient(self, piles: list[Array], share: float) -> tuple[Slope, float]:
        """States of a mini-batch, then U from the running sums with it, then the gradient at that U."""
        if self.follower is not None:
            return self._followed_gradient(self.follower, piles, share)
        reservoir, task, gradient, where = self.reservoir, self.task, self.plan.gradient, self.data.where
        assert self.sums is not None
        product = readout.product_precision(self.sums, self.plan.ridge, self.data.dtype)

        def see(data: Data, which: Array) -> tuple[Batch, Any, Sums]:
            batch = data.batch(which)
            seen = passes.observed(reservoir, task, batch)
            return batch, seen, readout.sums(seen[0], seen[1], data.n_out, product)

        looked = where.hold(self.data, see, piles)
        fresh: Sums = where.total_held(lambda x: x[2], looked)
        count = fresh.n
        self.sums = running(self.sums, fresh, share)
        U = self.U if self.plan.case == 1 else readout.solve(self.sums, self.plan.ridge, intercept=True)
        assert U is not None
        result = where.total_held(lambda x: passes.slope(reservoir, task, gradient, U, x[0], x[1]), looked)
        return result, count

    def _begin_following(self, follower: Follower) -> None:
        # case 1: the gradient of a whole epoch is taken at the U held
        self.held = self.U = follower.start(self.reservoir) if self.U is None else self.U
        follower.begin(self.reservoir)

    def _followed_gradient(self, follower: Follower, piles: list[Array], share: float) -> tuple[Slope, float]:
        """As `_mini_gradient`, for large networks: U from the last one and this mini-batch."""
        reservoir, task, gradient, where = self.reservoir, self.task, self.plan.gradient, self.data.where

        def see(data: Data, which: Array) -> tuple[Batch, Any]:
            batch = data.batch(which)
            return batch, passes.observed(reservoir, task, batch)

        looked = where.hold(self.data, see, piles)
        seen = list(where.each_held(lambda x: x[1][:2], looked))
        assert self.U is not None
        self.U = follower.step(self.U, seen, share)
        U = self.U if self.plan.case == 2 or self.held is None else self.held
        result = where.total_held(lambda x: passes.slope(reservoir, task, gradient, U, x[0], x[1]), looked)
        return result, float(sum(len(T) for _, T in seen))

    def _large_full_epoch(self, follower: Follower) -> dict[str, float]:
        """As `_full_epoch`, for large networks: U by conjugate gradients from the last one."""
        if self.solved[0] is None:
            held, self.U = self.U, follower.fitted(self.reservoir, self.task, self.U)
            self.solved = held if self.plan.case == 1 and held is not None else self.U, follower.n
            self.pause()
        U, _ = self.solved
        self.solved = None, 0.0
        result, _, _ = full_batch(self.reservoir, self.data, self.task, replace(self.plan, case=2), U)
        norms = self._update(result.gradients, self.step_size)
        return {"error": result.squared / follower.n, **_named(norms)}

    def readout(self) -> Array:
        """The U that goes with the newest weights: from the running sums, or from passes over the data."""
        if self.follower is not None and self.plan.batch_size is None:
            return self.follower.fitted(self.reservoir, self.task.readout_view(), self.U)
        if self.follower is not None:
            self.U = self.follower.start(self.reservoir) if self.U is None else self.U
            return self.U
        s = self.sums or passes.collect(self.reservoir, self.data, self.task.readout_view(), self.plan.ridge)
        U = readout.solve(s, self.plan.ridge, intercept=True)
        if self.plan.batch_size is None and self.task.targets == "all":
            self.solved = U, s.n  # the next epoch begins with the same sums: it need not pass over the data for them
        return U


def _named(norms: dict[str, float]) -> dict[str, float]:
    return {f"gradient_{name}": size for name, size in norms.items()}


@dataclass
class Record:
    """How far learning has come, and the best weights so far."""

    best: Reservoir
    safe: Reservoir  # weights that a whole epoch has run with; newer ones may explode at the first frame
    best_error: float = np.inf
    best_epoch: int = 0
    backoffs: int = 0
    seconds: float = 0.0
    history: History = field(default_factory=History)

    @property
    def epoch(self) -> int:
        return len(self.history)

    def note(self, row: dict[str, float], reservoir: Reservoir) -> None:
        self.history.append(row)
        error = row.get("valid_error", -self.epoch)  # without held-out data the newest weights count
        if error < self.best_error:
            self.best, self.best_error, self.best_epoch = reservoir, error, self.epoch


def learn(
    reservoir: Reservoir,
    data: Data,
    task: Task,
    plan: Plan,
    *,
    rng: np.random.Generator,
    score: Callable[[Reservoir, Array], float] | None = None,
    on_epoch: Callable[[dict[str, float]], object] | None = None,
    checkpoint: Checkpoint | None = None,
    sums: Sums | None = None,
) -> tuple[Reservoir, History, bool]:
    """All epochs. `score(reservoir, U)` gives the held-out error, the smallest of which decides.

    Returns the best reservoir, one row of history an epoch, and whether it was interrupted (Ctrl-C). With a
    checkpoint, learning goes on from the state kept there. sums: those of `reservoir`, if they are known already.
    """
    learner = Learner(reservoir, data, task, plan, rng)
    if plan.batch_size is not None:
        learner.sums = sums
    record = Record(reservoir, reservoir)
    resumed = checkpoint is not None and keeping.resume(learner, record, checkpoint)
    started = time.perf_counter() - record.seconds

    def keep() -> None:
        assert checkpoint is not None
        record.seconds = time.perf_counter() - started
        checkpoint.save(*keeping.state(learner, record))

    if checkpoint is not None:
        learner.pause = lambda: keep() if checkpoint.due() else None
    stop: object = None
    try:
        if score is not None and not resumed:
            record.best_error = _score_as_drawn(learner, score)  # learning must beat that
        while record.epoch < plan.epochs and stop is not True:
            if plan.patience is not None and record.epoch - record.best_epoch >= plan.patience:
                break
            row = _try_epoch(learner, record, score)
            if row is None:
                break
            record.seconds = row["seconds"] = time.perf_counter() - started
            record.note(row, learner.reservoir)
            if checkpoint is not None:
                keep()
            stop = on_epoch(dict(row)) if on_epoch is not None else None
    except KeyboardInterrupt:
        return record.best, record.history, True
    if score is None and not runs(record.best, data, task):
        _say("the weights after the last epoch explode; those of the epoch before are kept. Try a smaller step_size.")
        record.best = record.safe
    return record.best, record.history, False


def _score_as_drawn(learner: Learner, score: Callable[[Reservoir, Array], float]) -> float:
    try:
        error = score(learner.reservoir, learner.readout())
    except (FloatingPointError, np.linalg.LinAlgError):
        return np.inf
    return error if np.isfinite(error) else np.inf


def runs(reservoir: Reservoir, data: Data, task: Task) -> bool:
    """Whether all states are finite."""

    def part(data: Data, which: Array) -> bool:
        return bool(np.isfinite(run(reservoir, data.batch(which)).H).all())

    return all(data.each(part, groups(data.lengths, passes.FRAMES)))


def _try_epoch(
    learner: Learner, record: Record, score: Callable[[Reservoir, Array], float] | None
) -> dict[str, float] | None:
    """One epoch's row of history; an epoch that diverges is tried again with smaller steps, then given up."""
    while True:
        number = record.epoch + 1
        try:
            if learner.pending is None:
                learner.pending = learner.epoch(number)
                if score is not None:
                    learner.pause()
            facts = dict(learner.pending)
            row: dict[str, float] = {"epoch": number, "error": facts.pop("error")}
            if score is not None:
                row["valid_error"] = score(learner.reservoir, learner.readout())
            if number % max(1, learner.plan.epochs // 50) == 0:  # fifty points draw the curve; more would cost
                row["spectral_radius"] = spectral_radius_of(learner.reservoir.W_rec, tol=1e-4)
            record.safe, learner.pending = learner.began, None
            return {**row, **facts, "step_size": learner.step_size}
        except (FloatingPointError, np.linalg.LinAlgError) as problem:
            record.backoffs += 1
            if record.backoffs > BACKOFFS:
                _say(
                    f"training stopped in epoch {number}: {problem}, even with smaller steps. The best weights so far "
                    "are kept. Try a smaller step_size or spectral_radius, or set clip."
                )
                return None
            learner.step_size *= 0.3
            _say(f"epoch {number} diverged ({problem}); tried again with step_size={learner.step_size:.3g}.")
            learner.restart(record.safe)


def _say(text: str) -> None:
    warnings.warn(text, TrainingWarning, stacklevel=5)
