"""What a reservoir remembers and forgets, measured; every result can be plotted."""

from echolearn.diagnostics.capacity import MemoryCapacity, Ranks, memory_capacity, ranks
from echolearn.diagnostics.stability import Echo, Linearised, Lyapunov, echo, linearised, lyapunov

__all__ = [
    "Echo",
    "Linearised",
    "Lyapunov",
    "MemoryCapacity",
    "Ranks",
    "echo",
    "linearised",
    "lyapunov",
    "memory_capacity",
    "ranks",
]
