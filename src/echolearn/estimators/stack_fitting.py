"""The fit of a stack: layers that learn one by one and then jointly, and their final readouts (docs/stacks.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from echolearn import __version__
from echolearn._typing import Array
from echolearn.estimators._base import SequenceEstimator
from echolearn.estimators.fitting import (
    Callback,
    Fit,
    FitContext,
    FitRequest,
    FittedNetwork,
    finish_readout,
    fit_network,
    fit_ridge_readout,
    fit_softmax_readout,
)
from echolearn.estimators.settings import NetworkSettings
from echolearn.estimators.targets import TargetCodec
from echolearn.execution.blas import one_blas_thread
from echolearn.execution.threads import map_in_order
from echolearn.gradients.stacked import Layer, StackedNetwork, scale_to_one, targets_per_step
from echolearn.modelfile.checkpoint import Checkpoint
from echolearn.readout.collect import collect
from echolearn.readout.network import Network, apply_readout
from echolearn.readout.observation import frames_at_once
from echolearn.readout.ridge import solve
from echolearn.readout.solver import ExactFit
from echolearn.readout.statistics import Statistics
from echolearn.sequences.batch import pack, unpack
from echolearn.sequences.batching import group_sequences
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import Split
from echolearn.sequences.validation import check_finite
from echolearn.states.run import run
from echolearn.training.history import History
from echolearn.training.loop import Schedule, TrainingResult, run_epochs
from echolearn.training.objectives.stacked import JointPlan, StackedObjective
from echolearn.training.optimizers import default_step_size
from echolearn.training.progress import Progress, say

STEP = 0.3  # of the step size of a layer that learns by itself


@dataclass(frozen=True, eq=False)
class FittedLayer:
    """A layer's settings and network, how its targets are encoded, and the factors of what it passes on."""

    estimator: SequenceEstimator
    settings: NetworkSettings
    network: Network
    codec: TargetCodec
    scale: Array
    history: History
    refinement: History

    @property
    def softmax(self) -> bool:
        return self.network.readout.softmax


@dataclass(frozen=True, kw_only=True)
class StackRequest:
    """All that the fit of a stack depends on.

    layers: the estimators of the layers, with seeds of their own; entropy: whether layers pass on probabilities and
    learn jointly on the cross entropy; codec: of the top; layer_codec: from targets, one per step, to the codec of a
    layer.
    """

    owner: str
    params: dict[str, Any]
    layers: Sequence[SequenceEstimator]
    split: Split
    codec: TargetCodec
    layer_codec: Callable[[list[Any]], TargetCodec]
    entropy: bool
    callback: Callback | None
    checkpoint: str | PathLike[str] | None
    rng: dict[str, np.random.Generator]

    @property
    def sees(self) -> str:
        return str(self.params["sees"])


def fit_stack(request: StackRequest) -> tuple[list[FittedLayer], History, bool]:
    """Fit the layers one by one, then jointly, then their final readouts.

    Returns the layers, the history of the joint epochs, and whether Ctrl-C ended the learning early.
    """
    layers, interrupted = _fit_one_by_one(request)
    history = History()
    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        if request.params["joint_epochs"] and not interrupted:
            result = _learn_jointly(request, layers)
            history, interrupted = result.history, result.interrupted
            layers = [
                replace(layer, network=_with_weights(layer.network, now))
                for layer, now in zip(layers, result.best.layers, strict=True)
            ]
        return _finish(request, layers), history, interrupted


def _with_weights(network: Network, layer: Layer) -> Network:
    readout = replace(network.readout, U=layer.U, statistics=None)
    return replace(network, reservoir=layer.reservoir, readout=readout)


def _fit_one_by_one(request: StackRequest) -> tuple[list[FittedLayer], bool]:
    """Fit each layer to what the ones below pass on; True if Ctrl-C ended the top one early."""
    fitted: list[FittedLayer] = []
    train, held_out = request.split.train, request.split.held_out
    X, X_held = train.X, None if held_out is None else held_out.X
    for number, estimator in enumerate(request.layers, 1):
        top = number == len(request.layers)
        verbose, units = request.params["verbose"], estimator.get_params(deep=False)["hidden_units"]
        say(verbose, f"layer {number} of {len(request.layers)}: {units} units")
        entries = list(train.y) if top else targets_per_step(train)
        codec = request.codec if top else request.layer_codec(entries)
        layer = _fit_layer(request, number, codec, X, X_held)
        if layer.interrupted and not top:
            raise KeyboardInterrupt
        fitted.append(_as_fitted_layer(estimator, layer, codec))
        if top:
            return fitted, layer.interrupted
        n_out = layer.network.readout.U.shape[1]
        X = pass_up(fitted, number - 1, X, train.X, request.sees, entropy=request.entropy)
        fitted[-1] = replace(fitted[-1], scale=scale_to_one(X, n_out))
        if held_out is not None and X_held is not None:
            X_held = pass_up(fitted, number - 1, X_held, held_out.X, request.sees, entropy=request.entropy)
    raise AssertionError("a stack has a top layer")


