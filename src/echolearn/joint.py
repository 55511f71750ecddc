"""Layers on layers, learned together: E of the top layer and its exact derivatives through all of them.

Layer l runs on X_l and has a readout of its own, U_l = A_l^-1 Q_l with A_l = G_l + mu_l I (the intercept goes free), fitted
to the targets T. The layer above sees its linear outputs Y_l = H_c U_l, scaled by a fixed factor each, and beside them
nothing, the input of the network, or the states H_l. E is the top layer's own,

    E = min_U ||H_c U - T||² + mu ||U||²          (or, in the last epochs of a classifier, the cross entropy).

The top's U minimises E, so that its motion adds nothing (see `gradients`): dE/dH_c = 2 R U'. U_l below minimises the
error of its own layer, not E, so that its motion counts. Let D = dE/dY_l at every frame and P = H_c'D = dE/dU_l. From
A U = Q follows dU = A^-1 (dQ - dG U), with dQ = dH_c'T and dG = dH_c'H_c + H_c'dH_c, and so, with Lambda = A^-1 P,

    <P, dU> = <Lambda, dH_c'(T - H_c U) - H_c'dH_c U> = <dH_c, -R Lambda' - H_c Lambda U'>,       R = H_c U - T,

    dE/dH_c = (D - H_c Lambda) U' - R Lambda',

the terms with Lambda at frames that carry a target only: D is there in the washout too, since the layer above runs on it.
With Z, the error at z_t, from the way back through time (`gradients.through_time`),

    dE/dX_l = Z W_l' + the columns of dE/dH_c that stand for X_l (direct connections),

and its columns are D of the layer below, and what comes to its states directly.

Y is linear on purpose: U is then in closed form, and its derivative with it. A softmax in between would add nothing that the
units above cannot do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echolearn import readout, softmax
from echolearn.engine import each
from echolearn.gradients import Gradients, error_wrt_states, through_time
from echolearn.passes import Task
from echolearn.readout import Sums
from echolearn.reservoir import Reservoir
from echolearn.sequences import Batch, Selection
from echolearn.states import States, run

Array = NDArray[Any]

SEES = ("output", "output+input", "output+hidden")


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer: its weights, what its readout sees, its ridge mu, and the factors (n_out,) of what it passes on."""

    reservoir: Reservoir
    task: Task
    ridge: float
    scale: Array


@dataclass(eq=False)
class View:
    """One pile of sequences as a layer sees it: H_c (K, M) of every frame, H_s and T at the frames with targets."""

    batch: Batch
    states: States
    select: Selection
    H_c: Array
    H_s: Array
    T: Array


def view(layer: Layer, batch: Batch, X: Array, T: Array) -> View:
    """The layer's states for inputs X (K, n_in), in the order of `batch`."""
    batch = replace(batch, X=X, T=T)
    states = run(layer.reservoir, batch)
    select = layer.task.select(batch)
    if layer.task.pooling:
        H_s = readout.stack(select.take(states.H), select.take(X), direct=layer.task.direct, intercept=True)
        return View(batch, states, select, H_s, H_s, T)
    H_c = readout.stack(states.H, X, direct=layer.task.direct, intercept=True)
    return View(batch, states, select, H_c, select.take(H_c), select.take(T))


def passed_on(H: Array, Y: Array, X: Array, scale: Array, sees: str) -> Array:
    """The inputs of the layer above (K, .): Y scaled, and beside it X or H."""
    parts = {"output": [], "output+input": [X], "output+hidden": [H]}[sees]
    return np.hstack([Y * scale.astype(Y.dtype), *parts])


@dataclass(eq=False)
class Memory:
    """What is kept of a layer between mini-batches: its sums and P, of the size of a full pass (see `training.running`)."""

    sums: Sums | None = None
    P: Array | None = None


@dataclass(eq=False)
class Slopes:
    """Gradients a layer, the top's error over these frames (squared, or -Σ log P), dE/dV if V is given, and the targets met."""

    gradients: list[Gradients]
    loss: float
    n: int
    readouts: list[Array]
    dE_dV: Array | None = None


