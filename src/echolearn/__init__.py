"""Echo state networks that learn all their weights, by exact gradients through the closed-form readout.

`Series*` and direct forecasts learn the readout alone.
"""

from typing import TYPE_CHECKING

from echolearn._lazy import names_at_first_use

if TYPE_CHECKING:
    from echolearn.estimators import (
        DeepESNClassifier,
        DeepESNRegressor,
        ES2NFeatures,
        ESNClassifier,
        ESNForecaster,
        ESNRegressor,
        FrameWise,
        NVARForecaster,
        ReservoirFeatures,
        SeriesClassifier,
        SeriesRegressor,
        load,
        save,
        stream,
    )
    from echolearn.reservoir import Reservoir
    from echolearn.tuning import backtest

__version__ = "0.3.0"
__all__ = [
    "DeepESNClassifier",
    "DeepESNRegressor",
    "ES2NFeatures",
    "ESNClassifier",
    "ESNForecaster",
    "ESNRegressor",
    "FrameWise",
    "NVARForecaster",
    "Reservoir",
    "ReservoirFeatures",
    "SeriesClassifier",
    "SeriesRegressor",
    "__version__",
    "backtest",
    "load",
    "save",
    "stream",
]

# Imported at first use: the command line answers --help long before NumPy, scikit-learn and numba are there.
__getattr__, __dir__ = names_at_first_use(
    __name__,
    {
        "estimators": [name for name in __all__ if name not in ("Reservoir", "__version__", "backtest")],
        "reservoir": ("Reservoir",),
        "tuning": ("backtest",),
    },
)
