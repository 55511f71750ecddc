"""The memory that this process may still take."""

from __future__ import annotations

import os
from pathlib import Path


def available_memory() -> float | None:
    """Return the bytes that this process may still take: by machine, container and its own limit; None: unknown."""
    limits = [_machine_memory(), _control_group_memory(), _process_memory()]
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None


def _machine_memory() -> float | None:
    """Return the bytes that the machine has free."""
    for line in _read_text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return float(line.split()[1]) * 1024
    return None


def _control_group_memory() -> float | None:
    """Return the bytes that the control group may still take, by either version of its files."""
    folder = "/sys/fs/cgroup/"
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        texts = _read_text(folder + limit).strip(), _read_text(folder + used).strip()
        if all(text.isdigit() for text in texts):
            return float(texts[0]) - float(texts[1])
    return None


def _process_memory() -> float | None:
    """Return the bytes that the limit on this process's address space leaves."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    size = _read_text("/proc/self/statm").split()
    if limit == resource.RLIM_INFINITY or not size:
        return None
    return float(limit) - float(size[0]) * os.sysconf("SC_PAGE_SIZE")


def _read_text(path: str) -> str:
    """Return a file's text, or nothing where the file does not exist or cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