def _as_fitted_layer(estimator: SequenceEstimator, fitted: FittedNetwork, codec: TargetCodec) -> FittedLayer:
    settings = NetworkSettings.of(estimator.get_params(deep=False))
    scale = np.ones(fitted.network.readout.U.shape[1])
    return FittedLayer(estimator, settings, fitted.network, codec, scale, fitted.history, fitted.refinement)


def _fit_layer(
    request: StackRequest, number: int, codec: TargetCodec, X: Sequence[Array], X_held: Sequence[Array] | None
) -> FittedNetwork:
    estimator, top = request.layers[number - 1], number == len(request.layers)
    params = estimator.get_params(deep=False)
    settings = NetworkSettings.of(params)

    def as_layer(inputs: Sequence[Array], data: Dataset) -> Dataset:
        per_step = data.per_step or not top
        encoded = codec.encode(list(data.y) if top else targets_per_step(data), per_step)
        return Dataset.place(inputs, encoded, codec.classes, per_step=per_step, dtype=settings.dtype)

    def after_epoch(row: dict[str, float]) -> object:
        return None if request.callback is None else request.callback({"layer": number, **row})

    held_out = request.split.held_out
    return fit_network(
        FitRequest(
            owner=type(estimator).__name__,
            params=params,
            settings=settings,
            data=as_layer(X, request.split.train),
            validation=None if held_out is None or X_held is None else as_layer(X_held, held_out),
            loss=codec.error,
            callback=after_epoch,
            checkpoint=None if request.checkpoint is None else Path(request.checkpoint) / f"layer-{number}",
        )
    )


def pass_up(
    layers: Sequence[FittedLayer],
    number: int,
    X: Sequence[Array],
    source: Sequence[Array],
    sees: str,
    *,
    entropy: bool,
) -> list[Array]:
    """Return what a layer passes on for its inputs X and those of the whole stack, one array per sequence."""
    layer = layers[number]
    reservoir, readout, view = layer.network.reservoir, layer.network.readout, layer.network.view
    dtype = np.dtype(layer.settings.dtype)
    stacked = StackedNetwork((), sees, entropy)
    as_layer = _as_layer(layer)
    out = [X[0]] * len(X)

    def part(which: Array) -> tuple[Array, list[Array]]:
        batch, first = (pack([M[i] for i in which], dtype) for M in (X, source))
        H = run(reservoir, batch, keep_F=False).H
        Y = apply_readout(H, batch.X if view.direct else batch.X[:, :0], readout.U.astype(dtype))
        return which, unpack(batch, stacked.pass_on(as_layer, H, Y, first.X))

    with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
        groups = group_sequences(np.array([len(x) for x in X]), frames_at_once(reservoir.N))
        for which, parts in map_in_order(part, groups):
            for i, passed in zip(which, parts, strict=True):
                check_finite(passed, f"outputs of layer {number + 1}")
                out[i] = passed
    return out


def layer_inputs(
    layers: Sequence[FittedLayer], X: Sequence[Array], sees: str, *, entropy: bool
) -> list[Sequence[Array]]:
    """Return the inputs of every layer."""
    inputs = [X]
    for number in range(len(layers) - 1):
        inputs.append(pass_up(layers, number, inputs[-1], X, sees, entropy=entropy))
    return inputs


def _as_layer(layer: FittedLayer) -> Layer:
    network, per_step = layer.network, layer.network.view.pooling is None
    return Layer(
        network.reservoir, layer.settings.task(per_step), network.readout.ridge, layer.scale, network.readout.U
    )


def _layer_data(request: StackRequest, number: int, X: Sequence[Array], data: Dataset) -> Dataset:
    """Return a layer's data, its targets in the units of the top layer."""
    codec = request.codec
    encoded = Dataset(X, codec.encode(list(data.y), data.per_step), codec.classes, data.per_step, data.dtype)
    if number == len(request.layers) - 1:
        return encoded
    return replace(encoded, y=targets_per_step(encoded), per_step=True)


