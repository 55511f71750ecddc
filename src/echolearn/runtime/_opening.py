"""The two ends of a plan: sequences in, in any form, answers out in the same form, and where a prediction starts.

A prediction or a stream starts cold, after frames that are given for it, or where the training series ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from echolearn.runtime._layers import Running, RunningDeep, RunningLayer, softmax
from echolearn.runtime._plan import Answer, Clip, FillGaps, InputOperation, Plan, Resumption, Standardize
from echolearn.validation import Answers, Array, check_columns

COLD = "cold"
SAME_FRAME_TOLERANCE = 1e-9  # relative difference up to which frames that have passed a pipeline's steps are the same


@dataclass(frozen=True, eq=False)
class OpenedSequences:
    """Checked sequences (steps, features) of floats. kind: "one" array, a "list" of arrays, or a 3-D "stack"."""

    X: list[Array]
    kind: str

    def in_form_of_input(self, results: list[Array]) -> Answers:
        """Return one array per sequence in the form of X."""
        if self.kind == "one":
            return results[0]
        return np.stack(results) if self.kind == "stack" else results


def open_sequences(X: object, plan: Plan, name: str = "X") -> OpenedSequences:
    """Check sequences for a plan; raise ValueError or TypeError with a sentence that says what was expected."""
    for table in X if isinstance(X, (list, tuple)) else (X,):
        if hasattr(table, "columns"):
            check_columns(table, plan.feature_names, name)
    parts, kind = _parts(X, plan, name)
    if not parts:
        raise ValueError(f"{name} is empty; expected at least one sequence of shape (steps, {plan.n_features}).")
    gaps = any(hasattr(operation, "carry") for operation in plan.inputs)  # one of them fills gaps
    checked = [_sequence(x, name if kind == "one" else f"sequence {i} of {name}", plan) for i, x in enumerate(parts)]
    for i, x in enumerate(checked):
        finite = np.isfinite(x)
        if gaps and kind == "stack" and np.isnan(x[-1]).all():
            raise ValueError(
                f"sequence {i} of {name} ends in NaN, which may be padding. Pass a list of sequences without it."
            )
        if not (finite | np.isnan(x) if gaps else finite).all():
            t = int((~finite).any(axis=1).argmax())
            cure = "" if gaps else " Fill the gap, or fit with missing='carry' or missing='mean'."
            raise ValueError(f"sequence {i} of {name} holds NaN or infinity at step {t}.{cure}")
    return OpenedSequences(checked, kind)


def _parts(X: object, plan: Plan, name: str) -> tuple[list[object], str]:
    """Return the sequences of X with time first, and the form of X."""
    turn = _turn(plan.layout)
    if isinstance(X, (list, tuple)) and X and any(_depth(x) >= (1 if plan.layout == "rows" else 2) for x in X):
        return [turn(np.asarray(x)) for x in X], "list"
    if isinstance(X, (dict, str, bytes)):
        raise TypeError(f"{name} is of type {type(X).__name__}; expected an array, a list of arrays or a 3-D array.")
    array = np.asarray(X)
    if plan.layout == "rows" and array.ndim == 2:
        return [turn(x) for x in array], "stack"
    if array.ndim == 3:
        return [turn(x) for x in array], "stack"
    return ([] if array.size == 0 and array.ndim != 2 else [turn(array)]), "one"


def _depth(x: object) -> int:
    """Return the number of axes of an array, or how deep plain lists are nested."""
    if hasattr(x, "ndim"):
        return int(x.ndim)
    depth = 0
    while isinstance(x, (list, tuple)) and len(x):
        x, depth = x[0], depth + 1
    return depth


def _turn(layout: str) -> Callable[[Array], Array]:
    """Return the function that puts time first in one sequence of this layout."""
    if layout == "channels_first":
        return lambda x: x.T if x.ndim == 2 else x[:, None] if x.ndim == 1 else x
    if layout == "rows":
        return lambda x: x[:, None] if x.ndim == 1 else x.T if x.ndim == 2 and len(x) == 1 else x
    return lambda x: x


def _sequence(x: object, name: str, plan: Plan) -> Array:
    """Return one sequence as floats (steps, n_features)."""
    try:
        found = np.asarray(x)
        if found.dtype.kind not in "fiub":
            found = found.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} does not hold numbers; expected an array (steps, {plan.n_features}).") from None
    if found.ndim != 2 or len(found) == 0 or found.shape[1] != plan.n_features:
        cure = " For one feature per step, pass x[:, None]." if found.ndim == 1 and plan.n_features == 1 else ""
        turned = found.ndim == 2 and len(found) == plan.n_features and plan.layout == "time_first"
        cure = " The other axis has as many: pass its transpose." if turned else cure
        raise ValueError(
            f"{name} has shape {found.shape}; expected (steps, {plan.n_features}) with at least one step, as the model "
            f"was fitted with.{cure}"
        )
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float64)


def is_cold(warm_up: object) -> bool:
    """Return whether a prediction is to start in the initial state."""
    return isinstance(warm_up, str) and warm_up == COLD


def check_can_warm_up(plan: Plan) -> None:
    """Refuse a warm-up where there is nothing to warm up."""
    if not plan.per_step:
        raise ValueError("warm_up is for one answer per step; this model answers for whole sequences. Leave it out.")
    if plan.runs_backward:
        raise ValueError("warm_up with bidirectional=True: half of the units start at the end of X. Leave it out.")


def check_can_stream(plan: Plan) -> None:
    """Refuse to run frame by frame what needs the end of a sequence."""
    if not plan.per_step and plan.summary is None:
        raise ValueError(
            f"{plan.estimator} answers for whole series, whose end a stream has not seen. Predict whole series, or fit "
            "a network with one target per step."
        )
    if plan.runs_backward:
        raise ValueError(
            "bidirectional=True: half of the units begin at the end of a sequence, which a stream has not seen. "
            "Predict whole sequences, or fit a network with bidirectional=False."
        )


def training_end(plan: Plan, x: Array) -> Resumption | None:
    """Return the end of training if frames x may follow it: there was one series, and x is not that series itself."""
    end = plan.resumption
    if end is None or end.opening is None or plan.series_dims is not None:
        return end if plan.series_dims is None else None
    seen = x[: len(end.opening)]
    if not plan.steps:
        same = np.array_equal(seen, end.opening[: len(seen)], equal_nan=True)
    else:  # the network has seen what the steps of the pipeline made of the frames
        seen, opening = encode(plan.inputs[: plan.steps], seen), end.opening[: len(seen)]
        same = np.allclose(
            seen,
            opening,
            rtol=SAME_FRAME_TOLERANCE,
            atol=SAME_FRAME_TOLERANCE * np.abs(opening).max(initial=0),
            equal_nan=True,
        )
    return None if same else end


def running_from(network: RunningLayer | RunningDeep, end: Resumption) -> Running:
    """Return where a network stands at the end of training."""
    y = network.start().y if end.fed_back is None else end.fed_back.astype(network.dtype)
    return Running(end.state.astype(network.dtype), y)


def encode(operations: Sequence[InputOperation], X: Array, known: Array | None = None) -> Array:
    """Return the inputs (..., n_in) of the first layer for frames (..., n), in float64; the first axis of X is time.
    known: the last known values before these frames, where gaps are filled with them; NaN or None: none."""
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
