"""How little data and a few long series are learned: in full batches, in windows, with a ridge by folds of time.

Up to `MAX_FULL_BATCH_STEPS`, every update follows the gradient of all the data at a readout that is solved for the
present weights. It takes fewer and longer steps than mini-batches do, and ends lower: with little data the ridge is
small, and a readout for the weights of some updates ago is worth little. Beyond, mini-batches are faster.

One series is one sequence: it is cut into windows, which run in parallel, each after some steps that settle its state.

The last tenth of a series is too little to choose a ridge by. Five folds of time are held out in turn; their states are
those of the whole run, because a state does not depend on the readout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from echolearn.fitting.settings import MIN_SERIES_STEPS, NetworkSettings
from echolearn.readout.network import Loss, Network, mean_error
from echolearn.readout.ridge import choose_ridge_by_folds
from echolearn.readout.solver import Ridge
from echolearn.readout.statistics import collect
from echolearn.readout.view import ReadoutView, Task
from echolearn.reservoir import Reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import MAX_LEAD_IN_STEPS, MIN_SEQUENCES_TO_HOLD_OUT, Piece, cut_into_windows, cut_out
from echolearn.training.optimizers import default_step_size

WINDOW_STEPS, SETTLING_STEPS = 125, 60  # with targets, and before them to settle the state
MAX_FULL_BATCH_STEPS = 20_000  # up to which every update is over all windows
FULL_BATCH_EPOCHS, SERIES_EPOCHS = 40, 60  # of such updates; the second of a few long series
FULL_BATCH_STEP_FACTOR = 6.0  # of their step size, in units of that of mini-batches
TIME_FOLDS = 5
GAIN_BLOCKS = 10  # of the held-out tail, in whose errors learning must show a gain
GAIN_STANDARD_ERRORS = 2.0  # standard errors that the gain must have
MAX_FOLDED_COLUMNS = 1100  # columns of H_c up to which five eigendecompositions are cheap


@dataclass(frozen=True)
class Learning:
    """The data, task and settings with which weights are learned."""

    data: Dataset
    task: Task
    settings: NetworkSettings


def is_few_long_series(data: Dataset) -> bool:
    """Return whether the data are fewer than five long series."""
    return len(data.X) < MIN_SEQUENCES_TO_HOLD_OUT and bool(data.lengths.min() >= MIN_SERIES_STEPS)


def learning_of(settings: NetworkSettings, train: Dataset, task: Task) -> Learning:
    """Return the data as weights learn from them: as they are, or in windows of a few long series."""
    as_given = settings.batch_size != "auto"
    if as_given or task.lookback is not None or task.targets != "all":
        return Learning(train, task, settings)
    if is_few_long_series(train):
        frames, train = train.frames, cut_into_windows(train, WINDOW_STEPS, SETTLING_STEPS, task.washout)
        task, usual = replace(task, washout=0), SERIES_EPOCHS
    else:
        frames, usual = train.frames, FULL_BATCH_EPOCHS
    if frames > MAX_FULL_BATCH_STEPS or settings.optimizer != "adam":
        return Learning(train, task, settings)
    step_size = settings.step_size or FULL_BATCH_STEP_FACTOR * default_step_size("adam", settings.hidden_units)
    epochs = usual if settings.epochs is None else settings.epochs
    return Learning(train, task, replace(settings, batch_size=None, epochs=epochs, step_size=step_size))


def time_folds(data: Dataset, washout: int) -> list[Dataset]:
    """Return the steps after the washout in folds of time; each begins with steps that carry no target."""
    folds = []
    for k in range(TIME_FOLDS):
        pieces = []
        for i, n in enumerate(data.lengths.tolist()):
            first, stop = (washout + (n - washout) * j // TIME_FOLDS for j in (k, k + 1))
            pieces.append(Piece(i, max(0, first - MAX_LEAD_IN_STEPS), first, stop))
        folds.append(cut_out(data, pieces))
    return folds


def ridge_by_folds(reservoir: Reservoir, data: Dataset, view: ReadoutView, ridge: Ridge) -> Ridge:
    """Return the ridge that is best on folds of time; or the choice as it is, where folds are not for these data."""
    if (
        not callable(ridge)
        or not is_few_long_series(data)
        or data.frames > MAX_FULL_BATCH_STEPS
        or view.rows(reservoir) > MAX_FOLDED_COLUMNS
    ):
        return ridge
    # Each fold has steps before it in place of the washout.
    seen = ReadoutView(0, view.direct, intercept=view.intercept)
    parts = [collect(reservoir, fold, seen) for fold in time_folds(data, view.washout)]
    if not all(part.n > 0 for part in parts):
        return ridge
    diagonal = float(np.sum([part.mean_diagonal for part in parts]))
    return choose_ridge_by_folds(parts, ridge(diagonal))


def learning_paid(start: Network, learned: Network, held_out: Dataset, loss: Loss) -> bool:
    """Return whether the learned network beats the one at the start on the held-out steps by more than chance.

    A short tail favours one of a hundred epochs by accident. It is cut into blocks of time; the differences of their
    errors must have a mean of more than `GAIN_STANDARD_ERRORS` standard errors.
    """
    pieces = []
    for i, n in enumerate(held_out.lengths.tolist()):
        weights = np.ones(n) if held_out.weights is None else np.asarray(held_out.weights[i])
        there = np.flatnonzero(weights)
        for steps in np.array_split(there, min(GAIN_BLOCKS, len(there))):
            pieces.append(Piece(i, max(0, int(steps[0]) - MAX_LEAD_IN_STEPS), int(steps[0]), int(steps[-1]) + 1))
    blocks = cut_out(held_out, pieces)
    before, after = (
        np.array([mean_error(_settled(network), blocks.subset([k]), loss) for k in range(len(pieces))])
        for network in (start, learned)
    )
    gains = before - after
    return bool(gains.mean() > GAIN_STANDARD_ERRORS * gains.std(ddof=1) / np.sqrt(len(gains)))


def _settled(network: Network) -> Network:
    """Return a network that scores every step with a target: the steps before a block take the place of a washout."""
    return replace(network, view=replace(network.view, washout=0))
