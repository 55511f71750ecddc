"""Search for good settings of an estimator with Optuna, and backtests of forecasts from rolling origins."""

from echolearn.tuning.backtesting import backtest
from echolearn.tuning.search import tune

__all__ = ["backtest", "tune"]