def _statistics(request: StackRequest, layers: Sequence[FittedLayer]) -> list[Statistics]:
    """Return the statistics of every layer at its current weights."""
    train = request.split.train
    inputs = layer_inputs(layers, train.X, request.sees, entropy=request.entropy)
    return [
        collect(layer.network.reservoir, _layer_data(request, number, X, train), layer.network.view)
        for number, (layer, X) in enumerate(zip(layers, inputs, strict=True))
    ]


def _learn_jointly(request: StackRequest, layers: Sequence[FittedLayer]) -> TrainingResult[StackedNetwork]:
    """Let all layers learn at once."""
    top, params = len(layers) - 1, request.params
    train, held_out = request.split.train, request.split.held_out
    data = _layer_data(request, top, train.X, train)
    held = None if held_out is None else _layer_data(request, top, held_out.X, held_out)
    largest = max(layer.settings.hidden_units for layer in layers)
    plan = JointPlan(
        [layer.settings.learn for layer in layers],
        [layer.settings.learn_leak for layer in layers],
        params["step_size"] or STEP * default_step_size("adam", largest),
        params["joint_epochs"],
        layers[-1].settings.batch_size,
    )
    strengths = [layer.network.readout.strength or 0.0 for layer in layers]
    objective = StackedObjective(
        StackedNetwork([_as_layer(layer) for layer in layers], request.sees, request.entropy),
        data,
        held,
        plan,
        statistics=_statistics(request, layers),
        strengths=strengths if request.entropy else None,
        loss=request.codec.error,
    )
    say(params["verbose"], f"all {len(layers)} layers together")
    checkpoint = None if request.checkpoint is None else _open_checkpoint(request, data, held)
    with Progress(params["verbose"], plan.epochs, request.callback) as progress:
        return run_epochs(
            objective,
            Schedule(plan.epochs),
            rng=request.rng["order"],
            on_epoch=progress.epoch,
            checkpoint=checkpoint,
        )


def _open_checkpoint(request: StackRequest, data: Dataset, held_out: Dataset | None) -> Checkpoint:
    """Open the checkpoint of the joint epochs. The layers' own settings stand in their own checkpoints."""
    about = {name: value for name, value in request.params.items() if name not in ("verbose", "layers")}
    about |= {"data": data.fingerprint(), "held_out": None if held_out is None else held_out.fingerprint()}
    assert request.checkpoint is not None
    return Checkpoint(
        Path(request.checkpoint) / "together", {"echolearn": __version__, "estimator": request.owner, **about}
    )


def _finish(request: StackRequest, layers: list[FittedLayer]) -> list[FittedLayer]:
    """Fit the readouts that the layers end with."""
    split = request.split
    refit = split.refit and split.held_out is not None
    if request.entropy and not refit:
        return layers  # the readouts have been learned with the other weights
    if request.params["joint_epochs"] and not request.entropy:
        layers = _solve_lower_readouts(request, layers)
    last = len(layers) - 1

    def top_data(data: Dataset) -> Dataset:
        inputs = layer_inputs(layers, data.X, request.sees, entropy=request.entropy)
        return _layer_data(request, last, inputs[-1], data)

    top = layers[-1]
    task = top.settings.task(split.train.per_step)
    context = FitContext(
        settings=top.settings,
        split=Split(top_data(split.train), None if split.held_out is None else top_data(split.held_out), split.refit),
        task=task,
        loss=request.codec.error,
        rng=request.rng,
    )
    fit = Fit(reservoir=top.network.reservoir, readout=top.network.readout)
    if request.entropy:
        s = collect(fit.reservoir, context.split.train, task.view())
        fit = replace(fit, ridge_fit=ExactFit(top.network.readout.U, top.network.readout.ridge, s))
    else:
        fit = fit_softmax_readout(fit_ridge_readout(fit, context), context)
    fit = finish_readout(fit, context)
    return [*layers[:-1], replace(top, network=fit.network(context))]


def _solve_lower_readouts(request: StackRequest, layers: list[FittedLayer]) -> list[FittedLayer]:
    """Solve the closed-form readouts below the top again, for the weights that the joint epochs have left."""
    train, X = request.split.train, request.split.train.X
    layers = list(layers)
    for number, layer in enumerate(layers[:-1]):
        network = layer.network
        s = collect(network.reservoir, _layer_data(request, number, X, train), network.view)
        readout = replace(network.readout, U=solve(s, network.readout.ridge, intercept=True), statistics=None)
        layers[number] = replace(layer, network=replace(network, readout=readout), codec=request.codec)
        X = pass_up(layers, number, X, train.X, request.sees, entropy=request.entropy)
    return layers
