"""A fit, as a list of stages: draw -> learn weights -> fit ridge -> fit softmax -> refine -> finish.

Every stage takes what the stages before have found and returns it with something added. Nothing is written to an
estimator before all stages are done, so that a fit that fails leaves it as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Real
from os import PathLike

import numpy as np

from echolearn import __version__
from echolearn.display.progress import Progress, RefiningProgress, show_if_verbose
from echolearn.exceptions import TrainingWarning
from echolearn.execution.blas import one_blas_thread
from echolearn.execution.executor import LOCAL
from echolearn.fitting.advice.after import Examination, examine
from echolearn.fitting.parameters import Parameters
from echolearn.fitting.settings import MIN_DEFAULT_EPOCHS, NetworkSettings, fitting_reservoir, reservoir_fingerprint
from echolearn.fitting.small_data import Learning, is_few_long_series, learning_of, learning_paid, ridge_by_folds
from echolearn.modelfile.checkpoint import Checkpoint, matrix_fingerprint
from echolearn.readout import softmax
from echolearn.readout.network import Loss, Network, Readout, mean_error
from echolearn.readout.ridge import solve, warn_of_large_ridge
from echolearn.readout.solver import RidgeFit, chosen_ridge, solver_for
from echolearn.readout.statistics import collect
from echolearn.readout.view import ReadoutView, Task
from echolearn.reservoir import Reservoir
from echolearn.reservoir._reservoir import bidirectional_reservoir
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import Split, hold_out
from echolearn.training import cost_model
from echolearn.training.history import History
from echolearn.training.loop import Schedule, run_epochs
from echolearn.training.objectives.cross_entropy import CrossEntropyObjective
from echolearn.training.objectives.ridge import RidgeObjective
from echolearn.validation import Array, check_path, warn_user

Callback = Callable[[dict[str, float]], object]

EPOCH_RETRIES = 3  # how often a diverged epoch is tried again with a smaller step
REFINED_STRENGTHS = (3.0,)  # the penalty of a softmax readout that is refined; on AN4, 300 units, the one chosen


@dataclass(frozen=True, kw_only=True)
class Request:
    """The settings and data that the fits of all networks share.

    params: the estimator's parameters. validation: held-out data, if there are any. loss(Y, T): the error that decides
    on them. networks: how many are fitted like this one in this process.
    """

    params: Parameters
    data: Dataset
    validation: Dataset | None
    loss: Loss
    callback: Callback | None = None
    checkpoint: str | PathLike[str] | None = None
    networks: int = 1


@dataclass(frozen=True, kw_only=True)
class FitRequest(Request):
    """All that the fit of one layer depends on; a checkpoint recognises it by owner, the estimator's name, and params.

    Its validation data are those that the user gave.
    """

    owner: str
    settings: NetworkSettings


@dataclass(frozen=True, kw_only=True)
class FitContext:
    """The data and settings that all stages share; learning: the data as weights are learned from them."""

    settings: NetworkSettings
    split: Split
    task: Task
    learning: Learning
    loss: Loss
    callback: Callback | None = None
    checkpoint: Checkpoint | None = None
    rng: Mapping[str, np.random.Generator]

    def say(self, text: str) -> None:
        """Print a line if `verbose` is on."""
        show_if_verbose(self.settings.verbose, text)


@dataclass(frozen=True, kw_only=True)
class Fit:
    """The results of the stages so far.

    drawn: the reservoir before learning, where it is known. interrupted: whether Ctrl-C ended the learning early; the
    readout then fits the best weights by then.
    """

    reservoir: Reservoir
    view: ReadoutView
    drawn: Reservoir | None = None
    ridge_fit: RidgeFit | None = None
    readout: Readout | None = None
    history: History = field(default_factory=History)
    refinement: History = field(default_factory=History)
    interrupted: bool = False
    examination: Examination = field(default_factory=Examination)

    @classmethod
    def of(cls, network: Network) -> Fit:
        """Return the fit of a network in which only the readout was learned."""
        return cls(reservoir=network.reservoir, view=network.view, readout=network.readout)

    @property
    def network(self) -> Network:
        """The reservoir with its readout."""
        assert self.readout is not None
        return Network(self.reservoir, self.readout, self.view)

    @property
    def initial_reservoir(self) -> Reservoir | None:
        """The reservoir before learning; None where it is not known, or the same."""
        return None if self.drawn is self.reservoir else self.drawn


def draw_reservoir(context: FitContext) -> Fit:
    """Take the given reservoir, or draw one; with `bidirectional` the second half of its units runs backward."""
    settings, train = context.settings, context.split.train
    if settings.reservoir is None:
        reservoir = random_reservoir(settings, train.X[0].shape[1], train.n_out, context.rng["weights"])
    else:
        reservoir = fitting_reservoir(settings.reservoir, train.X[0].shape[1], train.n_out)
    return Fit(reservoir=reservoir, view=context.task.view(), drawn=reservoir)


def random_reservoir(settings: NetworkSettings, n_in: int, n_out: int, rng: np.random.Generator) -> Reservoir:
    """Return a reservoir as the settings describe it."""
    draw = partial(
        Reservoir.random,
        n_in,
        spectral_radius=settings.spectral_radius,
        connections=settings.connections,
        topology=settings.topology,
        input_scaling=settings.input_scaling,
        bias_scaling=settings.bias_scaling,
        feedback_scaling=settings.feedback_scaling,
        n_feedback=n_out if settings.feedback else 0,
        activation=settings.activation,
        random_state=rng,
    )
    N, leak = settings.hidden_units, settings.leak
    if settings.bidirectional:
        forward = N - N // 2
        leaks = (leak[:forward], leak[forward:]) if isinstance(leak, np.ndarray) else (leak, leak)
        reservoir = bidirectional_reservoir(draw(forward, leak=leaks[0]), draw(N // 2, leak=leaks[1]))
    else:
        reservoir = draw(N, leak=leak)
    if settings.initial_state is not None:
        reservoir = replace(reservoir, initial_state=np.asarray(settings.initial_state))
    return reservoir


def learn_weights(fit: Fit, context: FitContext) -> Fit:
    """Learn the weights on the squared error, with the readout in closed form."""
    held_out, learning = context.split.held_out, context.learning
    settings, train, task = learning.settings, learning.data, learning.task
    epochs = settings.epochs_for(len(train.X))
    if settings.learn == "none" or epochs == 0:
        return fit
    rng, view = context.rng["order"], context.task.view()
    choice = settings.ridge_choice()
    if settings.time_folds:
        choice = ridge_by_folds(fit.reservoir, context.split.train, view, choice)
    ridge, statistics = solver_for(fit.reservoir.N).choose(fit.reservoir, train, task, choice, rng)

    def validate(reservoir: Reservoir, U: Array) -> float:
        assert held_out is not None
        return mean_error(Network(reservoir, Readout(U, False, ridge), view), held_out, context.loss)

    objective = RidgeObjective(
        fit.reservoir,
        train,
        task,
        settings.plan(ridge, epochs),
        rng,
        validate=None if held_out is None else validate,
        statistics=statistics,
    )
    schedule = Schedule(epochs, settings.patience_for(epochs), retries=EPOCH_RETRIES)
    with Progress(settings.verbose, epochs, context.callback) as progress:
        result = run_epochs(objective, schedule, rng=rng, on_epoch=progress.epoch, checkpoint=context.checkpoint)
    best = result.best
    if not result.interrupted and not _has_paid(fit.reservoir, best, context):
        best = fit.reservoir
        _warn_of_discarded(len(result.history))
    return replace(fit, reservoir=best, history=result.history, interrupted=result.interrupted)


def _has_paid(start: Reservoir, learned: Reservoir, context: FitContext) -> bool:
    """Return whether the learned weights are better on held-out data; that of many sequences need not be tested."""
    split, view, held_out = context.split, context.task.view(), context.split.held_out
    if held_out is None or not context.settings.time_folds:
        return True
    if np.array_equal(start.W, learned.W) and np.array_equal(start.W_rec.data, learned.W_rec.data):
        return False
    if not is_few_long_series(split.train) or solver_for(start.N).iterative:
        return True

    def network(reservoir: Reservoir) -> Network:
        s = collect(reservoir, split.train, view)
        choice = ridge_by_folds(reservoir, split.train, view, context.settings.ridge_choice())
        ridge = chosen_ridge(s, choice)
        return Network(reservoir, Readout(solve(s, ridge, intercept=True), False, ridge), view)

    return learning_paid(network(start), network(learned), held_out, context.loss)


def _warn_of_discarded(epochs: int) -> None:
    """Say that nothing of what was learned is kept; a few epochs are not worth a word."""
    if epochs >= MIN_DEFAULT_EPOCHS:
        warn_user(
            f"the weights learned in {epochs} epochs are not better on the held-out data than those that were drawn, "
            "and are discarded: only the readout is fitted. Set learn='none' to save the time, or try a smaller "
            "step_size in `learning`, more data, or a larger validation_fraction.",
            TrainingWarning,
        )


def fit_ridge_readout(fit: Fit, context: FitContext) -> Fit:
    """Fit U; its ridge is chosen on the held-out data, or by generalised cross-validation."""
    settings, split, solver = context.settings, context.split, solver_for(fit.reservoir.N)
    if settings.softmax and not solver.solves_again:
        split = replace(split, refit=False)  # this U starts the softmax readout, whose penalty is chosen on unseen data
    ridge = settings.ridge_choice()
    if split.refit and settings.time_folds:
        ridge = ridge_by_folds(fit.reservoir, split.whole, context.task.view(), ridge)
    ridge_fit = solver.fit(
        fit.reservoir,
        context.task.view(),
        ridge,
        split,
        context.rng["readout"],
        say=context.say,
        checkpoint=context.checkpoint,
    )
    readout = Readout(ridge_fit.U, False, ridge_fit.ridge, statistics=ridge_fit.statistics)
    return replace(fit, ridge_fit=ridge_fit, readout=readout)


def fit_softmax_readout(fit: Fit, context: FitContext) -> Fit:
    """Fit the softmax readout from the ridge readout; its penalty is chosen on the held-out data."""
    settings, split = context.settings, context.split
    if not settings.softmax:
        return fit
    assert fit.ridge_fit is not None
    context.say("softmax readout ...")
    V, strength = softmax.fit_softmax(
        fit.reservoir,
        split.train,
        context.task.view(),
        fit.ridge_fit,
        held_out=split.held_out,
        rng=context.rng["readout"],
        strengths=REFINED_STRENGTHS if settings.refines else softmax.SOFTMAX_STRENGTHS,
    )
    return replace(fit, readout=Readout(V, True, fit.ridge_fit.ridge, strength))


def refine_weights(fit: Fit, context: FitContext) -> Fit:
    """Learn all weights, the softmax readout's too, for some last epochs on the cross entropy."""
    settings, split = context.settings, context.split
    if fit.interrupted or not settings.refines:
        return fit
    assert fit.ridge_fit is not None
    assert fit.readout is not None
    epochs = settings.refine_epochs

    objective = CrossEntropyObjective(
        fit.network,
        context.learning.data,
        split.held_out,
        context.learning.task,
        settings.plan(fit.readout.ridge, epochs),
        fit=fit.ridge_fit,
    )
    with RefiningProgress(settings.verbose, epochs) as progress:
        result = run_epochs(
            objective,
            Schedule(epochs),
            rng=context.rng["readout"],
            on_epoch=progress.epoch,
            checkpoint=None if context.checkpoint is None else context.checkpoint.for_stage("refining"),
        )
    reservoir, V = result.best
    readout = replace(fit.readout, U=V.astype(np.float64))
    return replace(fit, reservoir=reservoir, readout=readout, refinement=result.history, interrupted=result.interrupted)


