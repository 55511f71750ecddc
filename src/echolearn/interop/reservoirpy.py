"""Exchange of reservoirs and whole models with reservoirpy (0.4); states and outputs stay the same.

reservoirpy's step x[t+1] = (1 - lr) x[t] + lr f(W x[t] + Win u[t+1] + bias) is eq. 1 with W_rec = W, W = Win'
and a = lr. A readout Wout and its bias are U. Values that a model feeds back are further columns of Win.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from echolearn.estimators import ESNClassifier, ESNRegressor
from echolearn.estimators._functions import estimator_of
from echolearn.fitting.codecs import ValueCodec
from echolearn.fitting.inputs import InputCodec
from echolearn.fitting.model import FittedModel
from echolearn.readout.network import Network, Readout
from echolearn.readout.view import ReadoutView
from echolearn.reservoir import Reservoir
from echolearn.reservoir._activations import ACTIVATIONS
from echolearn.training.history import History
from echolearn.validation import Array

__all__ = ["from_reservoirpy", "to_reservoirpy"]

if TYPE_CHECKING:  # an optional dependency
    from reservoirpy.node import Node

# nodes that have W and Win too, but step otherwise
_OTHER_STEPS = {
    "IPReservoir": "it leaks before its activation, and has gains",
    "LocalPlasticityReservoir": "it leaks before its activation",
    "ES2N": "its leak goes through an orthogonal matrix",
    "LIF": "its units spike",
}


def from_reservoirpy(node: Node) -> Reservoir | ESNRegressor:
    """Return a reservoir of reservoirpy as a `Reservoir`, or a fitted model as a fitted `ESNRegressor`.

    Parameters
    ----------
    node : reservoirpy.nodes.Reservoir, reservoirpy.ESN or reservoirpy.Model
        A reservoir that has run or been initialised, or was given its matrices; or a fitted model of one reservoir and
        one linear readout (Ridge, RLS, LMS), with or without inputs to the readout and feedback to the reservoir.

    Returns
    -------
    Reservoir or ESNRegressor
        For a reservoir, a `Reservoir`, for example for ``ESNRegressor(reservoir=from_reservoirpy(node))``. For a model,
        an estimator in float64 with the same predictions. It can be saved, exported, run as a stream and trained
        further.

    Raises
    ------
    ValueError
        If the node has another state equation than eq. 1, or has no matrices yet.

    Examples
    --------
    >>> from types import SimpleNamespace  # stands for reservoirpy.nodes.Reservoir here
    >>> import numpy as np
    >>> from echolearn.interop.reservoirpy import from_reservoirpy
    >>> node = SimpleNamespace(Win=np.ones((3, 2)), W=0.5 * np.eye(3), bias=0.0, lr=0.3, activation=np.tanh)
    >>> reservoir = from_reservoirpy(node)
    >>> reservoir.N, reservoir.n_in, reservoir.activation
    (3, 2, 'tanh')
    """
    return _estimator(node) if hasattr(node, "nodes") else _reservoir(node)


def _matrix(value: object) -> Array:
    """Return a dense float64 copy of a matrix, dense or sparse."""
    return np.array(value.toarray() if sparse.issparse(value) else value, dtype=np.float64)  # type: ignore[attr-defined]


def _reservoir(node: Node, fed_back: int = 0) -> Reservoir:
    """Return the weights of a reservoir node, whose last `fed_back` inputs are outputs of the step before."""
    kind = type(node).__name__
    if kind in _OTHER_STEPS:
        raise ValueError(f"a {kind} does not step as echolearn's reservoirs do: {_OTHER_STEPS[kind]}.")
    absent = [name for name in ("Win", "W", "lr", "activation") if not hasattr(node, name)]
    if absent:
        raise ValueError(f"{kind} has no {' and no '.join(absent)}; expected a Reservoir, an ESN or a Model.")
    if callable(node.Win) or callable(node.W) or callable(node.bias):
        raise ValueError("this node has no matrices yet. Run it on some data first, or call its initialize.")
    name = getattr(node.activation, "__name__", str(node.activation))
    if name not in ACTIVATIONS:
        raise ValueError(f"its activation is {name}; echolearn knows {', '.join(sorted(ACTIVATIONS))}.")
    Win = _matrix(node.Win)
    N, inputs = Win.shape[0], Win.shape[1] - fed_back
    bias = np.broadcast_to(np.ravel(_matrix(node.bias)), N)
    return Reservoir(
        W=Win[:, :inputs].T,
        W_rec=sparse.csr_array(node.W),
        activation=name,
        leak=np.asarray(node.lr, dtype=np.float64),
        bias=bias if bias.any() else None,
        W_fb=Win[:, inputs:] if fed_back else None,
    )


def _estimator(model: Node) -> ESNRegressor:
    """Return a fitted model as an estimator."""
    reservoirs = [node for node in model.nodes if hasattr(node, "Win")]
    readouts = [node for node in model.nodes if hasattr(node, "Wout")]
    if len(reservoirs) != 1 or len(readouts) != 1:
        raise ValueError(
            f"this model has {len(reservoirs)} reservoirs and {len(readouts)} readouts; expected one of each. Take its "
            "nodes one by one: from_reservoirpy(node)."
        )
    node, readout = reservoirs[0], readouts[0]
    if readout.Wout is None or callable(readout.Wout):
        raise ValueError("this model is not fitted: its readout has no weights. Fit it, or take its reservoir alone.")
    Wout = _matrix(readout.Wout)
    delays = [delay for parent, delay, child in model.edges if parent is readout and child is node]
    if delays not in ([], [1]):
        raise ValueError(f"its outputs are fed back with delays {delays}; echolearn feeds them back after one step.")
    reservoir = _reservoir(node, fed_back=len(delays) * Wout.shape[1])
    parents = list(model.parents[readout])
    direct = len(parents) == 2
    if direct and parents[0] is not node:  # our U has the states first
        Wout = np.vstack([Wout[reservoir.n_in :], Wout[: reservoir.n_in]])
    intercept = np.broadcast_to(np.ravel(_matrix(readout.bias)), Wout.shape[1])
    U = np.vstack([Wout, intercept])
    view = ReadoutView(0, direct)
    if len(U) != view.rows(reservoir):
        raise ValueError(f"its readout sees {len(Wout)} values; expected states, or states and inputs.")
    ridge = float(getattr(readout, "ridge", 0.0))
    estimator = estimator_of(
        FittedModel(
            estimator="ESNRegressor",
            settings={
                "reservoir": reservoir,
                "standardize": False,
                "learn": "none",
                "direct": direct,
                "washout": 0,
                "dtype": "float64",
            },
            network=Network(reservoir, Readout(U, softmax=False, ridge=ridge), view),
            codec=ValueCodec(np.zeros(U.shape[1]), np.ones(U.shape[1]), False, "float64"),
            history=History(),
            feature_names=[],
            inputs=InputCodec.identity(reservoir.n_in),
        )
    )
    assert isinstance(estimator, ESNRegressor)
    return estimator


def to_reservoirpy(fitted: Reservoir | ESNRegressor | ESNClassifier) -> Node:
    """Return a `Reservoir` as a node of reservoirpy, or a fitted estimator as a model of reservoirpy.

    Parameters
    ----------
    fitted : Reservoir, ESNRegressor or ESNClassifier
        A reservoir; or an estimator with one answer per step, without feedback, both directions of time, or flags of
        missing values. The scales of its inputs and targets become part of the weights.

    Returns
    -------
    reservoirpy.nodes.Reservoir or reservoirpy.ESN
        For a reservoir, the node. With feedback weights, it takes the outputs that are fed back as further inputs,
        after the others. For an estimator, the model, whose outputs are the values of a regressor, and for a classifier
        the scores of `classes_` (logits, if its readout is a softmax). It computes in float64: an estimator with
        ``dtype="float64"`` has the same states to rounding. An initial state other than zero applies to the node's
        first run only; its `reset` returns to zero.

    Raises
    ------
    ValueError
        If reservoirpy has no node for a setting.

    Examples
    --------
    >>> from echolearn import Reservoir
    >>> from echolearn.interop.reservoirpy import to_reservoirpy
    >>> node = to_reservoirpy(Reservoir.random(2, 50, random_state=0))  # doctest: +SKIP
    """
    if isinstance(fitted, Reservoir):
        W_fb = np.empty((fitted.N, 0)) if fitted.W_fb is None else fitted.W_fb
        return _node(fitted, np.hstack([fitted.W.T, W_fb]), _bias(fitted))
    _check_can_be_a_model(fitted)
    network, inputs, codec = fitted.model_.single, fitted.inputs_, fitted.codec_
    r = network.reservoir
    # x is standardised: W'(x - mean)/scale = (W/scale)'x - (W/scale)'mean, and so for the rows of U that see it
    Win = r.W.T / inputs.scale
    node = _node(r, Win, _bias(r) - Win @ inputs.mean)
    states, seen, intercept = np.split(network.readout.U, [r.N, len(network.readout.U) - 1])
    if network.view.direct:
        seen = seen / inputs.scale[:, None]
        intercept = intercept - inputs.mean @ seen
    Wout = np.vstack([states, seen])
    if isinstance(codec, ValueCodec):
        Wout, intercept = Wout * codec.scale, intercept * codec.scale + codec.mean
    package = _installed()
    readout = package.nodes.Ridge(ridge=network.readout.ridge, Wout=Wout, bias=intercept.ravel())
    model = package.ESN(reservoir=node, readout=readout, input_to_readout=network.view.direct)
    model.initialize(np.zeros((1, r.n_in)), np.zeros((1, Wout.shape[1])))
    _begin(node, r)
    return model


def _check_can_be_a_model(fitted: object) -> None:
    if not isinstance(fitted, (ESNRegressor, ESNClassifier)) or not hasattr(fitted, "network_"):
        raise ValueError(
            f"{type(fitted).__name__} has no counterpart in reservoirpy here; expected a Reservoir, or a fitted "
            "ESNRegressor or ESNClassifier. Of others, hand over the weights: to_reservoirpy(esn.reservoir_)."
        )
    refused = {
        "feedback": fitted.network_.reservoir.W_fb is not None,
        "flags of missing values": bool(fitted.inputs_.flagged.any()),
    }
    if any(refused.values()):
        what = " and ".join(name for name, found in refused.items() if found)
        raise ValueError(
            f"this {type(fitted).__name__} has {what}, which a model of reservoirpy cannot have. Hand over its weights "
            "alone: to_reservoirpy(esn.reservoir_), for inputs as they are inside."
        )


def _bias(r: Reservoir) -> Array:
    return np.zeros(r.N) if r.bias is None else r.bias


def _installed() -> ModuleType:
    try:
        import reservoirpy
        import reservoirpy.nodes
    except ImportError as problem:
        raise ImportError("to_reservoirpy needs reservoirpy: pip install 'echolearn[reservoirpy]'.") from problem
    package: ModuleType = reservoirpy
    return package


def _node(r: Reservoir, Win: Array, bias: ArrayLike) -> Node:
    """Return the node of a reservoir with these input weights (N, inputs)."""
    if r.backward is not None:
        raise ValueError("bidirectional=True: reservoirpy has no units that run backward in time.")
    node = _installed().nodes.Reservoir(
        W=r.W_rec.copy(), Win=Win, bias=np.asarray(bias), lr=r.leak.copy(), activation=r.activation
    )
    _begin(node, r)
    return node


def _begin(node: Node, r: Reservoir) -> None:
    """Put a node into the initial state of the reservoir."""
    if not getattr(node, "initialized", False):
        node.initialize(np.zeros((1, node.Win.shape[1])))
    node.state = {"out": r.initial_states(1, np.float64)[0]}
