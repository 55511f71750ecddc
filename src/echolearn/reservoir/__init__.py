"""The weights of the state equation (eq. 1), and how they are drawn, scaled and adapted to inputs."""

from echolearn.reservoir._activations import register
from echolearn.reservoir._plasticity import intrinsic_plasticity, synaptic_plasticity
from echolearn.reservoir._reservoir import Reservoir

__all__ = ["Reservoir", "intrinsic_plasticity", "register", "synaptic_plasticity"]
