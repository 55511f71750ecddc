"""The weights of the state equation (eq. 1), and how they are drawn, scaled and adapted to inputs."""

from echolearn.reservoir.activations import register
from echolearn.reservoir.plasticity import intrinsic_plasticity
from echolearn.reservoir.reservoir import Reservoir

__all__ = ["Reservoir", "intrinsic_plasticity", "register"]
