"""Layers on layers: the error at the top, and its exact derivatives through all of them.

Layer l runs on X_l and has a readout of its own, Y_l = H_c U_l, fitted to the targets T. The layer above sees its
answers S_l, each scaled by a fixed factor, and beside them nothing, the input of the stack, or the states H_l.

**Squared error.** S = Y. Every readout is in closed form, U_l = A^-1 Q with A = G + mu I (the intercept goes free), and

    E = min_U ||H_c U - T||² + mu ||U||²                 of the top layer.

The top's U minimises E, so that its own motion adds nothing (see `gradients`): dE/dH_c = 2 R U'. U_l below minimises
the error of its own layer, not E, so that its motion counts. Let D = dE/dY_l at every frame and P = H_c'D = dE/dU_l.
From A U = Q follows dU = A^-1 (dQ - dG U), with dQ = dH_c'T and dG = dH_c'H_c + H_c'dH_c; with Lambda = A^-1 P

    <P, dU> = <Lambda, dH_c'(T - H_c U) - H_c'dH_c U> = <dH_c, -R Lambda' - H_c Lambda U'>,       R = H_c U - T,

    dE/dH_c = (D - H_c Lambda) U' - R Lambda',

the terms with Lambda only at frames that carry a target; D is there in the washout too: the layer above runs on it.

**Cross entropy.** S = softmax(Y). Readouts V_l are weights like the others: dE/dV_l = P and dE/dH_c = D V_l'. The
layers below keep a share of their own error, so that what they pass on stays an answer: E = E_top + OWN Σ E_l, and with
C = dE/dS, row by row,

    D = S ∘ (C - Σ_k S_k C_k) + OWN (S - T).

In both, with Z, the error at z_t, from the way back through time (`gradients.through_time`),

    dE/dX_l = Z W_l' + the columns of dE/dH_c that stand for X_l (direct connections),

and its columns are dE/dS of the layer below and what comes to its states directly. Squared errors have linear outputs
passed on, as far as their closed form reaches; logits have a direction without meaning in which they would drift.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn.execution.threads import each, total
from echolearn.gradients.exact import Gradients, error_wrt_states, through_time
from echolearn.readout import softmax
from echolearn.readout import statistics as readout
from echolearn.readout.collect import Task
from echolearn.readout.statistics import Sums
from echolearn.reservoir.reservoir import Reservoir
from echolearn.sequences.batch import Batch, Data, Selection
from echolearn.states.run import States, run

Array = NDArray[Any]

SEES = ("output", "output+input", "output+hidden")
OWN = 0.3  # share of a lower layer's own cross entropy


@dataclass(frozen=True, eq=False)
class Layer:
    """Its weights, what its readout sees, its ridge mu, and the factors (n_out,) of the outputs it passes on."""

    reservoir: Reservoir
    task: Task
    ridge: float
    scale: Array


@dataclass(eq=False)
class View:
    """One pile of sequences as a layer sees it: H_c (K, M) of every frame; H_s and T at the frames with targets."""

    batch: Batch
    states: States
    select: Selection
    H_c: Array
    H_s: Array
    T: Array


@dataclass(eq=False)
class Slopes:
    """Gradients of E for each layer; the top's error over these frames (||R||², or -Σ log P) and their number; the
    readouts they were taken at and, for the cross entropy, their derivatives."""

    gradients: list[Gradients]
    loss: float
    n: int
    readouts: list[Array]
    dE_dV: list[Array]


Remember = Callable[[int, Any], Any]  # layer, what a mini-batch gave -> what a full pass would have given


def view(layer: Layer, batch: Batch, X: Array, T: Array) -> View:
    """The layer's states for inputs X (K, n_in), in the order of `batch`."""
    batch = replace(batch, X=X, T=T)
    states, select, direct = run(layer.reservoir, batch), layer.task.select(batch), layer.task.direct
    if layer.task.pooling:
        H_s = readout.stack(select.take(states.H), select.take(X), direct=direct, intercept=True)
        return View(batch, states, select, H_s, H_s, T)
    H_c = readout.stack(states.H, X, direct=direct, intercept=True)
    return View(batch, states, select, H_c, select.take(H_c), select.take(T))


