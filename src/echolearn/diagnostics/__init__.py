"""Memory and stability of reservoirs, with plots; `diagnose` finds what limits a fit; `Monitor` watches streams."""

from echolearn.diagnostics.capacity import MemoryCapacity, Ranks, memory_capacity, ranks
from echolearn.diagnostics.diagnosis import diagnose
from echolearn.diagnostics.drift import PageHinkley
from echolearn.diagnostics.findings import Diagnosis, Finding
from echolearn.diagnostics.guarding import GuardedStream, Rollback
from echolearn.diagnostics.monitoring import Monitor, Observation, Observations
from echolearn.diagnostics.stability import Echo, Linearised, Lyapunov, echo, linearised, lyapunov

__all__ = [
    "Diagnosis",
    "Echo",
    "Finding",
    "GuardedStream",
    "Linearised",
    "Lyapunov",
    "MemoryCapacity",
    "Monitor",
    "Observation",
    "Observations",
    "PageHinkley",
    "Ranks",
    "Rollback",
    "diagnose",
    "echo",
    "linearised",
    "lyapunov",
    "memory_capacity",
    "ranks",
]
