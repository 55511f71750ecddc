"""The fit of a forecaster to series without noise: orthogonal factors, L-BFGS, and choices by the valid time.

draw -> choose the ridge -> lower the error of one step -> lower that of several closed-loop steps -> keep what forecast
the held-out ends of the series the longest, which may be the weights as drawn -> fit the readout to everything.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from echolearn.exceptions import TrainingWarning
from echolearn.execution.blas import one_blas_thread
from echolearn.execution.memory import available_memory
from echolearn.fitting.settings import NetworkSettings
from echolearn.fitting.small_data import learning_of
from echolearn.fitting.stages import Callback, Fit, FitContext, FitRequest, draw_reservoir
from echolearn.gradients.closed_loop import Series, factored
from echolearn.readout.network import Readout
from echolearn.readout.orthogonal import ORTHOGONAL_RIDGES, OrthogonalFactors
from echolearn.readout.statistics import Statistics
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import pack
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import MIN_SEQUENCES_TO_HOLD_OUT, Split
from echolearn.states.run import run
from echolearn.training.history import History
from echolearn.training.objectives.valid_time import HeldOutLoops, Score, best_ridge, loop_objective
from echolearn.training.optimizers import Adam, LearnedWeights, Weights, minimize_log, with_learned
from echolearn.validation import Array, warn_user

LBFGS_ITERATIONS = 200  # where `epochs` is None
TRIAL_ITERATIONS = (0, 10, 25, 50, 100, 200, 400, 800, 1600)  # after which forecasts are tried
TRIAL_RIDGE_FACTORS = np.array([1e-2, 1.0, 1e2])  # ridges tried then, in units of the best so far
MIN_HELD_OUT_STEPS = 20  # of a series; fewer tell nothing


@dataclass(frozen=True, eq=False)
class LoopData:
    """The series of a fit: to learn from, all of them with and without noise, and the loops that decide (or None)."""

    train: list[Series]
    everything: list[Series]
    loops: HeldOutLoops | None


@dataclass(frozen=True, eq=False)
class OrthogonalFit:
    """The readout that was fitted, as a `RidgeFit` without statistics: no further data can be added to it."""

    U: Array
    ridge: float
    factors: OrthogonalFactors
    statistics: Statistics | None = None

    @property
    def n(self) -> float:
        return self.factors.n

    def degrees_of_freedom(self) -> float:
        return self.factors.degrees_of_freedom(self.ridge)


@dataclass
class Search:
    """The best weights so far, with their ridge and score, and one row of history per trial."""

    data: LoopData
    best: Reservoir
    ridge: float
    score: Score
    callback: Callback | None
    started: float = field(default_factory=time.perf_counter)
    history: History = field(default_factory=History)
    interrupted: bool = False

    def try_forecasts(self, iteration: int, error: float, reservoir: Reservoir, steps: int) -> bool:
        """Try forecasts with these weights; return whether the callback wants to stop."""
        score, ridge = best_ridge(reservoir, self.data.train, self.ridge * TRIAL_RIDGE_FACTORS, self.data.loops)
        if score > self.score or self.data.loops is None:
            self.best, self.ridge, self.score = reservoir, ridge, score
        return self.record(iteration, error, score, ridge, steps)

    def record(self, iteration: int, error: float, score: Score, ridge: float, steps: int) -> bool:
        """Add a row to the history; return whether the callback wants to stop."""
        row = {"epoch": float(iteration), "error": error, "loop_steps": float(steps)}
        if self.data.loops is not None:
            row |= {"valid_time": score[0], "valid_log_error": -score[1]}
        self.history.append(row | {"ridge": ridge, "seconds": time.perf_counter() - self.started})
        return bool(self.callback is not None and self.callback(self.history[-1]))


def fit_through_loop(request: FitRequest, clean: list[Array], loop_steps: int, blocks: int) -> Fit:
    """Fit one network to the one-step data of a request; clean: their inputs without the noise to learn with.

    blocks: how many of its sequences, one after another, are blocks of one series on a ring.
    """
    settings = request.settings
    if request.checkpoint is not None:
        raise ValueError(
            "checkpoint= is not kept with solver='qr': its fits are short. Leave it out, or solver='gram'."
        )
    data = loop_data(request.data, clean, blocks, settings)
    _check_memory(data.everything, settings.hidden_units)
    task = settings.task()
    rng = dict(zip(("weights", "order"), np.random.default_rng(settings.random_state).spawn(2), strict=True))
    context = FitContext(
        settings=settings,
        split=Split(request.data),
        task=task,
        learning=learning_of(settings, request.data, task),
        loss=request.loss,
        rng=rng,
    )
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        reservoir = draw_reservoir(context).reservoir
        score, ridge = best_ridge(reservoir, data.train, np.array(_ridges(settings.ridge)), data.loops)
        search = Search(data, reservoir, ridge, score, request.callback)
        fixed = factored(data.train, [run(reservoir, s.batch).H for s in data.train])
        search.record(0, fixed.loss(ridge * fixed.square) / fixed.rest.size, score, ridge, 0)
        context.say(_progress_line(0, score, ridge, data.loops))
        if settings.learns:
            _learn(search, context, loop_steps)
        if search.best is reservoir and len(search.history) > 1 and not search.interrupted:
            _warn_of_discarded(search.history)
        fit = _readout(search, data.everything)
    return Fit(
        reservoir=search.best,
        view=task.view(),
        readout=Readout(fit.U, False, fit.ridge),
        history=search.history,
        interrupted=search.interrupted,
        ridge_fit=fit,  # type: ignore[arg-type]  # a forecaster asks for its degrees of freedom alone
    )


def loop_data(data: Dataset, clean: list[Array], blocks: int, settings: NetworkSettings) -> LoopData:
    """Return the series of a fit, with the end of each held out or, of five series or more, some of them."""
    washout, direct, fraction = settings.washout_steps, settings.direct, settings.validation_fraction
    noisy, without = [], []
    for first in range(0, len(clean), blocks):
        which = slice(first, first + blocks)
        T = pack(data.y[which], np.float64).X
        noisy.append(Series(pack(data.X[which], np.float64), T, washout, direct))
        without.append(Series(pack(clean[which], np.float64), T, washout, direct))
    if fraction == 0:
        return LoopData(noisy, noisy, None)
    if len(noisy) >= MIN_SEQUENCES_TO_HOLD_OUT:
        count = min(max(1, round(fraction * len(noisy))), len(noisy) - 1)
        begin = [min(max(washout, 1), s.steps - 1) for s in without[-count:]]
        return LoopData(noisy[:-count], noisy, HeldOutLoops.of(without[-count:], begin))
    cuts = [int(s.steps * (1 - fraction)) for s in noisy]
    if any(c <= washout + 1 or s.steps - c < MIN_HELD_OUT_STEPS for s, c in zip(noisy, cuts, strict=True)):
        return LoopData(noisy, noisy, None)
    train = [s.until(c) for s, c in zip(noisy, cuts, strict=True)]
    return LoopData(train, noisy, HeldOutLoops.of(without, cuts))


def _learn(search: Search, context: FitContext, loop_steps: int) -> None:
    """Lower the error of one step, then that of `loop_steps` steps from the best weights of the first."""
    for steps in (1, loop_steps) if loop_steps > 1 else (1,):
        try:
            _lower_error(search, context, steps)
        except KeyboardInterrupt:
            search.interrupted = True
            return


def _lower_error(search: Search, context: FitContext, steps: int) -> None:
    """Lower the error of some closed-loop steps by L-BFGS, and try forecasts now and then."""
    settings, start, series = context.settings, search.best, search.data.train
    iterations = LBFGS_ITERATIONS if settings.epochs is None else int(settings.epochs)
    learned = LearnedWeights(start, settings.learn, settings.learn_leak, Adam())
    mu = search.ridge * factored(series, [run(start, s.batch).H for s in series]).square
    targets = sum(s.T[s.first :].size for s in series)
    last: list[tuple[int, float, Weights]] = []

    def trial(number: int, error: float, weights: Weights) -> bool:
        stop = search.try_forecasts(number, error / targets, with_learned(start, weights), steps)
        context.say(_progress_line(number, search.score, search.ridge, search.data.loops))
        return stop

    def after(number: int, error: float, weights: Weights) -> bool:
        last[:] = [(number, error, weights)]
        return number in TRIAL_ITERATIONS and trial(number, error, weights)

    minimize_log(loop_objective(learned, series, mu, steps), learned.weights, iterations, after)
    if last and last[0][0] not in TRIAL_ITERATIONS:
        trial(*last[0])


def _readout(search: Search, series: list[Series]) -> OrthogonalFit:
    """Return the readout of all data at the chosen ridge."""
    factors = factored(series, [run(search.best, s.batch).H for s in series])
    mu = search.ridge * factors.square
    return OrthogonalFit(factors.readout(mu), mu, factors)


def _ridges(ridge: object) -> tuple[float, ...]:
    """Return the ridges to choose from, in units of the mean square of the states."""
    if isinstance(ridge, str):
        return ORTHOGONAL_RIDGES
    return tuple(np.atleast_1d(np.asarray(ridge, dtype=np.float64)).tolist())


def _check_memory(series: list[Series], N: int) -> None:
    """Refuse data whose states do not fit into memory: orthogonal factors need all of them at once."""
    rows = sum(len(s.T) for s in series)
    needed, free = 5 * 8.0 * rows * (N + series[0].X.shape[1]), available_memory()
    if free is not None and needed > free:
        raise MemoryError(
            f"solver='qr' keeps the states of all {rows} steps, about {needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB "
            "are free. Use solver='gram', fewer steps or fewer hidden units."
        )


def _progress_line(number: int, score: Score, ridge: float, loops: HeldOutLoops | None) -> str:
    """Return the line that `verbose` prints."""
    about = "" if loops is None else f"  valid time {score[0]:.1f} steps (best so far)"
    return f"iteration {number}{about}  ridge {ridge:.0e}"


def _warn_of_discarded(history: History) -> None:
    """Say that learning did not lengthen the forecasts, so that the weights stay as drawn."""
    warn_user(
        f"none of the weights learned in {history[-1]['epoch']:.0f} iterations forecast the held-out steps longer than "
        "those that were drawn, which are kept: only the readout is fitted. Set learn='none' to save the time, or give "
        "more data or a larger validation_fraction.",
        TrainingWarning,
    )
