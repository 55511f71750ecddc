"""The states of a reservoir, computed from input sequences by the state equation (eq. 1)."""

from echolearn.states._harvest import harvest

__all__ = ["harvest"]
