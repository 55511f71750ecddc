"""The plan of a model (`echolearn.runtime.plan`), and the refusal of what needs whole sequences, for all exports."""

from __future__ import annotations

from collections.abc import Sequence

from echolearn.exceptions import ExportError
from echolearn.runtime.plan import (
    Answer,
    Clip,
    FillGaps,
    InputOperation,
    Layer,
    Passing,
    Plan,
    Pooling,
    Project,
    Resumption,
    Sparse,
    Standardize,
)

__all__ = [
    "Answer",
    "Clip",
    "ExportError",
    "FillGaps",
    "InputOperation",
    "Layer",
    "Passing",
    "Plan",
    "Pooling",
    "Project",
    "Resumption",
    "Sparse",
    "Standardize",
    "check_runs_forward",
]


def check_runs_forward(plan: Plan, what: str, allowed: Sequence[str]) -> None:
    """Raise ExportError if answers need the end of a sequence; allowed: the kinds of pooling that do not."""
    if plan.pooling is not None and plan.pooling.kind not in allowed:
        value = plan.pooling.parts if plan.pooling.kind == "parts" else repr(plan.pooling.kind)
        raise ExportError(
            f"pooling={value} cannot be exported to {what}: its readout sees whole sequences. Export the sequence "
            "graph of ONNX (step=False), or fit a network with pooling='mean' or 'last'."
        )
    if any(layer.backward.any() for layer in plan.layers):
        raise ExportError(
            f"bidirectional=True cannot be exported to {what}: half of the units begin at the end of a sequence. "
            "Export the sequence graph of ONNX (step=False), or fit a network with bidirectional=False."
        )
