"""The states of a reservoir, computed from input sequences by the state equation (eq. 1)."""

from echolearn.states.harvesting import harvest

__all__ = ["harvest"]
