"""Fitted models for other places: ONNX and C. What every export is written from is a `Plan`."""

from echolearn.export.plan import ExportError, Plan
from echolearn.export.planning import plan_of
from echolearn.export.writing import export_model

__all__ = ["ExportError", "Plan", "export_model", "plan_of"]
