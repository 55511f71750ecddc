"""Export of fitted models to ONNX files, headers in C and pages for the browser."""

from typing import TYPE_CHECKING

from echolearn._lazy import names_at_first_use

if TYPE_CHECKING:
    from echolearn.export.plan import plan_of
    from echolearn.export.write import export_model

__all__ = ["export_model", "plan_of"]

# Imported at first use: the service of a small model loads no compiled code.
__getattr__, __dir__ = names_at_first_use(__name__, {"plan": ("plan_of",), "write": ("export_model",)})