def examine_result(fit: Fit, context: FitContext) -> Fit:
    """Look at the answers to held-out data, while a softmax readout has not seen them yet."""
    settings, split = context.settings, context.split
    if fit.interrupted:
        return fit
    assert fit.ridge_fit is not None
    refined = settings.refines
    found = examine(
        fit.network,
        split,
        fit.ridge_fit,
        settings.ridge_choice(),
        strengths=REFINED_STRENGTHS if refined else softmax.SOFTMAX_STRENGTHS,
    )
    return fit if found.is_empty else replace(fit, examination=found)


def finish_readout(fit: Fit, context: FitContext) -> Fit:
    """Take the last steps of a softmax readout on all the data, the held-out ones too."""
    split = context.split
    if not context.settings.softmax or split.held_out is None or not split.refit:
        return fit
    assert fit.ridge_fit is not None
    assert fit.readout is not None
    assert fit.readout.strength is not None
    V = softmax.solve_softmax(
        fit.reservoir,
        split.everything,
        context.task.view(),
        fit.ridge_fit,
        fit.readout.U,
        strength=fit.readout.strength,
        rng=context.rng["readout"],
        rate=softmax.LEARNING_RATE / 4,
    )
    return replace(fit, readout=replace(fit.readout, U=V))


STAGES = (learn_weights, fit_ridge_readout, fit_softmax_readout, refine_weights, examine_result, finish_readout)


