"""The fitted layers of a stack, and what each passes on to the one above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

import numpy as np

from echolearn import __version__
from echolearn.display.progress import Progress, show_if_verbose
from echolearn.execution.blas import one_blas_thread
from echolearn.execution.threads import map_in_order
from echolearn.fitting.codecs import TargetCodec
from echolearn.fitting.parameters import Parameters
from echolearn.fitting.settings import NetworkSettings
from echolearn.fitting.small_data import Learning
from echolearn.fitting.stages import (
    Callback,
    Fit,
    FitContext,
    FitRequest,
    finish_readout,
    fit_network,
    fit_ridge_readout,
    fit_softmax_readout,
)
from echolearn.gradients.stacked_network import Layer, StackedNetwork, passed_on, scale_to_one
from echolearn.modelfile.checkpoint import Checkpoint
from echolearn.readout.network import Network, apply_readout
from echolearn.readout.ridge import solve
from echolearn.readout.solver import ExactFit
from echolearn.readout.statistics import Statistics, collect
from echolearn.readout.view import frames_at_once
from echolearn.sequences.batch import group_sequences, pack, unpack
from echolearn.sequences.checks import check_finite
from echolearn.sequences.dataset import Dataset
from echolearn.sequences.split import Split
from echolearn.states.run import run
from echolearn.training.history import History
from echolearn.training.loop import Schedule, TrainingResult, run_epochs
from echolearn.training.objectives.joint import JointPlan, StackedObjective
from echolearn.training.optimizers import default_step_size
from echolearn.validation import Array


@dataclass(frozen=True, eq=False)
class StackLayer:
    """A fitted layer. scale (n_out,): the factors of the outputs that it passes on; dtype: of its states."""

    network: Network
    scale: Array
    dtype: str


@dataclass(frozen=True)
class Passing:
    """What a layer sees of the one below.

    sees: "output", "output+input" or "output+hidden"; softmax: whether the outputs are passed on as probabilities.
    """

    sees: str
    softmax: bool

    def up(self, layer: StackLayer, X: Sequence[Array], source: Sequence[Array], *, number: int) -> list[Array]:
        """Return what layer `number` passes on, one array per sequence, for its inputs X and those of the stack."""
        reservoir, readout, view = layer.network.reservoir, layer.network.readout, layer.network.view
        dtype = np.dtype(layer.dtype)
        result = list(X)

        def passed_by(which: Array) -> tuple[Array, list[Array]]:
            batch, first = (pack([M[i] for i in which], dtype) for M in (X, source))
            H = run(reservoir, batch, keep_F=False).H
            Y = apply_readout(H, batch.X if view.direct else batch.X[:, :0], readout.U.astype(dtype))
            passed = passed_on(H, Y, first.X, scale=layer.scale, sees=self.sees, softmax=self.softmax)
            return which, unpack(batch, passed)

        with one_blas_thread(), np.errstate(over="ignore", invalid="ignore"):
            groups = group_sequences(np.array([len(x) for x in X]), frames_at_once(reservoir.N))
            for which, parts in map_in_order(passed_by, groups):
                for i, passed in zip(which, parts, strict=True):
                    check_finite(passed, f"outputs of layer {number}")
                    result[i] = passed
        return result

    def inputs(self, layers: Sequence[StackLayer], X: Sequence[Array]) -> list[Sequence[Array]]:
        """Return the inputs of every layer, for inputs X of the stack."""
        result = [X]
        for number, layer in enumerate(layers[:-1], 1):
            result.append(self.up(layer, result[-1], X, number=number))
        return result


JOINT_STEP_FACTOR = 0.3  # of the step size of a layer that learns by itself


@dataclass(frozen=True, kw_only=True)
class LayerRequest:
    """A layer to be fitted: the name of its estimator and its parameters, with a seed of its own."""

    owner: str
    params: Parameters
    settings: NetworkSettings


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedLayer(StackLayer):
    """A layer with its settings, how its targets are encoded, and the histories of its own epochs."""

    settings: NetworkSettings
    codec: TargetCodec
    history: History
    refinement: History


@dataclass(frozen=True, kw_only=True)
class StackRequest:
    """All that the fit of a stack depends on.

    owner, params: the name and parameters of the estimator. split: data with targets as the user gave them. codec: of
    these targets, in every layer. passing.softmax: whether layers pass on probabilities, and learn jointly on the cross
    entropy.
    """

    owner: str
    params: Parameters
    layers: Sequence[LayerRequest]
    split: Split
    codec: TargetCodec
    passing: Passing
    callback: Callback | None
    checkpoint: str | PathLike[str] | None
    rng: dict[str, np.random.Generator]


@dataclass(frozen=True)
class FittedLayers:
    """The fitted layers, the history of the joint epochs, and whether Ctrl-C ended the learning early."""

    layers: list[FittedLayer]
    history: History
    interrupted: bool


def fit_stack(request: StackRequest) -> FittedLayers:
    """Fit the layers one by one, then jointly, then their final readouts."""
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
        return FittedLayers(_finish(request, layers), history, interrupted)


def _with_weights(network: Network, layer: Layer) -> Network:
    readout = replace(network.readout, U=layer.U, statistics=None)
    return replace(network, reservoir=layer.reservoir, readout=readout)


def _fit_one_by_one(request: StackRequest) -> tuple[list[FittedLayer], bool]:
    """Fit each layer to what the ones below pass on; True if Ctrl-C ended the learning of the top one early."""
    fitted: list[FittedLayer] = []
    train, held_out = request.split.train, request.split.held_out
    X, X_held = train.X, None if held_out is None else held_out.X
    for number in range(1, len(request.layers)):
        layer, interrupted = _fit_layer(request, number, X, X_held)
        if interrupted:
            raise KeyboardInterrupt
        passed = request.passing.up(layer, X, train.X, number=number)
        layer = replace(layer, scale=scale_to_one(passed, len(layer.scale)))
        fitted.append(layer)
        X = passed
        if held_out is not None and X_held is not None:
            X_held = request.passing.up(layer, X_held, held_out.X, number=number)
    top, interrupted = _fit_layer(request, len(request.layers), X, X_held)
    return [*fitted, top], interrupted


def _fit_layer(
    request: StackRequest, number: int, X: Sequence[Array], X_held: Sequence[Array] | None
) -> tuple[FittedLayer, bool]:
    """Fit a layer by itself to its inputs; True if Ctrl-C ended its learning early."""
    layer, codec = request.layers[number - 1], request.codec
    settings = layer.settings
    show_if_verbose(
        request.params["verbose"], f"layer {number} of {len(request.layers)}: {settings.hidden_units} units"
    )

    def as_layer(inputs: Sequence[Array], data: Dataset) -> Dataset:
        encoded = codec.encode(list(data.y), True)
        return Dataset.place(inputs, encoded, codec.classes, per_step=True, dtype=settings.dtype)

    def after_epoch(row: dict[str, float]) -> object:
        return None if request.callback is None else request.callback({"layer": number, **row})

    held_out = request.split.held_out
    fitted = fit_network(
        FitRequest(
            owner=layer.owner,
            params=layer.params,
            settings=settings,
            data=as_layer(X, request.split.train),
            validation=None if held_out is None or X_held is None else as_layer(X_held, held_out),
            loss=codec.error,
            callback=after_epoch,
            checkpoint=None if request.checkpoint is None else Path(request.checkpoint) / f"layer-{number}",
        )
    )
    result = FittedLayer(
        network=fitted.network,
        scale=np.ones(fitted.network.readout.U.shape[1]),
        dtype=settings.dtype,
        settings=settings,
        codec=codec,
        history=fitted.history,
        refinement=fitted.refinement,
    )
    return result, fitted.interrupted


def _layer_data(request: StackRequest, X: Sequence[Array], data: Dataset) -> Dataset:
    """Return a layer's data, its targets encoded."""
    codec = request.codec
    return Dataset(X, codec.encode(list(data.y), True), codec.classes, True, data.dtype)


