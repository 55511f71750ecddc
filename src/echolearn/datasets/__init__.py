"""Series to forecast and sequences to learn from, each with its equation and its source."""

from echolearn.datasets.chaos import henon, lorenz, rossler
from echolearn.datasets.delay_equations import mackey_glass
from echolearn.datasets.memory import mso, narma
from echolearn.datasets.observed import sunspots
from echolearn.datasets.spatiotemporal import kuramoto_sivashinsky

__all__ = ["henon", "kuramoto_sivashinsky", "lorenz", "mackey_glass", "mso", "narma", "rossler", "sunspots"]
