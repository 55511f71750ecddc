"""Export of fitted models to ONNX files, headers in C and pages for the browser."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echolearn.export.plan import Plan
    from echolearn.export.planning import plan_of
    from echolearn.export.writing import export_model

__all__ = ["Plan", "export_model", "plan_of"]

# Imported at first use: the service of a small model loads no compiled code.
_HOMES = {"Plan": "plan", "export_model": "writing", "plan_of": "planning"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
