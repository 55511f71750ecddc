"""Saved models that run with NumPy alone, for machines without the whole library: load, predict and stream."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echolearn.runtime._loader import plan_from_contents as plan_from_contents
    from echolearn.runtime._model import Model as Model
    from echolearn.runtime._model import load as load
    from echolearn.runtime._plan import Plan as Plan
    from echolearn.runtime._streams import Streams as Streams

__all__ = ["Model", "load"]

# Imported at first use: an estimator loads them when it is exported or streams for several devices.
_HOMES = {
    "Model": "_model",
    "Plan": "_plan",
    "Streams": "_streams",
    "load": "_model",
    "plan_from_contents": "_planning",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
