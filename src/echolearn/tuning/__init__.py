"""Search for good settings of an estimator with Optuna, and backtests of forecasts from rolling origins."""

from echolearn.tuning.results import Trial as Trial
from echolearn.tuning.results import Tuning as Tuning
from echolearn.tuning.search import tune as tune
