"""Stacks of layers: their states, and the outputs that each layer passes on to the one above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from echolearn.readout.network import probabilities
from echolearn.readout.view import Task, stack
from echolearn.reservoir import Reservoir
from echolearn.sequences.batch import Batch
from echolearn.sequences.selection import Selection
from echolearn.states.run import States, run
from echolearn.validation import Array


@dataclass(frozen=True, eq=False)
class Layer:
    """The weights of a layer, its readout U and what that sees, its ridge, and the scale (n_out,) of its outputs."""

    reservoir: Reservoir
    task: Task
    ridge: float
    scale: Array
    U: Array


@dataclass(frozen=True, eq=False)
class StackedNetwork:
    """Layers from the input to the top.

    sees: what a layer sees of the one below, "output", "output+input" or "output+hidden". softmax: whether outputs are
    passed on as probabilities, and the error is the cross entropy.
    """

    layers: Sequence[Layer]
    sees: str
    softmax: bool


@dataclass(eq=False)
class LayerView:
    """A batch in a layer: H_c (K, M) of every frame; H_s, T and its weights w at the frames that carry targets."""

    batch: Batch
    states: States
    selection: Selection
    H_c: Array
    H_s: Array
    T: Array

    @property
    def w(self) -> Array | None:
        return self.selection.w


def passed_on(H: Array, Y: Array, X: Array, *, scale: Array, sees: str, softmax: bool) -> Array:
    """Return the inputs (K, .) of the layer above: Y or its softmax, scaled, and beside it X of the stack or H."""
    Y = probabilities(Y) if softmax else Y
    beside = {"output": [], "output+input": [X], "output+hidden": [H]}[sees]
    return np.hstack([Y * scale.astype(Y.dtype), *beside])


def view_layer(layer: Layer, batch: Batch, X: Array) -> LayerView:
    """Return the states of a layer for inputs X (K, n_in) in the order of `batch`, and what its readout sees."""
    assert batch.T is not None
    T, batch = batch.T, replace(batch, X=X)
    states, selection = run(layer.reservoir, batch), layer.task.select(batch)
    seen = {"direct": layer.task.direct, "intercept": layer.task.intercept}
    H_c = stack(states.H, X, **seen)
    return LayerView(batch, states, selection, H_c, selection.take(H_c), selection.take(T))


def scale_to_one(X: list[Array], columns: int) -> Array:
    """Scale the first columns, in place, to a standard deviation of 1 over all sequences, and return the factors."""
    spread = np.concatenate([x[:, :columns] for x in X]).std(axis=0, dtype=np.float64)
    factors = 1 / np.where(spread > 0, spread, 1.0)
    for x in X:
        x[:, :columns] *= factors
    return factors


def layer_outputs(network: StackedNetwork, layer: Layer, U: Array, view: LayerView, X: Array) -> Array:
    """Return what a layer with the readout U passes on of a batch; X: the inputs of the stack."""
    Y = view.H_c @ U.astype(X.dtype)
    return passed_on(view.states.H, Y, X, scale=layer.scale, sees=network.sees, softmax=network.softmax)


def stacked_outputs(network: StackedNetwork, batch: Batch) -> tuple[Array, Array, Array | None]:
    """Return the outputs of the top layer, its targets and their weights, at the frames that carry targets."""
    X = batch.X
    for layer in network.layers[:-1]:
        X = layer_outputs(network, layer, layer.U, view_layer(layer, batch, X), batch.X)
    top = network.layers[-1]
    view = view_layer(top, batch, X)
    return view.H_s @ top.U.astype(X.dtype), view.T, view.w
