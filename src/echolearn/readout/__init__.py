"""Statistics of the states, and the readouts that are fitted to them.

The names below are documented under their former paths; `sums` is the former name of `statistics_of`.
"""

from echolearn.readout.observation import stack as stack
from echolearn.readout.ridge import choose_ridge as choose_ridge
from echolearn.readout.ridge import solve as solve
from echolearn.readout.ridge import squared_error as squared_error
from echolearn.readout.statistics import statistics_of as sums

__all__ = ["choose_ridge", "solve", "squared_error", "stack", "sums"]
