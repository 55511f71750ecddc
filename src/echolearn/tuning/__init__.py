"""Search for settings with Optuna, and backtests of forecasts."""

from echolearn.tuning.results import Trial as Trial
from echolearn.tuning.results import Tuning as Tuning
from echolearn.tuning.search import tune as tune
