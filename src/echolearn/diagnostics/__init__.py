"""What a reservoir remembers and forgets, measured, with plots; and `diagnose`: what limits a fit."""

from echolearn.diagnostics.capacity import MemoryCapacity, Ranks, memory_capacity, ranks
from echolearn.diagnostics.diagnosis import diagnose
from echolearn.diagnostics.findings import Diagnosis, Finding
from echolearn.diagnostics.stability import Echo, Linearised, Lyapunov, echo, linearised, lyapunov

__all__ = [
    "Diagnosis",
    "Echo",
    "Finding",
    "Linearised",
    "Lyapunov",
    "MemoryCapacity",
    "Ranks",
    "diagnose",
    "echo",
    "linearised",
    "lyapunov",
    "memory_capacity",
    "ranks",
]
