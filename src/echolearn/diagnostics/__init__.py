"""What a reservoir remembers and forgets."""

from echolearn.diagnostics.measures import echo as echo
from echolearn.diagnostics.measures import linearised as linearised
from echolearn.diagnostics.measures import lyapunov as lyapunov
from echolearn.diagnostics.measures import memory_capacity as memory_capacity
from echolearn.diagnostics.measures import ranks as ranks
