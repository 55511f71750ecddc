"""The memory of this process, as Linux reports it, and a limit to it."""

from __future__ import annotations

import resource
from pathlib import Path


def process_bytes(name: str) -> int:
    """Return an entry of /proc/self/status: VmSize (address space), VmRSS (resident), or their peaks VmPeak, VmHWM."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def limit_growth(more: int) -> int:
    """Let the address space grow by at most `more` bytes from now on, and return the limit."""
    limit = process_bytes("VmSize") + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    return limit
