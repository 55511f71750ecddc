"""Series to forecast and sequences to learn from, as functions: each with its equation and where it comes from."""

from echolearn.datasets.chaos import henon, kuramoto_sivashinsky, lorenz, mackey_glass, rossler
from echolearn.datasets.memory import mso, narma
from echolearn.datasets.observed import sunspots

__all__ = ["henon", "kuramoto_sivashinsky", "lorenz", "mackey_glass", "mso", "narma", "rossler", "sunspots"]
