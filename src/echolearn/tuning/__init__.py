"""Search for good settings of an estimator with Optuna, and backtests of forecasts from rolling origins."""

from echolearn.tuning._backtest import backtest
from echolearn.tuning._search import tune

__all__ = ["backtest", "tune"]
