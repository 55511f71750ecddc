"""The weights of the state equation."""

from echolearn.reservoir.reservoir import Reservoir as Reservoir