def fit_network(request: FitRequest) -> Fit:
    """Fit one network, stage by stage."""
    settings = request.settings
    names = ("weights", "split", "order", "readout")
    rng = dict(zip(names, np.random.default_rng(settings.random_state).spawn(4), strict=True))
    if request.validation is None:
        split = hold_out(request.data, settings.validation_fraction, settings.washout_steps, rng["split"])
    else:
        split = Split(request.data, request.validation, refit=False)
    split = split.with_noise(settings.state_noise)
    task = settings.task()
    learning = learning_of(settings, split.train, task)
    if request.data.executor is LOCAL:
        job = learning.settings.job(learning.data, split.held_out, request.networks)
        cost_model.check(job, settings.verbose)
    # Numbers that are not finite are reported by the readout and the epochs; NumPy need not warn of them too.
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        context = FitContext(
            settings=settings,
            split=split,
            task=task,
            learning=learning,
            loss=request.loss,
            callback=request.callback,
            checkpoint=None if request.checkpoint is None else _open_checkpoint(request, split.held_out),
            rng=rng,
        )
        fit = draw_reservoir(context)
        for stage in STAGES:
            fit = stage(fit, context)
    readout = fit.network.readout
    if readout.statistics is not None and isinstance(settings.ridge, Real):
        warn_of_large_ridge(readout.statistics, readout.ridge)
    return fit


def _open_checkpoint(request: FitRequest, held_out: Dataset | None) -> Checkpoint:
    """Open the checkpoint of a fit; parameters that do not influence the result may differ when it resumes."""
    settings = request.settings
    if settings.random_state is None:
        raise ValueError(
            "checkpoint= with random_state=None: every fit would draw another reservoir, and none could resume where "
            "one stopped. Give a random_state, for example 0."
        )
    about = {name: value for name, value in request.params.items() if name != "verbose"}
    if isinstance(about.get("class_weight"), Mapping):
        about["class_weight"] = [list(pair) for pair in about["class_weight"].items()]
    if settings.initial_state is not None:
        about["initial_state"] = np.asarray(settings.initial_state).tolist()
    if not isinstance(settings.topology, str):
        about["topology"] = matrix_fingerprint(settings.topology)
    if settings.reservoir is not None:
        about["reservoir"] = reservoir_fingerprint(settings.reservoir)
    about |= solver_for(settings.hidden_units).conditions()
    about |= {"data": request.data.fingerprint(), "held_out": None if held_out is None else held_out.fingerprint()}
    about = {"echolearn": __version__, "estimator": request.owner, **about}
    return Checkpoint(check_path("checkpoint", request.checkpoint), about)