def passed_on(H: Array, Y: Array, X: Array, scale: Array, sees: str, entropy: bool) -> Array:
    """The inputs of the layer above (K, .): Y, or with `entropy` its softmax, scaled, and beside it X or H."""
    Y = softmax.probabilities(Y) if entropy else Y
    beside = {"output": [], "output+input": [X], "output+hidden": [H]}[sees]
    return np.hstack([Y * scale.astype(Y.dtype), *beside])


def targets_of(batch: Batch, per_step: bool) -> tuple[Array, Array]:
    """Those of the layers below, which have one a step in any case, and those of the top layer."""
    assert batch.T is not None
    return batch.T if per_step else np.concatenate([batch.T[:live] for live in batch.active]), batch.T


def a_step(data: Data) -> list[Array]:
    """Targets with one a step: a sequence's own is repeated."""
    if data.per_step:
        return list(data.y)
    return [np.repeat(np.asarray(y)[None], len(x), axis=0) for x, y in zip(data.X, data.y, strict=True)]


def scaled_to_one(X: list[Array], columns: int) -> Array:
    """The first columns scaled, in place, to a standard deviation of 1 over all sequences -> the factors."""
    spread = np.concatenate([x[:, :columns] for x in X]).std(axis=0, dtype=np.float64)
    factors = 1 / np.where(spread > 0, spread, 1.0)
    for x in X:
        x[:, :columns] *= factors
    return factors


def slopes(
    layers: Sequence[Layer],
    sees: str,
    piles: Sequence[Batch],
    n_out: int,
    *,
    per_step: bool = True,
    remember: Remember = lambda number, found: found,
    readouts: Sequence[Array] | None = None,
) -> Slopes:
    """E and its derivatives over these sequences: the squared error's, or with `readouts` V the cross entropy's.

    For all sequences at once the squared error's are exact. For a mini-batch, `remember` turns the sums of a layer, and
    later its P, into those of a full pass.
    """
    views, sums, at = _forward(layers, sees, piles, n_out, per_step, remember, readouts)
    entropy, top = readouts is not None, len(layers) - 1
    found = list(each(lambda v: _at_top(layers[top], v, at[top], entropy), views[top]))
    gradients, dE_dV = [_sum(f[0] for f in found)], [_sum(f[3] for f in found)] if entropy else []
    D = [f[1] for f in found]
    for number in range(top - 1, -1, -1):
        layer, U, here = layers[number], at[number], views[number]
        D_Y = list(each(lambda i: _at_outputs(layer, here[i], U, D[i], entropy), range(len(D))))  # noqa: B023
        P = _sum(each(lambda i: here[i].H_c.T @ D_Y[i], range(len(D))))  # noqa: B023
        Lambda = None
        if entropy:
            dE_dV.insert(0, P)
        else:
            P = remember(number, P.astype(np.float64))
            Lambda = readout.solve(replace(sums[number], Q=P), layer.ridge, intercept=True)
        D_H = [d[:, n_out:] if sees == "output+hidden" else None for d in D]
        back = list(each(lambda i: _at_layer(layer, here[i], U, Lambda, D_Y[i], D_H[i]), range(len(D))))  # noqa: B023
        gradients.insert(0, _sum(b[0] for b in back))
        D = [b[1] for b in back]
    return Slopes(gradients, sum(f[2] for f in found), sum(len(v.T) for v in views[top]), at, dE_dV)


def _forward(
    layers: Sequence[Layer],
    sees: str,
    piles: Sequence[Batch],
    n_out: int,
    per_step: bool,
    remember: Remember,
    readouts: Sequence[Array] | None,
) -> tuple[list[list[View]], list[Sums], list[Array]]:
    """Every layer's views of the piles, its sums and its readout."""
    views: list[list[View]] = []
    sums: list[Sums] = []
    at: list[Array] = []
    X, targets, these = [pile.X for pile in piles], [targets_of(pile, per_step) for pile in piles], range(len(piles))
    for number, layer in enumerate(layers):
        top = number == len(layers) - 1
        here = list(each(lambda i: view(layer, piles[i], X[i], targets[i][top]), these))  # noqa: B023
        views.append(here)
        if readouts is None:
            sums.append(remember(number, total(lambda v: readout.sums(v.H_s, v.T, n_out), here)))
            at.append(readout.solve(sums[-1], layer.ridge, intercept=True))
        else:
            at.append(readouts[number])
        if not top:
            X = list(each(lambda i: answers(layer, here[i], at[-1], piles[i].X, sees, readouts is not None), these))  # noqa: B023
    return views, sums, at


