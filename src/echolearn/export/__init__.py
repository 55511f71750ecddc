"""Export of fitted models to ONNX files, headers in C and pages for the browser."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echolearn.export.plan import plan_of
    from echolearn.export.write import export_model

__all__ = ["export_model", "plan_of"]

# Imported at first use: the service of a small model loads no compiled code.
_HOMES = {"export_model": "write", "plan_of": "plan"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
