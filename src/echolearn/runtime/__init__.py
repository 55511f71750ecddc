"""Saved models that run with NumPy alone, for machines without the whole library: load, predict and stream."""

from typing import TYPE_CHECKING

from echolearn._lazy import names_at_first_use

if TYPE_CHECKING:
    from echolearn.runtime._loader import plan_from_contents as plan_from_contents
    from echolearn.runtime._model import Model as Model
    from echolearn.runtime._model import load as load
    from echolearn.runtime._plan import Plan as Plan
    from echolearn.runtime._streams import Streams as Streams

__all__ = ["Model", "load"]

# Imported at first use: an estimator loads them when it is exported or streams for several devices.
__getattr__, __dir__ = names_at_first_use(
    __name__,
    {"_loader": ("plan_from_contents",), "_model": ("Model", "load"), "_plan": ("Plan",), "_streams": ("Streams",)},
)
