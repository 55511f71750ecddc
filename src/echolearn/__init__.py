"""Echo state networks whose weights are all learned, by exact gradients through the closed-form readout."""

from echolearn.estimators import ESNClassifier, ESNRegressor
from echolearn.reservoir import Reservoir
from echolearn.storage import load

__version__ = "0.1.0"
__all__ = ["ESNClassifier", "ESNRegressor", "Reservoir", "__version__", "load"]
