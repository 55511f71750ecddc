"""Echo state networks whose weights are all learned, by exact gradients through the closed-form readout."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echolearn.classifier import ESNClassifier
    from echolearn.forecaster import ESNForecaster
    from echolearn.framewise import FrameWise
    from echolearn.regressor import ESNRegressor
    from echolearn.reservoir import Reservoir
    from echolearn.stacked import StackedClassifier, StackedRegressor
    from echolearn.storage import load

__version__ = "0.1.0"
__all__ = [
    "ESNClassifier",
    "ESNForecaster",
    "ESNRegressor",
    "FrameWise",
    "Reservoir",
    "StackedClassifier",
    "StackedRegressor",
    "__version__",
    "load",
]

# Imported at first use: the command line answers --help long before NumPy, scikit-learn and numba are there.
_HOMES = {
    "ESNClassifier": "classifier",
    "ESNForecaster": "forecaster",
    "ESNRegressor": "regressor",
    "FrameWise": "framewise",
    "Reservoir": "reservoir",
    "StackedClassifier": "stacked",
    "StackedRegressor": "stacked",
    "load": "storage",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"echolearn.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'echolearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