def _statistics(request: StackRequest, layers: Sequence[FittedLayer]) -> list[Statistics]:
    """Return the statistics of every layer at its current weights."""
    train = request.split.train
    return [
        collect(layer.network.reservoir, _layer_data(request, X, train), layer.network.view)
        for layer, X in zip(layers, request.passing.inputs(layers, train.X), strict=True)
    ]


def _learn_jointly(request: StackRequest, layers: Sequence[FittedLayer]) -> TrainingResult[StackedNetwork]:
    """Let all layers learn at once."""
    params, softmax = request.params, request.passing.softmax
    train, held_out = request.split.train, request.split.held_out
    data = _layer_data(request, train.X, train)
    held = None if held_out is None else _layer_data(request, held_out.X, held_out)
    largest = max(layer.settings.hidden_units for layer in layers)
    plan = JointPlan(
        [layer.settings.learn for layer in layers],
        [layer.settings.learn_leak for layer in layers],
        params["step_size"] or JOINT_STEP_FACTOR * default_step_size("adam", largest),
        params["joint_epochs"],
        layers[-1].settings.minibatch,
    )
    strengths = [layer.network.readout.strength or 0.0 for layer in layers]
    objective = StackedObjective(
        StackedNetwork([_as_layer(layer) for layer in layers], request.passing.sees, softmax),
        data,
        held,
        plan,
        statistics=_statistics(request, layers),
        strengths=strengths if softmax else None,
        loss=request.codec.error,
    )
    show_if_verbose(params["verbose"], f"all {len(layers)} layers jointly")
    checkpoint = None if request.checkpoint is None else _open_checkpoint(request, data, held)
    with Progress(params["verbose"], plan.epochs, request.callback) as progress:
        return run_epochs(
            objective,
            Schedule(plan.epochs),
            rng=request.rng["order"],
            on_epoch=progress.epoch,
            checkpoint=checkpoint,
        )


