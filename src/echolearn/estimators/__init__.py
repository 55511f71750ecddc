"""The scikit-learn estimators, and the functions that save, load and stream them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echolearn.estimators._classifier import ESNClassifier
    from echolearn.estimators._features import ES2NFeatures, ReservoirFeatures
    from echolearn.estimators._forecaster import ESNForecaster
    from echolearn.estimators._framewise import FrameWise
    from echolearn.estimators._functions import load, save, stream
    from echolearn.estimators._nvar import NVARForecaster
    from echolearn.estimators._regressor import ESNRegressor
    from echolearn.estimators._stacked import StackedClassifier, StackedRegressor

__all__ = [
    "ES2NFeatures",
    "ESNClassifier",
    "ESNForecaster",
    "ESNRegressor",
    "FrameWise",
    "NVARForecaster",
    "ReservoirFeatures",
    "StackedClassifier",
    "StackedRegressor",
    "load",
    "save",
    "stream",
]

# Imported at first use: a classifier loads neither forecasts nor stacks.
_HOMES = {
    "ES2NFeatures": "_features",
    "ESNClassifier": "_classifier",
    "ESNForecaster": "_forecaster",
    "ESNRegressor": "_regressor",
    "FrameWise": "_framewise",
    "NVARForecaster": "_nvar",
    "ReservoirFeatures": "_features",
    "StackedClassifier": "_stacked",
    "StackedRegressor": "_stacked",
    "load": "_functions",
    "save": "_functions",
    "stream": "_functions",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
