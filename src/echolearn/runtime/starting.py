"""The start of a prediction or a stream: cold, after given frames, or where the training series ended."""

from __future__ import annotations

import numpy as np

from echolearn.runtime.coding import encode
from echolearn.runtime.plan import Plan, Resumption
from echolearn.runtime.running import Running, RunningLayers
from echolearn.validation import Array

COLD = "cold"
SAME = 1e-9  # relative difference up to which frames that have passed the steps of a pipeline are the same


def is_cold(warm_up: object) -> bool:
    """Return whether a prediction is to start in the initial state."""
    return isinstance(warm_up, str) and warm_up == COLD


def check_can_warm_up(plan: Plan) -> None:
    """Refuse a warm-up where there is nothing to warm up."""
    if plan.pooling is not None:
        raise ValueError("warm_up is for one answer per step; this model answers for whole sequences. Leave it out.")
    if any(layer.backward.any() for layer in plan.layers):
        raise ValueError("warm_up with bidirectional=True: half of the units start at the end of X. Leave it out.")


def check_can_stream(plan: Plan) -> None:
    """Refuse to run frame by frame what needs the end of a sequence."""
    if plan.pooling is not None and plan.pooling.kind not in ("mean", "last"):
        value = plan.pooling.parts if plan.pooling.kind == "parts" else repr(plan.pooling.kind)
        raise ValueError(
            f"pooling={value} needs the end of a sequence, which a stream has not seen; it knows 'mean' and 'last'. "
            "Predict whole sequences, or fit a network with one of these."
        )
    if any(layer.backward.any() for layer in plan.layers):
        raise ValueError(
            "bidirectional=True: half of the units begin at the end of a sequence, which a stream has not seen. "
            "Predict whole sequences, or fit a network with bidirectional=False."
        )


def training_end(plan: Plan, x: Array) -> Resumption | None:
    """Return the end of training if frames x may follow it: there was one series, and x is not that series itself."""
    end = plan.resumption
    if end is None or end.opening is None or plan.horizon is not None:
        return end if plan.horizon is None else None
    seen = x[: len(end.opening)]
    if not plan.steps:
        same = np.array_equal(seen, end.opening[: len(seen)], equal_nan=True)
    else:  # the network has seen what the steps of the pipeline made of the frames
        seen, opening = encode(plan.inputs[: plan.steps], seen), end.opening[: len(seen)]
        same = np.allclose(seen, opening, rtol=SAME, atol=SAME * np.abs(opening).max(initial=0), equal_nan=True)
    return None if same else end


def running_from(layers: RunningLayers, end: Resumption) -> list[Running]:
    """Return where the layers stand at the end of training; only single networks have one."""
    (begin,) = layers.start()
    y = begin.y if end.fed_back is None else end.fed_back.astype(layers.dtype)
    return [Running(end.state.astype(layers.dtype), y)]
