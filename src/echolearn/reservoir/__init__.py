"""The weights of the state equation (eq. 1), and how they are drawn, scaled and adapted to inputs."""

from echolearn.reservoir.reservoir import Reservoir as Reservoir
from echolearn.reservoir.spectrum import EchoStateWarning as EchoStateWarning