def slopes(
    layers: Sequence[Layer],
    sees: str,
    piles: Sequence[Batch],
    targets: Sequence[tuple[Array, Array]],
    n_out: int,
    *,
    remember: Any = None,
    V: Array | None = None,
) -> Slopes:
    """E's derivatives at these sequences. targets: for each pile, those of the layers below and of the top.

    With all the sequences at once they are exact. For a mini-batch, `remember(number, sums, P)` turns its sums, and later
    its P, into those of a full pass. V: the softmax readout of the top, in place of its U.
    """
    top = len(layers) - 1
    keep = remember or (lambda number, sums, P: sums if P is None else P)
    X, views, readouts, kept = [pile.X for pile in piles], [], [], []
    for number, layer in enumerate(layers):
        T = [t[number == top] for t in targets]
        here = list(each(lambda i: view(layer, piles[i], X[i], T[i]), range(len(piles))))  # noqa: B023
        views.append(here)
        if number == top and V is not None:
            readouts.append(V)
            break
        product = np.float64 if remember is None else piles[0].X.dtype
        parts = list(each(lambda v: readout.sums(v.H_s, v.T, n_out, product), here))  # noqa: B023
        fresh = parts[0]
        for more in parts[1:]:
            fresh += more
        kept.append(keep(number, fresh, None))
        U = readout.solve(kept[-1], layer.ridge, intercept=True)
        readouts.append(U)
        if number < top:
            u = U.astype(piles[0].X.dtype)
            X = list(
                each(lambda i: passed_on(here[i].states.H, here[i].H_c @ u, piles[i].X, layer.scale, sees), range(len(X)))  # noqa: B023
            )
    found = list(each(lambda v: _of_top(layers[top], v, readouts[top], V is not None), views[top]))
    gradients = [_total([f[0] for f in found])]
    D = [f[1] for f in found]
    for number in range(top - 1, -1, -1):
        layer, U = layers[number], readouts[number]
        P = sum(
            each(lambda i: views[number][i].H_c.T @ (D[i][:, :n_out] * layer.scale.astype(D[i].dtype)), range(len(D)))  # noqa: B023
        )
        P = keep(number, None, np.asarray(P, np.float64))
        Lambda = readout.solve(replace(kept[number], Q=P), layer.ridge, intercept=True)
        back = list(
            each(lambda i: _of_lower(layer, views[number][i], U, Lambda, D[i], sees, number > 0), range(len(D)))  # noqa: B023
        )
        gradients.insert(0, _total([b[0] for b in back]))
        D = [b[1] for b in back]
    dE_dV = None if V is None else np.sum([f[3] for f in found], axis=0)
    n = sum(len(v.T) for v in views[top])
    return Slopes(gradients, sum(f[2] for f in found), n, readouts, dE_dV)


def _total(parts: list[Gradients]) -> Gradients:
    result = parts[0]
    for more in parts[1:]:
        result += more
    return result


def _of_top(layer: Layer, v: View, U: Array, entropy: bool) -> tuple[Gradients, Array, float, Array | None]:
    """The top layer's gradients, dE/dX, error and (of the cross entropy) dE/dV, over one pile."""
    u = U.astype(v.H_s.dtype)
    Y = v.H_s @ u
    if entropy:
        P = softmax.probabilities(Y)
        loss = -float(np.log(np.maximum(P[np.arange(len(v.T)), v.T], 1e-30)).sum(dtype=np.float64))
        R = readout.residual(P, v.T)
        gradients, dE_dX = _back(layer, v, v.select.put, R @ u[:-1].T)
        return gradients, dE_dX, loss, v.H_s.T @ R
    R = readout.residual(Y, v.T)
    loss = float(np.vdot(R, R))
    gradients, dE_dX = _back(layer, v, v.select.put, error_wrt_states(R, u[:-1]))
    return gradients, dE_dX, loss, None


def _of_lower(
    layer: Layer, v: View, U: Array, Lambda: Array, D: Array, sees: str, further: bool
) -> tuple[Gradients, Array]:
    """A lower layer's gradients and (if there is a layer below, `further`) dE/dX, over one pile, from D (K, .), dE/dX
    of the layer above."""
    dtype, N = D.dtype, layer.reservoir.N
    rows = len(U) - 1 if further else N
    u, lam = U.astype(dtype), Lambda.astype(dtype)
    n_out = U.shape[1]
    R = readout.residual(v.H_s @ u, v.T)
    at_Y = D[:, :n_out] * layer.scale.astype(dtype) - v.select.put(v.H_s @ lam)
    dE_dH_c = at_Y @ u[:rows].T - v.select.put(R) @ lam[:rows].T
    if sees == "output+hidden":
        dE_dH_c[:, :N] += D[:, n_out:]
    return _back(layer, v, lambda M: M, dE_dH_c)


def _back(layer: Layer, v: View, put: Any, dE_dH_c: Array) -> tuple[Gradients, Array]:
    """Through time: the gradients and dE/dX (K, n_in), from dE/dH_c without its intercept."""
    width = v.select.parts * layer.reservoir.N
    Z = np.ascontiguousarray(put(dE_dH_c[:, :width]))
    gradients = through_time(
        layer.reservoir, v.batch, v.states, Z, lookback=layer.task.lookback, washout=layer.task.washout
    )  # Z, dE/dH before, is now the error at z
    dE_dX = Z @ layer.reservoir.W.T.astype(Z.dtype)
    if layer.task.direct and dE_dH_c.shape[1] > width:
        dE_dX += put(dE_dH_c[:, width:])
    return gradients, dE_dX
