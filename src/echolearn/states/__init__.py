"""The states of a reservoir (eq. 1)."""

from echolearn.states.harvesting import harvest as harvest
