"""Frames into the inputs of a network, and its outputs into answers: the two ends of a plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from echolearn.runtime.plan import Answer, Clip, FillGaps, InputOperation, Standardize
from echolearn.validation import Array


def encode(operations: Sequence[InputOperation], X: Array, known: Array | None = None) -> Array:
    """Return the inputs (..., n_in) of the first layer for frames (..., n), in float64; the first axis of X is time.

    known: the last known values before these frames, where gaps are filled with them; NaN, or None, for none.
    """
    x = np.asarray(X, np.float64)
    for operation in operations:
        if isinstance(operation, Standardize):
            x = (x - operation.mean) / operation.scale
        elif isinstance(operation, Clip):
            x = np.clip(x, operation.low, operation.high)
        elif isinstance(operation, FillGaps):
            x = _filled(operation, x, known)
        else:
            x = x @ operation.matrix
    return x


def _filled(gaps: FillGaps, x: Array, known: Array | None) -> Array:
    missing = np.isnan(x)
    filled = x
    if missing.any():
        filled = _carried(gaps, x, missing, known) if gaps.carry else np.where(missing, gaps.values, x)
    return np.concatenate([filled, missing[..., gaps.flagged]], axis=-1)


def _carried(gaps: FillGaps, x: Array, missing: Array, known: Array | None) -> Array:
    """Return frames (steps, ..., n) in which each gap has the last known value, and before there is any, its own."""
    before = gaps.values if known is None else np.where(np.isnan(known), gaps.values, known)
    rows = np.concatenate([np.broadcast_to(before, x.shape[1:])[None], x])
    steps = np.arange(1, len(rows)).reshape(-1, *(1,) * (x.ndim - 1))
    newest = np.maximum.accumulate(np.where(missing, 0, steps), axis=0)
    return np.asarray(np.take_along_axis(rows, newest, axis=0))


def last_known(X: Array, known: Array) -> Array:
    """Return the last known values after frames X (steps, ..., n), before which they were `known` (..., n)."""
    for frame in X:
        known = np.where(np.isnan(frame), known, frame)
    return known


def decode(answer: Answer, Y: Array) -> Array:
    """Return the probabilities or values (..., n_out) that outputs stand for, in float64."""
    Y = Y.astype(np.float64)
    if answer.kind == "softmax":
        return softmax(Y)
    if answer.kind == "values":
        return np.asarray(Y * answer.scale + answer.mean)
    if answer.kind == "independent":
        return np.asarray(1 / (1 + np.exp(-np.clip(answer.scale * (Y - 0.5), -500, 500))))
    ordered = -np.sort(-Y, axis=-1)
    amounts = (np.cumsum(ordered, axis=-1) - 1) / np.arange(1, Y.shape[-1] + 1)
    kept = np.maximum((ordered > amounts).sum(axis=-1, keepdims=True), 1)
    P = np.maximum(Y - np.take_along_axis(amounts, kept - 1, axis=-1), 0.0)
    return np.asarray(P / P.sum(axis=-1, keepdims=True))


def labels_or_values(answer: Answer, Y: Array) -> Array:
    """Return what `predict` answers for outputs (..., n_out): labels, rows of labels, values or rows of values."""
    if answer.kind == "values":
        values = decode(answer, Y)
        return np.asarray(values[..., 0] if answer.one_value else values)
    if answer.kind == "independent":
        return (Y > 0.5).astype(np.int64)
    assert answer.labels is not None
    return np.asarray(answer.labels[Y.argmax(axis=-1)])


def softmax(Y: Array) -> Array:
    """Return the softmax along the last axis."""
    P = np.exp(Y - Y.max(axis=-1, keepdims=True))
    return np.asarray(P / P.sum(axis=-1, keepdims=True))
