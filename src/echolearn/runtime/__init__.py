"""Saved models that run with NumPy alone, for machines without the whole library: load, predict and stream."""

from echolearn.runtime.model import Model, load
from echolearn.runtime.plan import Plan
from echolearn.runtime.planning import plan_from_contents
from echolearn.runtime.streams import Stream, Streams

__all__ = ["Model", "Plan", "Stream", "Streams", "load", "plan_from_contents"]