def _as_layer(layer: FittedLayer) -> Layer:
    network = layer.network
    task = layer.settings.task()
    return Layer(network.reservoir, task, network.readout.ridge, layer.scale, network.readout.U)


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
    split, softmax = request.split, request.passing.softmax
    refit = split.refit and split.held_out is not None
    if softmax and not refit:
        return layers  # the readouts have been learned with the other weights
    if request.params["joint_epochs"] and not softmax:
        layers = _solve_lower_readouts(request, layers)

    def top_data(data: Dataset) -> Dataset:
        return _layer_data(request, request.passing.inputs(layers, data.X)[-1], data)

    top = layers[-1]
    task = top.settings.task()
    context = FitContext(
        settings=top.settings,
        split=Split(top_data(split.train), None if split.held_out is None else top_data(split.held_out), split.refit),
        task=task,
        learning=Learning(top_data(split.train), task, top.settings),
        loss=request.codec.error,
        rng=request.rng,
    )
    fit = Fit(reservoir=top.network.reservoir, view=task.view(), readout=top.network.readout)
    if softmax:
        s = collect(fit.reservoir, context.split.train, task.view())
        fit = replace(fit, ridge_fit=ExactFit(top.network.readout.U, top.network.readout.ridge, s))
    else:
        fit = fit_softmax_readout(fit_ridge_readout(fit, context), context)
    fit = finish_readout(fit, context)
    return [*layers[:-1], replace(top, network=fit.network)]


def _solve_lower_readouts(request: StackRequest, layers: list[FittedLayer]) -> list[FittedLayer]:
    """Solve the closed-form readouts below the top again, for the weights that the joint epochs have left."""
    train, X = request.split.train, request.split.train.X
    solved: list[FittedLayer] = []
    for number, layer in enumerate(layers[:-1], 1):
        network = layer.network
        s = collect(network.reservoir, _layer_data(request, X, train), network.view)
        readout = replace(network.readout, U=solve(s, network.readout.ridge, intercept=True), statistics=None)
        layer = replace(layer, network=replace(network, readout=readout), codec=request.codec)
        X = request.passing.up(layer, X, train.X, number=number)
        solved.append(layer)
    return [*solved, layers[-1]]
