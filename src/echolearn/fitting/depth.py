"""The fit of deep networks: draw -> learn all weights together -> readout in closed form, where it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator

from echolearn import __version__
from echolearn.display.progress import Progress
from echolearn.execution.blas import one_blas_thread
from echolearn.execution.executor import LOCAL, Executor, Remote, active_executor, executing_on
from echolearn.fitting.advice.after import Examination, warn_of_outcome
from echolearn.fitting.advice.baselines import Outcome
from echolearn.fitting.codecs import LabelSetCodec, TargetCodec
from echolearn.fitting.data import FitData, Validation, Weighing, open_validation
from echolearn.fitting.ensemble import fit_networks, numbered, numbering, workers_hold
from echolearn.fitting.fit import calibrated, encoded, fitted_model
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import FittedModel, end_of_training
from echolearn.fitting.parameters import Parameters, flat_settings
from echolearn.fitting.settings import check_deep, ridge_choice
from echolearn.fitting.stages import Callback, Request
from echolearn.modelfile.checkpoint import Checkpoint
from echolearn.modelfile.layout import Facts
from echolearn.readout.deep_network import DeepNetwork, feature_statistics, softmax_readout
from echolearn.readout.network import Loss, Readout, sum_of_errors
from echolearn.readout.ridge import solve
from echolearn.readout.solver import ExactFit, chosen_ridge
from echolearn.reservoir._deep_reservoir import DeepReservoir
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import MIN_SEQUENCES_TO_HOLD_OUT, Split, cut_into_windows, hold_out
from echolearn.training.history import History
from echolearn.training.loop import Schedule, run_epochs
from echolearn.training.objectives.deep_network import DeepObjective, DeepPlan, Frames
from echolearn.training.optimizers import Weights
from echolearn.validation import Array, check_path

Augment = Callable[[Array, np.random.Generator], Array]

DEFAULT_UPDATES = 2000  # of the weights, where `epochs` is None: as many epochs as they take,
MIN_EPOCHS, MAX_EPOCHS = 5, 40  # within these
DROPOUT_PER_ROOT, MAX_DROPOUT = 0.1, 0.3  # where `dropout` is None: per root of the weights per target, and at most
WINDOW_STEPS, SETTLING_STEPS = 100, 100  # of windows into which a few long series are cut, and of steps before each
EPOCH_RETRIES = 2  # how often a diverged epoch is tried again with a smaller step


@dataclass(frozen=True, kw_only=True)
class DeepRequest(Request):
    """All that the fit of one deep network depends on.

    seed: of its weights. frames: augmented sequences by number and epoch, if any. about: what a checkpoint recognises.
    """

    seed: np.random.SeedSequence
    frames: Frames | None
    about: Facts


def epochs_for(params: Parameters, sequences: int) -> int:
    """Return the epochs given, or enough for `DEFAULT_UPDATES` updates."""
    if params["epochs"] is not None:
        return int(params["epochs"])
    batches = np.ceil(sequences / params["batch_size"])
    return int(np.clip(np.ceil(DEFAULT_UPDATES / batches), MIN_EPOCHS, MAX_EPOCHS))


def dropout_for(params: Parameters, weights: int, train: Dataset) -> float:
    """Return the dropout given, or that for so many weights: the more of them for every target, the more dropout.

    With as many targets as weights it is 0.1, and from nine weights per target on it is 0.3. A target is a labelled
    step, or a labelled sequence; its weight does not count unless it is zero.
    """
    if params["dropout"] is not None:
        return float(params["dropout"])
    if train.weights is None:
        targets = train.frames if train.per_step else len(train.X)
    else:
        targets = sum(int(np.count_nonzero(w)) for w in train.weights)
    return min(MAX_DROPOUT, DROPOUT_PER_ROOT * float(np.sqrt(weights / targets)))


@dataclass(frozen=True, eq=False)
class DeepFit:
    """One learned network: its layers, V with v below it (C + 1, n_out), its history."""

    stack: DeepReservoir
    V: Array
    history: History
    interrupted: bool


def fit_deep(
    estimator: BaseEstimator,
    data: FitData,
    codec: TargetCodec,
    weighing: Weighing,
    *,
    validation: Validation | None = None,
    callback: Callback | None = None,
    checkpoint: str | PathLike[str] | None = None,
) -> tuple[FittedModel, bool]:
    """Return what was fitted, and whether Ctrl-C ended the learning early."""
    params = flat_settings(estimator)
    check_deep(params)
    executor = active_executor()
    if executor is not LOCAL:
        _check_dealt(type(estimator).__name__, params, data)
    with executing_on(LOCAL), one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        inputs, train = encoded(data, codec, weighing, params)
        if not train.target_weights(0).any():
            raise ValueError("no target counts; expected a weight above 0 somewhere.")
        held_out = open_validation(validation, codec, inputs, weighing, like=train, washout=0, layout=data.layout)
        entropy = _entropy(params["random_state"])
        seeds = np.random.SeedSequence(entropy).spawn(2 + params["ensemble"])
        split = _split(train, held_out, params, seeds[0])
        request = DeepRequest(
            params=params,
            data=_on(executor, _windows(split.train)),
            validation=None if split.held_out is None else _on(executor, split.held_out),
            loss=codec.error,
            seed=seeds[2],
            frames=_augmented(
                params, inputs, _split(replace(train, X=data.given.X), held_out, params, seeds[0]), seeds[1]
            ),
            callback=callback,
            checkpoint=None if checkpoint is None else check_path("checkpoint", checkpoint),
            about={} if checkpoint is None else _about(estimator, entropy, train, held_out),
        )
        fits, interrupted = _learn_all(request, seeds[2:])
        network = _network(fits, params, split)
        history = fits[0].history if len(fits) == 1 else numbered([fit.history for fit in fits])
        model = fitted_model(estimator, data, codec, inputs, network=network, history=history)
        model = replace(model, training_end=end_of_training(network, train, data.given, inputs))
        outcome = _outcome(network, split)
    seen = "training" if split.held_out is None else "held-out"
    warn_of_outcome(Examination(outcome, data=seen, cures="more data, more units or layers, or more epochs"), codec)
    if isinstance(codec, LabelSetCodec):
        model = replace(model, codec=calibrated(codec, model, data))
    return model, interrupted


def _check_dealt(name: str, params: Parameters, data: FitData) -> None:
    """Refuse fits that a cluster cannot do: its workers fit whole deep networks, from data that this process has."""
    if params["ensemble"] == 1:
        raise ValueError(
            f"{name}(ensemble=1) on a cluster: one deep network learns in one process, because its updates are too "
            "short to be shared by workers. Fit it without the cluster, or give ensemble=4: each of the networks is "
            "then one task."
        )
    if isinstance(data.given.X[0], Remote):
        raise ValueError(
            f"{name} on a cluster takes arrays in the memory of this process; X are files, a bag or delayed sequences. "
            "Load them first."
        )


def _on(executor: Executor[Dataset], data: Dataset) -> Dataset:
    """Return the data where an executor works on them."""
    return executor.place_targets(replace(data, X=executor.place(data.X), executor=executor))


def _entropy(random_state: int | np.random.Generator | None) -> int | None:
    return int(random_state.integers(2**63)) if isinstance(random_state, np.random.Generator) else random_state


def _about(estimator: BaseEstimator, entropy: int | None, train: Dataset, held_out: Dataset | None) -> Facts:
    """Return what a checkpoint recognises a fit by; weights of classes are in the data."""
    if entropy is None:
        raise ValueError(
            "checkpoint= with random_state=None: every fit would draw another network, and none could resume where "
            "one stopped. Give a random_state, for example 0."
        )
    params = flat_settings(estimator)
    known = {name: value for name, value in params.items() if name not in ("verbose", "class_weight")}
    known |= {"random_state": entropy, "augment": params["augment"] is not None}
    hashes = {"data": train.fingerprint(), "held_out": None if held_out is None else held_out.fingerprint()}
    return {"echolearn": __version__, "estimator": type(estimator).__name__, **known, **hashes}


def _split(train: Dataset, held_out: Dataset | None, params: Parameters, seed: np.random.SeedSequence) -> Split:
    """Return the training data and what is held out of them, unless the user gave held-out data."""
    if held_out is not None:
        return Split(train, held_out, refit=False)
    return hold_out(train, params["validation_fraction"], 0, np.random.default_rng(seed))


def _windows(train: Dataset) -> Dataset:
    """Return a few long series in windows: otherwise there would be one update for all steps of each of them."""
    few = train.per_step and len(train.X) < MIN_SEQUENCES_TO_HOLD_OUT and train.lengths.max() > 2 * WINDOW_STEPS
    return cut_into_windows(train, WINDOW_STEPS, SETTLING_STEPS, 0) if few else train


def _augmented(params: Parameters, inputs: InputCodec, raw: Split, seed: np.random.SeedSequence) -> Frames | None:
    """Return the function from a sequence and an epoch to its augmented frames; raw: the sequences as given."""
    augment: Augment | None = params["augment"]
    if augment is None:
        return None
    X, first = _windows(raw.train).X, seed.generate_state(2).tolist()

    def frames(i: int, epoch: int) -> Array:
        new = np.asarray(augment(X[i].copy(), np.random.default_rng([*first, epoch, i])))
        if new.shape != X[i].shape:
            raise ValueError(
                f"augment returned shape {new.shape} for a sequence of shape {X[i].shape}; expected the same."
            )
        there = np.isfinite(new) if inputs.missing == "error" else ~np.isinf(new)
        if not there.all():
            raise ValueError("augment returned NaN or infinity for a sequence; expected finite numbers.")
        return inputs.encode(new, params["dtype"])

    return frames


def _learn_all(request: DeepRequest, seeds: Sequence[np.random.SeedSequence]) -> tuple[list[DeepFit], bool]:
    """Learn the networks of an ensemble, each on one core; a single one on all of them. True: Ctrl-C ended them."""
    if len(seeds) == 1:
        fit = _learn(request)
        return [fit], fit.interrupted
    if request.data.executor is not LOCAL and not workers_hold(request):
        raise ValueError(
            "a worker that fits a deep network must hold all the data, and they exceed a quarter of a worker's "
            "memory_limit. Give the workers more memory, or fit without the cluster."
        )
    return fit_networks(
        _learn,
        [
            replace(
                request,
                seed=seed,
                params={**request.params, "verbose": request.params["verbose"] if number == 1 else 0},
                checkpoint=None if request.checkpoint is None else Path(request.checkpoint) / f"network-{number}",
                callback=numbering(request.callback, number),
            )
            for number, seed in enumerate(seeds, 1)
        ],
    )


def _learn(request: DeepRequest) -> DeepFit:
    """Draw one network and learn all of its weights."""
    params, train = request.params, request.data
    epochs = epochs_for(params, len(train.X))
    of_weights, of_order, of_dropout = request.seed.spawn(3)
    rng, dtype = np.random.default_rng(of_weights), train.dtype
    drawn = DeepReservoir.random(
        train.X[0].shape[1],
        params["units"],
        params["layers"],
        leak=params["leak"],
        angle=params["angle"],
        bidirectional=params["bidirectional"],
        rng=rng,
    )
    V = rng.uniform(-1, 1, (drawn.units, train.n_out)) / np.sqrt(drawn.units)
    weights = {
        name: value.astype(dtype) for name, value in {**drawn.weights, "V": V, "v": np.zeros(train.n_out)}.items()
    }

    def validate(weights: Weights) -> float:
        assert request.validation is not None
        network = DeepNetwork(
            (drawn.with_weights(weights),), Readout(_readout_rows(weights), False, 0.0), train.per_step
        )
        return mean_error_of(network, request.validation, request.loss)

    plan = DeepPlan(
        epochs=epochs,
        batch_size=params["batch_size"],
        step_size=params["step_size"],
        dropout=dropout_for(params, sum(value.size for value in weights.values()), train),
        seed=int(of_dropout.generate_state(1)[0]),
        smoothing=params.get("label_smoothing", 0.0),
    )
    objective = DeepObjective(
        drawn, weights, train, plan, frames=request.frames, validate=None if request.validation is None else validate
    )
    checkpoint = None if request.checkpoint is None else Checkpoint(Path(request.checkpoint), dict(request.about))
    with Progress(params["verbose"], epochs, request.callback) as progress:
        result = run_epochs(
            objective,
            Schedule(epochs, params["patience"], retries=EPOCH_RETRIES),
            rng=np.random.default_rng(of_order),
            on_epoch=progress.epoch,
            checkpoint=checkpoint,
        )
    return DeepFit(drawn.with_weights(result.best), _readout_rows(result.best), result.history, result.interrupted)


def _readout_rows(weights: Weights) -> Array:
    """Return V with v below it."""
    return np.vstack([weights["V"], weights["v"]]).astype(np.float64)


def _network(fits: Sequence[DeepFit], params: Parameters, split: Split) -> DeepNetwork:
    """Return the network of one or several stacks, with the readout that was learned or one in closed form."""
    count, train = len(fits), split.train
    U = np.vstack([*(fit.V[:-1] / count for fit in fits), np.mean([fit.V[-1:] for fit in fits], axis=0)])
    softmax = params.get("readout") == "softmax" and train.classes is not None
    network = DeepNetwork(tuple(fit.stack for fit in fits), Readout(U, softmax, 0.0), train.per_step)
    if softmax and params["epochs"] != 0:
        return network
    s = feature_statistics(network, train if softmax else split.whole)
    mu = chosen_ridge(s, ridge_choice(params["ridge"]))
    fit = ExactFit(solve(s, mu, intercept=True), mu, s)
    if softmax:  # the layers are fixed
        return replace(network, readout=softmax_readout(network, fit, train, split.held_out))
    return replace(network, readout=Readout(fit.U, False, mu, statistics=s))


def _outcome(network: DeepNetwork, split: Split) -> Outcome | None:
    """Return the answers to held-out data, or to the training data where nothing is held out."""
    data = split.held_out or split.train
    outputs = network.outputs(data)
    if data.per_step:
        T, w = [np.asarray(y) for y in data.y], data.weights or [np.ones(n) for n in data.lengths]
        return Outcome([np.asarray(x) for x in data.X], T, outputs, [np.asarray(v, np.float64) for v in w], True)
    T = [np.asarray(y)[None] for y in data.y]
    w = [np.ones(1)] * len(T) if data.weights is None else [np.reshape(v, 1).astype(np.float64) for v in data.weights]
    return Outcome([np.empty((1, 0))] * len(T), T, outputs, w, False)


def mean_error_of(network: DeepNetwork, data: Dataset, loss: Loss) -> float:
    """Return the mean of loss(Y, T) per target that counts."""
    total = count = 0.0
    for i, Y in enumerate(network.outputs(data)):
        T = np.asarray(data.y[i]) if data.per_step else np.asarray(data.y[i])[None]
        w = None if data.weights is None else np.atleast_1d(np.asarray(data.weights[i], np.float64))
        if w is not None:
            Y, T, w = Y[w > 0], T[w > 0], w[w > 0]
        error, n = sum_of_errors(loss, Y, T, w)
        total, count = total + error, count + n
    return total / count
