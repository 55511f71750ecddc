"""Eq. 1: the states of a reservoir."""

from echolearn.states.run import harvest as harvest
