"""Scores and errors for sequences of different lengths, and errors of forecasts of chaotic series.

`SCORERS` lists the names that `scorer` accepts. See docs/howto/scikit_learn.md for a table of what scikit-learn can do
with which data.
"""

from echolearn.metrics._forecast_errors import valid_time
from echolearn.metrics._scorers import SCORERS, cross_val_predict, joined, nrmse, permutation_importance, scorer

__all__ = ["SCORERS", "cross_val_predict", "joined", "nrmse", "permutation_importance", "scorer", "valid_time"]
