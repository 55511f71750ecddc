"""The states of a reservoir under given inputs (eq. 1)."""

from echolearn.states.harvesting import harvest as harvest
