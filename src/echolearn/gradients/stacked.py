"""The error at the top of a stack, and its exact derivatives through all layers.

Layer l runs on X_l and has a readout of its own, Y_l = H_c U_l, fitted to the targets T. The layer above sees its
outputs S_l, each scaled by a fixed factor, and beside them nothing, the input of the stack, or the states H_l.

**Squared error.** S = Y. Every readout is in closed form, U_l = A^-1 Q with A = G + mu I (no penalty on the intercept),
and

    E = min_U ||H_c U - T||² + mu ||U||²                 of the top layer.

U of the top layer minimises E, so that its own change adds nothing (see `gradients.exact`): dE/dH_c = 2 R U'. U_l of a
lower layer minimises the error of its own layer, not E, so that its change counts. Let D = dE/dY_l at every frame and
P = H_c'D = dE/dU_l.
From A U = Q follows dU = A^-1 (dQ - dG U), with dQ = dH_c'T and dG = dH_c'H_c + H_c'dH_c; with Lambda = A^-1 P

    <P, dU> = <Lambda, dH_c'(T - H_c U) - H_c'dH_c U> = <dH_c, -R Lambda' - H_c Lambda U'>,       R = H_c U - T,

    dE/dH_c = (D - H_c Lambda) U' - R Lambda',

where the terms with Lambda exist only at frames that carry a target. D exists in the washout too, because the layer
above runs on it. Where targets have weights w, R and H_c Lambda are multiplied by them, row by row.

**Cross entropy.** S = softmax(Y). Readouts V_l are weights like the others: dE/dV_l = P and dE/dH_c = D V_l'. The
lower layers keep a share of their own error, so that their outputs remain predictions: E = E_top + OWN Σ E_l, and with
C = dE/dS, row by row,

    D = S ∘ (C - Σ_k S_k C_k) + OWN (S - T).

In both cases, with Z, the error at z_t, from the way back through time (`gradients.exact.through_time`),

    dE/dX_l = Z W_l' + the columns of dE/dH_c that belong to X_l (direct connections),

whose columns are dE/dS of the layer below and the direct error at its states. With the squared error, the linear
outputs are passed on, for which there is a closed form. With the cross entropy, their softmax is passed on: logits have
a direction without meaning, in which they would drift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import iadd
from typing import TypeVar

import numpy as np

from echolearn.execution.threads import map_and_sum, map_in_order
from echolearn.gradients.exact import Gradients, error_wrt_states, through_time
from echolearn.gradients.stacked_network import (
    Layer,
    LayerView,
    StackedNetwork,
    layer_outputs,
    view_layer,
)
from echolearn.readout.network import probabilities
from echolearn.readout.ridge import solve
from echolearn.readout.softmax import entropy
from echolearn.readout.statistics import Statistics, residual, statistics_of, weighted
from echolearn.sequences.batch import Batch
from echolearn.validation import Array

OWN = 0.3  # share of a lower layer's own cross entropy

Result = TypeVar("Result")


@dataclass(eq=False)
class StackedGradients:
    """The gradients of E for each layer, at these readouts.

    loss: the error of the top layer (||R||², or -Σ log P) over n frames; dE_dV: for the cross entropy, the derivatives
    by the readouts.
    """

    gradients: list[Gradients]
    loss: float
    n: float
    readouts: list[Array]
    dE_dV: list[Array]


class FullPass:
    """The statistics of a full pass over the data, if all of the data are in one batch.

    `training.objectives.joint.RunningPass` estimates those of a full pass from mini-batches.
    """

    def statistics(self, layer: int, found: Statistics) -> Statistics:
        """Return the statistics of a full pass from those of a mini-batch."""
        return found

    def readout_gradient(self, layer: int, P: Array) -> Array:
        """Return dE/dU of a full pass from that of a mini-batch."""
        return P


def stacked_gradients(
    network: StackedNetwork,
    batches: Sequence[Batch],
    n_out: int,
    *,
    full_pass: FullPass | None = None,
) -> StackedGradients:
    """Return E and its derivatives over these batches: of the squared error, or of the cross entropy.

    With all sequences at once, those of the squared error are exact. With a mini-batch, `full_pass` turns the
    statistics of a layer, and later its dE/dU, into those of a full pass.
    """
    full_pass = full_pass or FullPass()
    views, statistics, readouts = _forward(network, batches, n_out, full_pass)
    top = len(network.layers) - 1
    found = _each(partial(_at_top, network, readouts[top]), views[top])
    gradients, dE_dV = [_sum(f[0] for f in found)], [_sum(f[3] for f in found)] if network.softmax else []
    D = [f[1] for f in found]
    for number in range(top - 1, -1, -1):
        layer, U, here = network.layers[number], readouts[number], views[number]
        D_Y = _each(partial(_at_outputs, network, layer, U), here, D)
        P = _sum(_each(lambda view, d: view.H_c.T @ d, here, D_Y))
        Lambda = None
        if network.softmax:
            dE_dV.insert(0, P)
        else:
            P = full_pass.readout_gradient(number, P.astype(np.float64))
            Lambda = solve(replace(statistics[number], Q=P), layer.ridge, intercept=True)
        D_H = [d[:, n_out:] if network.sees == "output+hidden" else None for d in D]
        back = _each(partial(_at_layer, layer, U=U, Lambda=Lambda), here, D_Y, D_H)
        gradients.insert(0, _sum(b[0] for b in back))
        D = [b[1] for b in back]
    n = sum(len(v.T) if v.w is None else float(v.w.sum()) for v in views[top])
    return StackedGradients(gradients, sum(f[2] for f in found), n, readouts, dE_dV)


def _forward(
    network: StackedNetwork, batches: Sequence[Batch], n_out: int, full_pass: FullPass
) -> tuple[list[list[LayerView]], list[Statistics], list[Array]]:
    """Return the views of the batches, the statistics and the readout of every layer."""
    views: list[list[LayerView]] = []
    statistics: list[Statistics] = []
    readouts: list[Array] = []
    X = [batch.X for batch in batches]
    for number, layer in enumerate(network.layers):
        top = number == len(network.layers) - 1
        here = _each(partial(view_layer, layer), batches, X)
        views.append(here)
        if network.softmax:
            readouts.append(layer.U)
        else:
            fresh = map_and_sum(lambda view: statistics_of(view.H_s, view.T, n_out, w=view.w), here)
            statistics.append(full_pass.statistics(number, fresh))
            readouts.append(solve(statistics[-1], layer.ridge, intercept=True))
        if not top:
            X = _each(partial(layer_outputs, network, layer, readouts[-1]), here, [batch.X for batch in batches])
    return views, statistics, readouts


def _each(function: Callable[..., Result], *lists: Sequence[object]) -> list[Result]:
    """Return function(*items) for the items of several lists, on all cores."""
    return list(map_in_order(lambda items: function(*items), zip(*lists, strict=True)))


def _sum(terms: Iterable[Result]) -> Result:
    """Return the sum, added into the first term."""
    return reduce(iadd, terms)


def _entropy(Y: Array, T: Array, w: Array | None) -> tuple[float, Array]:
    """Return -Σ w log softmax(Y)[label] and its derivative by Y; Y is overwritten."""
    P = probabilities(Y)
    return entropy(P, T, w), weighted(residual(P, T), w)


def _at_top(network: StackedNetwork, U: Array, view: LayerView) -> tuple[Gradients, Array, float, Array]:
    """Return the gradients, dE/dX, the error and (for the cross entropy) dE/dV of the top layer over one batch."""
    layer, U = network.layers[-1], U.astype(view.H_s.dtype)
    if network.softmax:
        loss, R = _entropy(view.H_s @ U, view.T, view.w)
        dE_dH_c = R @ U[:-1].T
    else:
        Y_T = residual(view.H_s @ U, view.T)
        R = weighted(Y_T, view.w)
        loss = float(np.vdot(Y_T, R))
        dE_dH_c = error_wrt_states(R, U[:-1])
    width = layer.reservoir.N
    direct = view.selection.put(dE_dH_c[:, width:]) if layer.task.direct else None
    gradients, dE_dX = _through_time(layer, view, view.selection.put(dE_dH_c[:, :width]), direct)
    return gradients, dE_dX, loss, view.H_s.T @ R


def _at_outputs(network: StackedNetwork, layer: Layer, U: Array, view: LayerView, D: Array) -> Array:
    """Return dE/dY (K, n_out) of a lower layer, from dE/dX of the layer above."""
    C = D[:, : U.shape[1]] * layer.scale.astype(D.dtype)
    if not network.softmax:
        return np.asarray(C)
    S = probabilities(view.H_c @ U.astype(D.dtype))
    own = np.asarray(OWN, D.dtype) * weighted(residual(view.selection.take(S).copy(), view.T), view.w)
    return np.asarray(S * (C - (S * C).sum(axis=1, keepdims=True)) + view.selection.put(own))


def _at_layer(
    layer: Layer, view: LayerView, D_Y: Array, D_H: Array | None, *, U: Array, Lambda: Array | None
) -> tuple[Gradients, Array]:
    """Return the gradients and dE/dX of a lower layer over one batch, from dE/dY and the direct error at its states."""
    N, U = layer.reservoir.N, U.astype(D_Y.dtype)
    if Lambda is None:
        dE_dH_c = D_Y @ U[:-1].T
    else:
        lam = Lambda.astype(D_Y.dtype)
        R = weighted(residual(view.H_s @ U, view.T), view.w)
        of_U = weighted(view.H_s @ lam, view.w)
        dE_dH_c = (D_Y - view.selection.put(of_U)) @ U[:-1].T - view.selection.put(R @ lam[:-1].T)
    dE_dH = dE_dH_c[:, :N] if D_H is None else dE_dH_c[:, :N] + D_H
    return _through_time(layer, view, dE_dH, dE_dH_c[:, N:] if layer.task.direct else None)


def _through_time(layer: Layer, view: LayerView, dE_dH: Array, direct: Array | None) -> tuple[Gradients, Array]:
    """Return the gradients and dE/dX (K, n_in), which includes the error through direct connections."""
    reservoir, task = layer.reservoir, layer.task
    Z = np.ascontiguousarray(dE_dH)
    gradients = through_time(reservoir, view.batch, view.states, Z, lookback=task.lookback, washout=task.washout)
    dE_dX = Z @ reservoir.W.T.astype(Z.dtype)  # through_time has left the error at z in Z
    return gradients, dE_dX if direct is None else dE_dX + direct
