"""Eq. 1: the states of a reservoir."""

from echolearn.states.harvesting import harvest as harvest
