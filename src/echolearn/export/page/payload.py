"""A `Plan` as plain JSON, with arrays in base64. `engine.js` reads what is written here.

Arrays keep the precision in which the network computes with them: those of a float32 network are float32, the scaling
of inputs and answers is float64. Nothing is quantised.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import fields

import numpy as np
from scipy import sparse

from echolearn.exceptions import ExportError
from echolearn.modelfile.schema import THRESHOLD_WIDTH
from echolearn.reservoir._spectrum import spectral_radius_of
from echolearn.runtime._plan import (
    Block,
    Clip,
    Deep,
    FillGaps,
    InputOperation,
    Layer,
    Plan,
    Resumption,
    Sparse,
    Standardize,
    Summary,
)
from echolearn.validation import Array

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]


def pack_array(values: Array, kind: str = "f8") -> dict[str, Json]:
    """Return an array as its shape, its kind ("f8", "f4", "i4" or "u1") and its bytes, little-endian, in base64."""
    with np.errstate(over="ignore"):
        packed = np.ascontiguousarray(values, np.dtype(kind).newbyteorder("<"))
    if kind == "f4" and not np.isfinite(packed).all():
        raise ExportError("the model holds weights that are too large for float32; fit it with dtype='float64'.")
    return {"shape": list(packed.shape), "kind": kind, "data": base64.b64encode(packed.tobytes()).decode("ascii")}


def pack_plan(plan: Plan) -> dict[str, Json]:
    """Return a plan as JSON; raise ExportError for what the engine of the page cannot do."""
    kind = "f4" if plan.precision == "float32" else "f8"
    return {
        "estimator": plan.estimator,
        "precision": plan.precision,
        "n_features": plan.n_features,
        "feature_names": list(plan.feature_names),
        "inputs": [_operation(operation) for operation in plan.inputs],
        "network": _network(plan, kind),
        "summary": _summary(plan.summary),
        "answer": {
            "kind": plan.answer.kind,
            "mean": pack_array(plan.answer.mean),
            "scale": pack_array(plan.answer.scale),
            "names": list(plan.answer.names),
        },
        "horizon": plan.series_dims,
        "resumption": _resumption(plan.resumption),
    }


def _operation(operation: InputOperation) -> dict[str, Json]:
    if isinstance(operation, FillGaps):
        return {
            "kind": "fill",
            "values": pack_array(operation.values),
            "carry": operation.carry,
            "flagged": pack_array(operation.flagged, "u1"),
        }
    if isinstance(operation, Standardize):
        return {"kind": "standardize", "mean": pack_array(operation.mean), "scale": pack_array(operation.scale)}
    if isinstance(operation, Clip):
        return {"kind": "clip", "low": pack_array(operation.low), "high": pack_array(operation.high)}
    return {"kind": "project", "matrix": pack_array(operation.matrix)}


def _network(plan: Plan, kind: str) -> dict[str, Json]:
    """Return the network; kind: the type of its numbers. The readout of a summary is in float64."""
    if isinstance(plan.network, Deep):
        return _deep(plan.network, kind)
    return _layer(plan.network, kind, "f8" if plan.summary else kind)


def _deep(deep: Deep, kind: str) -> dict[str, Json]:
    return {
        "stacks": [
            {
                **{name: pack_array(getattr(stack, name), kind) for name in ("W_0", "b_0", "c")},
                "blocks": [_arrays(block, kind) for block in stack.blocks],
                "backward_pairs": stack.backward_pairs,
            }
            for stack in deep.stacks
        ],
        "U": pack_array(deep.U, kind),
        "intercept": pack_array(deep.intercept, kind),
        "pooled": deep.pooled,
    }


def _arrays(block: Block, kind: str) -> dict[str, Json]:
    return {field.name: pack_array(getattr(block, field.name), kind) for field in fields(block)}


def _layer(layer: Layer, kind: str, readout: str) -> dict[str, Json]:
    """Return a layer; kind, readout: the types of its numbers and of those of its readout."""
    if layer.W_fb is not None and layer.backward.any():
        raise ExportError("feedback=True with bidirectional=True cannot be exported to a page; use one of them.")
    return {
        "W": pack_array(layer.W, kind),
        "W_rec": _rows(layer.W_rec, kind),
        "W_fb": None if layer.W_fb is None else pack_array(layer.W_fb, kind),
        "bias": pack_array(layer.bias, kind),
        "leak": pack_array(layer.leak, kind),
        "initial_state": pack_array(layer.initial_state, kind),
        "backward": pack_array(layer.backward, "u1"),
        "activation": layer.activation,
        "U_states": pack_array(layer.U_states, readout),
        "U_inputs": pack_array(layer.U_inputs, readout),
        "intercept": pack_array(layer.intercept, readout),
        "softmax": layer.softmax,
        "spectral_radius": _spectral_radius(layer.W_rec),
    }


def _rows(matrix: Sparse, kind: str) -> dict[str, Json]:
    return {
        "indptr": pack_array(matrix.indptr, "i4"),
        "indices": pack_array(matrix.indices, "i4"),
        "data": pack_array(matrix.data, kind),
    }


def _spectral_radius(matrix: Sparse) -> float:
    N = len(matrix.indptr) - 1
    arrays = tuple(map(np.array, (matrix.data, matrix.indices, matrix.indptr)))  # a plan's own cannot be written
    return float(spectral_radius_of(sparse.csr_array(arrays, shape=(N, N))))


def _summary(summary: Summary | None) -> dict[str, Json] | None:
    if summary is None:
        return None
    facts: dict[str, Json] = {"washout": summary.washout, "delays": list(summary.delays), "width": THRESHOLD_WIDTH}
    return facts | {"thresholds": pack_array(summary.thresholds)}


def _resumption(resumption: Resumption | None) -> dict[str, Json] | None:
    if resumption is None:
        return None
    return {
        "state": pack_array(resumption.state),
        "fed_back": None if resumption.fed_back is None else pack_array(resumption.fed_back),
        "known": None if resumption.known is None else pack_array(resumption.known),
    }
