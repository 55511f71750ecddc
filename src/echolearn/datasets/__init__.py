"""Series to forecast and sequences to learn from, each with its equation and its source."""

from echolearn.datasets.chaos import henon, lorenz, rossler
from echolearn.datasets.delay_equations import mackey_glass
from echolearn.datasets.devices import double_scroll, laser
from echolearn.datasets.memory import mso, narma
from echolearn.datasets.observed import sunspots
from echolearn.datasets.spatiotemporal import kuramoto_sivashinsky, lorenz_96

__all__ = [
    "double_scroll",
    "henon",
    "kuramoto_sivashinsky",
    "laser",
    "lorenz",
    "lorenz_96",
    "mackey_glass",
    "mso",
    "narma",
    "rossler",
    "sunspots",
]
