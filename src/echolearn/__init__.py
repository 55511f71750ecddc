"""Echo state networks whose weights are all learned, by exact gradients through the closed-form readout."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echolearn.estimators._forecaster import ESNForecaster
    from echolearn.estimators._nvar import NVARForecaster
    from echolearn.estimators.classifier import ESNClassifier
    from echolearn.estimators.es2n import ES2NFeatures
    from echolearn.estimators.features import ReservoirFeatures
    from echolearn.estimators.framewise import FrameWise
    from echolearn.estimators.loading import load
    from echolearn.estimators.pipelines import save, stream
    from echolearn.estimators.regressor import ESNRegressor
    from echolearn.estimators.stacked import StackedClassifier, StackedRegressor
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
    "ES2NFeatures": "estimators.es2n",
    "ESNClassifier": "estimators.classifier",
    "ESNForecaster": "estimators._forecaster",
    "ESNRegressor": "estimators.regressor",
    "FrameWise": "estimators.framewise",
    "NVARForecaster": "estimators._nvar",
    "Reservoir": "reservoir",
    "ReservoirFeatures": "estimators.features",
    "StackedClassifier": "estimators.stacked",
    "StackedRegressor": "estimators.stacked",
    "backtest": "tuning",
    "load": "estimators.loading",
    "save": "estimators.pipelines",
    "stream": "estimators.pipelines",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"echolearn.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'echolearn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
