"""The scikit-learn estimators, and the functions that save, load and stream them."""

from typing import TYPE_CHECKING

from echolearn._lazy import names_at_first_use

if TYPE_CHECKING:
    from echolearn.estimators._classifier import ESNClassifier
    from echolearn.estimators._deep_esn import DeepESNClassifier, DeepESNRegressor
    from echolearn.estimators._features import ES2NFeatures, ReservoirFeatures
    from echolearn.estimators._forecaster import ESNForecaster
    from echolearn.estimators._framewise import FrameWise
    from echolearn.estimators._functions import load, save, stream
    from echolearn.estimators._nvar import NVARForecaster
    from echolearn.estimators._regressor import ESNRegressor
    from echolearn.estimators._series import SeriesClassifier, SeriesRegressor

__all__ = [
    "DeepESNClassifier",
    "DeepESNRegressor",
    "ES2NFeatures",
    "ESNClassifier",
    "ESNForecaster",
    "ESNRegressor",
    "FrameWise",
    "NVARForecaster",
    "ReservoirFeatures",
    "SeriesClassifier",
    "SeriesRegressor",
    "load",
    "save",
    "stream",
]

# Imported at first use: a classifier loads neither forecasts nor deep networks.
__getattr__, __dir__ = names_at_first_use(
    __name__,
    {
        "_classifier": ("ESNClassifier",),
        "_deep_esn": ("DeepESNClassifier", "DeepESNRegressor"),
        "_features": ("ES2NFeatures", "ReservoirFeatures"),
        "_forecaster": ("ESNForecaster",),
        "_framewise": ("FrameWise",),
        "_functions": ("load", "save", "stream"),
        "_nvar": ("NVARForecaster",),
        "_regressor": ("ESNRegressor",),
        "_series": ("SeriesClassifier", "SeriesRegressor"),
    },
)