def answers(layer: Layer, v: View, U: Array, X: Array, sees: str, entropy: bool) -> Array:
    """What a layer passes on of a pile."""
    return passed_on(v.states.H, v.H_c @ U.astype(X.dtype), X, layer.scale, sees, entropy)


def _sum(parts: Any) -> Any:
    result = None
    for part in parts:
        if result is None:
            result = part
        else:
            result += part
    return result


def _entropy(Y: Array, T: Array) -> tuple[float, Array]:
    """-Σ log softmax(Y)[label], and its derivative by Y; Y is overwritten."""
    P = softmax.probabilities(Y)
    loss = -float(np.log(np.maximum(P[np.arange(len(T)), T], 1e-30)).sum(dtype=np.float64))
    return loss, readout.residual(P, T)


def _at_top(layer: Layer, v: View, U: Array, entropy: bool) -> tuple[Gradients, Array, float, Array]:
    """The top layer's gradients, dE/dX, error, and (cross entropy) dE/dV, over one pile."""
    U = U.astype(v.H_s.dtype)
    if entropy:
        loss, R = _entropy(v.H_s @ U, v.T)
        dE_dH_c = R @ U[:-1].T
    else:
        R = readout.residual(v.H_s @ U, v.T)
        loss = float(np.vdot(R, R))
        dE_dH_c = error_wrt_states(R, U[:-1])
    width = v.select.parts * layer.reservoir.N
    direct = v.select.put(dE_dH_c[:, width:]) if layer.task.direct else None
    return *_through_time(layer, v, v.select.put(dE_dH_c[:, :width]), direct), loss, v.H_s.T @ R


def _at_outputs(layer: Layer, v: View, U: Array, D: Array, entropy: bool) -> Array:
    """dE/dY (K, n_out) of a lower layer, from dE/dX of the layer above."""
    C = D[:, : U.shape[1]] * layer.scale.astype(D.dtype)
    if not entropy:
        return np.asarray(C)
    S = softmax.probabilities(v.H_c @ U.astype(D.dtype))
    own = np.asarray(OWN, D.dtype) * readout.residual(v.select.take(S).copy(), v.T)
    return np.asarray(S * (C - (S * C).sum(axis=1, keepdims=True)) + v.select.put(own))


def _at_layer(
    layer: Layer, v: View, U: Array, Lambda: Array | None, D_Y: Array, D_H: Array | None
) -> tuple[Gradients, Array]:
    """A lower layer's gradients and dE/dX over one pile, from dE/dY and what comes to its states directly."""
    N, U = layer.reservoir.N, U.astype(D_Y.dtype)
    if Lambda is None:
        dE_dH_c = D_Y @ U[:-1].T
    else:
        lam = Lambda.astype(D_Y.dtype)
        R = readout.residual(v.H_s @ U, v.T)
        dE_dH_c = (D_Y - v.select.put(v.H_s @ lam)) @ U[:-1].T - v.select.put(R @ lam[:-1].T)
    dE_dH = dE_dH_c[:, :N] if D_H is None else dE_dH_c[:, :N] + D_H
    return _through_time(layer, v, dE_dH, dE_dH_c[:, N:] if layer.task.direct else None)


def _through_time(layer: Layer, v: View, dE_dH: Array, direct: Array | None) -> tuple[Gradients, Array]:
    """The gradients, and dE/dX (K, n_in) with the part that comes through direct connections."""
    reservoir, task = layer.reservoir, layer.task
    Z = np.ascontiguousarray(dE_dH)
    gradients = through_time(reservoir, v.batch, v.states, Z, lookback=task.lookback, washout=task.washout)
    dE_dX = Z @ reservoir.W.T.astype(Z.dtype)  # through_time has left the error at z in Z
    return gradients, dE_dX if direct is None else dE_dX + direct
