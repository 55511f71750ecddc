"""Memory and stability of reservoirs, with plots; `diagnose` finds what limits a fit."""

from echolearn.diagnostics.capacity import memory_capacity, ranks
from echolearn.diagnostics.diagnosis import diagnose
from echolearn.diagnostics.stability import echo, linearised, lyapunov

__all__ = ["diagnose", "echo", "linearised", "lyapunov", "memory_capacity", "ranks"]
