"""Echo state networks whose weights are all learned, by exact gradients through the closed-form readout."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echolearn.estimators import (
        ES2NFeatures,
        ESNClassifier,
        ESNForecaster,
        ESNRegressor,
        FrameWise,
        NVARForecaster,
        ReservoirFeatures,
        StackedClassifier,
        StackedRegressor,
        load,
        save,
        stream,
    )
    from echolearn.reservoir import Reservoir
    from echolearn.tuning import backtest

__version__ = "0.2.0"
__all__ = [
    "ES2NFeatures",
    "ESNClassifier",
    "ESNForecaster",
    "ESNRegressor",
    "FrameWise",
    "NVARForecaster",
    "Reservoir",
    "ReservoirFeatures",
    "StackedClassifier",
    "StackedRegressor",
    "__version__",
    "backtest",
    "load",
    "save",
    "stream",
]

# Imported at first use: the command line answers --help long before NumPy, scikit-learn and numba are there.
_HOMES = {
    "ES2NFeatures": "estimators",
    "ESNClassifier": "estimators",
    "ESNForecaster": "estimators",
    "ESNRegressor": "estimators",
    "FrameWise": "estimators",
    "NVARForecaster": "estimators",
    "Reservoir": "reservoir",
    "ReservoirFeatures": "estimators",
    "StackedClassifier": "estimators",
    "StackedRegressor": "estimators",
    "backtest": "tuning",
    "load": "estimators",
    "save": "estimators",
    "stream": "estimators",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"echolearn.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'echolearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
