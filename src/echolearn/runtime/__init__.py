"""Saved models that run with NumPy alone, for machines without the whole library: load, predict and stream."""

from echolearn.runtime._model import Model, load

__all__ = ["Model", "load"]
