"""Names of a package that are imported at first use, so that only what is used is loaded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def names_at_first_use(
    package: str, homes: Mapping[str, Collection[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package; homes: the names in each module, relative to the package."""
    modules = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name in modules:
            return getattr(import_module(f".{modules[name]}", package), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted({*vars(sys.modules[package]), *modules})
